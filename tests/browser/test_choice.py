"""Compare and Sweep in a browser: run a small comparison and a small sweep, slide, open a cell in Train."""

import pytest

from tests.browser.panel import Panel

pytestmark = pytest.mark.browser

PATIENCE = 120_000  # a worker starts behind everything else on the machine
BLOBS = "{0}.data=blobs&{0}.blobs.points=200&{0}.batch=32&{0}.per_class=4&{0}.steps=60"


PICTURE = "canvas => canvas.toDataURL()"
MOVE = """async (slider, place) => {
    const root = slider.closest(".replay");
    const pictures = () => Object.fromEntries(["map", "histogram", "curve"].map((name) => [
        name, [...root.querySelectorAll("canvas." + name)].map((canvas) => canvas.toDataURL())]));
    const before = pictures();
    slider.value = String(place);
    slider.dispatchEvent(new Event("input"));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const after = pictures();
    const changed = Object.fromEntries(Object.keys(before).map((name) => [
        name, before[name].map((picture, k) => picture !== after[name][k])]));
    return [changed, root.querySelector(".maps-words").textContent];
}"""


def test_a_comparison_runs_slides_and_keeps_its_state_in_the_link(tab):
    page = tab(f"/compare?{BLOBS.format('compare')}&compare.a=NTXentLoss&compare.b=NTXentLoss")
    page.get_by_role("button", name="Run this comparison").click()
    page.get_by_text("no number of any frame differs; the difference is 0").wait_for(timeout=PATIENCE)
    slider = page.get_by_role("slider", name="Step of all runs")
    first, second = (page.locator("canvas.map").nth(place) for place in (0, 1))
    assert first.evaluate(PICTURE) == second.evaluate(PICTURE), "the same loss"
    # A move changes all pictures within two animation frames: there is no server in between.
    changed, words = slider.evaluate(MOVE, 0)
    assert changed == {"map": [True, True], "histogram": [True, True], "curve": [True] * 8}
    assert words.startswith("Step 0: ")
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.get_by_text("Step 1: ").wait_for()
    page.wait_for_function("location.search.includes('compare.step=1')")
    seen = second.evaluate(PICTURE)
    page.locator(".legend .class").first.click()
    for _ in range(100):
        if second.evaluate(PICTURE) != seen:
            break
        page.wait_for_timeout(50)
    assert second.evaluate(PICTURE) != seen, "one legend hides a class in every map"
    page.get_by_text("Figures of this step").click()
    page.locator(".js-plotly-plot .scatterlayer .trace").nth(10).wait_for(state="attached")
    page.get_by_text("Step 1: ").nth(1).wait_for()
    page.wait_for_function("location.search.includes('compare.figures=true')")
    assert "compare.b=NTXentLoss" not in page.url  # the default stays out of the link
    assert "compare.a=NTXentLoss" in page.url


def test_another_comparison_at_the_same_place_has_its_own_numbers(tab):
    page = tab(f"/compare?{BLOBS.format('compare')}&compare.lr=0.01")
    page.get_by_role("button", name="Run this comparison").click()
    page.locator(".replay[data-step='60']").wait_for(timeout=PATIENCE)
    before = page.locator(".numbers tbody td").all_inner_texts()
    page.get_by_role("combobox", name="B", exact=True).click()
    page.keyboard.type("TripletMarginLoss")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Run this comparison").click()
    page.locator(".replay").get_by_text("B: Triplet margin").first.wait_for(timeout=PATIENCE)
    page.wait_for_timeout(500)
    cells = page.locator(".numbers tbody td").all_inner_texts()
    assert len(cells) == 30  # of ten measures: those of two runs, and what they are held against
    assert all(cells)
    assert cells != before


def test_a_sweep_runs_with_progress_survives_a_reload_and_its_cell_opens_in_train(tab):
    losses = "sweep.losses=TripletMarginLoss&sweep.TripletMarginLoss.margin=0.1,0.3"
    page = tab(f"/sweep?{BLOBS.format('sweep')}&{losses}&sweep.seeds=1")
    page.get_by_role("button", name="Run this sweep").press("Enter")
    page.get_by_role("progressbar").wait_for()
    page.wait_for_function("document.activeElement.matches('.st-key-runs-progress')")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Cancel"
    page.reload()
    page.get_by_text("Best of 2:").wait_for(timeout=PATIENCE)
    page.wait_for_function(
        "document.querySelectorAll('.sweep-cells figure.sound').length === 2", timeout=PATIENCE
    )
    first = page.locator(".sweep-cells img").first
    before = first.get_attribute("src")
    assert first.evaluate("image => image.complete && image.naturalWidth > 0")
    page.get_by_role("slider", name="Step of all runs").focus()
    page.keyboard.press("Home")
    page.get_by_text("Recall@1 at step 0").first.wait_for()
    assert page.locator(".sweep-cells img").first.get_attribute("src") != before
    page.get_by_role("link", name="Train seed 0").first.click()
    Panel(page).wait_ready()
    page.wait_for_function("location.pathname.endsWith('/train')")
    assert "loss=TripletMarginLoss" in page.url
    assert "TripletMarginLoss.margin=" in page.url
