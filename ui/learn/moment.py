"""A moment that a teacher linked to: frozen, with the controls that were chosen, and a question."""

from __future__ import annotations

import streamlit as st

from lab.config import LEARNING_RATE, live_options
from lab.lessons.moment import (
    BUTTONS,
    MOST_ANSWERS,
    MOST_LETTERS,
    Moment,
    controls_of,
    moment,
    read_moment,
)
from lab.settings import sentence, settings
from losslib.errors import ParameterError
from losslib.params import Param
from ui import focus
from ui.learn import link, room, trainer
from ui.session import present_run, step_in_view

PREDICTED = "learn moment predicted"
FIRST = ("Play", "Pause", "Reset")


def show() -> None:
    """The moment of the link."""
    found, said = read_moment(link.moment_texts())
    if said:
        st.warning("\n".join([link.ASKED, *(f"- {sentence(text)}" for text in said)]))
    key = ("moment", found)
    made = trainer.series(key) or freeze(key, found)
    trainer.tell()
    if found.ask:
        question(found)
    if made is None:
        return
    knobs(found)
    buttons(found, made)
    trainer.panel(allowed=[name.lower() for name in found.show if name in BUTTONS] if is_open(found) else [])
    if not link.presenting():
        with st.popover("What is trained", type="tertiary"):
            st.markdown(", ".join(f"{name} = {text}" for name, text in found.config.to_settings().items()))


def freeze(key: tuple[object, ...], found: Moment) -> trainer.Series | None:
    """Trains to the step and waits there."""
    return trainer.begin(key, {"moment": found.config}, step=found.step)


def name_of(found: Moment) -> str:
    """What the room counts its predictions under."""
    return f"moment {found.ask[:60]}"


def question(found: Moment) -> None:
    """The teacher's question; where there are answers, one of them is chosen."""
    with st.container(key="question"):
        st.header(found.ask, anchor=False)
    focus.target("question", found.ask)
    if not found.answers:
        return
    given = st.session_state.get(PREDICTED, {}).get(found)
    if given is not None:
        with st.container(key="predicted"):
            st.markdown(f"You predicted: **{given}**. See for yourself.")
        focus.target("predicted", found.ask)
        return
    chosen = st.radio("Your prediction", found.answers, None, key="learn moment answer")
    st.button(
        "Predict", type="primary", disabled=chosen is None, on_click=predict, args=(found, chosen or "")
    )


def predict(found: Moment, answer: str) -> None:
    """An answer was chosen: the controls are free."""
    st.session_state.setdefault(PREDICTED, {})[found] = answer
    room.predict(name_of(found), answer)


def is_open(found: Moment) -> bool:
    """Whether the controls may be used: after the prediction, where one is asked for."""
    return not found.answers or found in st.session_state.get(PREDICTED, {})


def knobs(found: Moment) -> None:
    """The options that the teacher chose."""
    options = {**live_options(found.config.loss), LEARNING_RATE: settings()[LEARNING_RATE]}
    chosen = [name for name in found.show if name in options]
    if chosen and is_open(found):
        for column, name in zip(st.columns(max(len(chosen), 3)), chosen, strict=False):
            with column:
                knob(found, name, options[name])


def knob(found: Moment, name: str, param: Param) -> None:
    """One option that may change while it trains."""
    key = f"learn knob {name}"
    now = found.config.lr if name == LEARNING_RATE else found.config.loss_values[name]
    st.number_input(
        param.title or name,
        value=float(now),
        step=param.step,
        format="%g",
        key=key,
        on_change=trainer.turn,
        args=(name, key),
        help=f"{param.meaning[:1].upper()}{param.meaning[1:]}.",
    )


def buttons(found: Moment, made: trainer.Series) -> None:
    """The buttons that the teacher chose."""
    chosen = [name for name in BUTTONS if name in found.show]
    if not chosen or not is_open(found):
        return
    with st.container(horizontal=True):
        for name in chosen:
            if name == "Reset":
                st.button(name, on_click=again, args=(made,), help="Back to the moment of the link")
            else:
                st.button(
                    name,
                    on_click=trainer.press,
                    args=(name.lower(),),
                    type="primary" if name == "Play" else "secondary",
                    help={"Play": "Train on", "Pause": "Stop after the present step", "Step": "One update"}[
                        name
                    ],
                )


def again(made: trainer.Series) -> None:
    """The moment as the link has it."""
    with trainer.told():
        trainer.show(made, "moment")


def make() -> None:
    """A teacher composes a link: the run of the Train page as it stands, what shows, and a question."""
    st.markdown(
        "A lesson link opens a moment of a run with the controls you choose and your question. It takes the "
        "run that your Train page has in this tab, at the step it shows."
    )
    run = present_run()
    if run is None:
        st.info(
            "There is no run in this tab yet: open the Train page, train to the moment you want, come back."
        )
        st.page_link("pages/train.py", label="Train", icon=":material/arrow_forward:")
        return
    config = run.config
    at = step_in_view(run)
    listed = ", ".join(f"{name} = {text}" for name, text in config.to_settings().items())
    st.caption(f"The run: {listed or 'all settings at their defaults'}.")
    step = st.number_input(
        "Step",
        0,
        config.steps,
        min(at or 0, config.steps),
        help="The link trains to this step and waits there.",
    )
    shown = st.multiselect(
        "Controls that show",
        controls_of(config),
        FIRST,
        help="Buttons, and options that may change while it trains. Everything else is hidden.",
    )
    ask = st.text_input(
        "Question", max_chars=MOST_LETTERS, help="Shown above the picture; may be left empty."
    )
    answers = st.text_area(
        "Answers, one a line",
        height=100,
        help=f"Two to {MOST_ANSWERS} to choose from: the controls stay hidden until one is chosen. Without, "
        "the question is one to talk about.",
    )
    lines = tuple(line.strip() for line in answers.splitlines() if line.strip())
    try:
        made = moment(config, int(step), tuple(shown), ask.strip(), lines)
    except ParameterError as error:
        st.warning(sentence(str(error)))
        return
    texts = {link.PART: link.MOMENT, **made.texts()}
    st.markdown("**The link**")
    st.code(link.address_of(texts), language=None, wrap_lines=True)
    st.button(
        "Open it here",
        on_click=link.go,
        kwargs=texts,
        help="As your class will see it; Back leads here again",
    )
    st.caption(
        "To count what your class predicts: Open it here, Present, Open a room. The room has its own link."
    )
