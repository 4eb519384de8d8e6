"""What a link asks for and a page cannot give: left out of the address, and said until a control changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lab.settings import sentence
from losslib.errors import ParameterError
from ui import left
from ui.reference import no_setting, plain

PLAIN = (str, float, int, bool)  # what controls hold; uploads are let be
ASKED = "The link asks for something that is not there, so the default is shown."


@contextmanager
def checked_link(
    prefix: str, why_not: Callable[[str, str], str], otherwise: Callable[[], Mapping[str, str]] = dict
) -> Iterator[None]:
    """The page draws its controls inside.

    Args:
        prefix: what the keys of the page's controls begin with.
        why_not: why a key of the link with its text cannot be had; "" where it can. A ParameterError that it
            raises is the reason, too.
        otherwise: settings for who enters for the first time without a link.
    """
    place, state, kept = st.empty(), st.session_state, f"link refused {prefix}"
    left.find(prefix, otherwise)
    entered = state[left.ENTERED]
    found = refused(prefix, why_not) if entered else state.get(kept, ((), None))[0]
    if entered and found:  # at once: the page itself may take seconds
        _say(place, found)
    yield
    values = {str(k): v for k, v in state.items() if str(k).startswith(prefix) and isinstance(v, PLAIN)}
    if not entered and state.get(kept, ((), None))[1] != values:
        found = ()
    state[kept] = (found, values)
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
