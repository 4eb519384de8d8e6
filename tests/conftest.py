"""Shared by all tests: one torch thread, and a reason where a GPU is missing."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported anywhere
# Workers of sweeps stand back in a class; beside tests that fill all cores they would wait for their end.
os.environ.setdefault("LOSSLAB_SWEEP_NICENESS", "1")

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def _one_torch_thread() -> None:
    torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests share one server and take turns: they stay in one process, in their order.

    One that fails is tried once more: on a machine that others use as well a click or a frame may come
    seconds late. The summary shows every failed try, at most three are forgiven in a run, and
    `--force-reruns=0` forgives none.
    """
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.xdist_group("browser"))
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device, none is here")
