"""The Sweep page: opens on a sweep, runs, cancels, resumes after a reload, refuses in sentences."""

import re
import time

import pytest

from lab.config import RunConfig
from lab.sweep import example
from lab.sweep.ranking import ranking
from tests.lab.sweep.making import made
from tests.ui.opening import button, focus_named, opened_at, said
from ui import sweep, sweep_views
from ui.choice import desk

SMALL = {
    "sweep.data": "blobs",
    "sweep.blobs.points": "200",
    "sweep.batch": "32",
    "sweep.per_class": "4",
    "sweep.losses": "TripletMarginLoss",
    "sweep.TripletMarginLoss.margin": "0.1, 0.3",
}


def opened(query):
    return opened_at("sweep", query)


def pictures(at):
    return re.findall(r"<figure class=\"(\w+)\"", " ".join(one.proto.body for one in at.get("html")))


def until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_it_opens_on_a_ranked_sweep_without_training():
    at = opened({})
    assert not at.exception
    assert not at.warning
    assert button(at, "Run this sweep") is None
    assert len(at.get("plotly_chart")) == 1
    text = said(at)
    assert "Best of 6: **" in text
    assert "Of 12 runs 2 collapsed." in text
    text = " ".join(one.proto.body for one in at.get("html"))
    assert "seed 0: <strong>collapsed</strong>, recall 0." in text
    # a run's numbers are those of its setting's line: to three digits, so that 0.997 is no 1.00
    assert re.search(r"seed 0: recall 0\.\d{3}, MAP@R 0\.\d{3}<", text)
    assert sorted(pictures(at)) == ["sound"] * 10 + ["trouble"] * 2
    assert "take a loss that pushes negatives apart" in text
    links = [link.proto for link in at.main.get("page_link")]
    assert {link.page for link in links} == {"train"}
    queries = [dict(part.split("=") for part in link.query_string.split("&")) for link in links]
    configs = {RunConfig.from_settings(query) for query in queries}
    assert configs == {cell.config for cell in example.plan().cells}
    before = " ".join(one.proto.body for one in at.get("html"))
    at = at.get_by_key("sweep.step").set_value(0).run()
    assert "Recall@1 at step 0" in said(at)
    assert " ".join(one.proto.body for one in at.get("html")) != before


def test_a_sweep_is_cancelled_resumed_after_a_reload_and_finished():
    query = {**SMALL, "sweep.steps": "3000", "sweep.seeds": "1"}
    at = opened(query)
    assert not at.warning
    assert "2 runs, 6000 steps together." in said(at)
    at = button(at, "Run this sweep").click().run()
    [job] = [one for one in desk()._jobs.values() if one.total_steps == 6000]
    until(lambda: desk().under_way(job) > 0)
    at = at.run()
    assert focus_named(at) == "runs-progress", "the button that was pressed is gone"
    assert re.search(r"0 of 2 runs, step \d+ of 6000", at.get("progress")[0].proto.text)
    at = button(at, "Cancel").click().run()
    assert job.state == "cancelled"
    assert "what has ended is kept" in at.get("progress")[0].proto.text
    # a reload is a new session with the same address: it finds the sweep as it was left
    until(lambda: not desk()._in_flight)
    again = opened(query)
    assert button(again, "Run this sweep") is None
    again = button(again, "Resume").click().run()
    assert job.state in ("waiting", "running")
    desk().cancel(job)
    until(lambda: not desk()._in_flight)


def test_what_a_sweep_finds_is_shown_and_stays_when_a_control_changes():
    query = {**SMALL, "sweep.steps": "12", "sweep.seeds": "2", "sweep.batches": "16, 32"}
    at = button(opened(query), "Run this sweep").click().run()
    [job] = [one for one in desk()._jobs.values() if one.total_steps == 96]
    until(lambda: job.state == "finished")
    at = at.run()
    assert not at.exception
    assert "Best of 4: **Triplet margin, margin 0." in said(at)
    assert len(pictures(at)) == 8
    at = at.get_by_key("sweep.TripletMarginLoss.margin").set_value("0.2").run()
    assert "Below is the last sweep" in said(at)
    assert "4 runs, 48 steps together." in said(at)
    assert len(pictures(at)) == 8
    at = at.get_by_key("sweep.TripletMarginLoss.margin").set_value("0.2, x").run()
    assert "margin must be" in at.warning[0].value
    assert len(pictures(at)) == 8


