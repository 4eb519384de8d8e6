"""The results of a sweep: the ranking, one slider, and a card a setting with its runs."""

from __future__ import annotations

import base64
import html
import math
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from lab.measured_on import measured_on
from lab.sweep.command import spelled
from lab.sweep.picture import picture
from lab.sweep.ranking import Ranked, ranking, spread
from lab.sweep.results import CellResult, moments
from ui import reports
from ui.figures.show import show
from ui.home import Theme, theme

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.sweep.plan import Cell, Plan

ACROSS = 3

STYLE = """
.sweep-cells { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: 0.6rem; }
.sweep-cells figure { margin: 0; font-size: 0.85rem; line-height: 1.35; }
.sweep-cells img { width: 100%; aspect-ratio: 2.1; display: block; }
.sweep-cells .trouble img { outline: 2px dashed currentColor; outline-offset: -1px; opacity: 0.8; }
.sweep-cells strong { white-space: nowrap; }
"""


@st.fragment
def everything(plan: Plan, done: Sequence[tuple[Cell, CellResult]]) -> None:
    """The ranking at the end, and all runs at the step of the one slider."""
    ranked = ranking(done)
    show_ranking(plan, ranked, done)
    st.header("All runs at one step", anchor=False)
    steps = moments(plan.cells[0].config.steps)
    step = steps[-1]
    if len(steps) > 1:
        step = st.select_slider(
            "Step of all runs",
            steps,
            steps[-1],
            key="sweep.step",
            bind="query-params",
            help="One clock for all runs: close together early, further apart late.",
        )
    samples = measured_on(plan.cells[0].config)
    st.caption(
        f"Left the map of {samples} samples; right the distances of positive pairs (upwards) and negative "
        "pairs (downwards) on the loss's own axis, its thresholds dashed. The best setting comes first; "
        "dashed frames are runs that went wrong."
    )
    st.html(f"<style>{STYLE}</style>")
    look = theme()
    for row in range(0, len(ranked), ACROSS):
        columns = st.columns(ACROSS)
        for place, (column, one) in enumerate(zip(columns, ranked[row : row + ACROSS], strict=False)):
            with column.container(border=True, height="stretch"):
                card(row + place + 1, one, step, look, len(plan.seeds) - len(one.cells))


def show_ranking(plan: Plan, ranked: Sequence[Ranked], done: Sequence[tuple[Cell, CellResult]]) -> None:
    """The chart, and the same in words."""
    from lab.figures.sweep_ranking import sweep_ranking

    said = summary(plan, ranked, done)
    st.header("Ranking", anchor=False)
    st.markdown(said)
    figure = sweep_ranking(ranked, chance_of(done), theme().palette)
    words = (
        f"Recall@1 and MAP@R on {measured_on(plan.cells[0].config)} samples at the last step: a dot at the "
        "mean over seeds, a bar from the least to the largest. A setting that lost a seed stands behind "
        "those that lost none."
    )
    show(figure, words, "sweep ranking", "sweep-ranking", int(figure.layout.height or 400))
    reports.sweep_button(plan, ranked, done)


def summary(plan: Plan, ranked: Sequence[Ranked], done: Sequence[tuple[Cell, CellResult]]) -> str:
    """The best setting, how sure that is, and what went wrong."""
    best = ranked[0]
    said = f"Best of {len(ranked)}: **{best.label}** with recall@1 {spelled(best.recall)}"
    said += f" and MAP@R {spelled(best.map_at_r)}."
    if len(ranked) > 1 and math.isfinite(ranked[1].recall.mean):
        second = ranked[1]
        overlap = second.recall.high >= best.recall.low
        said += f" Second: {second.label} with {spelled(second.recall)}"
        if len(best.cells) == 1:
            said += "; one seed each says nothing of luck."
        elif overlap:
            said += "; their seeds overlap, so this order may be luck."
        else:
            said += "; each of its seeds stays below each of the best."
    bad = [f"{n} {name}" for name in ("collapsed", "diverged", "failed") if (n := count(done, name))]
    said += f" Of {len(done)} runs {', '.join(bad)}." if bad else ""
    missing = len(plan.cells) - len(done)
    if missing:
        said += " One run is still to come." if missing == 1 else f" {missing} runs are still to come."
    return said


def count(done: Sequence[tuple[Cell, CellResult]], state: str) -> int:
    """Runs that ended so."""
    return sum(result.state == state for _, result in done)


def card(place: int, one: Ranked, step: int, look: Theme, missing: int) -> None:
    """One setting: its numbers at the step, a picture a seed, the reasons, and the ways into Train."""
    sound = [result for _, result in one.cells if not result.lost]
    now = spread(result.value("recall_at_1", step) for result in sound)
    st.markdown(f"**{place}. {one.label}**")
    st.caption(f"Recall@1 at step {step}: {spelled(now)}")
    pictures = "".join(figure(cell, result, step, look) for cell, result in one.cells)
    st.html(f'<div class="sweep-cells">{pictures}</div>')
    if missing:
        st.caption(f"{missing} of its seeds {'has' if missing == 1 else 'have'} not ended yet.")
    for text in dict.fromkeys(result.reason for _, result in one.cells if result.reason):
        st.caption(text)
    notes = dict.fromkeys(note for _, result in one.cells for note in result.notes[:1])
    for text in list(notes)[:1]:
        st.caption(text)
    with st.container(horizontal=True):
        for cell, _ in one.cells:
            seed = cell.config.seed
            st.page_link(
                "pages/train.py",
                label=f"Train seed {seed}",
                icon=":material/play_circle:",
                query_params=cell.config.to_settings(),
                help=f"Opens {cell.label}, seed {seed} on the Train page.",
            )


def figure(cell: Cell, result: CellResult, step: int, look: Theme) -> str:
    """One run's picture with its numbers, as HTML."""
    drawn = base64.b64encode(picture(result, step, look.palette, look.ink).encode()).decode()
    recall, map_at_r = (result.value(name, step) for name in ("recall_at_1", "map_at_r"))
    numbers = f"recall {_digits(recall)}, MAP@R {_digits(map_at_r)}"
    trouble = result.state != "finished"
    state = f" <strong>{html.escape(result.state)}</strong>," if trouble else ""
    words = f"{cell.label}, seed {cell.config.seed}, step {step}: {numbers}"
    if trouble:
        words += f"; {result.state}: {result.reason}"
    return (
        f'<figure class="{"trouble" if trouble else "sound"}" title="{html.escape(words, quote=True)}">'
        f'<img alt="{html.escape(words, quote=True)}" src="data:image/svg+xml;base64,{drawn}">'
        f"<figcaption>seed {cell.config.seed}:{state} {numbers}</figcaption></figure>"
    )


def chance_of(done: Sequence[tuple[Cell, CellResult]]) -> float | None:
    """Recall@1 of a guess, from the first run that has points."""
    for _, result in done:
        if len(result.labels):
            shares = np.bincount(result.labels) / len(result.labels)
            return float((shares**2).sum())
    return None


def _digits(number: float) -> str:
    return f"{number:.3f}" if math.isfinite(number) else "none"
