"""What a person sees when something fails: one sentence. The log keeps the rest, under a short number."""

from __future__ import annotations

import logging
import secrets

import streamlit as st

from losslib.errors import ParameterError, ShapeError

_LOG = logging.getLogger("losslab")


def explain(error: Exception) -> str:
    """The sentence for an error: its own if it is about an option or a shape, else a number to look up."""
    if isinstance(error, ParameterError | ShapeError):
        return str(error)
    number = secrets.randbelow(900_000) + 100_000
    _LOG.error("error number %d", number, exc_info=error)
    return (
        f"Something went wrong here, and the mistake is ours (number {number}). "
        "Reload the page to start again; the server's log says more under that number."
    )


def show_error(error: Exception) -> bool:
    """Shows the sentence; True tells Streamlit that nothing else is to be shown."""
    st.error(explain(error))
    return True
