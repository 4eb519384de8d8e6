"""Compare: a fair duel of two to four losses or settings, with one slider for all."""

import streamlit as st

from ui.page import page

TITLE = "Compare"
GROUP = "Choose and check"
ORDER = 50
SUMMARY = "Two to four losses on the same data, initial weights and batches; one slider moves all of them."

with page(TITLE, SUMMARY):
    from ui import compare

    with st.container(key="compare"):
        compare.show()
