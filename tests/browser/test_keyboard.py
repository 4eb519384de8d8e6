"""The keyboard alone: what a person was at may go when the page changes, and the focus goes on from there."""

import pytest
from playwright.sync_api import expect

from tests.browser.panel import Panel

pytestmark = pytest.mark.browser
FOCUSED = """(text) => { let at = document.activeElement;
  while (at && at.shadowRoot && at.shadowRoot.activeElement) at = at.shadowRoot.activeElement;
  if (!at || at === document.body) return false;
  return (at.getAttribute('aria-label') || at.innerText).replace(/\\s+/g, ' ').startsWith(text); }"""


def opened(tab, address):
    """A page with its keeper of the focus, which comes last and knows nothing of what was pressed before."""
    page = tab(address)
    page.wait_for_function("() => window.losslabKeeper")
    return page


def press(page, name, role="button", within=None):
    """By keyboard, as who has tabbed there does."""
    control = (within or page).get_by_role(role, name=name, exact=role != "button").first
    if role == "button":
        expect(control).to_be_enabled()
    control.press("Space" if role == "radio" else "Enter")


def focused(page, text):
    """Whether what has the focus comes to begin with that text."""
    return page.wait_for_function(FOCUSED, arg=text).json_value()


def test_in_a_lesson_the_focus_follows_what_is_shown(tab):
    page = opened(tab, "/learn")
    press(page, "5. Hard, semi-hard, easy")
    assert focused(page, "5. Hard, semi-hard, easy")
    press(page, "It stays as it was, within 2 points", "radio")
    expect(page.get_by_role("button", name="Predict and run")).to_be_enabled()
    page.wait_for_function("() => document.querySelector('[data-test-script-state=notRunning]')")
    press(page, "Predict and run")
    assert focused(page, "You predicted: it stays as it was, within 2 points.")
    page.get_by_text("Take away.").wait_for()
    press(page, "Present")
    page.get_by_role("link", name="Train").wait_for(state="detached")
    assert focused(page, "You predicted")
    press(page, "Open a room")
    assert focused(page, "Room ")
    press(page, "QR code")
    page.get_by_test_id("stPopoverBody").wait_for()
    page.keyboard.press("Escape")
    assert focused(page, "QR code")
    press(page, "Close the room")
    assert focused(page, "You predicted")
    press(page, "Next lesson: Why DCL learns in small batches")
    assert focused(page, "6. Why DCL learns in small batches")
    press(page, "Stop presenting")
    page.get_by_role("link", name="Train", exact=True).wait_for()
    assert focused(page, "6. Why DCL")
    press(page, "All lessons")
    assert focused(page, "Learn")
    page.go_back()
    assert focused(page, "6. Why DCL")
    page.go_forward()
    assert focused(page, "Learn")
    press(page, "Failure gallery", "radio")
    page.get_by_role("button", name="No positives in the batch").wait_for()
    assert focused(page, "Failure gallery")
    press(page, "No positives in the batch")
    assert focused(page, "No positives in the batch")


def test_another_page_begins_at_its_title_and_a_spent_button_gives_way_to_its_neighbour(tab):
    page = opened(tab, "/train?data=blobs&steps=40")
    panel = Panel(page).wait_ready()
    press(page, "Step")
    panel.wait_step(1)
    press(page, "Reset")
    page.locator("button:enabled", has_text="Undo").first.wait_for()
    press(page, "Undo")
    assert focused(page, "Redo")
    page.get_by_role("switch", name="Squared hinges").press("Space")
    press(page, "Start a new run with these")
    assert focused(page, "Play"), "the buttons of the run"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Play"
    press(page, "Reference", "link")
    assert focused(page, "Reference")
    page.get_by_role("button", name="Angular").wait_for()
    press(page, "Angular")
    assert focused(page, "Angular")


def test_tab_goes_into_a_popover_that_was_opened_and_on_behind_it(tab):
    page = opened(tab, "/train?data=blobs")
    Panel(page).wait_ready()
    press(page, "Take home")
    page.get_by_role("button", name="Save run").wait_for()
    page.keyboard.press("Tab")
    assert focused(page, "Save run")
    page.keyboard.press("Shift+Tab")
    assert focused(page, "Take home")
    page.keyboard.press("Tab")
    page.get_by_test_id("stPopoverBody").get_by_test_id("stCode").focus()
    page.keyboard.press("Tab")
    assert focused(page, "Link")
