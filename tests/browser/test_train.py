"""The Train page in Chromium, on blobs with the MLP, which take a few milliseconds a step."""

import pytest

from tests.browser.panel import Panel

pytestmark = pytest.mark.browser
BLOBS = "/train?data=blobs"
DIVERGING = (
    "&output=none&optimizer=sgd&lr=1000000&ContrastiveLoss.neg_margin=1000000&ContrastiveLoss.squared=true"
)


def open_panel(tab, address=BLOBS):
    return Panel(tab(address)).wait_ready()


def test_first_load_shows_the_untrained_digits(tab):
    panel = open_panel(tab, "/train")
    assert (panel.step, panel.state, panel.data("transport")) == (0, "ready", "socket")
    colours, drawn = panel.inks("map")
    assert colours > 10, "ten classes in ten colours"
    assert drawn > 0.002
    assert panel.inks("histogram")[1] > 0.02
    assert "2000 samples of held-out data" in panel.root.inner_text()
    assert panel.root.get_by_role("group", name="Classes").get_by_role("button").count() == 10


def test_play_trains_and_pause_holds(tab):
    panel = open_panel(tab)
    before = panel.picture("map")
    panel.press("Play")
    panel.wait_step(15)
    held = panel.pause()
    panel.page.wait_for_timeout(700)
    assert panel.step == held
    assert panel.picture("map") != before
    assert panel.inks("loss")[1] > 0.01
    assert panel.inks("quality")[1] > 0.01
    assert panel.inks("heat")[0] > 2


def test_step_goes_one_step(tab):
    panel = open_panel(tab)
    for expected in (1, 2, 3):
        before = panel.picture("map")
        panel.press("Step")
        panel.wait(lambda expected=expected: panel.step == expected, f"step {expected}")
        panel.wait(lambda before=before: panel.picture("map") != before, "a new map")


def test_margin_turned_while_it_runs(tab):
    panel = open_panel(tab, BLOBS + "&steps=20000")
    panel.press("Play")
    panel.wait_step(5)
    histogram = panel.root.locator("canvas.histogram")
    assert "negative margin 1" in histogram.get_attribute("aria-label")
    before = panel.step
    slider = panel.page.get_by_role("slider", name="Negative margin")
    slider.focus()
    for _ in range(10):
        slider.press("ArrowLeft")
    panel.wait(lambda: "negative margin 0.8" in histogram.get_attribute("aria-label"), "the margin at 0.8")
    assert panel.step >= before, "a turned margin must not start the run again"
    assert panel.state == "running"
    assert "ContrastiveLoss.neg_margin=0.8" in panel.page.url
    panel.press("Pause")


def test_reset_goes_back_to_the_same_start(tab):
    panel = open_panel(tab)
    start = panel.picture("map")
    panel.press("Play")
    panel.wait_step(12)
    panel.press("Reset")
    panel.wait(lambda: panel.step == 0 and panel.state == "ready", "step 0")
    panel.wait(lambda: panel.picture("map") == start, "the same map as at first")


def test_a_changed_structure_asks_before_it_replaces_the_run(tab):
    panel = open_panel(tab)
    panel.press("Play")
    panel.wait_step(5)
    held = panel.pause()
    page = panel.page
    size = page.get_by_role("combobox", name="Embedding size")
    size.scroll_into_view_if_needed()
    page.wait_for_timeout(300)  # a list that opens while its page still scrolls closes again
    size.click()
    page.get_by_role("option", name="8", exact=True).click()
    page.get_by_text("not in the run shown: embedding size").wait_for()
    assert panel.step == held
    panel.press("Start a new run with these")
    panel.wait(
        lambda: panel.step == 0 and "8 coordinates" in panel.root.inner_text(), "a run with 8 coordinates"
    )


def test_controls_write_into_the_link_after_others_have_come_and_gone(tab):
    panel = open_panel(tab, BLOBS + "&loss=CircleLoss&miner=MultiSimilarityMiner")
    page = panel.page
    rate = page.get_by_role("slider", name="Learning rate")
    loss = page.get_by_role("combobox", name="Loss", exact=True)
    loss.click()
    loss.fill("NTXentLoss")  # with fewer options than before, so what stands after them moves up
    page.get_by_role("option", name="NTXentLoss", exact=True).click()
    page.wait_for_function("location.search.includes('loss=NTXentLoss')")
    page.get_by_role("slider", name="Temperature").wait_for()
    page.get_by_role("slider", name="Gamma").wait_for(state="detached")
    rate.press("ArrowRight")
    page.wait_for_function("location.search.includes('lr=')")
    page.get_by_text("Batches, optimiser, seed").click()
    steps = page.get_by_role("spinbutton", name="Steps")
    steps.fill("777")
    steps.press("Enter")
    page.wait_for_function("location.search.includes('steps=777')")


def test_two_tabs_have_their_own_runs(tab):
    first, second = open_panel(tab), open_panel(tab)
    first.page.bring_to_front()
    first.press("Play")
    first.wait_step(10)
    second.page.bring_to_front()
    second.press("Step")
    second.wait(lambda: second.step == 1, "step 1 of the second tab")
    first.page.bring_to_front()
    first.press("Pause")
    first.wait_state("paused", "finished")
    assert first.step >= 10
    assert second.step == 1


def test_divergence_ends_in_a_sentence(tab):
    panel = open_panel(tab, BLOBS + DIVERGING)
    panel.press("Play")
    panel.wait_state("diverged")
    reason = panel.root.get_by_role("alert").inner_text()
    assert "finite" in reason or "diverged" in reason
    assert "learning rate" in reason
    assert panel.inks("map")[1] > 0.005, "the last good frame stays"


def test_a_finished_run_goes_on_with_play(tab):
    panel = open_panel(tab, BLOBS + "&steps=10")
    panel.press("Play")
    panel.wait_state("finished")
    assert panel.step == 10
    panel.press("Play")
    panel.wait(lambda: panel.step == 20 and panel.state == "finished", "ten more steps")


def test_keys(tab):
    panel = open_panel(tab, BLOBS + "&steps=20000")
    panel.root.focus()
    panel.root.press("ArrowRight")
    panel.wait(lambda: panel.step == 1, "one step by key")
    panel.root.press(" ")
    panel.wait_step(10)
    panel.root.press(" ")
    newest = panel.settled("paused")
    panel.root.press("ArrowLeft")
    panel.wait(lambda: panel.step < newest, "one frame back")
    panel.root.press("Home")
    panel.wait(lambda: panel.step == 0, "the first frame")
    panel.root.press("End")
    panel.wait(lambda: panel.step == newest, "the newest frame")


def test_legend_hides_a_class_and_zoom_outlives_frames(tab):
    panel = open_panel(tab, BLOBS + "&steps=20000")
    colours = panel.inks("map")[0]
    panel.root.get_by_role("button", name="blob 1", exact=True).click()
    panel.wait(lambda: panel.inks("map")[0] < colours, "one colour less")
    panel.root.get_by_role("button", name="Zoom in").click()
    panel.press("Step")
    panel.wait(lambda: panel.step == 1, "a new frame")
    pressed = panel.root.get_by_role("button", name="blob 1", exact=True).get_attribute("aria-pressed")
    assert pressed == "false"


def test_a_term_opens_its_sentence(tab):
    panel = open_panel(tab)
    panel.root.get_by_role("button", name="recall@1", exact=True).click()
    note = panel.root.get_by_role("note")
    assert "nearest neighbour has the same label" in note.inner_text()
    panel.root.get_by_role("button", name="recall@1", exact=True).click()
    assert note.is_hidden()
