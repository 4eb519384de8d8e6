"""Every page for everybody: axe's rules, no sideways scroll, the keyboard's way, in light and dark."""

from pathlib import Path

import axe_playwright_python
import pytest

from ui.navigation import entries

pytestmark = pytest.mark.browser
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
WIDTHS = (400, 1280, 1920)
WHOLE = """() => document.querySelector('[data-test-script-state=notRunning]')
  && !document.querySelector('[data-testid=stSkeleton]')"""
BEYOND = """() => { const main = document.querySelector('[data-testid=stMain]');
  return [main.scrollWidth - main.clientWidth, document.documentElement.scrollWidth - innerWidth]; }"""

# Streamlit's own, which a page cannot mend: rule, a part of the element's selector, reason.
ALLOWED = (("region", "stFloatingOverlayPortal", "tooltips are drawn outside of all landmarks"),)

# Texts of still charts, which axe does not look at, below the contrast of AA on the page's background.
PALE = """() => {
  const numbers = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = (text) => numbers(text).map((one) => one / 255)
    .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, i) => sum + one * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = light(getComputedStyle(document.querySelector('.stApp')).backgroundColor);
  return [...document.querySelectorAll('.js-plotly-plot .main-svg text')].filter((one) => {
    const ink = light(getComputedStyle(one).fill);
    return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05) < 4.5;
  }).map((one) => one.textContent + ' ' + getComputedStyle(one).fill);
}"""

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
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert settled(page, lambda: violations(page)) == [], scheme
            assert settled(page, lambda: page.evaluate(PALE)) == [], scheme
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            beyond = settled(page, lambda: [by for by in page.evaluate(BEYOND) if by > 0])
            assert beyond == [], f"at {width} pixels"
    finally:
        page.close()


def address(entry):
    return "/" if entry.path == "home.py" else f"/{Path(entry.path).stem}"


def settled(page, look, tries=4):
    """What is found once the page had time to draw itself anew: nothing, or the last finding."""
    for wait in range(tries):
        page.wait_for_timeout(300 * 2**wait)
        found = look()
        if not found:
            break
    return found


def violations(page):
    """Axe's findings of any impact that are not allowed."""
    page.evaluate(AXE)
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        (rule["id"], node["html"][:200], node["failureSummary"])
        for rule in found["violations"]
        for node in rule["nodes"]
        if not allowed(rule["id"], node)
    ]


def allowed(rule, node):
    return any(name == rule and part in " ".join(map(str, node["target"])) for name, part, _ in ALLOWED)


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
