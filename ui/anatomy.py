"""The controls of the Anatomy page: which loss is taken apart, how it is set, and its link."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import streamlit as st

from lab.anatomy.family import QUANTITIES
from lab.anatomy.portrait import NAMES
from lab.anatomy.subject import DEFAULT, DISTANCES, REDUCERS, Subject, distances_for, measure, reducers_for
from lab.anatomy.words import direction, headline, turned_round
from lab.config import folded
from lab.glossary import define
from lab.playground.setup import why_not as why_not_in_playground
from lab.settings import sentence
from lab.settings import settings as run_settings
from losslib import catalog
from losslib.params import Choice, Interval, Param
from ui.controls import control
from ui.places import grid
from ui.reference import no_setting, plain, train_settings
from ui.session import present_run

KEY = "anatomy."
LOSS, DISTANCE, REDUCER, BATCH, ANGLE, FREE, OPTION, SHOWN = (
    f"{KEY}{name}" for name in ("loss", "distance", "reducer", "batch", "angle", "class", "option", "show")
)
AUTO, FEW, EXAMPLE, RUN = BATCHES = ("auto", "few pairs", "example batch", "Train run")


@cache
def declared() -> dict[str, Param]:
    """The page's own settings by key; the options of losses come beside them."""
    loss = run_settings()["loss"]
    return {
        LOSS: Param(loss.default, loss.valid, name="loss", title="Loss", meaning="what is taken apart"),
        DISTANCE: Param(
            DEFAULT,
            Choice(DEFAULT, *DISTANCES),
            name="distance",
            title="Distance",
            meaning="what the loss measures pairs by; only what the loss accepts is offered",
        ),
        REDUCER: Param(
            DEFAULT,
            Choice(DEFAULT, *REDUCERS),
            name="reducer",
            title="Reducer",
            meaning="how the loss's terms become one number; only what the loss accepts is offered",
        ),
        BATCH: Param(
            AUTO,
            Choice(*BATCHES),
            name="batch",
            title="The pair slides among",
            meaning=(
                "what else the loss sees while one pair slides; auto takes few pairs for hinges, and for "
                "other losses the Train run of this session, or the example where there is none"
            ),
        ),
        ANGLE: Param(
            50.0,
            Interval(1.0, 179.0),
            explore=(5.0, 175.0),
            symbol=r"\theta",
            unit="degrees",
            step=1.0,
            name="angle",
            title="Angle of the pair",
            meaning="where the slid pair stands, in degrees between its two embeddings",
            larger="moves it apart",
        ),
        FREE: Param(
            NAMES[0],
            Choice(*NAMES),
            name="class",
            title="Class of the free point",
            meaning="which held points are its positives",
        ),
        SHOWN: Param(
            QUANTITIES[0],
            Choice(*QUANTITIES),
            name="show",
            title="Curves of",
            meaning=(
                "what the curves show: how far the loss lies above its least value on each curve, the loss "
                "itself, or its gradient"
            ),
        ),
    }


def of_the_run() -> dict[str, str]:
    """The settings that take apart the loss of this session's run, with its options as they are now."""
    run = present_run()
    if run is None:
        return {}
    config = folded(run.config)
    params = catalog.get(config.loss).params
    texts = {f"{KEY}{config.loss}.{name}": params[name].format(value) for name, value in config.loss_options}
    return {LOSS: config.loss, **texts}


def why_not(key: str, text: str) -> str:
    """Why the page cannot have that of a link; "" where it can. Raises ParameterError for a bad value."""
    owner, _, name = key.removeprefix(KEY).rpartition(".")
    if key == LOSS:
        catalog.get(text)
    elif key in declared():
        declared()[key].parse(text, "anatomy")
    elif key != OPTION:
        params = catalog.get(owner).params if owner else {}
        if name not in params:
            return no_setting(key)
        params[name].parse(text, owner)
    loss = st.query_params.get(LOSS, run_settings()["loss"].default)
    if key in (DISTANCE, REDUCER) and loss in catalog.losses():
        offered = distances_for(loss) if key == DISTANCE else reducers_for(loss)
        if text not in offered:
            return f"{loss} takes no {text} there; it accepts {', '.join(offered)}"
    return ""


