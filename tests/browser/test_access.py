"""Every page for everybody, and deeper: axe's rules, no sideways scroll, the keyboard's way, both themes."""

from pathlib import Path

import pytest

from tests.browser.axe import BEYOND, WHOLE, faults, settled
from tests.browser.panel import Panel
from ui.navigation import entries

pytestmark = pytest.mark.browser
LOOKS = (("light", 1280), ("dark", 400))

# What Tab must reach: every control of the page that may be used and seen.
CONTROLS = """() => {
  const wanted = 'a[href], button, input, select, textarea, summary, [role=slider], [tabindex]';
  const roots = [document], found = [];
  while (roots.length) {
    for (const one of roots.pop().querySelectorAll('*')) {
      if (one.shadowRoot) roots.push(one.shadowRoot);
      if (!one.matches(wanted) || one.disabled || one.tabIndex < 0) continue;
      const box = one.getBoundingClientRect(), style = getComputedStyle(one);
      if (!box.width || !box.height || style.visibility === 'hidden' || one.closest('[inert]')) continue;
      if (one.closest('details:not([open])') && !one.closest('summary')) continue;
      if (one.type === 'radio' && !one.checked) continue;
      one.dataset.reached = 'no';
      found.push(one);
    }
  }
  return found.length;
}"""
FOCUS = """() => {
  let one = document.activeElement;
  while (one && one.shadowRoot && one.shadowRoot.activeElement) one = one.shadowRoot.activeElement;
  if (!one || one === document.body) return '';
  one.dataset.reached = 'yes';
  const seen = (part) => { const s = getComputedStyle(part);
    const ring = part.matches('.point .chosen') && s.visibility === 'visible';  // the playground's
    return ring || (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0) || s.boxShadow !== 'none'; };
  let near = one, shown = false;
  for (let up = 0; near && up < 4 && !shown; up++, near = near.parentElement) {
    shown = seen(near) || [...near.children].some(seen);
  }
  return [one.tagName, one.getAttribute('aria-label') || one.innerText || one.id || one.className,
    String(shown)].join('|');
}"""
MISSED = """() => { const roots = [document], found = [];
  while (roots.length) for (const one of roots.pop().querySelectorAll('*')) {
    if (one.shadowRoot) roots.push(one.shadowRoot);
    if (!one.dataset || one.dataset.reached !== 'no') continue;
    // In a group of choices arrows go on from the one that Tab reaches.
    const group = one.closest('[role=radiogroup], [role=toolbar], [role=tablist]');
    if (group && group.querySelector('[data-reached=yes]')) continue;
    found.push(one.outerHTML.slice(0, 160));
  }
  return found; }"""


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.title)
def test_a_page_for_everybody(context, server, entry):
    page = context.new_page()
    try:
        page.set_default_timeout(60_000)
        page.goto(server.url + address(entry))
        page.get_by_role("heading", level=1).first.wait_for()
        page.wait_for_function(WHOLE)
        page.wait_for_timeout(400)
        page.wait_for_function(WHOLE)
        unreached, unseen = keyboard(page)
        if unreached:  # a part of the page that came while Tab was on its way
            page.wait_for_function(WHOLE)
            unreached, unseen = keyboard(page)
        assert unreached == []
        assert unseen == []
        for scheme, width in LOOKS:
            look(page, scheme, width)
            assert faults(page) == [], f"{scheme}, {width} pixels"
        page.set_viewport_size({"width": 1920, "height": 900})
        assert settled(page, lambda: [by for by in page.evaluate(BEYOND) if by > 0]) == []
    finally:
        page.close()


def test_a_lesson_for_everybody(tab):
    page = tab("/learn?learn.lesson=hard_semihard_easy")
    page.get_by_role("button", name="Predict and run").wait_for()
    look(page, "dark", 400)
    assert faults(page) == [], "the question"
    page.get_by_role("radio", name="It falls by more than 2 points").check(force=True)
    page.get_by_role("button", name="Predict and run").click()
    page.get_by_text("Take away.").wait_for()
    Panel(page).wait_ready()
    assert faults(page) == [], "the mark"
    look(page, "light", 1280)
    page.get_by_role("button", name="Present").click()
    page.get_by_role("button", name="Open a room").click()
    page.get_by_role("button", name="QR code").click()
    page.get_by_test_id("stPopoverBody").wait_for()
    assert faults(page) == [], "the presenter's room"
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Close the room").click()


def test_a_run_a_refusal_and_a_wide_equation_for_everybody(tab):
    page = tab("/train?data=blobs&steps=2000&lr=-1")
    panel = Panel(page).wait_ready()
    page.get_by_text("The link asks for something that is not possible").wait_for()
    panel.press("Play")
    panel.wait_step(5)
    look(page, "dark", 400)
    assert faults(page) == [], "while it trains, with what was refused"
    panel.pause()
    look(page, "light", 1280)
    page.get_by_role("button", name="Take home").click()
    page.get_by_test_id("stPopoverBody").wait_for()
    page.mouse.move(2, 2)
    assert faults(page) == [], "paused, with a popover"

    page = tab("/reference?reference.loss=LargeMarginSoftmaxLoss")
    look(page, "light", 400)
    equation = page.locator(".katex-display[data-scrolls]")
    equation.wait_for()
    assert faults(page) == [], "an equation wider than the screen"
    equation.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('.katex-display').scrollLeft > 0")


def look(page, scheme, width):
    """The page in that theme and width."""
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})


def address(entry):
    return "/" if entry.path == "home.py" else f"/{Path(entry.path).stem}"


def keyboard(page):
    """Controls that Tab does not reach, and those that do not show that they have the focus."""
    count = page.evaluate(CONTROLS)
    assert count > 5
    unseen = []
    for _ in range(count + 20):
        page.keyboard.press("Tab")
        where = page.evaluate(FOCUS)
        if where.endswith("|false"):
            unseen.append(where)
    return page.evaluate(MISSED), unseen
