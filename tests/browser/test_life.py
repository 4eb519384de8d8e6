"""What browsers do: deep links, reloads, page switches, refused values, no socket, a base path."""

import pytest

from tests.browser.conftest import Server
from tests.browser.panel import Panel

pytestmark = pytest.mark.browser
BLOBS = "/train?data=blobs"


def test_deep_link_as_the_very_first_visit(chromium, tmp_path):
    server = Server(tmp_path / "log.txt").wait()
    context = chromium(viewport={"width": 1280, "height": 900})
    try:
        page = context.new_page()
        page.goto(f"{server.url}/train?data=moons&loss=NTXentLoss&NTXentLoss.temperature=0.5&seed=3")
        panel = Panel(page).wait_ready()
        assert panel.step == 0
        assert "temperature 0.5" in panel.root.locator("canvas.histogram").get_attribute("aria-label")
        sidebar = page.get_by_test_id("stSidebar")
        assert sidebar.get_by_role("link", name="Home").count() == 1
        assert sidebar.get_by_role("link", name="Train").count() == 1
        assert "moons" in sidebar.inner_text()
        sidebar.get_by_role("link", name="Home").click()
        page.get_by_role("heading", name="Loss Lab").wait_for()
    finally:
        context.close()
        server.stop()


def test_a_preset_replaces_what_the_tab_had_before(tab):
    page = tab(BLOBS + "&seed=5&output=none")
    panel = Panel(page).wait_ready()
    panel.press("Play")
    panel.wait_step(10)
    panel.pause()
    page.get_by_test_id("stSidebar").get_by_role("link", name="Home").click()
    page.get_by_role("link", name="Just the loss").click()
    panel = Panel(page).wait_ready()
    panel.wait_state("recorded")
    panel.press("Reset")
    panel.wait(lambda: panel.step == 0 and panel.state == "ready", "a new run")
    page.get_by_role("button", name="Link").click()
    link = page.get_by_test_id("stPopoverBody").get_by_text("/train?").inner_text()
    assert link.partition("?")[2] == "data=blobs&encoder=free&loss=SupConLoss&lr=0.03&blobs.points=1000"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("loss=NoSuchLoss", "no loss is called 'NoSuchLoss'"),
        ("data=blobs&lr=-1", "lr must be a number > 0"),
        ("data=blobs&dim=1", "dim must be a whole number from 2 to 512"),
        ("data=blobs&encoder=cnn", "CNN needs images"),
        ("data=blobs&colour=red", "no setting 'colour'"),
        ("data=blobs&ContrastiveLoss.neg_margin=much", "neg_margin must be a finite number"),
        ("data=blobs&steps=50&step=51", "the run has 50 steps and is shown from step 0"),
    ],
)
def test_refused_link_values_are_said(tab, query, sentence):
    page = tab("/train?" + query)
    page.get_by_text(sentence).first.wait_for()
    assert Panel(page).wait_ready().step == 0


def test_a_batch_larger_than_the_data_is_a_sentence(tab):
    page = tab("/train?data=blobs&blobs.points=40&batch=4096")
    page.get_by_text("batch").and_(page.get_by_text("4096")).first.wait_for()
    assert "Traceback" not in page.locator("body").inner_text()


def test_without_a_socket_frames_come_through_the_script(context, server):
    page = context.new_page()
    try:
        page.route_web_socket("**/live/**", lambda socket: socket.close())
        page.goto(server.url + BLOBS)
        panel = Panel(page, "fragment").wait_ready()
        panel.press("Play")
        panel.wait_step(5)
        assert panel.inks("map")[1] > 0.005
        panel.press("Pause")
    finally:
        page.close()


def test_under_a_base_path(chromium, tmp_path):
    server = Server(tmp_path / "log.txt", "--server.baseUrlPath=lab").wait("/lab")
    context = chromium(viewport={"width": 1280, "height": 900})
    try:
        page = context.new_page()
        page.goto(f"{server.url}/lab/train?data=blobs")
        panel = Panel(page).wait_ready()
        assert panel.data("transport") == "socket"
        panel.press("Step")
        panel.wait(lambda: panel.step == 1, "one step")
    finally:
        context.close()
        server.stop()


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1280, "light")])
def test_nothing_sticks_out(chromium, server, width, scheme):
    context = chromium(viewport={"width": width, "height": 900}, color_scheme=scheme)
    try:
        page = context.new_page()
        page.goto(server.url + BLOBS)
        panel = Panel(page).wait_ready()
        wide = page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth")
        assert wide <= page.evaluate("document.querySelector('[data-testid=stMain]').clientWidth")
        for name in ("map", "histogram", "loss", "quality", "heat"):
            box = panel.root.locator(f"canvas.{name}").bounding_box()
            assert box["width"] > 120, name
            assert box["x"] >= 0, name
            assert box["x"] + box["width"] <= width, name
    finally:
        context.close()


