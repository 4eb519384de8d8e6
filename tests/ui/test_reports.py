"""Reports of the shipped comparison and the shipped sweep, and the tables behind their figures."""

import csv
import io

from lab.compare import example as duel_example
from lab.compare import words
from lab.compare.line_up import names
from lab.figures.palette import COLOURS
from lab.figures.take_home import as_csv
from lab.sweep import example as sweep_example
from lab.sweep.ranking import ranking
from ui import compare_views, reports


def comparison():
    sides = duel_example.example()
    return sides, names([side.recording.config for side in sides])


def test_the_report_of_a_comparison_has_settings_numbers_and_figures():
    sides, titles = comparison()
    step = sides[0].recording.latest.step
    page = reports.comparison(tuple(sides), titles, step, "http://here/compare")
    for text in (*titles, "MAP@R", "per_class", "http://here/compare", "time a step"):
        assert text in page
    assert page.count("Plotly.newPlot(") >= 3
    recall = words.spelled(sides[0].recording.frames[-1].quality["recall_at_1"])
    assert recall in page


def test_the_table_behind_the_maps_says_which_map():
    sides, titles = comparison()
    recordings = tuple(side.recording for side in sides)
    figure = compare_views.maps_figure(recordings, titles, 0, COLOURS)
    head, *rows = csv.reader(io.StringIO(as_csv(figure)))
    assert head[0] == "series"
    of_first = [row for row in rows if row[0].startswith(f"{titles[0]}: ")]
    assert len(of_first) == min(compare_views.MOST_POINTS, len(recordings[0].labels))
    assert len(rows) == len(titles) * len(of_first)


def test_the_report_of_a_sweep_ranks_and_shows_every_run():
    plan, results = sweep_example.plan(), sweep_example.example()
    by_config = {result.config: result for result in results}
    done = tuple((cell, by_config[cell.config]) for cell in plan.cells)
    page = reports.sweep(plan, tuple(ranking(done)), done, "")
    assert page.count("<figcaption>") == len(plan.cells)
    assert page.count("<svg") >= len(plan.cells)
    assert ranking(done)[0].label in page
    assert "The same in Loss Lab" not in page, "without a link"
