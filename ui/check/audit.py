"""The audit of a loss: every generic check, what came and why it matters."""

from __future__ import annotations

import math

import streamlit as st

from losslib import catalog
from losslib.check import Check, Report
from losslib.check.report import FAILED, PASSED, SKIPPED
from losslib.errors import ParameterError
from ui.check import LOSS
from ui.controls import control
from ui.reference import plain

SIGNS = {PASSED: ":material/check_circle:", FAILED: ":material/error:", SKIPPED: ":material/remove_circle:"}
FIRST = "ContrastiveLoss"


def show() -> None:
    """The controls, and the report of the loss with these options."""
    names = sorted(catalog.losses(), key=lambda name: name != FIRST)
    left, right = st.columns([1, 2], gap="large")
    with left:
        name = st.selectbox("Loss", names, key=LOSS, bind="query-params")
        cls = catalog.get(name)
        st.caption(cls.summary)
        options = {option: control(param, f"check.{name}.{option}") for option, param in cls.params.items()}
        st.page_link("pages/reference.py", label="Open in Reference", query_params={"reference.loss": name})
        st.caption("The same on the command line:")
        st.code(command(name, options), language="sh", wrap_lines=True)
        st.caption("And for a class of your own, which takes embeddings and labels:")
        st.code("python -m losslib.check my_package.my_file:MyLoss", language="sh", wrap_lines=True)
    with right:
        try:
            report = report_of(name, tuple(options.items()))
        except ParameterError as error:
            st.error(str(error))
            return
        verdict(report)
        beside_the_peer(name)
        listed(report)


def command(name: str, options: dict[str, str]) -> str:
    """The audit as a command."""
    params = catalog.get(name).params
    changed = [f"--set {o}={v}" for o, v in options.items() if params[o].format(params[o].default) != v]
    return " ".join(["python -m losslib.check", name, *changed])


@st.cache_data(max_entries=64, show_spinner="Trying the inputs on which losses go wrong")
def report_of(name: str, options: tuple[tuple[str, str], ...]) -> Report:
    """The audit of a registered loss; it ends with the tab, or when another one is asked for.

    Raises ParameterError when the options do not go together.
    """
    from lab.audited import audited

    # Streamlit ends or restarts a script wherever it looks at the session's state.
    return audited(name, dict(options), wanted=lambda: LOSS in st.session_state)


def verdict(report: Report) -> None:
    """How many checks passed, in one sentence."""
    counts = {status: sum(check.status == status for check in report.checks) for status in SIGNS}
    said = (
        f"{counts[PASSED]} checks passed, {counts[FAILED]} failed, {counts[SKIPPED]} do not apply, each with "
        "its reason."
    )
    (st.success if report.passed else st.error)(said)


def listed(report: Report) -> None:
    """Every check, failures first and open, those of one error together."""
    for check, *others in report.causes:
        more = f" and {len(others)} more" if others else ""
        with st.expander(f"{check.name}{more}: {FAILED}", expanded=True, icon=SIGNS[FAILED]):
            st.markdown(words(check))
            if others:
                st.markdown(f"The same error in {', '.join(other.name for other in others)}.")
    order = (PASSED, SKIPPED)
    kept = [check for check in report.checks if check.status in order]
    for check in sorted(kept, key=lambda one: order.index(one.status)):
        with st.expander(f"{check.name}: {check.status}", icon=SIGNS[check.status]):
            st.markdown(words(check))


def words(check: Check) -> str:
    """What was tried, what came, what was expected, why it matters."""
    parts = {"Tried": check.tried, "Got": check.got, "Expected": check.expected, "Why it matters": check.why}
    return "\n".join(f"- **{head}.** {plain(text)}" for head, text in parts.items() if text)


def beside_the_peer(name: str) -> None:
    """The same batch in pytorch-metric-learning, with the convention where the values differ."""
    from lab.parity import has_peer
    from lab.peer_values import BATCH

    with st.expander("The same batch in pytorch-metric-learning"):
        if not has_peer():
            st.markdown(
                "It is not installed here: `pip install pytorch-metric-learning` adds the comparison."
            )
            return
        ours, theirs, agrees, said = peer(name)
        if math.isnan(theirs):
            st.markdown(plain(said))
            return
        left, right = st.columns(2)
        left.metric("losslib", f"{ours:.9g}")
        right.metric("pytorch-metric-learning", f"{theirs:.9g}")
        same = "The values are the same to a millionth." if agrees else "The values differ, by convention."
        st.markdown(f"{same} {plain(said)}")
        st.caption(f"{BATCH}.")


@st.cache_data(max_entries=64, show_spinner="Computing")
def peer(name: str) -> tuple[float, float, bool, str]:
    """Our value, theirs, whether they agree, and why not."""
    from lab.parity import parity

    found = parity(name)
    return found.ours, found.theirs, found.agrees, found.said
