"""Home: presets as pictures, each one click from its recording, on a wide and a narrow screen."""

import re

import pytest

from lab import presets
from tests.browser.panel import Panel

pytestmark = pytest.mark.browser
NAMES = [preset.name for preset in presets.presets()]


def opened(tab):
    page = tab("/")
    page.locator(".preset-picture").nth(len(NAMES) - 1).wait_for()
    return page


def first_loss(panel):
    found = re.search(r"(\S+) at step 0\.", panel.root.locator(".loss-summary").inner_text())
    return found and found[1]


def test_every_preset_has_a_picture_that_loads(tab):
    page = opened(tab)
    widths = page.locator(".preset-picture").evaluate_all("all => all.map(one => one.naturalWidth)")
    assert len(widths) == len(NAMES) >= 6
    assert min(widths) > 0
    alts = page.locator(".preset-picture").evaluate_all("all => all.map(one => one.alt)")
    assert [alt.partition(",")[0] for alt in alts] == [preset.title for preset in presets.presets()]


def test_one_click_on_a_picture_shows_the_recording_and_play_trains_it_live(tab):
    page = opened(tab)
    place = NAMES.index("just_the_loss")
    box = page.locator(".preset-picture").nth(place).bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    panel = Panel(page).wait_ready()
    panel.wait_state("recorded")
    assert panel.step == 300
    assert "preset=just_the_loss" in page.url
    page.get_by_text(presets.get("just_the_loss").look).wait_for()
    assert panel.root.get_by_text("Play trains the settings shown live, from step 0").count() == 1
    frames = len(presets.get("just_the_loss").recording().frames)
    panel.wait(lambda: int(panel.data("received")) == frames, "the whole recording")
    recorded, end, start = panel.data("epoch"), panel.picture("map"), first_loss(panel)
    panel.root.focus()
    panel.root.press("Home")
    panel.wait(lambda: panel.step == 0, "its first frame")
    assert panel.picture("map") != end
    panel.root.press("End")
    panel.press("Play")
    panel.wait(lambda: panel.data("epoch") != recorded and panel.state == "running", "a live run")
    panel.wait_state("finished")
    assert panel.step == 300
    panel.wait(lambda: first_loss(panel) == start, "the loss at step 0 that was recorded")


def test_a_reload_shows_the_recording_again(tab):
    page = tab("/train?preset=collapse")
    panel = Panel(page).wait_ready()
    panel.wait_state("recorded")
    assert "lr=1" in page.url, "all its settings are in the address"
    page.reload()
    panel = Panel(page).wait_ready()
    panel.wait_state("recorded")
    assert panel.step == 300


def test_a_failure_names_its_cure_by_keyboard_too(tab):
    page = opened(tab)
    preset = presets.get("numbers_run_away")
    page.get_by_role("link", name=preset.title).focus()
    page.keyboard.press("Enter")
    panel = Panel(page).wait_ready()
    panel.wait_state("recorded")
    assert panel.step == 1
    page.get_by_text(preset.cure).wait_for()
    assert "stopped being finite numbers at step 2" in panel.root.get_by_role("alert").inner_text()


def test_back_and_forward_keep_a_recording(tab):
    page = opened(tab)
    page.get_by_role("link", name="Collapse").click()
    Panel(page).wait_state("recorded")
    page.go_back()
    page.locator(".preset-picture").first.wait_for()
    page.go_forward()
    panel = Panel(page).wait_ready()
    panel.wait_state("recorded")
    assert "lr=1" in page.url
    panel.press("Step")
    panel.wait(lambda: panel.step == 1 and panel.state == "paused", "one live step")


def test_light_and_dark_and_narrow(chromium, server):
    sources = {}
    for width, scheme in ((1280, "light"), (400, "dark")):
        context = chromium(viewport={"width": width, "height": 900}, color_scheme=scheme)
        try:
            page = context.new_page()
            page.goto(server.url)
            page.locator(".preset-picture").nth(len(NAMES) - 1).wait_for()
            sources[scheme] = page.locator(".preset-picture").first.get_attribute("src")
            main = page.get_by_test_id("stMain")
            assert main.evaluate("main => main.scrollWidth <= main.clientWidth")
            boxes = [page.locator(".preset-picture").nth(place).bounding_box() for place in range(len(NAMES))]
            assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
            assert min(box["width"] for box in boxes) > 200
        finally:
            context.close()
    assert sources["light"] != sources["dark"], "each theme has its own colours"
