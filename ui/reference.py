"""What the Reference page is made of: the index of losses, and one loss from its declaration."""

from __future__ import annotations

from typing import Any

import streamlit as st

from losslib import catalog
from losslib.errors import ParameterError
from losslib.params import Param
from ui import focus
from ui.figures.show import save

PREFIX = "reference."
SEARCH, FAMILY, LOSS = (f"{PREFIX}{name}" for name in ("search", "family", "loss"))
MORE = {"bool": "true: ", "choice": ""}  # what stands for "larger" where values have no order
EVERY, FIRST = "all", "ContrastiveLoss"

# The index scrolls beside the loss, and is short above it on a narrow screen; wide things scroll inside.
STYLE = """
.st-key-reference-list { max-height: 70rem; overflow-y: auto; }
.st-key-reference-list button { text-align: left; justify-content: flex-start; }
.st-key-reference-shown table { display: block; overflow-x: auto; }
.st-key-reference-shown td:last-child { min-width: 11rem; }
@media (max-width: 640px) {
  .st-key-reference-list { max-height: 16rem; }
  .st-key-reference-shown :is(table, tbody, tr, td) { display: block; border: 0; min-width: 0 !important; }
  .st-key-reference-shown thead { display: none; }
  .st-key-reference-shown tr { border-top: 1px solid currentColor; padding: 0.3rem 0; }
  .st-key-reference-shown td { padding: 0.1rem 0 !important; }
  .st-key-reference-shown td:nth-child(3)::before { content: "Default: "; }
  .st-key-reference-shown td:nth-child(4)::before { content: "Accepts: "; }
}
"""


def why_not(key: str, text: str) -> str:
    """Why the page cannot have that of a link; "" where it can. Raises ParameterError for an unknown loss."""
    if key == LOSS:
        catalog.get(text)
    elif key == FAMILY and text not in families():
        return f"no family is called {text[:60]!r}; families: {', '.join(families())}"
    elif key not in (FAMILY, SEARCH):
        return no_setting(key)
    return ""


def no_setting(key: str) -> str:
    """The sentence for a key of a link that no control of the page has."""
    return f"the page has no setting {key[:60]!r}"


def families() -> tuple[str, ...]:
    """Every family, after the choice of all."""
    return (EVERY, *sorted({cls.family for cls in catalog.losses().values()}))


def chosen_loss() -> type[Any]:
    """The class named in the control."""
    names = sorted(catalog.losses(), key=lambda name: name != FIRST)
    return catalog.get(st.selectbox("Loss", names, key=LOSS, bind="query-params"))


def show(name: str) -> None:
    """Makes that loss the one shown."""
    st.session_state[LOSS] = name


def index(cls: type[Any]) -> None:
    """Search, family, and what fits both, by family; a click shows a loss."""
    st.html(f"<style>{STYLE}</style>")
    words = st.text_input(
        "Search",
        key=SEARCH,
        bind="query-params",
        placeholder="margin, temperature, an author, a year",
        help="Looks in names, summaries, papers and options. All words must be found.",
    )
    family = st.selectbox("Family", families(), key=FAMILY, bind="query-params")
    found = matching(words, family)
    st.caption(f"{len(found)} of {len(catalog.losses())} losses")
    if not found:
        st.info("No loss has all of these words. Use fewer, or choose all families.")
    with st.container(key="reference-list"):
        for kind in sorted({one.family for one in found}):
            st.markdown(f"**{kind.capitalize()}**")
            for one in (one for one in found if one.family == kind):
                st.button(
                    f"**{one.title}**  \n{one.summary}",
                    key=f"show {one.__name__}",
                    type="secondary" if one is cls else "tertiary",
                    width="stretch",
                    on_click=show,
                    args=(one.__name__,),
                )


def matching(words: str, family: str) -> list[type[Any]]:
    """The losses of a family that hold all words, by title."""
    wanted = words.lower().split()
    found = [
        cls
        for cls in catalog.losses().values()
        if family in (EVERY, cls.family) and all(word in searched(cls) for word in wanted)
    ]
    return sorted(found, key=lambda cls: cls.title.lower())


def searched(cls: type[Any]) -> str:
    """The text that a search looks in."""
    options = [f"{param.name} {param.title}" for param in (*cls.required.values(), *cls.params.values())]
    return " ".join([cls.__name__, cls.title, cls.summary, cls.family, str(cls.paper), *options]).lower()


