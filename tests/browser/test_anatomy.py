"""Anatomy: turn a margin by keyboard and watch the curve follow; the family and the forces are drawn."""

import pytest

pytestmark = pytest.mark.browser

CURVES = ".js-plotly-plot .scatterlayer path.js-line"


def lines(page, chart):
    plot = page.locator(".js-plotly-plot").nth(chart)
    return plot.locator(".scatterlayer path.js-line").evaluate_all("ls => ls.map(l => l.getAttribute('d'))")


CROSSINGS = """() => [...document.querySelectorAll(".js-plotly-plot")].map((chart) => {
  const [bar, words] = [".modebar", ".legend"].map((one) => chart.querySelector(one).getBoundingClientRect());
  const beside = bar.left >= words.right || words.left >= bar.right;
  return !beside && bar.top < words.bottom && words.top < bar.bottom;
})"""


def test_a_margin_turned_by_keyboard_moves_the_curve(tab):
    page = tab("/anatomy?anatomy.loss=TripletMarginLoss")
    page.get_by_role("heading", name="Distance: smaller is closer").wait_for()
    page.locator(".js-plotly-plot").nth(2).wait_for()
    page.wait_for_function(f"document.querySelectorAll('{CURVES}').length >= 12")
    before = lines(page, 0)
    page.get_by_role("slider", name="Margin").focus()
    page.keyboard.press("PageUp")
    page.wait_for_function("location.search.includes('anatomy.TripletMarginLoss.margin=')")
    first = before[0]
    page.wait_for_function(
        "first => document.querySelector('.js-plotly-plot .scatterlayer path.js-line')"
        ".getAttribute('d') !== first",
        arg=first,
    )
    assert lines(page, 0)[0] != first
    # the force portrait: a heat map under arrows, dots where nothing pulls; the family: five values a side
    forces = page.locator(".js-plotly-plot").nth(1)
    forces.locator(".heatmaplayer image").wait_for(state="attached")
    forces.locator(".scatterlayer .points path").nth(20).wait_for(state="attached")
    assert len(lines(page, 1)) > 100, "shafts and heads of the arrows"
    page.locator(".js-plotly-plot").nth(2).locator("path.js-line").nth(9).wait_for(state="attached")
    page.get_by_role("link", name="Open in Reference").click()
    page.get_by_role("heading", name="Triplet margin").wait_for()
    page.get_by_role("link", name="Take it apart in Anatomy").click()
    page.wait_for_function("location.search.includes('anatomy.loss=TripletMarginLoss')")
    page.get_by_role("heading", name="What a free point feels").wait_for()
    page.set_viewport_size({"width": 400, "height": 900})
    main = page.get_by_test_id("stMain")
    page.wait_for_function("innerWidth === 400")
    assert main.evaluate("main => main.scrollWidth <= main.clientWidth")
    # Chromium has no pointer here: as on a touch screen the charts' tool bars stay
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot .modebar').length === 3")
    page.wait_for_timeout(500)
    assert page.evaluate(CROSSINGS) == [False, False, False], "a tool bar lies on a legend"
