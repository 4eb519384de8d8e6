"""The Check page: audits, uploads that stay through every step, refusals in a sentence."""

import io
import json
from urllib.parse import parse_qs

import numpy as np
import pytest

from lab.brief import brief
from lab.config import RunConfig
from lab.figures.palette import COLOURS_IN_DARK
from lab.figures.tool_bar import LINE, lines_of_legend
from lab.run import Run
from tests.ui.opening import opened_at
from ui.check.sections import map_height

MINE = "my files"
LABELS = b"0\n1\n2\n" * 4


def vectors(count=12, size=3, seed=112):
    return np.round(np.random.default_rng(seed).normal(size=(count, size)), 4)


def csv(array):
    return "\n".join(",".join(map(str, row)) for row in array.tolist()).encode()


def opened(view="Check my embeddings"):
    return opened_at("check", {"check.view": view})


def with_files(first, second=None):
    at = opened()
    at = by_label(at.segmented_control, "Embeddings").set_value(MINE).run()
    at = at.file_uploader[0].upload(*first).run()
    return at.file_uploader[1].upload(*second).run() if second else at


def by_label(elements, label):
    return next(one for one in elements if one.label == label)


def texts(at):
    return " ".join(one.value for kind in ("markdown", "caption", "info") for one in at.get(kind))


def values(at):
    return {metric.label: metric.value for metric in at.metric}


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("check.view", "Nothing", "must be one of Audit a loss, Check my embeddings, got 'Nothing'"),
        ("check.loss", "NTXent", "did you mean NTXentLoss"),
        ("check.ContrastiveLoss.neg_margin", "wide", "neg_margin must be"),
        ("check.ContrastiveLoss.gap", "1", "no setting 'check.ContrastiveLoss.gap'"),
        ("check.view", "?", "- check.view must be one of"),  # a key stays as it was typed
        ("seed", "1", "no setting 'seed'"),
    ],
)
def test_what_a_link_cannot_have_is_said_until_a_control_changes(key, text, words):
    at = opened_at("check", {key: text})
    assert not at.exception
    [warning] = at.warning
    assert words in warning.value
    assert at.get_by_key("check.loss").value == "ContrastiveLoss"
    assert at.get_by_key("check.ContrastiveLoss.neg_margin").value == 1
    assert at.run().warning
    assert not at.get_by_key("check.ContrastiveLoss.neg_margin").set_value(0.5).run().warning


def test_the_audit_of_every_option_is_the_library_s():
    at = opened("Audit a loss")
    assert not at.exception
    assert "0 failed" in at.success[0].value
    at = at.get_by_key("check.loss").set_value("TripletMarginLoss").run()
    at = at.get_by_key("check.TripletMarginLoss.margin").set_value(0.5).run()
    assert "0 failed" in at.success[0].value
    assert "python -m losslib.check TripletMarginLoss --set margin=0.5" in [one.value for one in at.code]
    names = [expander.label for expander in at.expander]
    assert "finite differences: passed" in names
    assert any(label.startswith("device: ") for label in names)


def test_the_example_shows_everything_at_once():
    at = opened()
    assert not at.exception
    assert not at.error
    assert "1,797 vectors of 64 numbers, 10 classes" in texts(at)
    # nearest neighbours of raw digits are right in 98.9 % (a well-known figure of this set)
    assert values(at)["recall@1"] == "98.9 %"
    assert len(at.get("plotly_chart")) == 5


def test_an_upload_stays_through_every_step():
    array = vectors()
    at = with_files(("embeddings.csv", csv(array), "text/csv"), ("labels.csv", LABELS, "text/csv"))
    assert not at.exception
    before = values(at)
    unit = array / np.linalg.norm(array, axis=1, keepdims=True)
    gaps = np.linalg.norm(unit[:, None] - unit, axis=2) + 9 * np.eye(12)
    right = np.mean(gaps.argmin(axis=1) % 3 == np.arange(12) % 3)
    assert before["recall@1"] == f"{100 * right:.1f} %"
    at = at.get_by_key("check.my.ContrastiveLoss.neg_margin").set_value(0.5).run()
    assert values(at) == before
    at.switch_page("pages/reference.py")
    at.run()
    at.switch_page("pages/check.py")
    at = at.run()
    assert not at.exception
    assert "**embeddings.csv**: 12 vectors of 3 numbers, 3 classes." in texts(at)
    assert values(at) == before
    assert values(at.run()) == before


