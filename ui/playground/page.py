"""What the Playground page is made of: controls, the board, and the losses that are not offered."""

from __future__ import annotations

from typing import Any

import streamlit as st

from lab.playground.placement import PLANE, SPACES, Placement
from lab.playground.presets import STARTS
from lab.playground.setup import (
    MOST_LOSSES,
    Setup,
    built,
    closeness,
    offered,
    options_of,
    read_setup,
    why_not,
)
from losslib import catalog
from ui.controls import control
from ui.playground.link import (
    DEFAULTS,
    FIRST,
    FOLLOW,
    LOSSES,
    NORMALISE,
    POINTS,
    RATE,
    RATES,
    SELECTED,
    SPACE,
    board_state,
    keep,
    option_key,
)
from ui.playground.panel import board


def setup_controls() -> tuple[list[str], str, bool]:
    """Which losses look, on which space, and whether distances normalise."""
    left, middle, right = st.columns([5, 2, 2], gap="medium", vertical_alignment="bottom")
    given: dict[str, Any] = {} if LOSSES in st.session_state else {"default": FIRST}
    chosen = left.multiselect(
        "Losses",
        list(offered()),
        max_selections=MOST_LOSSES,
        key=LOSSES,
        bind="query-params",
        help=f"One to {MOST_LOSSES} losses look at the same points at once.",
        **given,
    )
    space = middle.segmented_control(
        "Points live on the",
        SPACES,
        default=PLANE,
        key=SPACE,
        bind="query-params",
        help="On the unit circle every embedding has length 1, as after L2 normalisation.",
    )
    normalise = right.toggle(
        "Normalise",
        False,
        key=NORMALISE,
        bind="query-params",
        help="Whether distances divide embeddings by their length first, as the losses do by default. "
        "Off, Euclidean distances and dot products measure the plane as it is.",
    )
    return chosen or FIRST[:1], space or PLANE, bool(normalise)


def option_controls(names: list[str]) -> list[list[Any]]:
    """The options of each chosen loss; [name, {option: text}] each."""
    found = []
    for name in names:
        params = options_of(offered()[name])
        st.markdown(f"**{offered()[name].title}**")
        if not params:
            st.caption("It has no options to turn.")
        texts = {key: control(param, option_key(name, key)) for key, param in params.items()}
        found.append([name, texts])
    return found


def setup_of(losses: list[list[Any]], space: str, normalise: bool) -> tuple[dict[str, Any], list[str]]:
    """The setup as the board sends it, and what is said of each loss. Raises ParameterError."""
    message = {"losses": losses, "space": space, "normalise": normalise}
    setup: Setup = read_setup(message)
    return message, [closeness(built(chosen, normalise), setup) for chosen in setup.losses]


def show(setup: dict[str, Any], said: list[str], placement: Placement) -> None:
    """The board itself."""
    kept = board_state()
    board(
        {
            "setup": setup,
            "titles": [catalog.get(name).title for name, _ in setup["losses"]],
            "names": [name for name, _ in setup["losses"]],
            "closeness": said,
            "points": placement.to_text(),
            "rate": kept[RATE],
            "follow": kept[FOLLOW],
            "selected": kept[SELECTED],
            "defaults": {POINTS: STARTS[0].placement.to_text(), **DEFAULTS},
            "rates": list(RATES),
            "starts": [[start.title, start.look, start.placement.to_text()] for start in STARTS],
        },
        keep,
    )


def not_offered() -> None:
    """The losses that cannot look at points placed by hand, with the reason."""
    rest = {name: why_not(cls) for name, cls in catalog.losses().items() if name not in offered()}
    with st.expander(f"{len(rest)} losses are not offered here, and why"):
        for reason in dict.fromkeys(rest.values()):
            names = ", ".join(f"`{name}`" for name, own in rest.items() if own == reason)
            st.markdown(f"- {names}: {reason}")
