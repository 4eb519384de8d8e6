"""What the Playground page is made of: controls, the board, and the losses that are not offered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from lab.playground.placement import PLANE, SPACES, Placement, read_text
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
from lab.settings import sentence
from losslib import catalog
from losslib.errors import ParameterError
from ui.controls import control
from ui.playground.panel import board

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

LOSSES, SPACE, NORMALISE, POINTS = (
    "playground.losses",
    "playground.space",
    "playground.normalise",
    "playground.points",
)
RATE, FOLLOW, SELECTED = "playground.rate", "playground.follow", "playground.selected"
RATES = ("0.001", "0.003", "0.01", "0.03", "0.1", "0.3", "1", "3", "10")
FIRST = ["ContrastiveLoss", "TripletMarginLoss"]
DEFAULTS = {RATE: "0.1", FOLLOW: "", SELECTED: "A"}
ASKED = "The link asks for something that is not possible here."
KEPT, REFUSED = "playground kept", "playground refused"


def refusals() -> list[str]:
    """A sentence for each part of the link that is not possible; it is taken out of the address."""
    found: list[str] = []
    names = [name for text in st.query_params.get_all(LOSSES) for name in text.split(",") if name]
    for name in names:
        if name in offered():
            continue
        cls = catalog.losses().get(name)
        found.append(f"{name} is not offered here. {why_not(cls)}" if cls else unknown(name))
    known = [name for name in dict.fromkeys(names) if name in offered()]
    if len(known) > MOST_LOSSES:
        found.append(f"{len(known)} losses were given; the first {MOST_LOSSES} are kept")
    if names and known[:MOST_LOSSES] != names:
        st.session_state[LOSSES] = known[:MOST_LOSSES] or FIRST
    for key, allowed in ((SPACE, SPACES), (NORMALISE, ("true", "false")), (RATE, RATES)):
        given = st.query_params.get(key)
        if given is not None and given not in allowed:
            found.append(f"{key} must be one of {', '.join(allowed)}, got {given[:24]!r}")
    return found


def tell(place: DeltaGenerator, texts: list[str]) -> None:
    """Says what of the link was refused, until something changes."""
    now = st.query_params.to_dict()
    if texts:
        st.session_state[REFUSED] = (texts, now)
    kept = st.session_state.get(REFUSED)
    if kept and kept[1] == now:
        said = "\n".join([ASKED, *(f"- {sentence(text)}" for text in kept[0])])
        place.warning(said.replace("~", "\\~"))  # which Markdown would take for striking out
    else:
        st.session_state.pop(REFUSED, None)


def unknown(name: str) -> str:
    """The sentence for a name that is no loss."""
    try:
        catalog.get(name)
    except ParameterError as error:
        return str(error)
    return ""


def placement_of_link() -> tuple[Placement, list[str]]:
    """Where the points begin: as the link says, else as they were left, else the triplet."""
    given = st.query_params.get(POINTS)
    if given is None:
        kept = st.session_state.get(KEPT, {})
        found = read_text(kept[POINTS])[0] if kept.get(POINTS) else None
        return found or STARTS[0].placement, []
    found, said = read_text(given)
    if said:
        if found is None:
            del st.query_params[POINTS]
        else:
            st.query_params[POINTS] = found.to_text()
    return found or STARTS[0].placement, list(said)


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
        with st.container(key=f"playground options {name}"):
            st.markdown(f"**{offered()[name].title}**")
            if not params:
                st.caption("It has no options to turn.")
            texts = {key: control(param, f"playground.{name}.{key}") for key, param in params.items()}
        found.append([name, texts])
    return found


def setup_of(losses: list[list[Any]], space: str, normalise: bool) -> tuple[dict[str, Any], list[str]]:
    """The setup as the board sends it, and what is said of each loss. Raises ParameterError."""
    message = {"losses": losses, "space": space, "normalise": normalise}
    setup: Setup = read_setup(message)
    return message, [closeness(built(chosen, normalise), setup) for chosen in setup.losses]


def show(setup: dict[str, Any], said: list[str], placement: Placement) -> None:
    """The board itself."""
    kept = {**DEFAULTS, **st.session_state.get(KEPT, {}), **st.query_params.to_dict()}
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
            "rates": list(RATES),
            "starts": [[start.title, start.look, start.placement.to_text()] for start in STARTS],
        },
        keep,
    )


def keep(told: dict[str, Any]) -> None:
    """Writes the board's state at rest into the address."""
    texts = {
        POINTS: str(told.get("points", "")),
        RATE: str(told.get("rate", "")),
        FOLLOW: str(told.get("follow", "")),
        SELECTED: str(told.get("selected", "")),
    }
    found, _ = read_text(texts[POINTS])
    texts[POINTS] = found.to_text() if found else ""
    if texts[POINTS] == STARTS[0].placement.to_text():
        texts[POINTS] = ""
    st.session_state[KEPT] = texts
    for key, text in texts.items():
        if text and text != DEFAULTS.get(key):
            st.query_params[key] = text
        elif key in st.query_params:
            del st.query_params[key]


def not_offered() -> None:
    """The losses that cannot look at points placed by hand, with the reason."""
    rest = {name: why_not(cls) for name, cls in catalog.losses().items() if name not in offered()}
    with st.expander(f"{len(rest)} losses are not offered here, and why"):
        for reason in dict.fromkeys(rest.values()):
            names = ", ".join(f"`{name}`" for name, own in rest.items() if own == reason)
            st.markdown(f"- {names}: {reason}")
