"""Playground: drag a few points by hand and see what every chosen loss makes of them at once."""

import streamlit as st

from ui.page import page

TITLE = "Playground"
GROUP = "Explore"
ORDER = 40
SUMMARY = (
    "Drag three to eight points; several losses judge the same points at once: value, arrows, active pairs."
)

with page(TITLE, SUMMARY):
    from losslib.errors import ParameterError
    from ui.places import place
    from ui.playground import link
    from ui.playground import page as playground

    link.come_back()
    refused = link.refusals()
    placement, more = link.placement_of_link()
    notice = place()
    names, space, normalise = playground.setup_controls()
    view, options = st.columns([4, 1], gap="large")
    with options, place():  # in a container labels of switches wrap
        losses = playground.option_controls(names)
    link.tell(notice, [*refused, *more], (losses, space, normalise, placement))
    with view:
        try:
            setup, said = playground.setup_of(losses, space, normalise)
        except ParameterError as error:
            st.error(f"{error}. Change that option to go on.")
        else:
            playground.show(setup, said, placement)
    playground.not_offered()
