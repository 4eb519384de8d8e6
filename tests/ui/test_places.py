"""Controls of the link stay in their container, whatever comes and goes on the page.

Where the container of such a control moves, Streamlit's browser side lets the control no longer write into
the address.
"""

import time
from contextlib import contextmanager

import pytest
from streamlit.testing.v1.element_tree import Block

from lab.compare import example as shipped
from lab.compare.duel import duel
from lab.sweep.job import Task
from tests.ui.opening import opened_at, runs_closed, said
from tests.ui.test_check import csv, vectors
from ui import compare
from ui.choice import desk
from ui.server import scheduler

BLOBS = {"data": "blobs", "blobs.points": "200", "batch": "32", "per_class": "4"}


def containers(at):
    """Key of every control of the link to the path of the container it stands in."""
    found = {}

    def walk(block, path):
        for place, child in block.children.items():
            if key := getattr(child.proto, "query_param_key", ""):
                found[key] = path
            if isinstance(child, Block):
                walk(child, (*path, place))

    walk(at._tree, ())
    return found


class Watched:
    """A page whose controls have to stay where they are from change to change."""

    def __init__(self, page, query):
        self.at = opened_at(page, query)
        self.seen = containers(self.at)
        assert self.seen
        assert not self.at.exception

    def set(self, key, value):
        """A control is turned."""
        self.at.get_by_key(key).set_value(value)
        return self.run(f"{key} = {value}")

    def run(self, what):
        """The page runs again; what came or went since."""
        before, self.seen = self.seen, containers(self.at.run())
        assert not self.at.exception, what
        moved = {
            key: (path, self.seen[key]) for key, path in before.items() if self.seen.get(key, path) != path
        }
        assert not moved, f"moved by {what}: {moved}"
        return before.keys() ^ self.seen.keys()


# Each change makes something come or go: controls, whose keys are named, or sentences.
WALKS = {
    "train": (
        {**BLOBS, "margin": "1", "figures": "true"},  # both are refused
        [
            ("loss", "AngularLoss", "AngularLoss.alpha"),
            ("miner", "MultiSimilarityMiner", "MultiSimilarityMiner.epsilon"),
            ("loss", "GE2ELoss", "miner"),
            ("pairing", "semi", "label_fraction"),
            ("loss", "CircleLoss", "CircleLoss.gamma"),
            ("pairing", "label", "per_class"),
            ("encoder", "free", ""),
            ("data", "mnist", "blobs.points"),
            ("data", "swiss_roll", "swiss_roll.points"),
            ("pairing", "continuous", "delta"),
            ("data", "file", "file.name"),
            ("output", "none", ""),
        ],
    ),
    "compare": (
        {"compare.margin": "1"},
        [
            ("compare.data", "file", "compare.file.name"),
            ("compare.data", "blobs", "compare.blobs.points"),
            ("compare.a", "CircleLoss", "compare.a.CircleLoss.gamma"),
            ("compare.c", "MarginLoss", "compare.c.lr"),
            ("compare.pairing", "semi", "compare.label_fraction"),
            ("compare.batch", 5000, ""),
            ("compare.data", "digits", "compare.blobs.points"),
        ],
    ),
    "sweep": (
        {"sweep.margin": "1"},
        [
            ("sweep.losses", ["NTXentLoss"], "sweep.ContrastiveLoss.vary"),
            ("sweep.losses", ["NTXentLoss", "ArcFaceLoss"], "sweep.ArcFaceLoss.vary"),
            ("sweep.NTXentLoss.vary", "nothing", "sweep.NTXentLoss.temperature"),
            ("sweep.rates", "fast", ""),
            ("sweep.data", "blobs", "sweep.blobs.points"),
            ("sweep.data", "file", "sweep.file.name"),
            ("sweep.losses", [], "sweep.NTXentLoss.vary"),
        ],
    ),
    "anatomy": (
        {"anatomy.reducer": "median"},
        [
            ("anatomy.loss", "AlignmentUniformityLoss", "anatomy.AlignmentUniformityLoss.align_weight"),
            ("anatomy.loss", "DynamicArcFaceLoss", "anatomy.DynamicArcFaceLoss.scale"),
            ("anatomy.loss", "CenterLoss", "anatomy.option"),
            ("anatomy.loss", "MultiSimilarityLoss", "anatomy.MultiSimilarityLoss.alpha"),
        ],
    ),
    "playground": (
        {"playground.margin": "1"},
        [
            ("playground.losses", ["TripletMarginLoss"], "playground.ContrastiveLoss.neg_margin"),
            ("playground.losses", ["CircleLoss", "TripletMarginLoss"], "playground.CircleLoss.gamma"),
        ],
    ),
    "reference": (
        {"reference.margin": "1"},
        [("reference.loss", "CenterLoss", ""), ("reference.search", "no such words", "")],
    ),
}


