"""The figures of a paused moment through the page's own script."""

import time

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from lab import presets
from lab.layout_process import PROCESS
from tests.ui.opening import opened_at, runs_closed
from ui.server import scheduler

BLOBS = {"data": "blobs", "blobs.points": "300", "batch": "32", "per_class": "4", "steps": "20", "dim": "3"}


@pytest.fixture(scope="module", autouse=True)
def nothing_left_behind():
    with runs_closed():
        yield
        PROCESS.close()


def open_page(**query):
    return opened_at("train", query)


def healthy(at):
    assert not at.exception, at.exception[0].value
    assert [error.value for error in at.error] == []


def titles(at):
    import json

    return [json.loads(chart.proto.spec)["layout"]["title"]["text"] for chart in at.get("plotly_chart")]


def texts(at):
    return " ".join(element.value for element in [*at.markdown, *at.caption, *at.info])


def test_figures_follow_the_step_in_view_and_the_choice_of_view():
    at = open_page(**BLOBS)
    run = scheduler().get(at.session_state["run.token"])
    run.attach("test")
    deadline = time.monotonic() + 60
    while run.state != "ready" and time.monotonic() < deadline:
        time.sleep(0.01)
    run.play()
    while run.state != "finished" and time.monotonic() < deadline:
        time.sleep(0.01)
    at.get_by_key("figures").set_value(True).run()
    healthy(at)
    assert titles(at) == ["PCA at step 20", "Pairs at step 20", "Loss and quality over the run"]

    at.session_state["run.shown_step"] = 6
    at.run()
    assert titles(at)[:2] == ["PCA at step 6", "Pairs at step 6"]
    assert "The step scrubbed to; the newest is 20." in texts(at)
    assert "at step 6. recall@1" in texts(at)

    at.get_by_key("figures.view in space").set_value("space").run()
    healthy(at)
    assert titles(at)[0] == "3-D map at step 6"
    assert "own three coordinates" in texts(at)

    at.get_by_key("figures.view in space").set_value("tsne").run()
    healthy(at)
    assert titles(at)[0] == "t-SNE at step 6"
    assert "It started fresh." in texts(at)
    at.session_state["run.shown_step"] = None
    at.get_by_key("figures.shown").set_value(["Map", "Neighbours kept", "Norms and distances"])
    at.get_by_key("figures.colour").set_value("trustworthiness").run()
    healthy(at)
    assert titles(at) == [
        "t-SNE at step 20",
        "Neighbours kept by t-SNE, step 20",
        "Norms of the embeddings",
        "Pairs by Euclidean distance",
        "Pairs by cosine similarity",
    ]
    said = texts(at)
    assert "It started from the layout of step 6" in said
    assert "L2 normalisation divides every embedding by its length" in said
    assert "d² = 2 − 2s" in said

    at.get_by_key("figures.view in space").set_value("umap").run()
    healthy(at)
    if titles(at)[0] != "UMAP at step 20":
        assert "needs the package umap-learn" in texts(at)


def test_a_collapsed_moment_is_a_sentence_in_every_view():
    at = open_page(preset="collapse", **presets.get("collapse").settings)
    recording = presets.get("collapse").recording()
    assert recording.config.dim >= 2
    at.get_by_key("figures").set_value(True)
    at.run()
    view = next(w for w in at.segmented_control if w.label == "View")
    view.set_value("tsne").run()
    healthy(at)
    spread = np.ptp(recording.latest.positions)
    assert titles(at)[0].startswith("t-SNE" if spread > 0 else "Pairs")


def test_the_norm_lesson_takes_raw_embeddings_of_any_page():
    def script():
        import numpy as np

        from ui.figures import norms_and_distances

        rng = np.random.default_rng(0)
        labels = np.arange(60) % 3
        directions = rng.normal(size=(3, 5))[labels] + 0.1 * rng.normal(size=(60, 5))
        norms_and_distances(directions * rng.uniform(0.1, 9, size=(60, 1)), labels)

    at = AppTest.from_function(script, default_timeout=60).run()
    healthy(at)
    assert len(titles(at)) == 3
    assert "cosine similarity separates better here" in texts(at)
    table = at.dataframe[0].value
    assert list(table["afterwards"]) == ["as they are", "L2", "LayerNorm", "BatchNorm"]
    assert (
        table["AUC Euclidean"][0] < 0.9 < table["AUC Euclidean"][1] == pytest.approx(table["AUC cosine"][1])
    )
