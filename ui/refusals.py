"""What a link asks for and a page cannot give: left out of the address, and said until a control changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lab.settings import sentence
from losslib.errors import ParameterError
from ui.link import enter_with
from ui.page import ENTERED
from ui.reference import no_setting, plain

PLAIN = (str, float, int, bool)  # what controls hold; uploads are let be
ASKED = "The link asks for something that is not there, so the default is shown."


@contextmanager
def checked_link(prefix: str, why_not: Callable[[str, str], str]) -> Iterator[None]:
    """The page draws its controls inside.

    Args:
        prefix: what the keys of the page's controls begin with.
        why_not: why a key of the link with its text cannot be had; "" where it can. A ParameterError that it
            raises is the reason, too.
    """
    place, state, kept = st.empty(), st.session_state, f"link refused {prefix}"
    entered, left = bool(state.get(ENTERED)), f"link left {prefix}"
    if entered and not st.query_params.to_dict() and state.get(left):
        enter_with(state[left])  # who comes without a link finds what they left, by Back, too
    found = refused(prefix, why_not) if entered else state.get(kept, ((), None))[0]
    if entered and found:  # at once: the page itself may take seconds
        _say(place, found)
    yield
    values = {str(k): v for k, v in state.items() if str(k).startswith(prefix) and isinstance(v, PLAIN)}
    if not entered and state.get(kept, ((), None))[1] != values:
        found = ()
    state[kept] = (found, values)
    state[left] = {str(k): str(v) for k, v in st.query_params.to_dict().items() if str(k).startswith(prefix)}
    if found:
        _say(place, found)


def _say(place: DeltaGenerator, found: tuple[str, ...]) -> None:
    place.warning("\n".join([ASKED, *(f"- {plain(sentence(text))}" for text in found)]))


def refused(prefix: str, why_not: Callable[[str, str], str]) -> tuple[str, ...]:
    """A sentence for each part of the link that cannot be had, which the address loses."""
    found = []
    for key, text in {str(key): str(text) for key, text in st.query_params.to_dict().items()}.items():
        try:
            said = why_not(key, text) if key.startswith(prefix) else no_setting(key)
        except ParameterError as error:
            said = str(error)
        if said:
            found.append(said)
            del st.query_params[key]
            st.session_state.pop(key, None)
    return tuple(found)
