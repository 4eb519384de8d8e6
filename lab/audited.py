"""The audit of a registered loss, in a process of its own.

The audit seeds torch's global generator and watches whether a loss moves it. In the server's process that
would reach into the runs that train there, and they into the audit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from losslib import catalog
from losslib.check.report import Check, Report
from losslib.errors import ParameterError

SIZES = {"num_classes": "3", "embedding_size": "8", "class_counts": "[16, 16, 16]"}
SECONDS = 180
LOOK = 0.1  # seconds between two looks whether it is still wanted
# behind the server and the runs, which people are waiting for
CHILD = (
    "import os, sys; hasattr(os, 'nice') and os.nice(5); "
    "from losslib.check.__main__ import main; sys.exit(main())"
)
_QUEUE: list[object] = []  # the first one's audit is under way
_MOVED = threading.Condition()


def audited(name: str, options: Mapping[str, str], wanted: Callable[[], object] = lambda: None) -> Report:
    """What `losslib.check.audit` says of a loss.

    Args:
        name: class name in the catalog.
        options: values as a link spells them; what a loss must be given is filled in.
        wanted: called again and again meanwhile; what it raises ends the audit.

    Raises:
        ParameterError: the options do not go together, or the audit did not end.
    """
    given = {**{key: SIZES[key] for key in catalog.get(name).required}, **options}
    command = [sys.executable, "-c", CHILD, name, "--json"]
    for option, text in given.items():
        command += ["--set", f"{option}={text}"]
    with _turn(wanted):
        status, said, errors = _run(command, wanted)
    if status is None:
        raise ParameterError(f"the audit of {name} did not end within {SECONDS} seconds")
    if status not in (0, 1):
        lines = errors.strip().splitlines() or ["it ended without a word"]
        raise ParameterError(f"the audit of {name} could not be run: {lines[-1]}")
    found = json.loads(said)
    return Report(found["loss"], tuple(Check(**check) for check in found["checks"]))


@contextmanager
def _turn(wanted: Callable[[], object]) -> Iterator[None]:
    """One audit at a time, in order of asking; who is not wanted any more leaves the queue."""
    me = object()
    with _MOVED:
        _QUEUE.append(me)
    try:
        while _QUEUE[0] is not me:
            with _MOVED:
                _MOVED.wait(LOOK)
            wanted()
        yield
    finally:
        with _MOVED:
            _QUEUE.remove(me)
            _MOVED.notify_all()


def _run(command: list[str], wanted: Callable[[], object]) -> tuple[int | None, str, str]:
    """Exit status (None: out of time), output and errors; however this ends, the process has ended too."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    until = time.monotonic() + SECONDS
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        while True:
            try:
                said, errors = process.communicate(timeout=LOOK)
                return process.returncode, said, errors
            except subprocess.TimeoutExpired:
                if time.monotonic() > until:
                    return None, "", ""
                wanted()
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
