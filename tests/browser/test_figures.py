"""The figures of a paused moment in Chromium: pause, look, scrub, lay out by t-SNE, choose points, save."""

import csv
import io

import pytest

from tests.browser.panel import Panel

pytestmark = pytest.mark.browser


def test_figures_of_a_paused_moment(tab):
    page = tab("/train?data=blobs&blobs.points=300&batch=32&dim=3&steps=40")
    panel = Panel(page).wait_ready()
    panel.press("Play")
    panel.wait_state("finished")
    page.get_by_text("Figures of the paused moment").click()
    page.locator(".js-plotly-plot").get_by_text("PCA at step 40").wait_for()

    slider = panel.root.get_by_role("slider", name="Moment")
    slider.focus()
    for _ in range(3):
        slider.press("ArrowLeft")
    # dense frames lie two steps apart up to here
    panel.wait(lambda: panel.step == 34, "step 34")
    shown = 34
    page.locator(".js-plotly-plot").get_by_text(f"PCA at step {shown}").wait_for()

    page.get_by_role("radio", name="t-SNE").click()
    chart = page.locator(".js-plotly-plot").first
    chart.get_by_text(f"t-SNE at step {shown}").wait_for()
    page.get_by_text("It started fresh.").wait_for()
    assert chart.locator(".scatterlayer path.point").count() > 100
    page.get_by_role("button", name="Neighbours kept").click()
    page.get_by_text("a map of points thrown at random keeps").wait_for()

    page.locator(".js-plotly-plot").first.locator('[data-title="Box Select"]').click()
    box = page.locator(".js-plotly-plot").first.locator(".nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 5, box["y"] + box["height"] - 5, steps=4)
    page.mouse.up()
    page.get_by_text("points chosen:").wait_for()

    # drawing all figures again goes on after the sentence
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()
    page.get_by_role("button", name="Save").first.click()
    with page.expect_download() as waited:
        page.get_by_role("button", name="CSV", exact=True).click()
    assert waited.value.suggested_filename == f"losslab-map-step-{shown}.csv"
    head, *rows = csv.reader(io.StringIO(waited.value.path().read_text()))
    assert head[:4] == ["series", "x", "y", "sample"]
    assert len({row[3] for row in rows}) == len(rows) > 100
