"""Back and Forward: the entries of the browser's history have lost what controls wrote, and pages know it."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def arrived(page, name):
    """The page of that name is there, whole."""
    page.get_by_role("heading", name=name, exact=True).wait_for()
    page.wait_for_function("document.querySelector('[data-test-script-state=notRunning]')")


def query(page):
    """What the address says."""
    return parse_qs(urlsplit(page.url).query)


def go(page, name):
    """By the sidebar."""
    page.get_by_role("link", name=name, exact=True).click()
    arrived(page, "Loss Lab" if name == "Home" else name)


def test_back_shows_what_was_left(tab):
    page = tab("/reference?reference.loss=CircleLoss&reference.family=softmax")
    arrived(page, "Circle")
    go(page, "Home")
    page.go_back()
    arrived(page, "Circle")
    page.wait_for_url("**/reference?*reference.loss=*")
    assert query(page)["reference.loss"] == ["CircleLoss"]


def test_back_shows_the_board_and_its_losses(tab):
    page = tab("/train")
    arrived(page, "Train")
    go(page, "Reference")
    page.get_by_role("link", name="Open in Playground").click()
    arrived(page, "Playground")
    chosen = page.get_by_test_id("stMultiSelect").filter(has_text="ContrastiveLoss")
    page.get_by_role("button", name="Point C").press("ArrowRight")
    page.wait_for_url("**/playground?*playground.points=*")
    moved = query(page)["playground.points"]
    go(page, "Train")
    page.go_back()
    arrived(page, "Playground")
    expect(chosen).to_be_visible()
    page.wait_for_url("**/playground?*playground.losses=*")
    assert query(page)["playground.losses"] == ["ContrastiveLoss"]
    assert query(page)["playground.points"] == moved
