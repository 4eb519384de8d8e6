"""Who asks for less motion: nothing between two moments, slow steps, and nothing that plays by itself."""

import pytest

from tests.browser.panel import Panel

pytestmark = pytest.mark.browser
# Every picture of a canvas in so many ms, and every step that its view says meanwhile.
SEEN = """([name, length]) => new Promise((done) => {
  const found = (root) => root.querySelector(name) || [...root.querySelectorAll('*')]
    .map((one) => one.shadowRoot && found(one.shadowRoot)).find(Boolean);
  const canvas = found(document), view = canvas.closest('.lab');
  const [pictures, steps, begun] = [new Set(), new Set(), performance.now()];
  const look = () => {
    pictures.add(canvas.toDataURL());
    steps.add(view.dataset.step);
    if (performance.now() - begun < length) requestAnimationFrame(look);
    else done([pictures.size, steps.size]);
  };
  look();
})"""


@pytest.fixture
def calm(chromium):
    context = chromium(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    yield context.new_page()
    context.close()


def test_maps_do_not_glide(calm, server):
    calm.goto(server.url + "/train?data=blobs&steps=200")
    panel = Panel(calm).wait_ready()
    assert panel.state == "ready", "nothing plays by itself"
    panel.still_picture("map")
    panel.press("Step")
    pictures, _ = calm.evaluate(SEEN, ["canvas.map", 1500])
    panel.wait_step(1)
    assert pictures <= 2, "before and after"

    calm.goto(server.url + "/compare")
    play = calm.locator(".replay .play")
    play.wait_for()
    calm.wait_for_function("() => document.querySelector('[data-test-script-state=notRunning]')")
    assert play.inner_text() == "Play", "nothing plays by itself"
    play.click()
    pictures, steps = calm.evaluate(SEEN, [".replay canvas.map", 3500])
    assert 2 <= steps <= 5, "a step a second"
    assert pictures <= steps + 1


def test_descent_goes_in_slow_steps(calm, server):
    calm.goto(server.url + "/playground")
    status = calm.locator(".play .status")
    status.wait_for()
    calm.wait_for_timeout(1000)
    assert status.inner_text() == "step 0"
    calm.locator(".play .run").click()
    calm.wait_for_timeout(2000)
    taken = int(status.inner_text().split()[1].strip(","))
    assert 1 <= taken <= 6, "at most a step in 0.4 s"
