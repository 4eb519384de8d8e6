"""Train: choose data, encoder and loss, press play, and watch the map and the distances move."""

import streamlit as st

from ui.page import page

TITLE = "Train"
GROUP = "Train"
ORDER = 10
SUMMARY = "Watch an encoder learn with a metric loss; turn its margin or temperature while it trains."

with page(TITLE, SUMMARY):
    from ui import link, recordings, session, train, undo
    from ui.advice import advice_section
    from ui.figures import paused_figures
    from ui.live.panel import live_panel
    from ui.places import place

    recordings.arrive()
    asked, refused = link.arrived()
    new_link = link.is_new()
    notice = place()
    with place():
        session.show_notice()
    settings = train.structure()
    panel = st.container()
    with panel:
        above = place()
        settings |= train.knobs(settings["loss"])
        undo.note(settings)
        said = link.tell(notice, refused, settings)
        with place():
            wanted = train.wanted_config(settings, asked, said)
        preset = link.preset_of(wanted)
        goal = link.goal()
        recording = preset.recording() if preset and not goal else None
        with place():
            run = session.run_for(wanted, new_link, recording, goal)
        if run is not None:
            with above:
                train.introduce(preset)
                recordings.introduce(run)
                train.buttons(run, wanted)
                train.offer_restart(run, wanted)
            live_panel(
                run,
                session.shown_step(run),
                session.step_in_view(run),
                on_adopt=session.adopt,
                on_lost=session.replace_lost,
                on_command=session.act,
                on_moment=session.show_moment,
            )
            advice_section(run)
            paused_figures(run)
