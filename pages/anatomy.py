"""Anatomy: one loss taken apart, from its equation to the force that a point feels."""

import streamlit as st

from ui.page import page

TITLE = "Anatomy"
GROUP = "Explore"
ORDER = 30
SUMMARY = (
    "One loss taken apart: its equation in numbers, value and gradient of a pair, each option, the forces."
)

with page(TITLE, SUMMARY):
    from ui import anatomy, anatomy_figures
    from ui.places import place
    from ui.refusals import checked_link

    with checked_link(anatomy.KEY, anatomy.why_not, anatomy.of_the_run):
        subject, where = anatomy.chosen()
        heading, numbers = place(), place()
        subject, angle = anatomy.knobs(subject)
        with heading:
            anatomy.heading(subject)
        shown = anatomy_figures.computed(subject, where, angle)
        with numbers:
            anatomy_figures.numbers(shown)
        left, right = st.columns(2, gap="medium")
        with left:
            anatomy_figures.pair(shown)
        with right:
            anatomy_figures.forces(shown)
        anatomy_figures.options(shown)
