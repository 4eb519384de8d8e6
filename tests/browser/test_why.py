"""Why did this point move, and slow motion, on the Train page in Chromium."""

import re

import pytest

from lab.captions import VIEWS
from tests.browser.panel import Panel

pytestmark = pytest.mark.browser
PHASES = ("sample", "embed", "pair", "loss", "gradient", "update")


def test_a_clicked_point_lists_its_forces_and_six_phases_are_a_step(tab):
    panel = Panel(tab("/train?data=digits&steps=500")).wait_ready()
    page, view = panel.page, panel.root.locator(".why-view")
    panel.root.focus()
    panel.root.press("ArrowRight")
    panel.wait(lambda: panel.step == 1, "step 1")

    page.mouse.move(5, 5)
    bare = panel.still_picture("map")  # the points have come to rest where step 1 put them
    place = panel.root.locator("canvas.map").evaluate(
        """canvas => {
            const { width, height } = canvas;
            const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
            for (let k = 3; k < pixels.length; k += 4) {
                const [r, g, b] = [pixels[k - 3], pixels[k - 2], pixels[k - 1]];
                if (pixels[k] === 255 && Math.max(r, g, b) - Math.min(r, g, b) > 120) {
                    const at = (k - 3) / 4;
                    return [(at % width) / devicePixelRatio, Math.floor(at / width) / devicePixelRatio];
                }
            }
        }"""
    )
    panel.root.locator("canvas.map").click(position={"x": place[0], "y": place[1]})
    partners = view.get_by_role("list", name="Partners").get_by_role("button")
    partners.first.wait_for()
    shares = [
        float(re.search(r"([\d.]+) %$", text.replace("\\n", " "))[1]) for text in partners.all_inner_texts()
    ]
    assert shares == sorted(shares, reverse=True)
    assert len(shares) == 12
    assert "is held out: no step trains on it" in view.inner_text()
    assert "minus the gradient of the loss" in view.inner_text()
    assert view.locator(".formula p").count() == 4
    assert partners.first.locator("img").count() == 1, "a thumbnail of the partner"
    panel.wait(lambda: panel.picture("map") != bare, "arrows on the map")

    panel.root.focus()
    arrows, formula = panel.picture("map"), view.locator(".formula").inner_text()
    panel.root.press("ArrowDown")
    panel.wait(lambda: view.locator(".formula").inner_text() != formula, "the second partner's formula")
    panel.wait(lambda: panel.picture("map") != arrows, "the second partner's arrow in bold")
    panel.root.press("Escape")
    page.mouse.move(5, 5)  # off the map, where the pointer marks the point below it
    panel.wait(lambda: panel.picture("map") == bare, "the map without arrows")

    panel.root.press("w")
    panel.wait(lambda: "was in the batch of step 1" in view.inner_text(), "the sample with the largest force")
    first = view.locator(".why-sentence").inner_text()
    panel.root.press("n")
    panel.wait(lambda: view.locator(".why-sentence").inner_text() != first, "the next sample")
    panel.root.press("Escape")

    caption = panel.root.locator(".caption")
    for number, name in enumerate(PHASES, 1):
        panel.root.press("p")
        panel.wait(lambda name=name: panel.data("phase") == name, f"phase {name}")
        assert caption.inner_text().startswith(f"Step 2, phase {number} of 6, {name}. ")
        assert panel.step == (2 if name == "update" else 1)
        marked = panel.root.locator("figure.concerned").evaluate_all(
            "found => found.map((f) => f.classList[0])"
        )
        assert sorted(marked) == sorted(f"{view}-view" for view in VIEWS[name] if view != "phases")
    assert "the loss goes from" in caption.inner_text()
    page.get_by_role("button", name="Phase", exact=True).click()
    panel.wait(lambda: caption.inner_text().startswith("Step 3, phase 1 of 6"), "the next step's first phase")
    panel.root.focus()
    panel.root.press("ArrowRight")
    panel.wait(lambda: panel.step == 3 and panel.data("phase") == "", "the step that was begun, finished")