def chosen() -> tuple[Subject, str]:
    """Draws loss, distance, reducer and batch; the loss has its default options so far."""
    table = declared()
    first, second, third, fourth = st.columns(4)
    with first:
        loss = control(table[LOSS], LOSS)
    with second:
        distance = _offered(DISTANCE, distances_for(loss))
    with third:
        reducer = _offered(REDUCER, reducers_for(loss))
    with fourth:
        where = control(table[BATCH], BATCH)
    return Subject(loss, distance=distance, reducer=reducer), where


def _offered(key: str, choices: tuple[str, ...]) -> str:
    """A choice whose values depend on the loss; a value that this loss refuses is let go, and said."""
    held = st.session_state.get(key)
    if held is not None and held not in choices:
        del st.session_state[key]
        st.caption(f"{held} is not accepted here.")
    return control(declared()[key], key, choices)


def heading(subject: Subject) -> None:
    """Which way is closer, said first and loudly; then what the loss warns of, what it is, its equation."""
    loss = replace(subject, options=()).built()  # options that it refuses leave the page its heading
    inverted = measure(loss).is_inverted
    meaning = define("similarity" if inverted else "distance")
    st.header(headline(inverted), anchor=False, divider="blue", help=meaning)
    st.caption(direction(loss))
    for said in filter(None, (turned_round(subject), *_warned(subject))):
        st.warning(plain(sentence(said)))
    cls = subject.cls
    st.markdown(f"**{cls.title}.** {cls.summary}")
    st.latex(cls.equation)


def _warned(subject: Subject) -> tuple[str, ...]:
    """What the loss warns of; nothing where it refuses its options, which is said beside the curves."""
    try:
        return subject.warned()
    except (ValueError, TypeError):
        return ()


def knobs(subject: Subject) -> tuple[Subject, float]:
    """Draws every option and the place of the slid pair; the subject with those options, and the angle."""
    loss, params = subject.loss, subject.cls.params
    with grid("options"):
        texts = {name: control(param, f"{KEY}{loss}.{name}") for name, param in params.items()}
        angle = float(control(declared()[ANGLE], ANGLE))
    values = {name: params[name].parse(text, loss) for name, text in texts.items()}
    off = tuple((name, value) for name, value in values.items() if value != params[name].default)
    return Subject(loss, off, subject.distance, subject.reducer), angle


def doors(subject: Subject) -> None:
    """Train with this, and the other pages on the same loss."""
    with st.container(horizontal=True):
        settings = train_settings(subject.cls)
        texts = {
            f"{subject.loss}.{name}": subject.cls.params[name].format(value)
            for name, value in subject.options
        }
        if isinstance(settings, dict):
            st.page_link(
                "pages/train.py",
                label="Train with this",
                icon=":material/play_circle:",
                query_params={**settings, **texts},
            )
        st.page_link(
            "pages/reference.py",
            label="Open in Reference",
            icon=":material/menu_book:",
            query_params={"reference.loss": subject.loss},
        )
        if not why_not_in_playground(subject.cls):
            st.page_link(
                "pages/playground.py",
                label="Open in Playground",
                icon=":material/touch_app:",
                query_params={
                    "playground.losses": subject.loss,
                    **{f"playground.{name}": text for name, text in texts.items()},
                },
            )
    if isinstance(settings, str):
        st.caption(settings)
    elif (subject.distance, subject.reducer) != (DEFAULT, DEFAULT):
        st.caption("Train takes the options along, and the loss's default distance and reducer.")


def family_controls(names: tuple[str, ...], subject: Subject) -> tuple[str, str]:
    """Draws which option's family is shown, and of what."""
    left, right, _ = st.columns([1, 1, 2])
    if st.session_state.get(OPTION) not in (None, *names):
        del st.session_state[OPTION]
    if OPTION in st.query_params and st.query_params[OPTION] not in names:
        del st.query_params[OPTION]
    param: Any = Param(
        names[0],
        Choice(*names),
        name="option",
        title="Option",
        meaning="which option is varied while everything else stays as it is set above",
    )
    with left:
        name = control(param, OPTION)
    with right:
        what = control(declared()[SHOWN], SHOWN)
    return name, what


def free_class() -> int:
    """Draws the class of the portrait's free point."""
    return NAMES.index(control(declared()[FREE], FREE))
