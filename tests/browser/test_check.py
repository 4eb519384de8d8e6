"""Check: files dropped in a real browser are understood, measured, and trained on."""

import numpy as np
import pytest

from tests.browser.panel import Panel

pytestmark = pytest.mark.browser


@pytest.fixture
def files(tmp_path):
    """Two clusters a class, one label wrong, as a csv with a name for each column."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    vectors = 4 * np.eye(3)[labels] + rng.normal(size=(60, 3))
    names = np.array(["ant", "bee", "cow"])[labels]
    names[7] = "cow"
    good = tmp_path / "vectors.csv"
    rows = [f"{a:.4f},{b:.4f},{c:.4f},{name}" for (a, b, c), name in zip(vectors, names, strict=True)]
    good.write_text("\n".join(["d0,d1,d2,kind", *rows]))
    bad = tmp_path / "ragged.csv"
    bad.write_text("1,2,3\n4,5\n")
    return good, bad


def test_drop_files_look_and_train(tab, files):
    good, bad = files
    page = tab("/check?check.view=Check%20my%20embeddings")
    page.get_by_text("1,797 vectors of 64 numbers").wait_for()
    page.get_by_text("my files").click()
    dropped = page.locator("input[type=file]").first
    dropped.set_input_files(bad)
    page.get_by_text("ragged.csv, row 1 (line 2 of the file): 2 cells where 3 were expected").wait_for()
    dropped.set_input_files(good)
    page.get_by_text("60 vectors of 3 numbers, 3 classes.").wait_for()
    page.get_by_text("Labels to check").wait_for()
    # a bar a class: every class name is in the legend of the map
    page.wait_for_function(
        "['ant', 'bee', 'cow'].every(name => [...document.querySelectorAll('.legendtext')]"
        ".some(text => text.textContent === name))"
    )
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot .barlayer path').length > 20")
    assert page.get_by_test_id("stMain").evaluate("main => main.scrollWidth <= main.clientWidth")
    page.get_by_text("What was understood").click()
    page.get_by_test_id("stDataFrame").first.wait_for()
    page.set_viewport_size({"width": 400, "height": 900})
    page.wait_for_function(  # also of a table that was made wide and is folded away
        "[...document.querySelectorAll('.stDataFrame, .st-key-focus *')]"
        ".every(one => one.getBoundingClientRect().right <= 384)"
    )
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("link", name="Train a head on these vectors").click()
    panel = Panel(page)
    panel.wait_ready()
    assert "data=file" in page.evaluate("location.search")
    page.get_by_role("button", name="Step", exact=True).click()
    panel.wait(lambda: panel.step == 1, "the first step")


def test_the_audit_in_the_dark_on_a_narrow_screen(chromium, server):
    context = chromium(viewport={"width": 400, "height": 900}, color_scheme="dark")
    try:
        page = context.new_page()
        page.goto(f"{server.url}/check?check.loss=NTXentLoss")
        page.get_by_text("0 failed").wait_for(timeout=60_000)
        page.get_by_text("finite differences: passed").click()
        page.get_by_text("central differences").wait_for()
        main = page.get_by_test_id("stMain")
        assert main.evaluate("main => main.scrollWidth <= main.clientWidth")
    finally:
        context.close()
