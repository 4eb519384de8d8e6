"""One lesson: what it is about, the question, the run, the mark, what to take away, the next door."""

from __future__ import annotations

import streamlit as st

from lab import glossary
from lab.lessons import Lesson, lessons
from lab.lessons.mark import Mark, histogram_shares, mark
from lab.lessons.question import SKETCH, Prediction
from lab.settings import sentence
from losslib.errors import ParameterError
from ui import focus
from ui.learn import link, room, trainer
from ui.learn.question import ask, capital, draw, told

PREDICTED = "learn predicted"  # lesson to prediction, of this session


def show(lesson: Lesson) -> None:
    """The whole lesson."""
    head(lesson)
    predicted: dict[str, Prediction] = st.session_state.setdefault(PREDICTED, {})
    if lesson.name not in predicted:
        before(lesson)
        return
    prediction = predicted[lesson.name]
    made = trainer.series(key_of(lesson)) or start(lesson)
    trainer.tell()
    if made is None:
        return
    st.markdown(f"**{lesson.question.text}**")
    with st.container(key="predicted"):
        st.markdown(f"You predicted: **{told(lesson.question, prediction)}**.")
    focus.target("predicted", lesson.name)
    if made.done:
        after(lesson, prediction, made)
    else:
        st.info(lesson.task)
        trainer.follow(made)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        which_run(lesson, made)
        trainer.play_again()
    trainer.panel()


def head(lesson: Lesson) -> None:
    """Title, idea, terms, what is trained."""
    number = [one.name for one in lessons()].index(lesson.name) + 1
    with st.container(key="lesson"):
        st.header(f"{number}. {lesson.title}", anchor=False)
    focus.target("lesson", lesson.name)
    st.markdown(lesson.idea)
    if link.presenting():
        return
    with st.container(horizontal=True):
        for term in lesson.terms:
            with st.popover(term, type="tertiary"):
                st.markdown(glossary.define(term))
        with st.popover("What is trained", type="tertiary"):
            st.caption("The settings of each run, as the Train page and the command line spell them.")
            for run in lesson.runs:
                listed = ", ".join(f"{key} = {text}" for key, text in run.settings.items())
                st.markdown(f"**{capital(run.title)}.** {listed}, seed = {link.seed()}")


def before(lesson: Lesson) -> None:
    """The question, and the button that runs it once something was predicted. No run is shown before."""
    st.caption("Predict first: nothing is trained or shown before you did.")
    prediction = ask(lesson.question, lesson.name)
    st.button(
        "Predict and run",
        key=f"learn go {lesson.name}",
        type="primary",
        disabled=prediction is None,
        on_click=predict,
        args=(lesson, prediction),
        shortcut=link.shortcut("g"),
        help="Trains what is described above, and marks your prediction from it",
    )


def predict(lesson: Lesson, prediction: Prediction) -> None:
    """A prediction was given: the run begins."""
    st.session_state[PREDICTED][lesson.name] = lesson.question.check(prediction)
    room.predict(lesson.name, told(lesson.question, prediction))
    start(lesson)


def key_of(lesson: Lesson) -> tuple[object, ...]:
    """What the lesson's series is known by."""
    return ("lesson", lesson.name, link.seed())


def start(lesson: Lesson) -> trainer.Series | None:
    """Begins the lesson's runs; those of its own seed are shipped where there are recordings."""
    try:
        shipped = lesson.shipped(link.seed())
    except ParameterError:
        shipped = {}  # a damaged file: it is trained instead
    return trainer.begin(key_of(lesson), lesson.configs(link.seed()), shipped)


def which_run(lesson: Lesson, made: trainer.Series) -> None:
    """Titles of the runs; those that have ended can be looked at again."""
    titles = {run.name: capital(run.title) for run in lesson.runs}
    if not made.done or len(titles) == 1:
        st.caption(f"Run: {titles.get(made.now, '')}.")
        return
    chosen = st.segmented_control(
        "Run shown below",
        list(titles),
        default=made.now,
        format_func=titles.__getitem__,
        key=f"learn run {lesson.name} {link.seed()}",
        help="The map, histograms and curves of one of the runs.",
    )
    if chosen and chosen != made.now:
        trainer.show(made, chosen)
        st.rerun()


def after(lesson: Lesson, prediction: Prediction, made: trainer.Series) -> None:
    """The mark, from the runs themselves, and what to take away."""
    try:
        found = mark(lesson, prediction, made.recordings)
    except ParameterError as error:
        st.warning(sentence(str(error)))
        again(lesson)
        return
    if found.right:
        st.success(f"**Right.** {found.verdict}", icon=":material/check:")
        if lesson.name not in link.done():
            link.add_done(lesson.name)
    else:
        st.warning(f"**Not quite.** {found.verdict}", icon=":material/close:")
    room.finish(lesson.name)
    if lesson.question.kind == SKETCH:
        compare_sketch(lesson, prediction, made)
    st.markdown(f"**Why.** {lesson.question.why}")
    st.markdown(f"**Take away.** {found.takeaway}")
    again(lesson)
    doors(lesson, found)


def compare_sketch(lesson: Lesson, prediction: Prediction, made: trainer.Series) -> None:
    """The sketch beside the histogram it was held against."""
    question = lesson.question
    truth = histogram_shares(question, made.recordings[question.run])
    bars = [float(bar) for bar in prediction]  # type: ignore[union-attr]
    draw(question, {"your sketch": bars, "the run": list(map(float, truth))}, f"marked {lesson.name}")


def again(lesson: Lesson) -> None:
    """Another seed, or another prediction."""
    with st.container(horizontal=True):
        st.button(
            "Train it with another seed",
            on_click=another_seed,
            key="learn another seed",
            help="Other data, other initial weights: does your prediction still hold? It trains live.",
        )
        st.button("Predict again", on_click=forget, args=(lesson,), key="learn predict again")


def another_seed() -> None:
    """The next seed; the prediction stands."""
    link.write(learn_seed=str(link.seed() + 1))


def forget(lesson: Lesson) -> None:
    """The question is asked anew."""
    st.session_state[PREDICTED].pop(lesson.name, None)
    link.write(learn_seed="")


def doors(lesson: Lesson, found: Mark) -> None:
    """Where to go next: what the lesson names, and the next lesson."""
    door = lesson.next
    with st.container(horizontal=True, vertical_alignment="center"):
        if door.page == "learn":
            st.button(
                door.text, on_click=link.go, kwargs=dict(door.settings), icon=":material/arrow_forward:"
            )
        else:
            st.page_link(
                f"pages/{door.page}.py",
                label=door.text,
                icon=":material/arrow_forward:",
                query_params=door.settings,
            )
        names = [one.name for one in lessons()]
        place = names.index(lesson.name) + 1
        if place < len(names):
            follower = lessons()[place]
            st.button(
                f"Next lesson: {follower.title}",
                key="learn next",
                type="primary" if found.right else "secondary",
                on_click=link.go,
                kwargs={link.LESSON: follower.name},
                shortcut=link.shortcut("n"),
            )
