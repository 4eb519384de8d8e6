"""Places that stay where they are: what comes and goes on a page stands in one of its own.

Streamlit's browser side knows a container by how many things stand before it. One that moves is drawn at its
new place before the old one goes, and the controls that go then untie those that came from the address: what
they are turned to no longer gets into it. So nothing that comes and goes may stand, without a place of its
own, before a container with controls of the link. Among the things of one container controls move freely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

STYLE = """
[class*="st-key-grid-"] { display: grid !important; grid-template-columns: repeat(4, minmax(0, 1fr)); }
[class*="st-key-grid-"] > .stElementContainer:has([data-testid="stCaptionContainer"]) { grid-column: 1 / -1; }
@media (max-width: 640px) { [class*="st-key-grid-"] { grid-template-columns: minmax(0, 1fr); } }
"""


def place() -> DeltaGenerator:
    """For what comes and goes; an empty place takes no room."""
    return st.container()


def grid(name: str) -> DeltaGenerator:
    """Four side by side, and on narrow screens below each other; a caption has a row of its own.

    Unlike in columns, controls stay in the one container when there are more or fewer of them.

    Args:
        name: unique on the page, without spaces.
    """
    return st.container(key=f"grid-{name}")