def test_a_restarted_server_says_so_and_offers_the_same_settings(chromium, tmp_path):
    server = Server(tmp_path / "log.txt").wait()
    context = chromium(viewport={"width": 1280, "height": 900})
    try:
        page = context.new_page()
        page.goto(server.url + BLOBS + "&seed=4")
        panel = Panel(page).wait_ready()
        panel.press("Play")
        panel.wait_step(5)
        server.stop()
        panel.wait(lambda: panel.data("link") == "reconnecting", "the lost connection to be told")
        # Streamlit's own connection comes back after the panel's, and drops what it is told before that.
        page.route("**/_stcore/health", lambda route: route.abort())
        server = Server(tmp_path / "log2.txt", port=server.port).wait()
        note = panel.root.get_by_role("note")
        panel.wait(lambda: "same settings is asked for" in note.inner_text(), "what happened to be told")
        page.unroute("**/_stcore/health")
        panel.wait(lambda: panel.state == "ready" and panel.step == 0, "a new run")
        assert "it was restarted" in note.inner_text()
        assert "This is a new one with the same settings" in note.inner_text()
        assert "seed=4" in page.url
        panel.press("Step")
        panel.wait(lambda: panel.step == 1, "one step of the new run")
    finally:
        context.close()
        server.stop()


def test_without_a_socket_reset_shows_the_new_start(context, server):
    page = context.new_page()
    try:
        page.route_web_socket("**/live/**", lambda socket: socket.close())
        page.goto(server.url + BLOBS)
        panel = Panel(page, "fragment").wait_ready()
        start = panel.picture("map")
        panel.press("Play")
        panel.wait_step(20)
        panel.pause()
        panel.wait(lambda: int(panel.data("received")) >= 15, "the history, part by part")
        panel.press("Reset")
        panel.wait(lambda: panel.step == 0 and panel.picture("map") == start, "the map of the start")
    finally:
        page.close()


def test_reduced_motion_draws_rarely(chromium, server):
    context = chromium(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    try:
        page = context.new_page()
        page.goto(server.url + BLOBS)
        panel = Panel(page).wait_ready()
        panel.press("Play")
        panel.wait_state("finished")
        panel.wait(lambda: int(panel.data("received")) > 40, "all frames")
        assert int(panel.data("frames")) < int(panel.data("received")) / 2
    finally:
        context.close()


def test_a_link_holds_the_step_shown_and_trains_to_it(tab):
    page = tab(BLOBS + "&seed=6&step=25")
    panel = Panel(page)
    panel.wait_state("paused")
    panel.wait(lambda: panel.step == 25, "step 25")
    assert "Paused at step 25" in panel.root.get_by_role("alert").inner_text()
    assert "step=" not in page.url, "the address is the run's, not the link's"

    page.get_by_role("button", name="Link").click()
    link = page.get_by_test_id("stPopoverBody").get_by_text("/train?")
    panel.wait(lambda: link.inner_text().endswith("?data=blobs&seed=6&step=25"), "the link to step 25")
    page.keyboard.press("Escape")
    panel.root.focus()
    panel.root.press("ArrowLeft")  # frames fall on every second step here, and one by hand on the last
    panel.wait(lambda: panel.step == 24, "the frame before")
    page.get_by_role("button", name="Link").click()
    panel.wait(lambda: link.inner_text().endswith("?data=blobs&seed=6&step=24"), "the link to step 24")
    page.keyboard.press("Escape")
    page.get_by_test_id("stSidebar").get_by_role("link", name="Home").click()
    page.get_by_role("heading", name="Loss Lab").wait_for()
    page.get_by_test_id("stSidebar").get_by_role("link", name="Train").click()
    panel = Panel(page).wait_ready()
    panel.wait(lambda: panel.step == 24, "the moment that was shown")
