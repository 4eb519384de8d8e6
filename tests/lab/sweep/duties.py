"""Work for the desk's processes that needs no torch, so that a worker starts at once."""

import os
import signal
import time
from pathlib import Path

from losslib.errors import ParameterError


def square(number, _reporter=None):
    return number * number


def niceness(_, _reporter=None):
    return os.nice(0), os.environ["OMP_NUM_THREADS"], os.getpid()


def endless(_, reporter=None):
    """Says that it makes a step every hundredth of a second, until it is stopped."""
    for done in range(100_000):
        reporter.tell(done)
        time.sleep(0.01)


def die_once(folder, _reporter=None):
    """Ends its process the first time, as a machine without memory would."""
    tried = Path(folder) / "tried"
    if tried.exists():
        return "survived"
    tried.touch()
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


def die_always(_, _reporter=None):
    os.kill(os.getpid(), signal.SIGKILL)


def fail_once(folder, _reporter=None):
    tried = Path(folder) / "tried"
    if tried.exists():
        return "well"
    tried.touch()
    raise RuntimeError("inner secret")


def refuse(_, _reporter=None):
    raise ParameterError("run: too much of it")
