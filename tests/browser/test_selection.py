"""One selection in three views: map, heat map and histograms; by pointer and by keyboard; and trails."""

import re

import pytest

from tests.browser.panel import Panel

pytestmark = pytest.mark.browser


def words(panel):
    return panel.root.locator(".selection").inner_text()


def test_a_selection_shows_in_all_views_and_escape_clears_it(tab):
    page = tab("/train?data=blobs&encoder=free&blobs.points=300&steps=200&step=40")
    page.set_viewport_size({"width": 1280, "height": 1500})  # all views in sight: a drag cannot scroll
    panel = Panel(page)
    panel.wait_state("paused")
    panel.wait(lambda: panel.step == 40, "step 40")
    views = ("map", "heat", "histogram")
    plain = {name: panel.still_picture(name) for name in views}

    def marked(*names):
        panel.wait(lambda: all(panel.picture(name) != plain[name] for name in names), f"marks in {names}")

    # a class, in the legend
    panel.root.locator(".legend .class").nth(1).click(modifiers=["Shift"])
    marked(*views)
    panel.wait(lambda: "of the positive pairs" in words(panel), "the share of the pairs")
    points, rows = map(int, re.search(r"(\d+) points of the map and (\d+) rows", words(panel)).groups())
    assert points == 25  # half of 300 points are for training, in 6 classes alike
    assert rows >= 4

    # Escape
    panel.root.focus()
    page.keyboard.press("Escape")
    panel.wait(lambda: all(panel.picture(name) == plain[name] for name in views), "the plain views")
    assert panel.root.locator(".selection").is_hidden()

    # a box on the map holds all points; without Shift the drag would move the map
    box = panel.root.locator("canvas.map").bounding_box()
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] - 2, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    every = int(re.match(r"(\d+) samples", panel.root.locator(".map-summary").inner_text())[1])
    panel.wait(lambda: f"Selected: {every} points" in words(panel), "all points in the box")
    panel.wait(lambda: "100\u00a0% of the negative pairs" in words(panel), "all pairs")

    # a pair of the list: both points are on the map, its distance in the histogram
    panel.root.locator("button.pair").first.press("Enter")
    listed = panel.root.locator("button.pair").first.inner_text()
    panel.wait(lambda: "Both are marked on the map." in words(panel), "the pair")
    assert re.search(r"distance ([\d.]+)", listed)[1] in words(panel)
    assert panel.root.locator("button.pair").first.get_attribute("aria-pressed") == "true"
    marked(*views)

    # a bin of the histograms, by keyboard: its points stand out on the map
    panel.root.locator("canvas.histogram").press("ArrowRight")
    panel.wait(lambda: re.search(r"\d+ positive pairs? at distance .* stand out", words(panel)), "a bin")
    panel.root.locator("canvas.histogram").press("ArrowDown")
    panel.wait(lambda: "negative pair" in words(panel), "the other side")

    # a cell of the heat map, by keyboard
    panel.root.locator("canvas.heat").press("ArrowRight")
    panel.wait(lambda: re.search(r"sample \d+ and .*sample \d+", words(panel)), "a pair of the batch")
    panel.root.get_by_role("button", name="Clear").first.click()
    panel.wait(lambda: all(panel.picture(name) == plain[name] for name in views), "the plain views again")

    # trails
    panel.root.get_by_role("button", name="Trails").click()
    marked("map")
    assert panel.root.get_by_role("button", name="Trails").get_attribute("aria-pressed") == "true"
