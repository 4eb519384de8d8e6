"""Learn: lessons that ask before they run, failures with their cures, and moments that a teacher links to."""

from ui.page import page

TITLE = "Learn"
GROUP = "Learn"
ORDER = 5
SUMMARY = (
    "Predict, run, compare: ten lessons marked from the run itself, and a gallery of failures with cures."
)

with page(TITLE, SUMMARY):
    from ui.learn.page import show

    show()
