"""The figures of a moment that stands still: which ones, and of which step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from ui.errors import show_error
from ui.session import shown_step

if TYPE_CHECKING:
    from lab.moment import Moment
    from lab.scheduler import LiveRun

FIGURES = ("Map", "Neighbours kept", "Distances of pairs", "Norms and distances", "Curves")
FIRST = ("Map", "Distances of pairs", "Curves")


@st.fragment
def paused_figures(run: LiveRun) -> None:
    """Figures of the step in view, once the run stands still and somebody wants them.

    A fragment: what is chosen here draws the figures again, not the page.
    """
    try:
        draw(run)
    except Exception as error:  # in a fragment the page's own last line of defence is over
        show_error(error)


def draw(run: LiveRun) -> None:
    """The switch, what is shown, and the figures."""
    wanted = st.toggle(
        "Figures of the paused moment",
        key="figures",
        persist_state="session",
        help="The step in view as figures that zoom, show values, let points be chosen and can be saved, "
        "once the run is paused. Scrub in the panel above to study another step.",
    )
    if not wanted:
        return
    recording = run.recording
    if not run.stands_still or recording is None or recording.latest is None:
        st.caption("Press Pause: figures show what stands still.")
        return
    from lab.moment import moment

    now = moment(recording, shown_step(run))
    assert now is not None
    newest = now.frame.step == recording.latest.step
    st.caption(f"Step {now.frame.step}")
    if not newest:
        st.caption(f"The step scrubbed to; the newest is {recording.latest.step}.")
    chosen = st.pills(
        "Figures",
        FIGURES,
        selection_mode="multi",
        default=list(FIRST),
        key="figures.shown",
        persist_state="session",
        help="Which figures of this moment to draw.",
    )
    figures(now, run, tuple(chosen or ()))


def figures(now: Moment, run: LiveRun, chosen: tuple[str, ...]) -> None:
    """The figures that were chosen, each under the other."""
    from ui.figures.maps import map_section

    if "Map" in chosen or "Neighbours kept" in chosen:
        images = None if run.data is None else run.data.images
        map_section(now, images, "Map" in chosen, "Neighbours kept" in chosen)
    if "Distances of pairs" in chosen:
        distances(now)
    if "Norms and distances" in chosen:
        norms(now)
    if "Curves" in chosen:
        curves(now)
    if not chosen:
        st.caption("Choose a figure above.")


def about(now: Moment) -> dict[str, object]:
    """The distance in words, which way is closer, and chance, as the panel above says them."""
    from ui.live.about import describe

    recording = now.recording
    return describe(recording.config, recording.labels, recording.class_names, recording.chance)


def distances(now: Moment) -> None:
    """The loss's own distance of positive and negative pairs."""
    from lab.figures.pair_distances import pair_distances
    from lab.moment_words import distances_words
    from ui.figures.show import is_dark, show

    frame, told = now.frame, about(now)
    inverted, distance = bool(told["inverted"]), str(told["distance"])
    title = f"Pairs at step {frame.step}"
    figure = pair_distances(frame.histogram, frame.marks, distance, inverted, title, is_dark())
    words = distances_words(frame.histogram, frame.marks, inverted)
    show(figure, words, "distances", f"pairs-step-{frame.step}")


def norms(now: Moment) -> None:
    """Norms, and two distances of the same pairs."""
    from ui.figures.norms import norms_and_distances

    st.header("Norms and distances", anchor=False)
    if now.embeddings is None:
        st.info(now.without_embeddings)
        return
    config = now.recording.config
    if getattr(config, "pairing", "label") != "label":
        st.caption("Positive pairs are counted here as pairs of one class of the map.")
    norms_and_distances(
        now.embeddings, now.recording.labels, config.output, "norms", f"step-{now.frame.step}"
    )


def curves(now: Moment) -> None:
    """Loss and quality from the first step to the last, the moment marked."""
    from lab.figures.learning_curves import learning_curves
    from lab.moment_words import curves_words
    from ui.figures.show import show

    told, values = about(now), now.recording.curves()
    chance = float(str(told["chance"]))
    figure = learning_curves(values, chance, now.frame.step, str(told["quality_on"]))
    show(figure, curves_words(values, now.frame.step, chance), "curves", "curves", 520)
