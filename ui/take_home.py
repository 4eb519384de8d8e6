"""What leaves the Train page: the run as a file, its curves as a table, and scripts that repeat it."""

from __future__ import annotations

import csv
import io
import math
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from lab.script import command, losslib_script, pml_script
from ui import recordings

if TYPE_CHECKING:
    from lab.recording import Recording
    from lab.scheduler import LiveRun


def everything(run: LiveRun) -> None:
    """What the popover shows."""
    st.markdown("**Run file**")
    recordings.run_file(run)
    recording = run.recording
    if recording is None or not recording.frames or run.state in ("queued", "preparing"):
        st.caption("The rest comes with the first frame.")
        return
    config = run.config if run.shown is None else run.shown.config
    name = f"losslab-{config.data}-{config.loss}"
    st.markdown("**Curves**")
    st.download_button(
        "Curves as CSV",
        partial(curves_csv, recording),
        f"{name}-curves.csv",
        "text/csv",
        on_click="ignore",
        help="One row a frame: loss, active share, gradient norm, rate, quality and collapse gauges.",
    )
    st.markdown("**Scripts that repeat the losses outside the app**")
    for title, script, ending in (
        ("Script with losslib", losslib_script(config, recording), "losslib"),
        ("Script with pytorch-metric-learning", pml_script(config, recording), "pml"),
    ):
        if script.code:
            st.download_button(title, script.code, f"{name}-{ending}.py", "text/x-python", on_click="ignore")
        st.caption(script.note)
    st.markdown("**Command line**")
    st.code(command(config), language="sh", wrap_lines=True)


def curves_csv(recording: Recording) -> str:
    """Step and every number of every frame; empty where a frame left it out."""
    curves = recording.curves()
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(curves)
    for row in zip(*curves.values(), strict=True):
        writer.writerow(["" if math.isnan(value) else f"{value:.9g}" for value in row])
    return out.getvalue()
