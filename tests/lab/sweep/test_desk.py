"""The desk: worker processes, turns between jobs, cancel and resume, limits, and workers that die."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import pytest

from lab.config import RunConfig
from lab.limits import LimitError, Limits
from lab.sweep import reporter
from lab.sweep.cell import Trained
from lab.sweep.desk import Desk
from lab.sweep.job import Job, Task
from lab.sweep.limits import SweepLimits
from lab.sweep.plan import Plan
from lab.sweep.pools import LocalPool, niceness
from lab.sweep.results import failed
from lab.sweep.work import results_of, tasks_of
from losslib.errors import ParameterError
from tests.lab.sweep import duties

BASE = {"data": "blobs", "blobs.points": "200", "batch": "32", "per_class": "4", "steps": "12"}
ENDLESS = Task("endless", duties.endless, None, 1000)
SHORT = Plan.of(BASE, {"ContrastiveLoss.neg_margin": ["0.5", "1"]}, (0, 1))


@pytest.fixture(scope="module")
def desk():
    made = Desk(slots=1)
    yield made
    made.stop()


def until(condition, seconds=150):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_workers_are_other_processes_behind_everything_else_with_one_thread(desk):
    job = desk.open("nice", [Task("nice", duties.niceness, None, 1)])
    assert job.wait(150)
    nice, threads, process = job.results["nice"]
    assert nice == min(os.nice(0) + niceness(), 19)
    assert niceness({}) == 10
    assert niceness({"LOSSLAB_SWEEP_NICENESS": "3"}) == 3
    with pytest.raises(ParameterError, match="LOSSLAB_SWEEP_NICENESS must be a whole number from 0 to 19"):
        niceness({"LOSSLAB_SWEEP_NICENESS": "20"})
    assert threads == "1"
    assert process != os.getpid()


def test_cancel_keeps_what_has_ended_and_resume_goes_on(desk):
    tasks = [Task("short", duties.square, 3, 12), ENDLESS]
    desk_job = desk.open("cancel", tasks)
    until(lambda: desk_job.done == 1 and desk.under_way(desk_job) > 0)
    assert 12 < desk_job.done_steps(desk.under_way(desk_job)) < 1012
    desk.cancel(desk_job)
    assert desk_job.state == "cancelled"
    until(lambda: not desk._in_flight)  # the worker has heard of it
    assert desk_job.done == 1
    # the same key again is the same job, which goes on
    assert desk.open("cancel", tasks) is desk_job
    until(lambda: desk.under_way(desk_job) > 0)
    assert desk_job.state == "running"
    desk.cancel(desk_job)
    until(lambda: not desk._in_flight)


def test_a_task_that_an_earlier_job_had_is_not_done_again(desk):
    assert desk.open("before", [Task("common", duties.square, 3, 1)]).wait(150)
    job = desk.open("after", [Task("common", duties.endless, None, 1)])
    assert (job.state, job.results) == ("finished", {"common": 9})


def test_results_of_a_plan_are_its_cells_that_have_ended_with_the_reasons_of_those_given_up():
    first, second, third, _ = SHORT.cells
    job = Job(tasks_of(SHORT))
    job.take(job.tasks[1], Trained(failed(second.config, ""), b""))
    job.give_up(job.tasks[2], "It died.")
    assert (job.state, job.done) == ("waiting", 2)
    found = results_of(SHORT, job)
    assert [cell for cell, _ in found] == [second, third]
    assert (found[1][1].state, found[1][1].reason) == ("failed", "It died.")
    assert first.config not in job.results


def test_jobs_take_turns(desk):
    long = desk.open("long", [Task(("long", k), duties.square, k, 1) for k in range(400)])
    short = desk.open("short", [Task(("short", k), duties.square, k, 1) for k in range(3)])
    assert short.wait(150)
    assert short.results == {("short", k): k * k for k in range(3)}
    assert long.wait(150)
    assert long.results[("long", 399)] == 399 * 399


def test_a_worker_that_dies_is_replaced_and_its_task_tried_again(desk, tmp_path):
    tasks = [Task("dies", duties.die_once, str(tmp_path), 1), Task("lives", duties.square, 5, 1)]
    job = desk.open("dies", tasks)
    assert job.wait(150)
    assert job.results == {"dies": "survived", "lives": 25}


def test_a_task_that_always_dies_or_fails_is_given_up_with_a_sentence(desk):
    tasks = [Task("hopeless", duties.die_always, None, 1), Task("refused", duties.refuse, None, 1)]
    job = desk.open("hopeless", tasks)
    assert job.wait(150)
    assert job.state == "finished"
    assert job.failures["hopeless"].startswith("Its worker process ended 3 times")
    assert job.failures["refused"] == "Too much of it."


def test_what_failed_is_tried_again_when_asked_for_again(desk, tmp_path):
    tasks = [Task("at first", duties.fail_once, str(tmp_path), 1)]
    job = desk.open("once", tasks)
    assert job.wait(150)
    assert "the mistake is ours" in job.failures["at first"]
    assert desk.open("once", tasks) is job
    assert job.wait(150)
    assert (job.results, job.failures) == ({"at first": "well"}, {})


def test_a_server_works_on_so_many_jobs_and_keeps_so_many():
    desk = Desk(SweepLimits(jobs=1, kept=2), slots=1)
    try:
        first = desk.open("first", [ENDLESS])
        with pytest.raises(LimitError, match="works on 1 sweeps already"):
            desk.open("second", [Task("other", duties.square, 1, 1)])
        desk.cancel(first)
        for key in ("a", "b", "c"):
            desk.show(key, [(Task(key, duties.square, 0, 1), 0)])
        until(lambda: not desk._in_flight)
        job = desk.open("d", [Task("a", duties.square, 0, 1)])
        assert job.results == {"a": 0}
        assert desk.get("first") is None
        assert desk.get("d") is job
    finally:
        desk.stop()
    assert threading.active_count() == len([t for t in threading.enumerate() if t.name != "sweeps"])


@pytest.mark.parametrize(
    ("configs", "words"),
    [
        ([RunConfig(data="blobs", seed=k) for k in range(4)], "at most 3 runs a sweep, this one has 4"),
        ([RunConfig(data="blobs", steps=900, seed=k) for k in range(2)], "at most 1000 steps a sweep"),
        ([RunConfig(data="blobs", batch=2048, steps=10)], "at most 1024 for batch, got 2048"),
        ([RunConfig(data="blobs", data_options={"points": 20000}, steps=10)], "at most 10000 for points"),
    ],
)
def test_what_a_server_does_not_allow_is_one_sentence(configs, words):
    with pytest.raises(LimitError, match=words):
        SweepLimits(cells=3, steps=1000).check(configs, Limits())


def test_limits_come_from_variables():
    found = SweepLimits.from_environment({"LOSSLAB_SWEEP_CELLS": "200"})
    assert (found.cells, found.steps) == (200, SweepLimits().steps)
    with pytest.raises(ParameterError, match="LOSSLAB_SWEEP_STEPS"):
        SweepLimits.from_environment({"LOSSLAB_SWEEP_STEPS": "0"})


def test_the_remaining_time_follows_the_pace_since_the_first_step():
    now = [0.0]
    job = Job([Task(k, duties.square, k, 100) for k in range(4)], clock=lambda: now[0])
    job.begin()
    now[0] = 30.0  # the worker started meanwhile
    assert job.remaining(0) is None
    assert job.remaining(10) is None
    now[0] = 34.0
    assert job.remaining(30) == pytest.approx((400 - 30) * 4 / 20)
    job.take(job.tasks[0], 0)
    now[0] = 40.0
    assert job.remaining(0) == pytest.approx(300 * 10 / 90)


def test_a_worker_says_how_far_it_is_and_hears_that_it_is_to_stop(tmp_path):
    path = tmp_path / "one"
    assert reporter.steps_told(path) == 0
    reporter.Reporter(str(path)).tell(7)
    assert reporter.steps_told(path) == 7
    reporter.stop(path)
    with pytest.raises(reporter.Stopped):
        reporter.Reporter(str(path)).tell(8)
    reporter.tidy(path)
    assert list(tmp_path.iterdir()) == []


def test_one_core_is_left_free():
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert LocalPool().slots == max(1, cores - 1)


@pytest.mark.skipif(sys.platform == "win32", reason="a process there does not learn that its parent ended")
def test_a_worker_ends_when_its_server_is_killed():
    code = (
        "import time; from tests.lab.sweep import duties; from lab.sweep.pools import LocalPool\n"
        "pool = LocalPool(1); print(pool.submit(duties.niceness, None).result()[2], flush=True)\n"
        "pool.submit(time.sleep, 600); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as server:
        worker = int(server.stdout.readline())
        os.kill(worker, 0)  # it is there
        server.kill()
    until(lambda: not alive(worker))


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")  # in a container without init an ended orphan stays a zombie
    return not state.exists() or state.read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"


def test_two_pages_that_open_the_same_sweep_at_once_share_its_job(desk, monkeypatch):
    tasks = [Task(("same", k), duties.square, k, 1) for k in range(2)]
    others = []

    def connected(_):  # which takes seconds, in which another page asks for the same
        if not others:
            others.append(None)
            asking = threading.Thread(target=lambda: others.append(desk.open("same", tasks, "tcp://there")))
            asking.start()
            asking.join()
        return LocalPool(1)

    monkeypatch.setattr("lab.sweep.desk.DaskPool", connected)
    job = desk.open("same", tasks, "tcp://there")
    assert job is others[1]
    assert job is desk.get("same")
    assert job.wait(150)
    assert job.results == {("same", 0): 0, ("same", 1): 1}


def test_a_cluster_whose_jobs_are_all_forgotten_may_still_lose_a_worker(monkeypatch):
    """The last job there was cancelled and has made room for younger ones; its task then dies."""

    class WorkerDied(Exception):  # noqa: N818 - named as Dask's KilledWorker is: by what happened
        pass

    class Cluster:
        slots, shares_files = 1, False
        future: Future = Future()

        def __init__(self, address):
            pass

        def submit(self, *_):
            self.future.set_running_or_notify_cancel()
            return self.future

        def renew(self):
            raise AssertionError("the cluster was let go")

        def close(self):
            pass

    monkeypatch.setattr("lab.sweep.desk.DaskPool", Cluster)
    made = Desk(SweepLimits(kept=1), slots=1)
    away = made.open("away", [Task("away", duties.square, 2, 1)], "tcp://10.0.0.5:8786")
    until(lambda: away.state == "running")
    made.cancel(away)
    made.show("young", [])
    job = made.open("here", [Task("here", duties.square, 3, 1)])
    assert made.get("away") is None
    Cluster.future.set_exception(WorkerDied())
    assert job.wait(60)
    assert job.results == {"here": 9}
    until(lambda: not made._in_flight)
    made.stop()


def test_what_breaks_in_one_job_leaves_the_others_going_on(desk, monkeypatch, caplog):
    class Refusing(LocalPool):
        def submit(self, *_):
            raise RuntimeError("inner secret")

    def broken(*_):
        raise ValueError("inner secret")

    monkeypatch.setattr("lab.sweep.desk.DaskPool", lambda _: Refusing(1))
    refused = desk.open("refused", [Task("refused", duties.square, 3, 1)], "tcp://elsewhere")
    assert refused.wait(150)
    assert "the mistake is ours" in refused.failures["refused"]
    spoilt = desk.open("spoilt", [Task("spoilt", duties.square, 4, 1)], on_result=broken)
    assert spoilt.wait(150)
    assert spoilt.state == "cancelled"
    assert "the mistake is ours" in spoilt.reason
    assert "inner secret" not in spoilt.reason
    assert caplog.text.count("inner secret") >= 2
    job = desk.open("goes on", [Task("goes on", duties.square, 5, 1)])
    assert job.wait(150)
    assert job.results == {"goes on": 25}
