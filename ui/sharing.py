"""The link to a run: as text to copy, and as a QR code for a phone."""

from __future__ import annotations

import base64
import io
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import segno
import streamlit as st

from ui.link import link_to
from ui.session import step_in_view

if TYPE_CHECKING:
    from lab.scheduler import LiveRun

CHAT = 2000  # characters that chats and mail programs take for one link
QUIET = 4  # modules of margin that readers expect


def link(run: LiveRun) -> None:
    """What the popover shows."""
    step = step_in_view(run)
    moment = "Paused, it also holds the step" if not step else f"It trains to step {step} and pauses there"
    st.caption(f"Opens exactly this run anywhere, with the changes made while it trained. {moment}.")
    if run.config.events:
        st.caption("The address bar has the knobs as they are now, not when they were turned.")
    address = link_to(run.config, step)
    st.code(address, language=None, wrap_lines=True)
    show_code(address)


def show_code(address: str) -> None:
    """The QR code, or why there is none that helps."""
    host = urlsplit(address).hostname or ""
    if len(address) > CHAT:
        st.caption(f"The link has {len(address)} characters, too many for a QR code that a phone can read.")
        return
    st.html(qr_code(address))
    if host in ("localhost", "127.0.0.1", "::1"):
        st.caption("The address is of this machine alone; a phone needs one that the network knows.")


@lru_cache(maxsize=32)
def qr_code(address: str) -> str:
    """The code as SVG: black on white in every theme, as readers expect."""
    out = io.BytesIO()
    segno.make(address, error="l", micro=False).save(
        out, kind="svg", border=QUIET, dark="#000", light="#fff", xmldecl=False, omitsize=True
    )
    # as a picture: Streamlit takes drawings out of HTML
    drawn = base64.b64encode(out.getvalue()).decode()
    style = "display:block;width:min(100%,20rem);margin:auto"
    return f'<img alt="QR code of the link" style="{style}" src="data:image/svg+xml;base64,{drawn}">'
