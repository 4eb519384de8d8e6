"""What becomes of a run when pages are switched, reloaded, hidden, cut off or closed, and when many come."""

import re

import pytest

from tests.browser.panel import Panel
from tests.browser.wire import Visitor, Wire

pytestmark = pytest.mark.browser
LONG = "/train?data=blobs&steps=20000&seed=5"
HELD_BY_ONE_VISITOR = "data=blobs&blobs.points=200&batch=32&per_class=4"


def started(page, least=10):
    panel = Panel(page).wait_ready()
    panel.press("Play")
    panel.wait_step(least)
    return panel


def mark_of(panel):
    """What tells one run from another: the number of its recording, and its loss at step 0."""
    panel.wait(lambda: "at step 0." in panel.root.locator(".loss-summary").inner_text(), "the first loss")
    first_loss = re.search(r"(\S+) at step 0\.", panel.root.locator(".loss-summary").inner_text())[1]
    return panel.data("epoch"), first_loss


def go_home(page):
    page.get_by_test_id("stSidebar").get_by_role("link", name="Home").click()
    page.get_by_role("heading", name="Loss Lab").wait_for()


def go_to_train(page):
    page.get_by_test_id("stSidebar").get_by_role("link", name="Train").click()
    return Panel(page).wait_ready()


def test_another_page_and_back_goes_on_with_the_same_run(tab):
    page = tab(LONG)
    panel = started(page)
    mark, before = mark_of(panel), panel.step
    go_home(page)
    panel = go_to_train(page)
    panel.wait_step(before + 1)
    assert panel.state == "running"
    held = panel.pause()
    assert mark_of(panel) == mark
    go_home(page)
    panel = go_to_train(page)
    panel.wait(lambda: panel.step == held, f"step {held} again")
    assert (panel.state, mark_of(panel)) == ("paused", mark)
    assert "seed=5" in page.url
    assert page.get_by_text("not in the run shown").count() == 0


def test_reload_goes_on_with_the_same_run(tab):
    page = tab(LONG)
    panel = started(page)
    mark, before = mark_of(panel), panel.step
    page.reload()
    panel = Panel(page).wait_ready()
    panel.wait_step(before)
    panel.wait(lambda: mark_of(panel) == mark, "the same run")
    assert panel.state == "running"
    held = panel.pause()
    page.reload()
    panel = Panel(page).wait_ready()
    panel.wait(lambda: panel.step == held and panel.state == "paused", f"step {held} again")
    panel.wait(lambda: int(panel.data("received")) >= 15, "the history again")
    assert mark_of(panel) == mark
    assert "seed=5" in page.url


def test_back_finds_the_run_with_its_turned_knob(tab):
    page = tab(LONG)
    panel = started(page)
    slider = page.get_by_role("slider", name="Negative margin")
    slider.focus()
    for _ in range(10):
        slider.press("ArrowLeft")
    panel.wait(lambda: "neg_margin=0.8" in page.url, "the margin in the address")
    mark, held = mark_of(panel), panel.pause()
    go_home(page)
    page.go_back()
    panel = Panel(page).wait_ready()
    panel.wait(lambda: panel.step == held, f"step {held} again")
    assert (panel.state, mark_of(panel)) == ("paused", mark)
    assert page.get_by_text("not in the run shown").count() == 0
    assert "negative margin 0.8" in panel.root.locator("canvas.histogram").get_attribute("aria-label")


def test_back_turns_a_knob_of_the_run_as_the_slider_says(tab):
    page = tab(LONG)
    panel = started(page)
    panel.pause()
    slider = page.get_by_role("slider", name="Negative margin")
    slider.focus()
    slider.press("ArrowLeft")
    drawn = panel.root.locator("canvas.histogram")
    panel.wait(lambda: "negative margin 0.98" in drawn.get_attribute("aria-label"), "the margin turned")
    panel.press("Undo")
    panel.wait(lambda: "negative margin 1" in drawn.get_attribute("aria-label"), "the margin taken back")
    panel.wait(lambda: "neg_margin" not in page.url, "the address without it")
    page.go_back()
    panel.wait(lambda: slider.get_attribute("value") == "0.98", "the slider turned back")
    panel.wait(lambda: "negative margin 0.98" in drawn.get_attribute("aria-label"), "the run to follow")


@pytest.fixture
def wire(impatient):
    made = Wire(impatient)
    yield made
    made.close()


@pytest.fixture
def page_by_wire(context, wire):
    page = context.new_page()
    page.goto(wire.url + LONG)
    yield page
    page.close()


def test_a_short_blip_of_the_network_loses_nothing(wire, page_by_wire):
    panel = started(page_by_wire)
    mark = mark_of(panel)
    wire.cut()
    panel.wait(lambda: panel.data("link") == "reconnecting", "the cut to be told")
    wire.mend()
    panel.wait(lambda: panel.data("link") == "connected", "the connection")
    before = panel.step
    panel.wait_step(before + 1)
    panel.wait(lambda: mark_of(panel) == mark, "the same run")
    assert panel.root.get_by_role("note").is_hidden()


def test_a_longer_blip_pauses_and_play_goes_on(wire, page_by_wire, impatient):
    impatient.wait_for(lambda report: report["states"].get("running", 0) == 0, "a calm server")
    panel = started(page_by_wire)
    mark, before = mark_of(panel), panel.step
    wire.cut()
    impatient.wait_for(lambda report: report["states"].get("running", 0) == 0, "the pause")
    wire.mend()
    panel.wait_state("paused")
    assert "nobody was watching" in panel.root.get_by_role("alert").inner_text()
    held = panel.settled("paused")
    assert held >= before
    panel.wait(lambda: mark_of(panel) == mark, "the same run")
    panel.press("Play")
    panel.wait_step(held + 1)
    assert mark_of(panel) == mark


