"""A small class on one server: everybody trains, is answered, and leaves nothing behind."""

import json
import re
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


LESSON = "/learn?learn.lesson=hard_semihard_easy"


def answer(page, text):
    """Predicts in the lesson, and waits for the mark."""
    page.get_by_role("radio", name=text).check(force=True)
    page.get_by_role("button", name="Predict and run").click()
    page.get_by_text("Take away.").wait_for()


def test_a_student_counts_once_whatever_comes_again_from_the_browser(tab, chromium, server):
    teacher = tab(LESSON + "&present=1")
    teacher.get_by_role("button", name="Open a room").click()
    teacher.get_by_text("0 of 0 in the room have predicted").wait_for()
    code = re.search(r"learn\.room=([A-Z0-9]{6})", teacher.url)[1]
    link = f"{LESSON}&learn.room={code}"

    context = chromium(viewport={"width": 400, "height": 900})
    try:
        student = context.new_page()
        student.goto(server.url + link)
        answer(student, "It falls by more than 2 points")
        teacher.get_by_text("1 of 1 in the room have predicted, 1 have seen their mark").wait_for()
        student.reload()
        answer(student, "It rises by more than 2 points")
        student.close()
        again = context.new_page()
        again.goto(server.url + link)
        again.get_by_text("each browser once").wait_for()
        teacher.get_by_text("it rises by more than 2 points: 1").wait_for()
        assert teacher.get_by_text("it falls by more than 2 points: 1").count() == 0

        teacher.reload()
        teacher.get_by_text("1 of 1 in the room have predicted, 1 have seen their mark").wait_for()
        teacher.get_by_role("button", name="Close the room").click()
        teacher.get_by_role("button", name="Open a room").wait_for()
        again.reload()
        again.get_by_text(f"There is no room {code} any more").wait_for()
    finally:
        context.close()
