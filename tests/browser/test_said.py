"""What a screen reader gets: every picture has its sentences, which follow it, and nothing chatters."""

import re

import pytest

from tests.browser.panel import Panel

pytestmark = pytest.mark.browser
# The accessible names of the pictures, with the sentences that describe them.
PICTURES = """(lab) => [...lab.querySelectorAll('canvas[role=img]')].map((one) => {
  const about = one.getAttribute('aria-describedby');
  return [one.getAttribute('aria-label'), about && lab.querySelector(`#${about}`).innerText];
})"""
# How often, in so many ms, a live region changes that a reader would speak.
SPOKEN = """([name, length]) => new Promise((done) => {
  const found = (root) => root.querySelector(name) || [...root.querySelectorAll('*')]
    .map((one) => one.shadowRoot && found(one.shadowRoot)).find(Boolean);
  const said = [];
  const region = (node) => {
    for (let one = node.nodeType === 1 ? node : node.parentElement; one; one = one.parentElement) {
      const live = one.getAttribute('aria-live');
      if (live) return live !== 'off';
      if (['status', 'alert', 'log'].includes(one.getAttribute('role'))) return true;
    }
    return false;
  };
  const watch = new MutationObserver((changes) => changes
    .filter(({ target }) => region(target)).forEach(({ target }) => said.push(target.textContent)));
  watch.observe(found(document), { childList: true, characterData: true, subtree: true });
  setTimeout(() => { watch.disconnect(); done(said); }, length);
})"""


def test_the_live_view_says_what_it_shows_and_keeps_quiet_while_it_trains(tab):
    page = tab("/train?data=blobs&steps=5000")
    panel = Panel(page).wait_ready()
    before = dict(panel.root.evaluate(PICTURES))
    assert all(name and said for name, said in before.items()), before
    assert len(before) == 5
    assert "at step 0" in before["Loss over steps"]
    panel.press("Play")
    panel.wait_step(20)
    said = page.evaluate(SPOKEN, [".lab", 2000])
    assert len(said) <= 2, said
    step, summary = panel.pause(), panel.root.locator(".loss-summary")

    def newest():
        return int(re.search(r"at step (\d+)", summary.inner_text())[1])

    # the curve ends at the last frame, which is not always the last step
    panel.wait(lambda: 0 < newest() <= step, "a later loss")
    after = [text for _, text in panel.root.evaluate(PICTURES)]
    assert before["Loss over steps"] not in after
    assert not set(before.values()) & {text for text in after if text.startswith("Median")}
    [near] = re.findall(r"is a positive for ([\d.]+)\xa0% of them", " ".join(after))
    assert f"recall@1\xa0{near}\xa0%" in " ".join(after)


def test_the_playground_speaks_at_rest_alone(tab):
    page = tab("/playground")
    page.locator(".play .board").first.wait_for()
    page.locator(".play .value", has_text=".").first.wait_for()
    page.locator(".play .run").click()
    said = page.evaluate(SPOKEN, [".play", 1500])
    assert len(said) <= 1, said
    page.locator(".play .run").click()
    page.wait_for_function(
        """() => { const found = (root) => root.querySelector('.announce') || [...root.querySelectorAll('*')]
          .map((one) => one.shadowRoot && found(one.shadowRoot)).find(Boolean);
          return /Contrastive .*, Triplet margin /.test(found(document).textContent); }"""
    )
    point = page.locator(".play .point").first
    assert point.get_attribute("role") == "button"
    assert point.get_attribute("aria-label").startswith("Point A, class 1, at ")
