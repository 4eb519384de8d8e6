"""Which margin or temperature: on Train from the distances of the step in view, on Sweep as values."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from lab.advice import advise
from lab.config import LEARNING_RATE, in_force
from lab.fork import forked
from losslib.errors import ParameterError
from ui.errors import show_error
from ui.session import present_run, shown_step

if TYPE_CHECKING:
    from lab.advice import Advice
    from lab.recording import Recording
    from lab.scheduler import LiveRun
    from losslib.params import Param

Options = tuple[tuple[str, Any], ...]
RANDOM = "triplets_per_anchor"  # drawing would disturb the runs that train
FIRST = 2  # figures side by side


@st.fragment
def advice_section(run: LiveRun) -> None:
    """The switch, and for each option that decides which pairs have a gradient a sentence with its figure."""
    try:
        draw(run)
    except Exception as error:  # in a fragment the page's own last line of defence is over
        show_error(error)


def draw(run: LiveRun) -> None:
    """What the section shows."""
    wanted = st.toggle(
        "Which margin or temperature?",
        key="advice",
        persist_state="session",
        help="From the distances of the step in view: the range of each option in which 10 to 60 % of the "
        "pairs have a gradient. Fewer teach little, more let easy pairs drown the hard ones.",
    )
    if not wanted:
        return
    recording = run.recording
    if not run.stands_still or recording is None or recording.latest is None:
        st.caption("Press Pause: the advice is about distances that stand still.")
        return
    step = shown_step(run)
    step = recording.latest.step if step is None else step
    try:
        found = of_step(recording, step)
    except ParameterError as error:
        st.caption(f"{error}."[:1].upper() + f"{error}."[1:])
        return
    st.caption(
        f"Held-out samples of step {step}, pairs by class; a guide for the step in view, not a proof."
        if recording.config.encoder != "free"
        else f"The points of step {step}, pairs by class; a guide for the step in view, not a proof."
    )
    if not found:
        st.info("No option of this loss changes how many pairs have a gradient.")
    for row in range(0, len(found), FIRST):
        for column, one in zip(st.columns(FIRST), found[row : row + FIRST], strict=False):
            with column:
                figure_of(one, step)


def figure_of(one: Advice, step: int) -> None:
    """One option."""
    from lab.figures.advice import advice
    from ui.figures.show import show

    show(advice(one), one.sentence(), f"advice {one.option}", f"advice-{one.option}-{step}", 340)


def of_step(recording: Recording, step: int) -> tuple[Advice, ...]:
    """Advice from the embeddings of a step and the options in force there. Raises ParameterError."""
    config = recording.config
    values = in_force(forked(config, step, {}))
    fitting = tuple((n, v) for n, v in values.items() if n not in (LEARNING_RATE, RANDOM))
    return advised(recording, step, config.loss, fitting)


@lru_cache(maxsize=32)
def advised(recording: Recording, step: int, loss: str, options: Options) -> tuple[Advice, ...]:
    """Advice on a loss from the embeddings of a step, its last ones if that step kept none."""
    import torch

    from lab.moment import moment

    held = [frame.step for frame in recording.frames if frame.embeddings is not None and frame.step <= step]
    now = moment(recording, held[-1] if held else step)
    if now is None or now.embeddings is None:
        raise ParameterError("the recording kept no embeddings of this step")
    return advise(
        loss, dict(options), torch.from_numpy(now.embeddings), torch.from_numpy(recording.labels).long()
    )


def for_sweep(loss: str, name: str, param: Param, key: str) -> None:
    """Under the values of an option: the range that fits the distances of the session's run on Train."""
    run = present_run()
    recording = None if run is None else run.recording
    if recording is None or recording.latest is None or run is None or run.state == "running":
        return
    step = recording.latest.step
    try:
        found = [one for one in advised(recording, step, loss, ()) if one.option == name]
    except ParameterError:
        return
    if not found:
        return
    [one] = found
    if one.range is None:
        st.caption(f"By the run on Train at step {step}: {one.sentence()[0].lower()}{one.sentence()[1:]}")
        return
    texts = ", ".join(values_to_vary(one.range, param))
    low, high = one.range
    st.caption(
        f"By the run on Train at step {step}, {low:.2g} to {high:.2g} give 10 to 60 % of the pairs a "
        "gradient."
    )
    st.button(f"Vary {texts}", key=f"advice of {key}", on_click=partial(take, key, texts))


def take(key: str, texts: str) -> None:
    """The advised values become the field's."""
    st.session_state[key] = texts


def values_to_vary(ends: tuple[float, float], param: Param) -> tuple[str, ...]:
    """Three values over the range: its ends and the middle, evenly or by a factor where it is that wide."""
    low, high = ends
    wide = low > 0 and high / low >= 10
    middle = (low * high) ** 0.5 if wide else (low + high) / 2
    rounded = (float(f"{value:.2g}") for value in (low, middle, high))
    return tuple(dict.fromkeys(param.format(value) for value in rounded if param.valid.contains(value)))
