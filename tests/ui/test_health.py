"""`/health`: counts of runs by state, and nothing by which one could find a run."""

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.requests import Request

from lab.config import RunConfig
from ui.health import answer, health_routes, kind_of
from ui.server import WARM, scheduler

SMALL = RunConfig(data="blobs", data_options={"points": 120}, batch=24, per_class=4, steps=50)


def asked():
    # In a thread of its own: a browser test in the same process keeps an event loop running in this one.
    with ThreadPoolExecutor(1) as pool:
        response = pool.submit(lambda: asyncio.run(answer(Request({"type": "http"})))).result()
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    return response.body.decode()


@pytest.fixture(autouse=True)
def _warm():
    was = WARM.is_set()
    WARM.set()
    yield
    (WARM.set if was else WARM.clear)()


def test_runs_are_counted_by_state_without_their_tokens():
    before = len(scheduler().runs)
    run = scheduler().open(SMALL)
    try:
        deadline = time.monotonic() + 30
        while run.state != "ready":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        report = json.loads(asked())
        assert report["status"] == "ok"
        assert report["runs"] == before + 1
        assert report["states"]["ready"] >= 1
        assert sum(report["states"].values()) == report["runs"]
        assert report["limits"]["drop_after"] == 55.0
        assert run.token not in asked()
        assert set(report) == {"status", "runs", "states", "viewers", "threads", "limits"}
        assert report["threads"]["lab-scheduler"] >= 1
    finally:
        scheduler().close(run.token)
    assert json.loads(asked())["runs"] == before


def test_before_the_warm_up_it_says_starting():
    scheduler()
    WARM.clear()
    assert json.loads(asked()) == {"status": "starting"}


def test_the_address_is_under_the_base_path_too(monkeypatch):
    monkeypatch.setattr("ui.sockets.streamlit_config.get_option", lambda name: "lab/x")
    assert [route.path for route in health_routes()] == ["/health", "/lab/x/health"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ScriptRunner.scriptThread", "ScriptRunner.scriptThread"),
        ("ThreadPoolExecutor-0_2", "ThreadPoolExecutor"),
        ("playground_0", "playground"),
        ("Thread-12 (reader)", "Thread"),
        ("AnyIO worker thread", "AnyIO worker thread"),
    ],
)
def test_threads_are_counted_by_kind(name, kind):
    assert kind_of(threading.Thread(name=name)) == kind
