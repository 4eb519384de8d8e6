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
from collections.abc import Mapping

from losslib import catalog
from losslib.check.report import Check, Report
from losslib.errors import ParameterError

SIZES = {"num_classes": "3", "embedding_size": "8", "class_counts": "[16, 16, 16]"}
SECONDS = 180
# behind the server and the runs, which people are waiting for
CHILD = (
    "import os, sys; hasattr(os, 'nice') and os.nice(5); "
    "from losslib.check.__main__ import main; sys.exit(main())"
)
_ONE_AT_A_TIME = threading.Lock()


def audited(name: str, options: Mapping[str, str]) -> Report:
    """What `losslib.check.audit` says of a loss.

    Args:
        name: class name in the catalog.
        options: values as a link spells them; what a loss must be given is filled in.

    Raises:
        ParameterError: the options do not go together, or the audit did not end.
    """
    given = {**{key: SIZES[key] for key in catalog.get(name).required}, **options}
    command = [sys.executable, "-c", CHILD, name, "--json"]
    for option, text in given.items():
        command += ["--set", f"{option}={text}"]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    with _ONE_AT_A_TIME:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, env=environment, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise ParameterError(f"the audit of {name} did not end within {SECONDS} seconds") from None
    if done.returncode not in (0, 1):
        lines = done.stderr.strip().splitlines() or ["it ended without a word"]
        raise ParameterError(f"the audit of {name} could not be run: {lines[-1]}")
    found = json.loads(done.stdout)
    return Report(found["loss"], tuple(Check(**check) for check in found["checks"]))
