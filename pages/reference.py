"""Reference: every loss from its declaration, with its curves, its edges and its code."""

import streamlit as st

from ui.page import page

TITLE = "Reference"
GROUP = "Explore"
ORDER = 45
SUMMARY = "Every loss: equation, options, paper, curves of value and gradient, behaviour at the edges, code."

with page(TITLE, SUMMARY):
    from ui import reference
    from ui.refusals import checked_link

    with checked_link(reference.PREFIX, reference.why_not):
        index, chosen = st.columns([1, 2], gap="large")
        with index:
            cls = reference.chosen_loss()
            reference.index(cls)
        with chosen, st.container(key="reference-shown"):
            reference.heading(cls)
            reference.curves(cls)
            reference.options(cls)
            reference.edges(cls)
            reference.documents(cls)
            reference.snippets(cls)