def test_distances_have_the_colours_of_a_dark_page_and_a_loss_its_title(monkeypatch):
    monkeypatch.setattr("ui.figures.show.is_dark", lambda: True)
    at = with_files(("a.csv", csv(vectors()), "text/csv"), ("labels.csv", LABELS, "text/csv"))
    at = at.get_by_key("check.distances").set_value("FastAPLoss").run()
    assert "No option of FastAP decides which pairs have a gradient." in texts(at)
    charts = [json.loads(one.proto.spec)["data"] for one in at.get("plotly_chart")]
    bars = {trace["name"][:8]: trace["marker"]["color"] for trace in charts[0] if trace["type"] == "bar"}
    assert bars == {"positive": COLOURS_IN_DARK[0], "negative": COLOURS_IN_DARK[4]}


def test_the_map_of_many_long_names_is_as_high_as_that_of_few():
    long = [f"a name of many letters, number {k}" for k in range(10)]
    digits = [str(k) for k in range(10)]
    # 290 pixels hold five entries of 52, but only one of 45 + 7 * 24
    assert [lines_of_legend(names, 290) for names in (digits, brief(long), [])] == [2, 10, 0]
    assert map_height(digits) == 480
    assert map_height(long) - 10 * LINE == 400
    assert map_height(long * 9) == 800


def test_a_new_upload_replaces_the_old_one():
    at = with_files(("a.csv", csv(vectors()), "text/csv"), ("labels.csv", LABELS, "text/csv"))
    at = at.file_uploader[0].upload("b.csv", csv(vectors(12, 5)), "text/csv").run()
    assert "**b.csv**: 12 vectors of 5 numbers, 3 classes." in texts(at)
    assert "a.csv" not in texts(at)


def test_a_file_that_cannot_be_read_says_why_and_loses_nothing_else():
    at = with_files(("v.csv", b"1,2,3\n4,5\n", "text/csv"))
    assert not at.exception
    assert [one.value for one in at.error] == [
        "v.csv, row 1 (line 2 of the file): 2 cells where 3 were expected; mend the row, or leave it out"
    ]
    assert "Drop a file" not in texts(at)
    assert at.run().error, "it is said as long as the file is there"
    at = at.file_uploader[0].upload("w.csv", csv(vectors()), "text/csv").run()
    assert not at.error
    assert "**w.csv**: 12 vectors of 3 numbers, no labels." in texts(at)
    assert set(values(at)) == {"Uniformity", "Spread", "Effective rank", "Mean cosine"}


def test_names_in_a_file_are_shown_as_they_are_spelt():
    at = with_files(("a*b*.csv", b"$u$,$v$,$kind$\n1,2,a\n2,2,a\n4,2,b\n", "text/csv"))
    assert r"**a\*b\*.csv**: 3 vectors of 1 number, 2 classes." in texts(at)
    assert r"- The same in every row, so left out: \$v\$." in texts(at)


def test_a_column_of_too_many_classes_leaves_the_choice_of_another(monkeypatch):
    monkeypatch.setenv("LOSSLAB_UPLOAD_CLASSES", "2")
    rows = "\n".join(f"{a},{b},{'xy'[at % 2]},{'pqr'[at % 3]}" for at, (a, b) in enumerate(vectors(12, 2)))
    at = with_files(("v.csv", ("d0,d1,letter,kind\n" + rows).encode(), "text/csv"))
    assert "12 vectors of 2 numbers, no labels" in texts(at)
    at = at.get_by_key("check label column").set_value("letter").run()
    assert "12 vectors of 2 numbers, 2 classes" in texts(at)
    at = at.get_by_key("check label column").set_value("kind").run()
    assert "12 vectors of 2 numbers, no labels" in texts(at)
    assert at.get_by_key("check label column").value == "kind"