def test_an_order_is_called_luck_or_not_by_what_the_seeds_say():
    """Of the example: recall@1 0.866 to 0.879 before 0.833 to 0.893, and 0.205 to 0.216 last."""
    plan, done = example.plan(), list(zip(example.plan().cells, example.example(), strict=True))

    def told(*kept):
        chosen = [one for one in done if kept_by(one[0], *kept)]
        return sweep_views.summary(plan, ranking(chosen), chosen)

    def kept_by(cell, margins, seeds):
        return (
            cell.label in [f"Contrastive, negative margin {m}" for m in margins] and cell.config.seed in seeds
        )

    assert "their seeds overlap, so this order may be luck" in told((1, 2), (0, 1))
    assert "; each of its seeds stays below each of the best." in told((0, 2), (0, 1))
    assert "; one seed each says nothing of luck." in told((0, 2), (0,))
    equal = [made("0.1", 0, 0.5, 0.4), made("0.2", 0, 0.5, 0.3)]
    assert "; one seed each says nothing of luck." in sweep_views.summary(plan, ranking(equal), equal)


def test_a_link_may_name_several_losses():
    at = opened({"sweep.losses": ["SupConLoss", "CircleLoss"]})
    assert not at.warning
    assert at.get_by_key("sweep.losses").value == ["SupConLoss", "CircleLoss"]
    assert "12 runs, 2400 steps together. Nothing is shown below until it has run." in said(at)
    at = opened({"sweep.losses": ["CircleLos", "SupConLoss"]})
    assert "did you mean CircleLoss" in at.warning[0].value


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"sweep.seeds": "99"}, "seeds must be a whole number from 1 to 10"),
        ({"sweep.losses": "TripletMargin"}, "did you mean TripletMarginLoss"),
        ({"sweep.NTXentLoss.vary": "margin"}, "NTXentLoss: what is varied must be one of"),
        ({"sweep.NTXentLoss.temperature": "-1"}, "NT-Xent: temperature must be"),
        ({"sweep.rates": "0.1, x"}, "Learning rate must be"),
        ({"sweep.foo": "1"}, "There is no setting 'foo'"),
        ({"seeds": "3"}, "The page has no setting 'seeds'"),
        ({"sweep.steps": "20000"}, "at most 40000 steps a sweep, this one has 240000"),
        ({"sweep.seeds": "10", "sweep.batches": "16, 32, 64"}, "at most 60 runs a sweep, this one has 180"),
        (
            {"sweep.seeds": "10", "sweep.rates": ", ".join(f"{at}e-6" for at in range(1, 2001))},
            "at most 60 runs a sweep, this one has 120000",
        ),
    ],
)
def test_what_is_not_possible_is_a_sentence(query, words):
    at = opened(query)
    assert not at.exception
    assert not at.error
    assert any(words in warning.value for warning in at.warning), [w.value for w in at.warning]


@pytest.mark.parametrize("key", ["sweep.rates", "sweep.NTXentLoss.temperature"])
def test_values_of_a_link_that_cannot_be_stay_in_their_field_and_in_the_link(key):
    at = opened({key: "0.1, hot"})
    assert at.get_by_key(key).value == at.query_params[key] == "0.1, hot"
    [warning] = at.warning
    assert "got 'hot'" in warning.value
    assert "default" not in warning.value
    assert not at.get_by_key(key).set_value("0.1, 0.2").run().warning


@pytest.mark.parametrize(
    ("bound", "listed", "allowed"),
    [
        ("127.0.0.1", "", True),
        ("0.0.0.0", "", False),
        ("", "", False),
        ("0.0.0.0", "tcp://a:1, tcp://b:2", True),
    ],
)
def test_only_the_operator_decides_where_a_public_server_connects(bound, listed, allowed, monkeypatch):
    monkeypatch.setattr("streamlit.get_option", lambda name: bound)
    monkeypatch.setenv("LOSSLAB_DASK", listed)
    assert sweep.may_use("tcp://b:2") is allowed


def test_an_unreachable_cluster_is_a_sentence_on_the_page(monkeypatch):
    pytest.importorskip("distributed", reason="needs the package distributed")
    monkeypatch.setattr("lab.sweep.pools.PATIENCE", "1s")
    at = opened({**SMALL, "sweep.steps": "13"})
    at = at.get_by_key("sweep cluster").set_value("tcp://127.0.0.1:9").run()
    at = button(at, "Run this sweep").click().run()
    assert "No Dask scheduler answers at tcp://127.0.0.1:9" in at.warning[0].value
