"""A run leaves the page and comes back: continued from a step, taken back, saved, opened."""

from contextlib import suppress

import pytest
from playwright.sync_api import TimeoutError as TooLateError

from lab.opened import open_run
from tests.browser.panel import Panel

pytestmark = pytest.mark.browser


def test_play_scrub_continue_undo_save_open(tab, tmp_path):
    panel = Panel(tab("/train?data=blobs&blobs.points=400&batch=32&steps=60")).wait_ready()
    page = panel.page
    button = page.get_by_role("button", name="Continue from here", exact=True)
    assert button.is_disabled()
    panel.press("Play")
    panel.wait_state("finished")
    panel.root.focus()
    for _ in range(12):
        panel.root.press("ArrowLeft")
    # frames fall on every fifth step down to 40, then on every second
    panel.wait(lambda: panel.step == 24 and button.is_enabled(), "a step to continue from")
    step = panel.step
    slider = page.get_by_role("slider", name="Negative margin")
    slider.focus()
    for _ in range(10):
        slider.press("ArrowLeft")
    histogram = panel.root.locator("canvas.histogram")
    page.wait_for_url("**neg_margin=0.8**")
    panel.wait(button.is_enabled, "the step is still in view")
    button.click()
    panel.wait(lambda: panel.state == "finished" and panel.step == 60, "the end of the other way")
    panel.wait(lambda: "negative margin 0.8" in histogram.get_attribute("aria-label"), "the margin at 0.8")

    page.get_by_role("button", name="Take home").click()
    file = tmp_path / "run.npz"

    def saved_to_file() -> bool:  # again, where the popover was being drawn when the button was pressed
        with suppress(TooLateError), page.expect_download(timeout=10_000) as waiting:
            page.get_by_role("button", name="Save run").click()
            waiting.value.save_as(file)
        return file.exists()

    panel.wait(saved_to_file, "the run's file")
    saved = open_run(file.read_bytes())
    assert [tuple(event) for event in saved.config.events] == [(step + 1, "neg_margin", 0.8)]
    assert saved.latest.step == 60
    page.keyboard.press("Escape")
    page.get_by_test_id("stPopoverBody").wait_for(state="hidden")

    undo = page.get_by_role("button", name="Undo").first
    panel.root.focus()
    page.keyboard.press("Control+z")  # the run before, whose margin was turned for its next step
    panel.wait(page.get_by_role("button", name="Redo").first.is_enabled, "Redo, once the former run is back")
    panel.wait(lambda: panel.step == 60 and panel.state == "finished", "the former run")
    told = page.get_by_text("Takes back: negative margin from 1.")

    def hovered() -> bool:
        page.mouse.move(1, 1)  # a button that was drawn again does not know that the pointer is over it
        undo.hover()
        with suppress(TooLateError):
            told.wait_for(timeout=2000)
        return told.is_visible()

    panel.wait(hovered, "what Undo takes back")
    undo.click()
    panel.wait(lambda: "negative margin 1" in histogram.get_attribute("aria-label"), "the margin as it was")
    panel.wait(undo.is_disabled, "nothing more to take back")

    page.get_by_role("button", name="Take home").click()
    said = page.get_by_text("recorded to step 60")

    def opened() -> bool:  # again, for the same reason
        page.locator("input[type=file]").set_input_files(file)
        with suppress(TooLateError):
            said.wait_for(timeout=10_000)
        return said.is_visible()

    panel.wait(opened, "the opened run")
    panel.wait_state("recorded")
    panel.wait(lambda: "negative margin 0.8" in histogram.get_attribute("aria-label"), "the opened run")
    panel.root.focus()
    panel.root.press("Home")
    panel.wait(lambda: panel.step == 0, "the first frame of the opened run")
