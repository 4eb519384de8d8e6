"""The page's link: what arrived is checked, what was refused is said, and the board's state is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from lab.playground.placement import NAMES, SPACES, Placement, read_text
from lab.playground.presets import STARTS
from lab.playground.setup import MOST_LOSSES, offered, options_of, why_not
from lab.settings import sentence
from losslib import catalog
from losslib.errors import ParameterError
from ui import address, left

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

PREFIX = "playground."
LOSSES, SPACE, NORMALISE = f"{PREFIX}losses", f"{PREFIX}space", f"{PREFIX}normalise"
POINTS, RATE, FOLLOW, SELECTED = (f"{PREFIX}{name}" for name in ("points", "rate", "follow", "selected"))
RATES = ("0.001", "0.003", "0.01", "0.03", "0.1", "0.3", "1", "3", "10")
FIRST = ["ContrastiveLoss", "TripletMarginLoss"]
DEFAULTS = {RATE: "0.1", FOLLOW: "", SELECTED: "A"}
OF_THE_BOARD = (POINTS, *DEFAULTS)  # no control of the page has them
ASKED = "The link asks for something that is not possible here."
NO_SETTING = "is no setting of this page"
REFUSED = "playground refused"


def option_key(name: str, option: str) -> str:
    """The key of a loss option."""
    return f"{PREFIX}{name}.{option}"


def refusals() -> list[str]:
    """A sentence for each part of the link that is not possible.

    Streamlit drops bad values of controls from the address; others are dropped here.
    """
    found = refused_losses()
    allowed: dict[str, tuple[str, ...]] = {
        SPACE: SPACES,
        NORMALISE: ("true", "false"),
        RATE: RATES,
        FOLLOW: tuple(offered()),
        SELECTED: tuple(NAMES),
    }
    for key, given in st.query_params.to_dict().items():
        if key in (LOSSES, POINTS):
            continue
        if not key.startswith(PREFIX):
            said = f"{key[:60]} {NO_SETTING}"
        elif key in allowed:
            said = "" if given in allowed[key] else f"{key} must be one of {', '.join(allowed[key])}"
            said = said and f"{said}, got {given[:24]!r}"
        else:
            said = refused_option(key, given)
        if said:
            found.append(said)
            if key in OF_THE_BOARD or said.endswith(NO_SETTING):
                del st.query_params[key]
    return found


def refused_option(key: str, given: str) -> str:
    """Why a loss option of the link cannot be had; "" where it can."""
    name, _, option = key.removeprefix(PREFIX).partition(".")
    param = options_of(offered()[name]).get(option) if name in offered() else None
    if param is None:
        return f"{key} {NO_SETTING}"
    try:
        param.parse(given, name)
    except ParameterError as error:
        return str(error)
    return ""


def refused_losses() -> list[str]:
    """A sentence for each loss of the link that is not offered; the others become the control's value."""
    found: list[str] = []
    names = [name for text in st.query_params.get_all(LOSSES) for name in text.split(",") if name]
    for name in names:
        if name not in offered():
            cls = catalog.losses().get(name)
            found.append(f"{name} is not offered here. {why_not(cls)}" if cls else unknown(name))
    known = [name for name in dict.fromkeys(names) if name in offered()]
    if len(known) > MOST_LOSSES:
        found.append(f"{len(known)} losses were given; the first {MOST_LOSSES} are kept")
    if names and known[:MOST_LOSSES] != st.query_params.get_all(LOSSES):
        st.session_state[LOSSES] = known[:MOST_LOSSES] or FIRST
    return found


def unknown(name: str) -> str:
    """The sentence for a name that is no loss."""
    try:
        catalog.get(name)
    except ParameterError as error:
        return str(error)
    return ""


def tell(place: DeltaGenerator, texts: list[str], now: Any) -> None:
    """Says what of the link was refused, until something changes; `now` is what the page shows."""
    if texts:
        st.session_state[REFUSED] = (texts, now)
    kept = st.session_state.get(REFUSED)
    if kept and kept[1] == now:
        said = "\n".join([ASKED, *(f"- {sentence(text)}" for text in kept[0])])
        place.warning(said.replace("~", "\\~"))  # which Markdown would take for striking out
    else:
        st.session_state.pop(REFUSED, None)


def come_back() -> None:
    """The board is as it was left in this tab where a link says nothing of it, too."""
    left.find(PREFIX)
    if st.session_state[left.ENTERED] and not any(key in st.query_params for key in OF_THE_BOARD):
        st.query_params.update({key: text for key, text in left.texts().items() if key in OF_THE_BOARD})


def placement_of_link() -> tuple[Placement, list[str]]:
    """Where the points begin: as the link says, else the triplet."""
    given = address.text(POINTS)
    if not given:
        return STARTS[0].placement, []
    found, said = read_text(given)
    if said:
        if found is None:
            del st.query_params[POINTS]
        else:
            st.query_params[POINTS] = found.to_text()
    return found or STARTS[0].placement, list(said)


def board_state() -> dict[str, str]:
    """Rate, loss to descend on and selected point of the link."""
    return {key: address.text(key, usual) for key, usual in DEFAULTS.items()}


def keep(told: dict[str, Any]) -> None:
    """Remembers the board's state at rest as the browser has put it into the address."""
    texts = {key: str(told.get(key.removeprefix(PREFIX), "")) for key in OF_THE_BOARD}
    found, _ = read_text(texts[POINTS])
    texts[POINTS] = found.to_text() if found and found != STARTS[0].placement else ""
    texts = {key: text for key, text in texts.items() if text and text != DEFAULTS.get(key)}
    address.hold({key: texts.get(key, "") for key in OF_THE_BOARD})
    left.note()
