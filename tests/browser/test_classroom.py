"""A small class on one server: everybody trains, is answered, and leaves nothing behind."""

import json
import subprocess
import sys

import pytest

from tests.browser.conftest import ROOT

pytestmark = pytest.mark.browser


def test_four_students_train_and_leave_nothing(impatient):
    command = [sys.executable, "-m", "benchmarks.classroom.students", impatient.url, "--sessions", "4"]
    pace = ["--seconds", "12", "--think", "0.5", "1"]
    done = subprocess.run(command + pace, cwd=ROOT, capture_output=True, text=True, check=True)
    notes = json.loads(done.stdout)["notes"]
    assert len(notes) == 4
    for one in notes:
        assert one["errors"] == one["stuck"] == []
        assert one["steps"] > 0
        assert one["frames"] > 0
        assert one["answers"]["control"]
    impatient.wait_for(lambda report: report["runs"] == report["viewers"] == 0, "no run and no viewer left")
