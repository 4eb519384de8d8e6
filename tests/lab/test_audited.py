"""The audit in a process of its own says what the library's audit says, and leaves this process alone."""

import subprocess
import sys
import threading
import time
from typing import Any

import pytest
import torch

from lab import audited as module
from lab.audited import audited
from losslib.check import checks
from losslib.errors import ParameterError


def test_the_report_is_the_library_s_and_no_generator_moves_here():
    before = torch.get_rng_state()
    report = audited("ArcFaceLoss", {"margin": "0.3"})
    assert torch.equal(torch.get_rng_state(), before)
    assert report.loss == "ArcFaceLoss"
    assert {check.name for check in report.checks} == set(checks())
    assert report.passed
    assert {check.status for check in report.checks} == {"passed", "skipped"}


def test_what_cannot_be_built_is_a_sentence():
    said = r"audit of TripletMarginLoss could not be run: .*margin must be"
    with pytest.raises(ParameterError, match=said):
        audited("TripletMarginLoss", {"margin": "nan"})


class LeftError(Exception):
    """The tab was closed."""


def test_an_audit_that_nobody_waits_for_ends_with_its_process_and_lets_the_next_one_in(
    monkeypatch: pytest.MonkeyPatch,
):
    started: list[Any] = []
    real = subprocess.Popen

    def remembered(*args: Any, **kwargs: Any) -> Any:
        started.append(real(*args, **kwargs))
        return started[-1]

    monkeypatch.setattr(module, "CHILD", "import time; time.sleep(60)")
    monkeypatch.setattr(subprocess, "Popen", remembered)

    def leave() -> None:
        raise LeftError

    begun = time.monotonic()
    with pytest.raises(LeftError):
        audited("ContrastiveLoss", {}, wanted=leave)
    assert started[0].poll() is not None
    assert module._QUEUE == []
    module._QUEUE.append("somebody else's")  # who waits for a turn may leave, too
    try:
        with pytest.raises(LeftError):
            audited("ContrastiveLoss", {}, wanted=leave)
        assert module._QUEUE == ["somebody else's"]
    finally:
        module._QUEUE.clear()
    assert len(started) == 1
    assert time.monotonic() - begun < 50, "the child sleeps for 60 seconds"


def test_an_audit_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "CHILD", "import time; time.sleep(60)")
    monkeypatch.setattr(module, "SECONDS", 0.2)
    with pytest.raises(ParameterError, match="did not end within"):
        audited("ContrastiveLoss", {})
    assert module._QUEUE == [], "the next one may come"


def test_an_audit_loads_no_symbolic_algebra():
    code = (
        "import sys; from losslib.check.__main__ import main; "
        "checks = ['--only', 'finite differences', '--only', 'double backward']; "
        "status = main(['TripletMarginLoss', '--json', *checks]); "
        "print(status, 'sympy' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "0 False\n"


def test_audits_come_one_at_a_time_in_order_of_asking():
    order: list[int] = []
    under_way: list[int] = []

    def wait(number: int) -> None:
        with module._turn(lambda: None):
            under_way.append(number)
            assert under_way == [number]
            order.append(number)
            time.sleep(0.01)
            under_way.remove(number)

    first = module._turn(lambda: None)
    first.__enter__()
    threads = []
    for number in range(5):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        while len(module._QUEUE) < number + 2:
            time.sleep(0.001)
    first.__exit__(None, None, None)
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]
