"""The figures of the Anatomy page, each with its sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import streamlit as st

from lab.anatomy.batch import Batch, batch_of, example_batch
from lab.anatomy.family import family, varied
from lab.anatomy.portrait import portrait
from lab.anatomy.slides import SIDES, Along
from lab.anatomy.subject import Subject
from lab.anatomy.words import (
    pair_there,
    values_in_force,
    what_the_curves_say,
    what_the_family_says,
    what_the_portrait_says,
)
from lab.curves import LossCurves, Slide, curves_of
from lab.glossary import define
from lab.scenes import scenes_of
from lab.settings import sentence
from losslib.base import PairLoss
from ui.anatomy import AUTO, EXAMPLE, FEW, RUN, doors, family_controls, free_class
from ui.figures.show import is_dark, save
from ui.reference import plain
from ui.session import present_run

HELD = "anatomy batch"


@dataclass(frozen=True)
class Shown:
    """What the page shows.

    Attributes:
        subject: the loss as it is set.
        curves: of a sliding pair; None where the loss refuses its options.
        slide: how the pair slides; None without curves.
        here: what the pair meets at the angle chosen, (1,) each, by side; empty without curves.
        refusal: why the loss refuses, in a sentence.
        notes: sentences on the batch.
    """

    subject: Subject
    curves: LossCurves | None
    slide: Slide | None
    here: dict[str, Along]
    refusal: str
    notes: tuple[str, ...]


def computed(subject: Subject, where: str, angle: float) -> Shown:
    """The curves of a loss as it is set, in the batch asked for; the slid pair stands at `angle` degrees."""
    of_run = _batch_of_run()
    notes: list[str] = []
    if where == RUN and of_run is None:
        notes.append("This session has no Train run with embeddings, so the example batch stands in for it.")
    rug = example_batch() if where == EXAMPLE or of_run is None else of_run
    notes.append(rug.said)
    try:
        curves, slide = curves_of(subject, _slid_in(subject, where, rug), rug)
    except (ValueError, TypeError) as error:
        return Shown(subject, None, None, {}, sentence(str(error)), tuple(notes))
    at = np.array([math.radians(angle)])
    here = {side: slide.along(subject, side, at) for side in SIDES} if slide is not None else {}
    return Shown(subject, curves, slide, here, "", tuple(notes))


def _batch_of_run() -> Batch | None:
    """The batch of this session's run, the same object as long as the run has no newer frame."""
    run = present_run()
    latest = None if run is None or run.recording is None else run.recording.latest
    if run is None or run.recording is None or latest is None:
        return None
    stands_for = (run.token, run.config, latest.step)
    kept = st.session_state.get(HELD)
    if kept is None or kept[0] != stands_for:
        kept = st.session_state[HELD] = (stands_for, batch_of(run.recording))
    batch: Batch | None = kept[1]
    return batch


def _slid_in(subject: Subject, where: str, batch: Batch) -> Batch | None:
    """The batch in which the pair slides, or None for few pairs."""
    cls = subject.cls
    whole = issubclass(cls, PairLoss) and cls.activity == "softmax"
    return None if where == FEW or (where == AUTO and not whole and scenes_of(cls)) else batch


def numbers(shown: Shown) -> None:
    """The equation's numbers: options, and value and gradient at the slid pair."""
    said = [values_in_force(shown.subject)]
    if shown.curves is not None:
        kind = "similarity" if shown.curves.inverted else "distance"
        said += [pair_there(side, at, shown.curves.inverted, kind) for side, at in shown.here.items()]
    st.markdown("  \n".join(filter(None, said)))
    doors(shown.subject)


def pair(shown: Shown) -> None:
    """Value and gradient against the distance of the sliding pair."""
    st.subheader("One pair slides", anchor=False, help=f"{define('pair weight')} {define('rug')}")
    if shown.curves is None:
        st.warning(plain(shown.refusal))
        return
    said = what_the_curves_say(shown.subject, shown.curves)
    if shown.here:
        from lab.figures.loss_curves import loss_curves as drawn

        figure = drawn(shown.curves, shown.here)
        st.plotly_chart(figure, key="anatomy pair", height=536, alt=" ".join(said))
        save(figure, "anatomy pair", "anatomy-pair")
    listed(said, shown.notes)


def forces(shown: Shown) -> None:
    """The force portrait."""
    from lab.figures.force_portrait import force_portrait

    st.subheader("What a free point feels", anchor=False, help=define("force"))
    free = free_class()
    try:
        found = portrait(shown.subject, free)
    except (ValueError, TypeError) as error:
        st.info(plain(f"There is no portrait: {sentence(str(error))}"))
        return
    said = what_the_portrait_says(found)
    figure = force_portrait(found, is_dark())
    st.plotly_chart(figure, key="anatomy forces", height=481, alt=" ".join(said))
    save(figure, "anatomy forces", "anatomy-forces")
    listed(said)


def options(shown: Shown) -> None:
    """The family of curves of one option."""
    st.subheader("What each option does", anchor=False)
    names = varied(shown.subject)
    if not names:
        st.caption(f"{shown.subject.cls.title} has no option to vary.")
        return
    name, what = family_controls(names, shown.subject)
    if shown.slide is None or shown.curves is None:
        st.caption("Without a curve of one pair there is no family of curves.")
        return
    from lab.figures.loss_family import loss_family

    found = family(shown.subject, name, shown.slide, shown.curves.axis, shown.curves.inverted)
    said = what_the_family_says(found)
    figure = loss_family(found, what, is_dark())
    st.plotly_chart(figure, key="anatomy family", height=480, alt=" ".join(said))
    save(figure, "anatomy family", "anatomy-family")
    listed(said)


def listed(*groups: tuple[str, ...]) -> None:
    """Sentences under a figure, one a line."""
    st.caption("\n".join(f"- {plain(said)}" for group in groups for said in group))
