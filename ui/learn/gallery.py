"""The failure gallery: each failure runs, its gauge shows it, a detector names it, and a button cures it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from lab import glossary
from lab.insights import insights
from lab.lessons.failures import Failure, failures, get
from lab.percent import percent
from lab.recording import Recording
from lab.settings import sentence
from lab.short import short
from losslib.errors import ParameterError
from ui import focus
from ui.learn import link, trainer

FAILED, CURE = "failed", "cured"
whole = partial(percent, digits=0)
COMPARED: dict[str, tuple[str, Callable[[float], str], str]] = {
    "alignment": ("Alignment", short, "every class one point is 0"),
    "loss": ("Loss", short, ""),
    "recall_at_1": ("Recall@1", whole, "higher is better"),
    "mean_cosine": ("Mean cosine", "{:.3f}".format, "collapsed is 1"),
    "spread": ("Spread", short, "one point is 0"),
    "active_share": ("Active share", whole, ""),
}


def show() -> None:
    """Cards of all, or one that runs."""
    name = link.read(link.FAILURE)
    if name:
        failure(get(name))
    else:
        trainer.leave()
        cards()


def cards() -> None:
    """One card a failure."""
    st.markdown("What goes wrong when metric losses are trained, on purpose: see it happen, then cure it.")
    for row in range(0, len(failures()), 2):
        for column, one in zip(st.columns(2), failures()[row : row + 2], strict=False):
            with column.container(border=True, height="stretch"):
                st.button(
                    one.title,
                    key=f"learn fail {one.name}",
                    icon=":material/play_circle:",
                    on_click=link.go,
                    kwargs={link.PART: link.FAILURES, link.FAILURE: one.name},
                    help="Trains it and shows how it fails",
                )
                st.markdown(one.gauge)
                st.caption(f"Cure: {one.cure_title[:1].lower()}{one.cure_title[1:]}.")


def failure(one: Failure) -> None:
    """One failure: symptoms, gauge, the run, what the detector says, the cure."""
    st.button(
        "All failures", icon=":material/arrow_back:", on_click=link.go, kwargs={link.PART: link.FAILURES}
    )
    with st.container(key="failure"):
        st.header(one.title, anchor=False)
    focus.target("failure", one.name)
    st.markdown(f"**Symptoms.** {one.symptoms}")
    st.markdown(f"**The gauge that shows it first.** {one.gauge}")
    if not link.presenting():
        with st.container(horizontal=True):
            for term in one.terms:
                with st.popover(term, type="tertiary"):
                    st.markdown(glossary.define(term))
            with st.popover("What is trained", type="tertiary"):
                st.markdown(", ".join(f"{key} = {text}" for key, text in one.settings.items()))
    made = trainer.series(key_of(one)) or begin(one)
    trainer.tell()
    if made is None:
        return
    if not made.done:
        trainer.follow(made)
    found = verdict(one, made.recordings.get(FAILED))
    if found and CURE not in made.configs:
        st.button(
            one.cure_title,
            type="primary",
            on_click=cure,
            args=(one, made),
            help=one.cure_text,
            shortcut=link.shortcut("g"),
        )
    if CURE in made.configs:
        with st.container(key="cure"):
            st.markdown(f"**Cure.** {one.cure_title}. {one.cure_text}")
        focus.target("cure", one.name)
    if CURE in made.recordings:
        both(one, made)
    trainer.play_again()
    trainer.panel()


def key_of(one: Failure) -> tuple[object, ...]:
    """What the failure's series is known by."""
    return ("failure", one.name)


def begin(one: Failure) -> trainer.Series | None:
    """Trains the failure."""
    return trainer.begin(key_of(one), {FAILED: one.config()})


def cure(one: Failure, made: trainer.Series) -> None:
    """The same run with the cure: same seed, same data, same initial weights."""
    made.configs[CURE] = one.cured()
    try:
        trainer.show(made, CURE)
    except ParameterError as error:
        del made.configs[CURE]
        st.session_state[trainer.NOTICE] = str(error)


def verdict(one: Failure, recording: Recording | None) -> bool:
    """What the detector finds once it has failed; returns whether it was named."""
    if recording is None:
        return False
    found = [insight for insight in insights(recording) if insight.cure is not None]
    for insight in found:
        st.error(sentence(insight.sentence), icon=":material/warning:")
    if not found:
        st.info("This run got away: no detector finds anything at its last step.")
    return True


def both(one: Failure, made: trainer.Series) -> None:
    """Numbers of the failed and the cured run side by side, and which one the panel shows."""
    left = [found.kind for found in insights(made.recordings[CURE]) if found.cure is not None]
    if one.detector not in left:
        st.success("Cured: the detector finds it no more.", icon=":material/check:")
    lines = ["| At the last step | Failed | Cured | held against |", "|---|---|---|---|"]
    curves = {name: made.recordings[name].curves() for name in (FAILED, CURE)}
    for name, (title, how, note) in COMPARED.items():
        values = [float(curves[run][name][-1]) for run in (FAILED, CURE)]
        shown = [how(value) for value in values]
        lines.append(f"| {title} | {shown[0]} | {shown[1]} | {note} |")
    st.markdown("\n".join(lines))
    chosen = st.segmented_control(
        "Run shown below",
        [FAILED, CURE],
        default=made.now,
        format_func=str.capitalize,
        key=f"learn shown {one.name}",
        help="The map, histograms and curves of the failed or of the cured run.",
    )
    if chosen and chosen != made.now:
        trainer.show(made, chosen)
        st.rerun()
