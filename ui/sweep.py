"""What the Sweep page is made of: what is varied, and the job that trains it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from lab.config import trainable_losses
from lab.settings import in_words, sentence, settings
from lab.sweep import example
from lab.sweep.cell import Trained, train
from lab.sweep.job import Job, Task
from lab.sweep.plan import Plan
from lab.sweep.values import read_values, suggested, variable_options
from lab.sweep.work import results_of, tasks_of
from losslib import catalog
from losslib.errors import ParameterError
from losslib.params import Integer, Param
from ui import choice, left, sweep_views
from ui.advice import for_sweep
from ui.controls import control
from ui.places import grid, place

PREFIX = "sweep"
NOTHING = "nothing"
SHOWN, NOTICE = "sweep shown", "sweep notice"
LOSSES = f"{PREFIX}.losses"
SEEDS = Param(
    example.SEEDS,
    valid=Integer(1, 10),
    name="seeds",
    meaning="runs of each setting: seed, seed + 1 and so on",
    larger="shows better how much is luck, and takes longer",
)
GENERAL = {"lr": "rates", "batch": "batches"}


def show() -> None:
    """The whole page."""
    left.find(f"{PREFIX}.")
    choice.tell_refused(PREFIX, _checks())
    base = choice.base_controls(PREFIX, ("loss",), example.BASE)
    with place():
        plan = wanted(base)
    address = cluster()
    with place():
        if notice := st.session_state.pop(NOTICE, ""):
            st.warning(notice)
    job = job_of(plan) if plan is not None else None
    button = place()
    if job is None:
        if plan is not None:
            with button:
                offer(plan, address)
        plan = st.session_state.get(SHOWN)
        job = job_of(plan) if plan is not None else None
    if plan is not None and job is not None:
        result(plan, job)


def wanted(base: dict[str, str]) -> Plan | None:
    """What the controls ask for; None where it does not go together, which is then said."""
    try:
        vary, seeds = varied(base)
        first = int(base["seed"])
        plan = Plan.of(base, vary, range(first, first + seeds))
        limits = choice.desk().limits
        limits.check_count(plan.most)  # before there are any: a visitor may have typed thousands of values
        limits.check([cell.config for cell in plan.cells], choice.limits())
    except ParameterError as error:
        st.warning(sentence(str(error).removeprefix("sweep: ")))
        return None
    return plan


def varied(base: dict[str, str]) -> tuple[dict[str, Sequence[str]], int]:
    """Draws what is varied; returns it with the number of seeds. Raises ParameterError for a bad value."""
    offered = trainable_losses(base.get("pairing", "label"))
    start = [name for name in example.LOSSES if name in offered]
    left, right = st.columns([3, 1])
    with left:
        losses = st.multiselect(
            "Losses",
            offered,
            start,
            key=LOSSES,
            bind="query-params",
            help="Each is trained with every value of its own option below, and with every seed.",
        )
    with right:
        seeds = SEEDS.parse(control(SEEDS, f"{PREFIX}.seeds"), "sweep")
    if not losses:
        raise ParameterError("choose at least one loss")
    texts: dict[str, tuple[str, Param, str]] = {}
    with grid("varied"):
        for loss in catalog.losses():  # each has its place, whichever others are chosen
            with place():
                if loss in losses:
                    texts |= option_values(loss)
    with st.expander("Vary the learning rate or the batch size, too"):
        for name, key in GENERAL.items():
            param = settings()[name]
            text = st.text_input(
                f"{param.title}: values",
                key=f"{PREFIX}.{key}",
                bind="query-params",
                placeholder=", ".join(suggested(param)),
                help=f"Separated by commas; empty keeps the one in the sidebar. Accepts {param.describe()}.",
            )
            if text:
                texts[name] = (text, in_words(param), "sweep")
    vary: dict[str, Sequence[str]] = {"loss": tuple(losses)}
    vary |= {name: read_values(text, param, owner) for name, (text, param, owner) in texts.items()}
    return vary, seeds


def option_values(loss: str) -> dict[str, tuple[str, Param, str]]:
    """Which option of a loss is varied, and over what."""
    options = variable_options(loss)
    name = st.selectbox(
        f"{catalog.get(loss).title}: vary",
        (*options, NOTHING),
        key=f"{PREFIX}.{loss}.vary",
        bind="query-params",
        help="The option of this loss that changes from run to run.",
    )
    if name == NOTHING:
        return {}
    param = options[name]
    text = st.text_input(
        f"Values of {param.title.lower()}",
        ", ".join(suggested(param)),
        key=f"{PREFIX}.{loss}.{name}",
        bind="query-params",
        help=f"Separated by commas. {param.meaning[:1].upper()}{param.meaning[1:]}; accepts "
        f"{param.describe()}.",
    )
    for_sweep(loss, name, param, f"{PREFIX}.{loss}.{name}")
    return {f"{loss}.{name}": (text, in_words(param), catalog.get(loss).title)}


def _checks() -> dict[str, Callable[[str], Any]]:
    """Keys of the link that are this page's own."""
    checks: dict[str, Callable[[str], Any]] = {
        "losses": catalog.get,
        "seeds": choice.checked_by(SEEDS, "sweep"),
        "step": choice.checked_by(settings()["steps"], "run"),
    }
    checks |= dict.fromkeys(GENERAL.values(), str)  # a field keeps any text, and says what is wrong with it
    for key in [str(key) for key in st.query_params]:
        loss, dot, name = key.removeprefix(f"{PREFIX}.").rpartition(".")
        if not dot or loss not in catalog.losses():
            continue
        options = variable_options(loss)
        if name == "vary":
            checks[f"{loss}.vary"] = choice.one_of((*options, NOTHING), f"{loss}: what is varied")
        elif name in options:
            checks[f"{loss}.{name}"] = str
    return checks


