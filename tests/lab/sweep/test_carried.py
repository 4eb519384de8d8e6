"""A file that somebody dropped reaches the worker process that trains on it."""

import numpy as np
import pytest

from datasets import file
from lab.config import RunConfig
from lab.run import Run
from lab.sweep.carried import carrying, makers_for
from lab.sweep.cell import train
from lab.sweep.desk import Desk
from lab.sweep.job import Task
from lab.uploads import understand

TIMES = 60


@pytest.fixture
def config():
    rng = np.random.default_rng(0)
    rows = "\n".join(f"{a},{b},{'xy'[at % 2]}" for at, (a, b) in enumerate(rng.normal(size=(TIMES, 2))))
    upload = understand(("v.csv", ("d0,d1,kind\n" + rows).encode()))
    file.offer(upload.digest, upload.dataset)
    options = {"digest": upload.digest, "name": "v.csv"}
    return RunConfig(data="file", data_options=options, batch=16, per_class=4, steps=4)


def test_only_what_is_named_is_carried(config):
    assert [digest for digest, _ in makers_for(config)] == [config.data_values["digest"]]
    assert [digest for digest, _ in makers_for((config, config))] == [config.data_values["digest"]]
    assert makers_for(RunConfig(data="blobs")) == ()
    assert makers_for("anything") == ()
    assert carrying(train, RunConfig(data="blobs")) is train


def test_a_worker_process_trains_on_a_dropped_file(config):
    desk = Desk(slots=1)
    try:
        job = desk.open("dropped", [Task(config, train, config, config.steps)])
        assert job.wait(90)
        result = job.results[config].result
        assert result.state != "failed", result.reason
        run = Run(config)
        run.start()
        for _ in range(config.steps):
            run.step()
        assert result.curves["loss"].tolist() == run.recording.curves()["loss"].tolist()
    finally:
        desk.stop()