@pytest.mark.parametrize("page", WALKS)
def test_controls_stay_where_they_are(page):
    query, walk = WALKS[page]
    with runs_closed():
        watched = Watched(page, query)
        assert "has no setting" in said(watched.at) or watched.at.warning
        for key, value, other in walk:
            changed = watched.set(key, value)
            assert not other or other in changed, f"{key} = {value} is to bring or take {other}"


def test_a_run_that_goes_on_with_another_loss_keeps_its_knobs_where_they_are():
    with runs_closed():
        watched = Watched("train", BLOBS)
        next(one for one in watched.at.button if one.label == "Step").click()
        watched.run("a step")
        run, deadline = scheduler().get(watched.at.session_state["run.token"]), time.monotonic() + 60
        while not run.step and time.monotonic() < deadline:
            time.sleep(0.02)
        came = watched.set("loss", "CircleLoss")
        assert "CircleLoss.gamma" in came
        assert "Of the run shown" in said(watched.at)
        assert "ContrastiveLoss.neg_margin" in watched.seen, "of the run"
        watched.set("data", "digits")
        assert "Start a new run with these" in [one.label for one in watched.at.button]
        watched.set("loss", "ContrastiveLoss")


def test_files_come_and_go_on_check():
    watched = Watched("check", {"check.view": "Check my embeddings", "check.margin": "1"})
    at = watched.at
    places = [containers(at)["check.distances"]]
    at.segmented_control[1].set_value("my files").run()
    at.file_uploader[0].upload("a.csv", csv(vectors()), "text/csv")
    watched.run("an upload")
    assert "a.csv" in said(at)
    places.append(watched.seen["check.distances"])
    at.file_uploader[0].upload("b.csv", b"a,b,label,kind\n1,2,x,y\n2,1,z,y\n3,1,z,y\n", "text/csv")
    watched.run("another, with a choice of labels")
    assert "b.csv" in said(at)
    assert "Labels" in [one.label for one in at.selectbox]
    places.append(watched.seen["check.distances"])
    assert len(set(places)) == 1


@contextmanager
def job_of_the_desk(key, results):
    """A job that has these results; its desk hands nothing out."""
    job = desk().show(key, results)
    kept = dict(job.results)
    yield job
    job.results, job.failures, job.cancelled, job.started = kept, {}, False, None


def test_a_comparison_waits_runs_fails_and_ends():
    watched = Watched("compare", {})
    assert "compare.figures" in watched.seen
    watched.set("compare.steps", 150)  # another than what is shown: a button comes
    configs = tuple(config.replace(steps=150) for config in shipped.configs())
    task = Task(compare.key_of(configs), duel, configs, 300)
    with job_of_the_desk(task.key, [(task, shipped.example())]) as job:
        results = dict(job.results)
        job.results.clear()
        watched.run("it waits")
        assert "Meanwhile, the last comparison." in said(watched.at)
        job.begin()
        watched.run("it runs")
        job.cancelled = True
        watched.run("it was cancelled")
        assert "Resume" in [one.label for one in watched.at.button]
        assert "compare.figures" in watched.seen
        job.results, job.cancelled = results, False
        watched.run("it has ended")
        assert "Meanwhile" not in said(watched.at)
        assert "compare.figures" in watched.seen
        job.results = {}
        job.give_up(task, "It failed.")
        assert "compare.figures" in watched.run("it failed")


def test_a_sweep_begins_goes_on_and_ends():
    watched = Watched("sweep", {})
    with job_of_the_desk(("sweep", watched.at.session_state["sweep shown"]), []) as job:
        results = dict(job.results)
        assert "sweep.step" in watched.seen
        for count in (3, 0, 2, len(results)):
            job.results = dict(list(results.items())[:count])
            watched.run(f"{count} have ended")
            assert ("sweep.step" in watched.seen) == bool(count)
        watched.set("sweep.seeds", 3)
        assert "Below is the last sweep." in said(watched.at)
