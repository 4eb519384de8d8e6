"""The same sweep over a Dask cluster: two local workers, one of which dies; and clear refusals."""

import os
import signal
import sys

import pytest

from lab.sweep.command import main
from lab.sweep.desk import Desk
from lab.sweep.plan import Plan
from lab.sweep.pools import DaskPool
from lab.sweep.work import results_of, tasks_of
from losslib.errors import ParameterError

BASE = {"data": "blobs", "blobs.points": "200", "batch": "32", "per_class": "4", "steps": "80"}
PLAN = Plan.of(BASE, {"ContrastiveLoss.neg_margin": ["0.5", "1"]}, (0, 1))


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="needs the package distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as made:
        yield made


@pytest.mark.filterwarnings("ignore")  # of the cluster's own, when a worker is killed
def test_a_sweep_on_two_workers_outlives_one_and_equals_the_runs_here(cluster, finished):
    desk = Desk()
    try:
        job = desk.open("dask", tasks_of(PLAN), cluster.scheduler_address)
        assert desk._pools[cluster.scheduler_address].slots == 2
        job.wait(60, job.version)
        assert job.done >= 1
        victim = next(iter(cluster.workers.values()))
        os.kill(victim.pid, signal.SIGKILL)
        assert job.wait(120)
        assert (job.state, job.failures) == ("finished", {})
    finally:
        desk.stop()
    cell, result = results_of(PLAN, job)[-1]
    alone = finished(cell.config).recording.curves()
    assert result.curves["loss"].tobytes() == alone["loss"].tobytes()
    assert result.curves["map_at_r"].tobytes() == alone["map_at_r"].tobytes()


def test_an_address_where_nobody_answers_is_one_sentence(monkeypatch):
    pytest.importorskip("distributed", reason="needs the package distributed")
    monkeypatch.setattr("lab.sweep.pools.PATIENCE", "1s")
    with pytest.raises(ParameterError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        DaskPool("tcp://127.0.0.1:9")
    with pytest.raises(ParameterError, match=r"an address looks like tcp://10\.0\.0\.5:8786"):
        DaskPool("nonsense://x")


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ParameterError, match="pip install distributed"):
        DaskPool("tcp://127.0.0.1:9")


def test_the_command_line_says_the_same_with_status_2(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    config = tmp_path / "config.json"
    config.write_text('{"base": {"data": "blobs"}}', encoding="utf-8")
    assert main([str(config), "--out", str(tmp_path / "out"), "--dask", "tcp://127.0.0.1:9"]) == 2
    assert capsys.readouterr().err == (
        "error: sweep: a Dask cluster needs the package distributed; pip install distributed, "
        "or leave the address out to use the cores of this machine\n"
    )