def heading(cls: type[Any]) -> None:
    """Name, summary, equation, paper, and the ways to the other pages."""
    from lab.playground.setup import why_not as why_not_in_playground

    with st.container(key="loss"):
        st.header(cls.title, anchor=False)
    focus.target("loss", cls.__name__)
    st.caption(f"`{cls.__name__}`, family {cls.family}")
    st.markdown(cls.summary)
    st.latex(breakable(cls.equation))
    st.markdown(f"Paper: {cls.paper.linked(plain(str(cls.paper)))}")
    settings = train_settings(cls)
    with st.container(horizontal=True):
        st.page_link(
            "pages/anatomy.py",
            label="Take it apart in Anatomy",
            icon=":material/biotech:",
            query_params={"anatomy.loss": cls.__name__},
        )
        if isinstance(settings, dict):
            st.page_link(
                "pages/train.py",
                label="Train with this loss",
                icon=":material/play_circle:",
                query_params=settings,
            )
        if not why_not_in_playground(cls):
            st.page_link(
                "pages/playground.py",
                label="Open in Playground",
                icon=":material/touch_app:",
                query_params={"playground.losses": cls.__name__},
            )
        st.page_link(
            "pages/check.py",
            label="Audit it in Check",
            icon=":material/fact_check:",
            query_params={"check.loss": cls.__name__},
        )
    if isinstance(settings, str):
        st.caption(settings)


def breakable(equation: str) -> str:
    """The equation with places where a narrow screen may begin a new line: between its parts."""
    return equation.replace(r"\quad", r"\quad\allowbreak{}")


def train_settings(cls: type[Any]) -> dict[str, str] | str:
    """The settings with which the Train page runs a loss, or why it has no run for it, in a sentence."""
    from lab.config import RunConfig

    plainest = {"loss": cls.__name__}
    refused = ""
    for settings in (plainest, {**plainest, "pairing": "views"}):
        try:
            RunConfig.from_settings(settings)
            return settings
        except ParameterError as error:
            refused = refused or str(error)
    return f"The Train page has no run for it: {refused.removeprefix('run: ')}."


def curves(cls: type[Any]) -> None:
    """Value and gradient against distance, and the same in words."""
    from lab.curves import loss_curves, sentences

    st.subheader("Value and gradient of one pair", anchor=False)
    found = loss_curves(cls.__name__)
    said = sentences(found)
    if found.curves:
        from lab.figures.loss_curves import loss_curves as drawn

        figure = drawn(found)
        st.plotly_chart(figure, key=f"curves of {cls.__name__}", height=456, alt=" ".join(said))
        save(figure, f"curves of {cls.__name__}", f"{cls.__name__}-curves")
    if cls.stop_gradient:
        said = (*said, f"The gradient is not the slope of the value: {cls.stop_gradient}.")
    st.caption(plain(" ".join(said)))


def options(cls: type[Any]) -> None:
    """What it must be given, its options, and its default distance and reducer."""
    from losslib.loss_table import spelled

    st.subheader("Options", anchor=False)
    given = [line(param, "must be given") for param in cls.required.values()]
    given += [line(param, param.format(param.default)) for param in cls.params.values()]
    if given:
        head = ("Option", "Symbol", "Default", "Accepts", "Meaning")
        rows = ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *given)]
        st.markdown("\n".join(rows))
    else:
        st.markdown("It has no options of its own.")
    needs = ", ".join(cls.needs) if cls.needs and not cls.required else ""
    distance = f"`{spelled(cls.default_distance())}`" if "distance" in cls.parts else "none"
    reducer = cls.default_reducer() if "reducer" in cls.parts else None
    said = f"Default distance: {distance}. Default reducer: {f'`{spelled(reducer)}`' if reducer else 'none'}."
    st.markdown(f"Needs {needs}. {said}" if needs else said)


def line(param: Param, default: str) -> list[str]:
    """The cells of one option."""
    symbol = f"${param.symbol}$" if param.symbol else ""
    unit = f" ({param.unit})" if param.unit else ""
    more = f"; {MORE.get(param.kind, 'larger: ')}{param.larger}" if param.larger else ""
    cells = (default, f"{param.describe()}{unit}", param.meaning + more)
    return [f"`{param.name}`", symbol, *(plain(cell).replace("|", "\\|") for cell in cells)]


def edges(cls: type[Any]) -> None:
    """Value and gradient on batches that are easily forgotten, tried now."""
    from lab import edges as tried

    st.subheader("At the edges", anchor=False)
    st.markdown(
        "\n".join(f"- **{edge.title}.** {plain(edge.sentence)}" for edge in tried.edges(cls.__name__))
    )


def documents(cls: type[Any]) -> None:
    """The docstring by heading."""
    from lab.loss_documents import paragraphs

    for heading_, text in paragraphs(cls).items():
        st.markdown(f"**{heading_}**\n\n{plain(text)}")


def snippets(cls: type[Any]) -> None:
    """Code in both spellings."""
    from lab.loss_documents import losslib_snippet, pml_snippet

    st.subheader("Code", anchor=False)
    st.markdown("losslib")
    st.code(losslib_snippet(cls))
    code, said = pml_snippet(cls)
    st.markdown("pytorch-metric-learning, on the same batch")
    if code:
        st.code(code)
    if said:
        st.caption(said)


def plain(text: str) -> str:
    """Text of a declaration in Markdown: signs that Markdown would take for formulas or emphasis escaped."""
    pieces = text.split("`")
    pieces[::2] = [
        piece.replace("$", "\\$").replace("*", "\\*").replace("<", "&lt;") for piece in pieces[::2]
    ]
    return "`".join(pieces)