def test_the_column_of_labels_can_be_chosen():
    rows = "\n".join(f"{a},{b},{'xy'[at % 2]},{'pqr'[at % 3]}" for at, (a, b) in enumerate(vectors(12, 2)))
    at = with_files(("v.csv", ("d0,d1,letter,kind\n" + rows).encode(), "text/csv"))
    assert "12 vectors of 2 numbers, 3 classes" in texts(at)
    at = at.get_by_key("check label column").set_value("letter").run()
    assert "12 vectors of 2 numbers, 2 classes" in texts(at)
    at = at.get_by_key("check label column").set_value("no labels").run()
    assert "12 vectors of 2 numbers, no labels" in texts(at)
    at = at.get_by_key("check label column").set_value("chosen automatically").run()
    assert "12 vectors of 2 numbers, 3 classes" in texts(at)


def test_a_column_that_leaves_no_vectors_is_refused_and_another_can_be_chosen():
    at = with_files(("v.csv", b"x,kind\n1,a\n1,a\n2,b\n2,b\n", "text/csv"))
    before = texts(at)
    at = at.get_by_key("check label column").set_value("x").run()
    [error] = at.error
    assert "v.csv has no columns of numbers besides labels" in error.value
    assert texts(at) == before
    at = at.get_by_key("check label column").set_value("no labels").run()
    assert not at.error
    assert "4 vectors of 1 number, no labels" in texts(at)


def test_why_labels_are_not_used_is_seen_at_once(monkeypatch):
    monkeypatch.setenv("LOSSLAB_UPLOAD_CLASSES", "2")
    at = with_files(("v.csv", b"x,kind\n1,a\n2,b\n3,c\n", "text/csv"))
    [what] = [one for one in at.expander if one.label == "What was understood"]
    assert what.proto.expanded
    assert "have 3 different values; at most 2 classes are shown here" in what.markdown[0].value


@pytest.mark.parametrize(("count", "size"), [(1, 4), (2, 1), (3, 4)])
def test_a_few_points_give_a_picture_or_a_sentence(count, size):
    file = io.BytesIO()
    np.savez(file, embeddings=vectors(count, size), labels=np.arange(count) % 2)
    at = with_files(("v.npz", file.getvalue(), "application/zip"))
    assert not at.exception
    assert not at.error
    if count == 1:
        assert "One vector has no pairs" in texts(at)
    else:
        assert len(at.get("plotly_chart")) >= 2


@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_the_plane_holds_the_same_share_whatever_the_size_of_the_numbers(scale):
    """Variances 9, 4 and 1 along the axes: two of them hold 13 of 14 parts."""
    signs = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    rows = (scale * np.concatenate([signs, -signs]) * [3, 2, 1]).astype(np.float32)
    file = io.BytesIO()
    np.savez(file, embeddings=rows, labels=np.arange(6) % 3)
    at = with_files(("v.npz", file.getvalue(), "application/zip"))
    assert not at.error
    assert "The plane holds 93 % of the variance; 6 vectors are drawn." in texts(at)
    assert "At least half of the 5 nearest" in texts(at) or "No row has half of its 5 nearest" in texts(at)


def test_a_wrong_link_is_told():
    at = opened_at("check", {"check.loss": "NoSuchLoss"})
    assert not at.exception
    assert "'NoSuchLoss'" in at.warning[0].value


def test_an_upload_can_be_trained_on_and_forgotten():
    at = with_files(("v.csv", csv(vectors()), "text/csv"), ("labels.csv", LABELS, "text/csv"))
    link = next(one for one in at.main.get("page_link") if one.proto.label.startswith("Train a head"))
    query = {key: value for key, [value] in parse_qs(link.proto.query_string).items()}
    assert link.proto.page == "train"
    config = RunConfig.from_settings(query)
    assert config.data == "file"
    run = Run(config)
    run.start()
    assert len(run.data) == 12
    assert run.data.class_names == ("0", "1", "2")
    at = by_label(at.button, "Forget these files").click().run()
    at.switch_page("pages/reference.py")
    at.run()
    at.switch_page("pages/check.py")
    assert "Drop a file of vectors" in texts(at.run())
