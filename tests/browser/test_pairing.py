"""Pairing on the Train page in Chromium: by a continuous label chosen by hand, and by two augmented views."""

import re

import pytest

from tests.browser.panel import Panel

pytestmark = pytest.mark.browser


def choose(page, control, option):
    box = page.get_by_role("combobox", name=control, exact=False)
    box.click()
    box.fill(option)  # a long list shows only the options in view
    page.get_by_role("option", name=option, exact=True).click()


def chance(panel):
    """What the panel says that the share of neighbours of one kind would be by chance, in percent."""
    said = re.search(r"chance is ([\d.]+)\s%", panel.root.inner_text())
    return float(said[1]) if said else None


def test_swiss_roll_by_its_continuous_label_trains_and_shows_both_sides(tab):
    panel = Panel(tab("/train?data=blobs&batch=64&steps=2000")).wait_ready()
    page = panel.page
    choose(page, "Data", "swiss_roll")
    page.get_by_text("Its label is continuous").wait_for()
    choose(page, "Pairing", "continuous")
    page.get_by_text("position along the roll (0 to 1) differs by at most 0.05").wait_for()
    assert page.get_by_role("slider", name="Delta").count() == 1
    # 2 delta - delta^2 of an even spread from 0 to 1; one of eight classes, by which it was paired before,
    # would be 12.5 %
    expected = pytest.approx(9.75, abs=0.5)
    panel.wait(lambda: panel.state == "ready" and chance(panel) == expected, "the run with that pairing")
    assert "0.88 to 1" in panel.root.inner_text()
    before = panel.picture("histogram")
    panel.press("Play")
    panel.wait_step(15)
    panel.pause()
    assert panel.picture("histogram") != before
    assert panel.inks("histogram")[1] > 0.02
    assert panel.inks("heat")[0] > 2
    label = panel.root.locator("canvas.histogram").get_attribute("aria-label")
    assert "positive" in label
    assert "negative" in label
    assert chance(panel) == expected
    for setting in ("data=swiss_roll", "pairing=continuous"):
        assert setting in page.url


def test_digits_by_two_views_with_a_loss_of_two_views(tab):
    panel = Panel(tab("/train?data=digits&pairing=views&batch=32&encoder=mlp")).wait_ready()
    page = panel.page
    page.get_by_text("A view is the image turned by up to 15 degrees").wait_for()
    choose(page, "Loss", "AlignmentUniformityLoss")
    panel.wait(lambda: "no function of pairs" in panel.root.inner_text(), "a run with the loss of two views")
    panel.press("Play")
    panel.wait_step(10)
    panel.pause()
    assert panel.inks("histogram")[1] > 0.02
    assert panel.inks("loss")[1] > 0.01
    page.get_by_text("takes no pairs or triplets, because row i of both views is one sample").wait_for()