def test_after_a_long_cut_the_page_says_so_and_has_the_same_settings(wire, page_by_wire, impatient):
    panel = started(page_by_wire)
    mark = mark_of(panel)
    wire.cut()
    impatient.wait_for(lambda report: report["runs"] == 0, "the run to be dropped")
    wire.mend()
    panel.wait(lambda: panel.state == "ready" and panel.step == 0, "a new run")
    assert "no longer has the former run" in panel.root.get_by_role("note").inner_text()
    panel.wait(lambda: mark_of(panel)[1] == mark[1], "the same start: the same settings and seed")
    assert mark_of(panel)[0] != mark[0]


def test_a_run_that_nobody_watches_pauses_and_waits(tab, impatient):
    page = tab(LONG, at=impatient)
    mark = mark_of(started(page))
    go_home(page)
    impatient.wait_for(lambda report: report["states"] == {"paused": 1}, "the pause")
    page.wait_for_timeout(5000)  # longer than a closed tab would be waited for
    panel = go_to_train(page)
    panel.wait_state("paused")
    assert "nobody was watching" in panel.root.get_by_role("alert").inner_text()
    held = panel.step
    assert mark_of(panel) == mark
    panel.press("Play")
    panel.wait_step(held + 1)
    panel.pause()


def test_a_closed_tab_is_paused_and_then_gone(tab, impatient):
    impatient.wait_for(lambda report: report["runs"] == 0, "an empty server")
    page = tab(LONG, at=impatient)
    started(page)
    assert impatient.health()["states"] == {"running": 1}
    assert impatient.health()["viewers"] == 1
    page.close()
    impatient.wait_for(lambda report: report["states"] == {"paused": 1}, "the pause")
    assert impatient.health()["viewers"] == 0
    impatient.wait_for(lambda report: report["runs"] == 0, "its end")


# A tab that Playwright drives is never hidden; what hiding does to a page is that animation frames stop.
HIDING = """
const real = window.requestAnimationFrame.bind(window);
const waiting = [];
let hidden = false;
window.requestAnimationFrame = (draw) => (hidden ? waiting.push(draw) : real(draw));
window.hide = (now) => { hidden = now; if (!now) waiting.splice(0).forEach((draw) => real(draw)); };
"""


def test_a_hidden_tab_is_cheap_and_catches_up(context, server):
    page = context.new_page()
    page.add_init_script(HIDING)
    received = []

    def listen(socket):
        if "/live/" in socket.url:
            socket.on("framereceived", lambda payload: received.append(len(payload)))

    def bytes_in_two_seconds():
        before = sum(received)
        page.wait_for_timeout(2000)
        return sum(received) - before

    try:
        page.on("websocket", listen)
        page.goto(server.url + LONG)
        panel = started(page)
        mark, shown = mark_of(panel), bytes_in_two_seconds()
        page.evaluate("hide(true)")
        page.wait_for_timeout(300)
        drawn, before = int(panel.data("frames")), panel.step
        hidden = bytes_in_two_seconds()
        assert int(panel.data("frames")) == drawn, "nothing is drawn"
        assert hidden < shown / 4
        page.evaluate("hide(false)")
        panel.wait_step(before + 20)
        panel.wait(lambda: int(panel.data("frames")) > drawn, "new frames")
        assert mark_of(panel) == mark
        assert panel.state == "running"
    finally:
        page.close()


def test_forty_runs_at_once_queue_and_say_so(tab, impatient):
    impatient.wait_for(lambda report: report["runs"] == 0, "an empty server")
    visitors = [Visitor(impatient, HELD_BY_ONE_VISITOR) for _ in range(39)]
    try:
        assert len({visitor.token() for visitor in visitors}) == 39, "each has a run of its own"
        page = tab(LONG, at=impatient)
        panel = Panel(page)
        panel.wait_state("queued")
        assert panel.root.get_by_role("alert").inner_text() == (
            "32 runs are open, this one waits for a place; 7 are ahead of it."
        )
        full = {"ready": 32, "queued": 8}
        impatient.wait_for(lambda report: report["states"] == full, "every place to be taken")
        for visitor in visitors[:8]:
            visitor.leave()
        panel.wait_state("ready")
        panel.press("Step")
        panel.wait(lambda: panel.step == 1, "its first step")
    finally:
        for visitor in visitors:
            visitor.leave()


def test_a_run_that_breaks_leaves_the_others_alone(tab, impatient):
    sound = started(tab(LONG, at=impatient))
    broken = Panel(tab("/train?data=blobs&loss=FragileLoss", at=impatient)).wait_ready()
    assert broken.page.get_by_role("combobox", name="Loss").input_value() == "FragileLoss"
    broken.press("Play")
    broken.wait_state("failed")
    reason = broken.root.get_by_role("alert").inner_text()
    assert re.fullmatch(
        r"This run stopped at an error of the program \(number [0-9a-f]{6}\); Reset begins again\.", reason
    )
    assert "secret" not in broken.page.locator("body").inner_text()
    number = re.search("[0-9a-f]{6}", reason)[0]
    assert f"number {number}" in impatient.log.read_text()
    sound.page.bring_to_front()
    before = sound.step
    sound.wait_step(before + 50)
    assert sound.state == "running"
    broken.page.bring_to_front()
    broken.press("Reset")
    broken.wait(lambda: broken.state == "ready" and broken.step == 0, "a new start")
