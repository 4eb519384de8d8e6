"""What the home page is made of. Nothing heavy is imported: it is the first thing a visitor waits for."""

from __future__ import annotations

import base64
import html
from dataclasses import dataclass

import streamlit as st

from lab import glossary
from lab import presets as shipped
from lab.presets import FAILURE, GOOD, Preset
from lab.presets.picture import caption, picture, summary
from ui.navigation import PageEntry, entries

TERMS = ("encoder", "embedding", "pair", "loss", "margin", "temperature", "held-out data", "recall@1")
TITLES = {GOOD: "Start from something worth seeing", FAILURE: "Failures on purpose, each with its cure"}

PICTURES = (
    "Recorded runs, a click from running. Left the map of embeddings, a colour a class; right the distances "
    "or similarities of positive pairs (blue, up) and negative pairs (orange, down)."
)

# The whole card is the link; Streamlit's own wrappers would otherwise catch it.
STYLE = """
[class*="st-key-preset-"] { position: relative; transition: border-color 120ms; }
[class*="st-key-preset-"] [data-testid="stElementContainer"],
[class*="st-key-preset-"] [data-testid="stPageLink"],
[class*="st-key-preset-"] [data-testid="stPageLink"] * { position: static; }
[class*="st-key-preset-"] a::after { content: ""; position: absolute; inset: 0; border-radius: inherit; }
[class*="st-key-preset-"]:hover, [class*="st-key-preset-"]:focus-within { border-color: var(--lab-primary); }
.preset-picture { display: block; width: 100%; aspect-ratio: 2; }
"""


def introduction() -> None:
    """Two sentences."""
    st.markdown(
        "Loss Lab trains a small encoder before your eyes and shows what a metric loss does to it: the map "
        "of embeddings, the distances of positive and negative pairs with the margin or temperature drawn on "
        "them, and the retrieval quality on data it never saw. Turn the margin, the temperature or the "
        "learning rate while it trains, and every view follows."
    )


def presets() -> None:
    """Cards with pictures that open the Train page on a recording."""
    look = theme()
    st.html(f"<style>:root {{ --lab-primary: {look.primary}; }} {STYLE}</style>")
    for kind, title in TITLES.items():
        st.header(title, anchor=False)
        if kind == GOOD:
            st.caption(PICTURES)
        found = [preset for preset in shipped.presets() if preset.kind == kind]
        for row in range(0, len(found), 3):
            for column, preset in zip(st.columns(3), found[row : row + 3], strict=False):
                with column.container(border=True, height="stretch", key=f"preset-{preset.name}"):
                    card(preset, look)


def card(preset: Preset, look: Theme) -> None:
    """Picture, title and what to look for."""
    drawn = base64.b64encode(picture(preset, look.palette, look.ink).encode()).decode()
    words = html.escape(summary(preset), quote=True)
    st.html(f'<img class="preset-picture" alt="{words}" src="data:image/svg+xml;base64,{drawn}">')
    st.page_link(
        "pages/train.py",
        label=f"**{preset.title}**",
        icon=":material/play_circle:",
        query_params={"preset": preset.name, **preset.settings},
    )
    st.caption(caption(preset))
    st.markdown(preset.look)
    if preset.cure:
        st.markdown(f"**Cure.** {preset.cure}")


@dataclass(frozen=True)
class Theme:
    """Colours of the page as it is shown, light or dark."""

    palette: tuple[str, ...]
    ink: str
    primary: str


def theme() -> Theme:
    """From the configuration; without a browser it is the light one."""
    section = f"theme.{st.context.theme.type or 'light'}"
    return Theme(
        palette=tuple(st.get_option(f"{section}.chartCategoricalColors")),
        ink=str(st.get_option(f"{section}.textColor")),
        primary=str(st.get_option(f"{section}.primaryColor")),
    )


def doors() -> None:
    """A card for each group of pages: groups of one page share the first column, each other has its own.

    Under the first column's cards stands what the words mean.
    """
    groups: dict[str, list[PageEntry]] = {}
    for entry in entries()[1:]:
        groups.setdefault(entry.group, []).append(entry)
    shared = {group: pages for group, pages in groups.items() if len(pages) == 1}
    columns = [shared, *({group: groups[group]} for group in groups if group not in shared)]
    places = st.columns(len(columns))
    for place, one in zip(places, columns, strict=True):
        for group, pages in one.items():
            with place.container(border=True, height="content" if one is shared else "stretch"):
                door(group, pages)
    with places[0]:
        words()


def door(group: str, pages: list[PageEntry]) -> None:
    """The pages of a group, each with its line."""
    if [entry.title for entry in pages] != [group]:
        st.header(group, anchor=False)
    for entry in pages:
        st.page_link(entry.path, label=f"**{entry.title}**", icon=":material/arrow_forward:")
        st.caption(entry.summary)


def words() -> None:
    """What the words on this page mean."""
    with st.expander("What the words mean"):
        st.markdown("\n".join(f"- **{term}**: {glossary.define(term)}" for term in TERMS))


def tell_refused() -> None:
    """A link's keys change nothing here, and that is said."""
    if st.query_params:
        keys = ", ".join(f"`{str(key)[:30]}`" for key in list(st.query_params)[:5])
        st.warning(
            f"Home has no settings, so {keys} in the link changes nothing. Settings of a run go to Train."
        )
