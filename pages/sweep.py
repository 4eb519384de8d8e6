"""Sweep: a grid of runs over options, losses and seeds, ranked by held-out quality."""

import streamlit as st

from ui.page import page

TITLE = "Sweep"
GROUP = "Choose and check"
ORDER = 55
SUMMARY = "Which margin, which temperature, which loss: a grid of runs over seeds, ranked on held-out data."

with page(TITLE, SUMMARY):
    from ui import sweep

    with st.container(key="sweep"):
        sweep.show()