def cluster() -> str:
    """The address of a Dask cluster, where the server lets its visitors give one."""
    with st.sidebar, st.expander("Where it runs"):
        st.caption(
            "On this machine's cores, one left free, with low priority. Or on a Dask cluster whose workers "
            "have this project and its packages."
        )
        address = st.text_input(
            "Address of a Dask scheduler",
            key="sweep cluster",
            placeholder="tcp://10.0.0.5:8786",
            help="Empty takes the cores of this machine.",
        ).strip()
        if address and not may_use(address):
            st.warning(
                "Other machines reach this server, and a cluster is trusted with its process; so only "
                "addresses in LOSSLAB_DASK may be used. The cores of this machine are taken."
            )
            return ""
        return address


def may_use(address: str) -> bool:
    """Whether a visitor may have this server connect there: a scheduler may run code in whoever connects."""
    listed = [one.strip() for one in os.environ.get("LOSSLAB_DASK", "").split(",")]
    own_machine = str(st.get_option("server.address") or "") in ("127.0.0.1", "localhost", "::1")
    return address in listed or own_machine


def job_of(plan: Plan) -> Job | None:
    """The sweep's job, if the server has it; the shipped one it always has."""
    job = choice.desk().get(("sweep", plan))
    if job is None and set(plan.cells) == set(example.plan().cells):
        try:
            shipped = example.example()
        except ParameterError:
            return None
        done = [(Task(one.config, train, one.config, one.config.steps), Trained(one, b"")) for one in shipped]
        job = choice.desk().show(("sweep", plan), done)
    if job is not None:
        st.session_state[SHOWN] = plan
    return job


def offer(plan: Plan, address: str) -> None:
    """The button that runs what the controls say."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Run this sweep", type="primary", on_click=run, args=(plan, address))
        below = "Below is the last sweep." if SHOWN in st.session_state else choice.NOT_YET
        st.caption(f"{len(plan.cells)} runs, {plan.steps} steps together. {below}")


def run(plan: Plan, address: str) -> None:
    """Begin; it goes on when the page is left."""
    try:
        choice.desk().open(("sweep", plan), tasks_of(plan), address)
    except ParameterError as error:
        st.session_state[NOTICE] = sentence(str(error).removeprefix("sweep: "))


def result(plan: Plan, job: Job) -> None:
    """Progress, and what has ended so far."""
    choice.progress(job, "runs")
    done = results_of(plan, job)
    with place():
        if not done:
            st.info("The first runs appear here as they end. The sweep goes on when you leave this page.")
            return
        if set(plan.cells) == set(example.plan().cells):
            st.caption("A recorded example. Change a setting, and the button that runs it appears.")
    sweep_views.everything(plan, done)
