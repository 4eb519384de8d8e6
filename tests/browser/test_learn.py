"""Learn in Chromium: open a lesson, predict by keyboard, watch it train, see the mark and the next door."""

import re

import pytest

from tests.browser.panel import Panel

pytestmark = pytest.mark.browser


def test_a_lesson_from_its_question_to_its_mark_and_the_next(tab):
    page = tab("/learn")
    page.get_by_role("button", name="2. The margin and the dead zone").click()
    page.get_by_text("Predict first: nothing is trained or shown before you did.").wait_for()
    assert page.locator("[data-state]").count() == 0, "no run is shown before a prediction"
    go = page.get_by_role("button", name="Predict and run")
    assert go.is_disabled()
    answer = page.get_by_role("radio", name="It rises by more than 10 points")
    answer.focus()
    page.keyboard.press("Space")
    page.wait_for_function(
        "() => ![...document.querySelectorAll('button')].find("
        "one => one.innerText.includes('Predict and run')).disabled"
    )
    go.focus()
    page.keyboard.press("Enter")
    page.get_by_text("Take away.").wait_for()
    assert page.get_by_text("Right.").count() == 1
    assert "learn.done=margin_and_dead_zone" in page.url
    panel = Panel(page).wait_ready()
    panel.wait(lambda: panel.step == 80, "the last step")
    measured = re.search(r"Measured: \+(\d+) points", page.locator("body").inner_text())
    assert measured
    assert int(measured[1]) > 10
    page.get_by_role("button", name="Next lesson: Positives only collapse").click()
    page.get_by_text("Sketch the distances of the negative pairs").wait_for()
    assert "learn.done=margin_and_dead_zone" in page.url
    assert "learn.lesson=positives_only" in page.url


def test_a_failure_is_shown_named_and_cured_on_a_projector(tab):
    page = tab("/learn?learn.part=failures&learn.failure=temperature_too_large&present=1")
    page.get_by_role("alert").get_by_text("all negatives weigh the same").wait_for()
    assert page.get_by_role("link", name="Train").count() == 0, "no sidebar"
    size = page.get_by_text("Symptoms.").evaluate("one => parseFloat(getComputedStyle(one).fontSize)")
    assert size >= 22
    cure = page.get_by_role("button", name="Lower the temperature to 0.1")
    assert cure.is_enabled()
    page.keyboard.press("Alt+g")
    page.get_by_text("Cured: the detector finds it no more.").wait_for()
    panel = Panel(page).wait_ready()
    panel.wait(lambda: panel.step == 80, "the last step of the cured run")
