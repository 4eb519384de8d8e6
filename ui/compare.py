"""What the Compare page is made of: the line-up, and one moment of all runs side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import streamlit as st

from lab.compare import example, fairness
from lab.compare.duel import Contender, duel
from lab.compare.line_up import LETTERS, line_up, names
from lab.config import RunConfig, trainable_losses
from lab.settings import sentence, settings
from lab.sweep.job import Job, Task
from losslib import catalog
from losslib.errors import ParameterError
from ui import choice, compare_views, left
from ui.controls import control
from ui.places import place

if TYPE_CHECKING:
    from collections.abc import Sequence

PREFIX = "compare"
NOBODY, SHARED = "none", "shared"
FIRST = ("ContrastiveLoss", "NTXentLoss", NOBODY, NOBODY)
RATES = (SHARED, "0.0001", "0.0003", "0.001", "0.003", "0.01", "0.03", "0.1", "0.3")
SHOWN, DONE = "compare shown", "compare done"


def show() -> None:
    """The whole page."""
    left.find(f"{PREFIX}.")
    choice.tell_refused(PREFIX, _checks())
    base = choice.base_controls(PREFIX)
    entries = contenders(base)
    above = place()
    try:
        configs = line_up(base, entries)
        choice.desk().limits.check(configs, choice.limits())
    except ParameterError as error:
        above.warning(sentence(str(error)))
        configs = ()
    job = job_of(configs)
    if job is None:
        with above:
            offer(configs)
        job = job_of(st.session_state.get(SHOWN, ()))
    if job is not None:
        st.session_state[SHOWN] = job.tasks[0].argument
        result(job)


def contenders(base: dict[str, str]) -> list[dict[str, str]]:
    """Draws a column for each of A to D; returns what each has of its own."""
    losses = trainable_losses(base.get("pairing", "label"))
    entries = []
    for at, (column, letter) in enumerate(zip(st.columns(len(LETTERS)), LETTERS, strict=True)):
        with column:
            offered = losses if at < 2 else (NOBODY, *losses)
            key = f"{PREFIX}.{letter.lower()}"
            name = st.selectbox(
                f"{letter}",
                offered,
                offered.index(FIRST[at]) if FIRST[at] in offered else 0,
                key=key,
                bind="query-params",
                help="One side of the comparison: a loss, with options and a learning rate of its own.",
            )
            if name != NOBODY:
                entries.append(own_settings(key, name))
    return entries


def own_settings(key: str, loss: str) -> dict[str, str]:
    """The options of one contender."""
    found = {"loss": loss}
    with st.expander("Options"):
        for name, param in catalog.get(loss).params.items():
            found[f"{loss}.{name}"] = control(param, f"{key}.{loss}.{name}")
        rate = st.selectbox(
            "Learning rate",
            RATES,
            key=f"{key}.lr",
            bind="query-params",
            help="Losses differ in scale, so a rate that suits one may be too large for another. "
            "Shared takes the one in the sidebar.",
        )
    if rate != SHARED:
        found["lr"] = rate
    return found


def _checks() -> dict[str, Callable[[str], Any]]:
    """Keys of the link that are this page's own."""
    checks: dict[str, Callable[[str], Any]] = {}
    for letter in "abcd":
        checks[letter] = catalog.get if letter in "ab" else lambda name: name == NOBODY or catalog.get(name)
        checks[f"{letter}.lr"] = choice.one_of(RATES, "the learning rate of a contender")
        for key in [str(key) for key in st.query_params]:
            _, _, rest = key.partition(f"{PREFIX}.{letter}.")
            loss, dot, name = rest.partition(".")
            if dot and loss in catalog.losses() and name in catalog.get(loss).params:
                checks[f"{letter}.{rest}"] = choice.checked_by(catalog.get(loss).params[name], loss)
    checks["step"] = choice.checked_by(settings()["steps"], "run")
    checks["figures"] = choice.one_of(("true", "false"), "whether figures are shown")
    return checks


def key_of(configs: Sequence[RunConfig]) -> tuple[str, tuple[RunConfig, ...]]:
    """What the desk knows a comparison by."""
    return ("compare", tuple(configs))


def job_of(configs: Sequence[RunConfig]) -> Job | None:
    """The comparison of these, if the server has it; the shipped one it always has."""
    if not configs:
        return None
    job = choice.desk().get(key_of(configs))
    if job is None and tuple(configs) == example.configs():
        try:
            shipped = example.example()
        except ParameterError:
            return None
        task = Task(key_of(configs), duel, tuple(configs), sum(config.steps for config in configs))
        job = choice.desk().show(key_of(configs), [(task, shipped)])
    return job


def offer(configs: Sequence[RunConfig]) -> None:
    """The button that runs what the controls say."""
    if not configs:
        return
    total = sum(config.steps for config in configs)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Run this comparison", type="primary", on_click=run, args=(tuple(configs),))
        st.caption(
            f"{len(configs)} runs of {configs[0].steps} steps, {total} together, in turns in a process of "
            f"their own. {'Below is the last comparison.' if SHOWN in st.session_state else choice.NOT_YET}"
        )


def run(configs: tuple[RunConfig, ...]) -> None:
    """Begin."""
    task = Task(key_of(configs), duel, configs, sum(config.steps for config in configs))
    try:
        choice.desk().open(key_of(configs), [task])
    except ParameterError as error:
        st.session_state["compare notice"] = sentence(str(error))


def result(job: Job) -> None:
    """Progress, or the finished comparison; meanwhile the last one."""
    with place():
        sides = introduced(job)
    if sides:
        compare_views.everything(sides)


def introduced(job: Job) -> tuple[Contender, ...]:
    """Says how it goes and what to know of it; returns the sides to show, () where there are none."""
    if notice := st.session_state.pop("compare notice", ""):
        st.warning(notice)
    meanwhile = False
    if job.state != "finished":
        choice.progress(job, "comparison")
        last = job_of(st.session_state.get(DONE, example.configs()))
        if last is None or last is job or last.state != "finished":
            return ()
        st.info("Meanwhile, the last comparison.")
        job, meanwhile = last, True
    [task] = job.tasks
    if task.key in job.failures:
        st.error(job.failures[task.key])
        return ()
    sides: tuple[Contender, ...] = job.results[task.key]
    st.session_state[DONE] = tuple(side.recording.config for side in sides)
    if st.session_state[DONE] == example.configs() and not meanwhile:
        st.caption("A recorded example. Change a setting, and the button that runs it appears.")
    for name, side in zip(names([one.recording.config for one in sides]), sides, strict=True):
        if side.reason:
            st.warning(f"{name} {'' if side.state == 'finished' else side.state + ': '}{side.reason}")
    st.caption(" ".join(fairness.sentences([side.recording for side in sides])))
    if any(not side.recording.frames for side in sides):
        st.info("One of the runs has no frame to show: it was not finite before any update.")
        return ()
    return sides
