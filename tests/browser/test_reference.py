"""Reference: search, choose, see the curves, and go on to Train with that loss."""

import pytest

from tests.browser.panel import Panel

pytestmark = pytest.mark.browser


def test_search_choose_look_and_train(tab):
    page = tab("/reference")
    page.get_by_role("textbox", name="Search").fill("temperature kornblith")
    page.keyboard.press("Enter")
    page.get_by_text("1 of ").wait_for()
    page.get_by_role("button", name="NT-Xent").click()
    page.get_by_role("heading", name="NT-Xent").wait_for()
    page.wait_for_function("location.search.includes('reference.loss=NTXentLoss')")
    assert "reference.search=temperature" in page.evaluate("location.search")
    # Value and gradient of a positive and of a negative pair: four curves, where the former loss had straight
    # lines of a few points.
    page.wait_for_function(
        "[...document.querySelectorAll('.js-plotly-plot .scatterlayer path.js-line')]"
        ".filter(line => line.getAttribute('d').length > 80).length === 4"
    )
    assert page.locator(".st-key-reference-shown .katex").count() >= 1
    page.get_by_role("link", name="Train with this loss").click()
    Panel(page).wait_ready()
    page.wait_for_function("location.pathname.endsWith('/train') && location.search == '?loss=NTXentLoss'")
    page.get_by_text("Temperature", exact=True).first.wait_for()


def test_a_link_shows_its_loss_on_a_narrow_dark_screen(chromium, server):
    context = chromium(viewport={"width": 400, "height": 900}, color_scheme="dark")
    try:
        page = context.new_page()
        page.goto(f"{server.url}/reference?reference.loss=CircleLoss&reference.family=softmax")
        page.get_by_role("heading", name="Circle").wait_for()
        page.locator(".js-plotly-plot .scatterlayer path.js-line").nth(3).wait_for()
        main = page.get_by_test_id("stMain")
        assert main.evaluate("main => main.scrollWidth <= main.clientWidth")
        assert page.get_by_test_id("stAlert").count() == 0
    finally:
        context.close()
