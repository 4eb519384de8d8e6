"""What a page shows to everybody: axe's rules, contrast of charts, and nothing wider than the page."""

from pathlib import Path

import axe_playwright_python

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()

# Streamlit's own, which a page cannot mend: rule, a part of the element's selector or markup, reason.
ALLOWED = (
    ("region", "stFloatingOverlayPortal", "popovers and tooltips are drawn outside of all landmarks"),
    (
        "presentation-role-conflict",
        "stFileUploaderDropzone",
        "the place to drop files has a label and no role",
    ),
)
WHOLE = """() => document.querySelector('[data-test-script-state=notRunning]')
  && !document.querySelector('[data-testid=stSkeleton]')"""
BEYOND = """() => { const main = document.querySelector('[data-testid=stMain]');
  return [main.scrollWidth - main.clientWidth, document.documentElement.scrollWidth - innerWidth]; }"""


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
    where = " ".join([*map(str, node["target"]), node["html"]])
    return any(name == rule and part in where for name, part, _ in ALLOWED)


def faults(page):
    """All that keeps somebody out of the page as it stands."""
    beyond = settled(page, lambda: [by for by in page.evaluate(BEYOND) if by > 0])
    return [
        *settled(page, lambda: violations(page)),
        *settled(page, lambda: page.evaluate(PALE)),
        *[f"{by} pixels beyond the page" for by in beyond],
    ]
