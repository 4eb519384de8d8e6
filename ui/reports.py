"""A comparison or a sweep as one page to take home, made when somebody asks for it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import streamlit as st

from lab.report import Report, settings_rows
from ui.address import link

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lab.compare.duel import Contender
    from lab.sweep.plan import Cell, Plan
    from lab.sweep.ranking import Ranked
    from lab.sweep.results import CellResult

INK = "#1a1d21"
HELP = "Settings, numbers and figures on one page that opens anywhere, without a network (5 MB)."


def address() -> str:
    """The address of this page with the settings that are its own."""
    place = (st.context.url or "").partition("?")[0]
    mine = link()
    return f"{place}?{urlencode(mine, doseq=True, safe=':,=.')}" if mine else place


def button(make: Callable[[], str], name: str) -> None:
    """The download."""
    st.download_button(
        "Report as one page", make, f"losslab-{name}.html", "text/html", on_click="ignore", help=HELP
    )


def comparison_button(sides: Sequence[Contender], titles: Sequence[str], step: int) -> None:
    """The report of a comparison at a step."""
    button(partial(comparison, tuple(sides), tuple(titles), step, address()), f"comparison-step-{step}")


def comparison(sides: tuple[Contender, ...], titles: tuple[str, ...], step: int, link: str) -> str:
    """The page of a comparison."""
    from lab.compare import fairness, words
    from lab.figures.palette import COLOURS
    from ui import compare_views as views

    recordings = tuple(side.recording for side in sides)
    report = Report(f"Comparison at step {step}: {', '.join(titles)}", link)
    report.text(" ".join(fairness.sentences(recordings)))
    for title, side in zip(titles, sides, strict=True):
        if side.reason:
            report.text(f"{title}: {side.reason}")
    report.heading("Numbers")
    head, *rows = words.number_rows(sides, titles, step)
    report.table(head, rows)
    report.heading("Maps")
    report.figure(
        views.maps_figure(recordings, titles, step, COLOURS),
        f"The same held-out samples in each map, laid on the first; step {step}.",
    )
    report.heading("Distances of pairs")
    report.figure(
        views.distances_figure(recordings, titles, step, COLOURS),
        "Each on its own loss's axis; thresholds dashed.",
        320,
    )
    report.heading("Over the steps")
    report.figure(
        views.curves_figure(recordings, titles, COLOURS), words.curves_words(recordings, titles), 640
    )
    report.heading("Settings")
    configs = {title: one.config for title, one in zip(titles, recordings, strict=True)}
    report.table(["setting", *titles], settings_rows(configs))
    made = recordings[0].provenance
    where = [f"{name} {made[name]}" for name in ("losslib", "torch", "device", "threads") if name in made]
    report.text(f"Made with {', '.join(where)}.", note=True)
    return report.page()


def sweep_button(plan: Plan, ranked: Sequence[Ranked], done: Sequence[tuple[Cell, CellResult]]) -> None:
    """The report of a sweep."""
    button(partial(sweep, plan, tuple(ranked), tuple(done), address()), "sweep")


def sweep(
    plan: Plan, ranked: tuple[Ranked, ...], done: tuple[tuple[Cell, CellResult], ...], link: str
) -> str:
    """The page of a sweep."""
    from lab.figures.palette import COLOURS
    from lab.figures.sweep_ranking import sweep_ranking
    from lab.sweep.command import spelled
    from lab.sweep.picture import picture
    from ui import sweep_views as views

    report = Report(f"Sweep of {len(ranked)} settings, {len(plan.seeds)} seeds", link)
    said = views.summary(plan, ranked, done)
    report.text(said)
    report.heading("Ranking")
    figure = sweep_ranking(ranked, views.chance_of(done))
    report.figure(
        figure,
        "Held-out quality at the last step: mean, and least to largest over seeds.",
        int(figure.layout.height or 420),
    )
    rows = [
        [str(place), one.label, spelled(one.recall), spelled(one.map_at_r), str(one.collapsed), str(one.lost)]
        for place, one in enumerate(ranked, start=1)
    ]
    report.table(["", "setting", "recall@1", "MAP@R", "collapsed", "lost"], rows)
    report.heading("Runs at the last step")
    drawings = []
    for one in ranked:
        for cell, result in one.cells:
            state = "" if result.state == "finished" else f", {result.state}: {result.reason}"
            words = f"{cell.label}, seed {cell.config.seed}{state}"
            drawings.append((picture(result, cell.config.steps, COLOURS, INK), words))
    report.pictures(drawings)
    report.heading("Settings that all runs share")
    report.table(["setting", "value"], [list(pair) for pair in plan.base])
    return report.page()
