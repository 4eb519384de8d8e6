"""A paused moment of a run as Plotly figures: to zoom, to point at, to save."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from lab.scheduler import LiveRun


def paused_figures(run: LiveRun) -> None:
    """Map, distances and curves of the newest frame, once the run stands still and somebody wants them."""
    wanted = st.toggle(
        "Figures of the paused moment",
        key="figures",
        help="The newest frame as figures that zoom, show values and save as PNG, once the run is paused.",
    )
    if not wanted:
        return
    recording = run.recording
    if run.state in ("queued", "preparing", "running") or recording is None or recording.latest is None:
        st.caption("Press Pause: figures show what stands still.")
        return
    from lab.figures.embedding_map import embedding_map
    from lab.figures.learning_curves import learning_curves
    from lab.figures.pair_distances import pair_distances
    from ui.live.about import describe

    frame = recording.latest
    about = describe(recording.config, recording.labels, recording.class_names)
    st.caption(f"Step {frame.step}")
    st.plotly_chart(
        embedding_map(frame.positions, recording.labels, recording.class_names, recording.probe),
        key="figure map",
        height=560,
    )
    distances = pair_distances(frame.histogram, frame.marks, about["distance"], about["inverted"])
    st.plotly_chart(distances, key="figure distances")
    st.plotly_chart(learning_curves(recording.curves(), about["chance"]), key="figure curves")
