"""The frame of every page: title, navigation, and one place where errors become a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from ui import focus, left, places
from ui.errors import show_error
from ui.navigation import draw_navigation

# Streamlit's own padding leaves a third of a projector's picture empty; its captions, slider values and
# segments and the axes of charts are paler than AA allows, its focus is hard to see, and long code scrolls
# where no key does.
STYLE = """
.stMainBlockContainer { padding: 2.2rem 2rem 2rem; }
[data-testid="stSidebarHeader"] { height: 2rem; }
[data-testid="stCaptionContainer"] { opacity: 0.8 !important; }
[data-testid="stCaptionContainer"] code { color: inherit; }
[data-testid="stSliderThumbValue"], [data-variant="segmented_control"] { color: inherit !important; }
.stApp :is(a, button, summary, input, textarea, [role="slider"], [tabindex]):focus-visible {
  outline: 2px solid light-dark(#1b1f24, #e8ecf1) !important; outline-offset: 2px;
}
.stApp textarea:focus-visible { outline-offset: -2px; }
.stApp button:is([kind="secondary"], [kind="tertiary"]):is(:hover, :focus, :active):not(:disabled) {
  color: light-dark(#00659e, #56b4e9) !important;
}
.js-plotly-plot .main-svg text:not(.hoverlayer *) { fill: currentColor !important; }
.stCode pre, .stCode pre code { white-space: pre-wrap !important; overflow-wrap: anywhere !important; }
.stCode .token { color: light-dark(#005a9e, #7cc4f5) !important; }
.stCode .token:is(.operator, .punctuation) { color: inherit !important; }
.stCode .token:is(.number, .boolean, .string) { color: light-dark(#9a4a00, #f5b26b) !important; }
.st-key-undo kbd, .st-key-redo kbd { display: none !important; }
kbd { color: inherit !important; opacity: 0.8 !important; }
.stDataFrame { max-width: 100%; }
.katex-display { overflow: auto hidden; padding: 0.5rem 4px; }
.katex-display > .katex { white-space: normal; }
[data-scrolls]::after {
  content: "Scrolls sideways, by arrow keys too"; display: block; position: sticky; left: 0;
  width: max-content; max-width: 100%; font-size: 0.8rem; opacity: 0.8; padding-top: 0.3rem;
}
@media (prefers-reduced-motion: reduce) {
  .stApp *, .stApp ::before, .stApp ::after { transition: none !important; scroll-behavior: auto !important; }
}
@media (max-width: 640px) {
  .stMainBlockContainer { padding: 3rem 1rem 2rem; }
  .katex-display { font-size: 0.85em; }
  [data-testid="stExpandSidebarButton"] { width: auto; }
  [data-testid="stExpandSidebarButton"]::after { content: "Pages and settings"; padding-left: 0.4rem; }
}
"""


def keep_run() -> None:
    """A page of any kind keeps the session's run, which a blip of the network has made an orphan."""
    token = st.session_state.get("run.token")
    if token:
        from ui.session import belongs_here

        belongs_here(token)


@contextmanager
def page(title: str, summary: str) -> Iterator[None]:
    """Everything a page draws belongs inside: `with page(TITLE, SUMMARY): ...`."""
    st.set_page_config(page_title=f"{title}, Loss Lab", layout="wide")
    st.html(f"<style>{STYLE}{focus.STYLE}{places.STYLE}</style>")
    focus.begin()
    left.enter(title)
    draw_navigation()
    st.title(title, anchor=False)
    st.caption(summary)
    try:
        keep_run()
        yield
        left.note()
    except Exception as error:  # the last line of defence: a person never sees a traceback
        show_error(error)
    focus.keep(title, st.session_state[left.ENTERED])
