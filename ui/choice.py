"""What the pages Compare and Sweep share: the desk, controls of what all runs have, refusals, progress."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import cache
from typing import Any

import streamlit as st

import datasets
from datasets import file
from lab.limits import Limits
from lab.links import read_settings
from lab.settings import encoders_for, sentence, settings
from lab.sweep.command import duration
from lab.sweep.desk import Desk
from lab.sweep.job import Job
from lab.sweep.limits import SweepLimits
from losslib.errors import ParameterError
from losslib.params import Param
from ui import address, focus
from ui.controls import control, options_of
from ui.left import ENTERED
from ui.places import place
from ui.reference import no_setting
from ui.server import AT_END

FRONT = ("data", "encoder", "dim", "output")
ONLY_WITH = {"delta": "continuous", "label_fraction": "semi"}  # settings of one rule of pairing
NOT_YET = "Nothing is shown below until it has run."
ASKED = "The link asks for something that is not possible, so the default is used."


@cache
def desk() -> Desk:
    """The one desk of this process."""
    made = Desk(SweepLimits.from_environment())
    atexit.register(made.stop)
    AT_END.append(made.stop)
    return made


@cache
def limits() -> Limits:
    """What a single run may have on this server."""
    return Limits.from_environment()


def base_controls(
    prefix: str, own: Iterable[str] = ("loss",), defaults: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Draws what all runs share, in the sidebar; returns the settings as texts.

    Args:
        prefix: of the keys in the link, "compare" or "sweep".
        own: settings that the page draws itself.
        defaults: of settings whose default on this page is another.
    """
    table, found = starting_at(defaults or {}), {}
    skipped = {*own, "device"}

    def draw(name: str, choices: tuple[str, ...] = ()) -> str:
        found[name] = control(table[name], f"{prefix}.{name}", choices)
        return found[name]

    with st.sidebar:
        st.header("What all runs share", anchor=False)
        data = datasets.get(draw("data"))
        st.caption(data.summary)
        found |= options_of(data.name, data.title.lower(), data.options, f"{prefix}.")
        draw("encoder", ("auto", *encoders_for(data.kind)))
        draw("dim")
        draw("output")
        with st.expander("Pairs, batches, optimiser", expanded=False):
            for name in table:
                wanted = ONLY_WITH.get(name)
                if name not in (*FRONT, *skipped) and wanted in (None, found.get("pairing")):
                    draw(name)
    with place():
        if data.name == "file" and (needed := file.missing(found["file.digest"], found["file.name"])):
            st.warning(sentence(needed))
    return found


def starting_at(defaults: Mapping[str, str]) -> dict[str, Param]:
    """The table of settings with other defaults."""
    table = dict(settings())
    for name, text in defaults.items():
        param = copy(table[name])
        param.default = param.parse(text, "default")
        table[name] = param
    return table


def tell_refused(prefix: str, checks: Mapping[str, Callable[[str], Any]]) -> None:
    """Says, on arrival, which values of the link are none of this page's.

    Args:
        prefix: of the page's keys.
        checks: for keys that are no settings: key without its prefix to what reads its text or raises.
    """
    kept = f"{prefix} refused"
    if st.session_state.get(ENTERED):
        given = {key.removeprefix(f"{prefix}."): texts for key, texts in in_link(prefix).items()}
        strangers = [str(key) for key in st.query_params if not str(key).startswith(f"{prefix}.")]
        for key in strangers:
            del st.query_params[key]
        st.session_state[kept] = [*map(no_setting, strangers), *_refused(given, checks, prefix)]
    said = st.session_state.get(kept, [])
    with place():
        if said:
            st.warning("\n".join([ASKED, *(f"- {sentence(text)}" for text in said)]))


def in_link(prefix: str) -> dict[str, list[str]]:
    """The page's keys in the address; a choice of several has several texts."""
    return {key: texts for key, texts in address.link().items() if key.startswith(f"{prefix}.")}


def _refused(
    given: dict[str, list[str]], checks: Mapping[str, Callable[[str], Any]], prefix: str
) -> list[str]:
    said = []
    plain = {}
    for key, texts in given.items():
        if key not in checks:
            plain[key] = texts[-1]
            continue
        try:
            for text in texts:
                checks[key](text)
        except ParameterError as error:
            said.append(str(error))
            del st.query_params[f"{prefix}.{key}"]
    _, refusals = read_settings(plain)
    for key in plain:
        owner, dot, _ = key.rpartition(".")
        if not (owner in datasets.catalog() if dot else key in settings()):
            del st.query_params[f"{prefix}.{key}"]
    return [*said, *refusals]


def checked_by(param: Param, key: str) -> Callable[[str], Any]:
    """Reads a text of the link as a value of a declared parameter."""
    return lambda text: param.parse(text, key)


def one_of(values: Iterable[str], what: str) -> Callable[[str], str]:
    """Reads a text of the link as one of some values."""
    known = tuple(values)

    def check(text: str) -> str:
        if text not in known:
            raise ParameterError(f"{what} must be one of {', '.join(known)}, got {text!r}")
        return text

    return check


def progress(job: Job, what: str) -> None:
    """A bar that fills, with what remains, Cancel and Resume; the page runs again when the job has ended.

    It has the focus of whoever pressed the button that began the job.
    """
    alive = job.state in ("waiting", "running")
    seen = job.version

    @st.fragment(run_every=1.0 if alive else None)
    def bar() -> None:
        if alive and job.state not in ("waiting", "running"):
            st.rerun()
        if job.state == "finished":
            return
        under_way = desk().under_way(job)
        share = job.done_steps(under_way) / max(job.total_steps, 1)
        with st.container(horizontal=True, vertical_alignment="center"):
            st.progress(min(share, 1.0), text=progress_text(job, under_way, what))
            if job.state == "cancelled":
                st.button("Resume", key=f"{what} resume", on_click=desk().resume, args=(job,), type="primary")
            else:
                st.button("Cancel", key=f"{what} cancel", on_click=desk().cancel, args=(job,))
        if alive and job.version != seen and what == "runs" and job.done:
            st.rerun()

    if job.state != "finished":
        focus.target(f"{what}-progress")
    with st.container(key=f"{what}-progress"):
        bar()


def progress_text(job: Job, under_way: int, what: str) -> str:
    """How far, in steps and in what the job is made of, and how long it will take."""
    done = f"step {job.done_steps(under_way)} of {job.total_steps}"
    if what == "runs":
        done = f"{job.done} of {len(job.tasks)} runs, {done}"
    if job.state == "cancelled":
        return f"{job.reason or 'Cancelled.'} {done[0].upper()}{done[1:]}; what has ended is kept."
    others = desk().ahead(job)
    shared = f", sharing the workers with {others} other{'s' if others > 1 else ''}" if others else ""
    left = job.remaining(under_way)
    if left is not None:
        return f"{done[0].upper()}{done[1:]}, about {duration(left)} left{shared}"
    starting = "" if under_way else "; the worker processes are starting"
    return f"{done[0].upper()}{done[1:]}{starting}{shared}"
