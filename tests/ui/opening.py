"""Opening a page as a visitor does, and reading what stands on it."""

from contextlib import contextmanager
from pathlib import Path

from streamlit.testing.v1 import AppTest

from ui.server import scheduler

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ("markdown", "caption", "success", "info", "warning", "error")


def home():
    """The home page before its script has run."""
    return AppTest.from_file(str(ROOT / "home.py"), default_timeout=60)


def opened_at(page, query):
    """A page, entered by a link with that query."""
    at = home().run()
    at.switch_page(f"pages/{page}.py")
    for key, value in query.items():
        at.query_params[key] = value
    return at.run()


@contextmanager
def runs_closed():
    """Closes, at the end, the runs that were opened within."""
    before = {run.token for run in scheduler().runs}
    yield
    for run in scheduler().runs:
        if run.token not in before:
            scheduler().close(run.token)


def button(at, label):
    """The button of that label, or None."""
    return next((one for one in at.button if one.label == label), None)


def said(at):
    """All sentences of the page."""
    return " ".join(one.value for kind in TEXTS for one in at.get(kind))
