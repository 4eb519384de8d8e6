"""The part of the link that panels hold: the browser writes it (`address.js`), the server remembers it.

Were it written by `st.query_params[key] = text`, Streamlit would send the whole address as it was when the
script began to run, and a control that was turned meanwhile would lose its part of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from collections.abc import Mapping

SCRIPT = Path(__file__).with_name("address.js")
TOLD = "address told"


def hold(texts: Mapping[str, str]) -> None:
    """Remembers what a panel has put into the browser's address.

    Args:
        texts: keys of the link with their texts; an empty one is at its default and not in the link.
    """
    told = st.session_state.setdefault(TOLD, {})
    told.update({key: (text, str(st.query_params.get(key, ""))) for key, text in texts.items()})


def link() -> dict[str, list[str]]:
    """The whole link as the browser shows it, a choice of several with several texts.

    Streamlit hears of what the browser wrote with the next control that is turned, so until then its own
    part is what it was when the panel told.
    """
    found = {str(key): list(st.query_params.get_all(key)) for key in st.query_params}
    for key, (text, before) in st.session_state.get(TOLD, {}).items():
        if str(st.query_params.get(key, "")) in (text, before):  # else another link was opened since
            found[key] = [text] if text else []
    return {key: texts for key, texts in found.items() if texts}


def text(key: str, default: str = "") -> str:
    """One text of the link."""
    return link().get(key, [default])[-1]


def forget() -> None:
    """Another page was entered: its link counts alone."""
    st.session_state.pop(TOLD, None)
