"""Opening a page as a visitor does, and reading what stands on it."""

import json
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


def component(at):
    """What the browser is given for the one component of the page that is seen."""
    unseen = ("losslab_focus", "losslab_member")
    [found] = [one.proto for one in at.get("bidi_component") if one.proto.component_name not in unseen]
    return found


def focus_named(at):
    """What gets the focus where a control that had it is gone: the key of a container, "" for the title."""
    [told] = [
        one.proto.json for one in at.get("bidi_component") if one.proto.component_name == "losslab_focus"
    ]
    return json.loads(told)["target"]
