"""What a lesson asks, as controls: a choice, a number, or bars to sketch a histogram with."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import streamlit as st

from lab.lessons.question import CHOICE, NUMBER, Prediction, Question

if TYPE_CHECKING:
    from collections.abc import Sequence

START = 20  # height of every bar before it is drawn


def ask(question: Question, name: str) -> Prediction | None:
    """Draws the question; the prediction so far, None before there is one.

    Args:
        question: what is asked.
        name: of the lesson, for keys.
    """
    st.markdown(f"**{question.text}**")
    if question.kind == CHOICE:
        texts = [choice.text for choice in question.choices]
        return st.radio(
            "Your prediction",
            range(len(texts)),
            None,
            format_func=lambda place: capital(texts[place]),
            key=f"learn predict {name}",
        )
    if question.kind == NUMBER:
        unit = f" in {question.unit}" if question.unit else ""
        return st.number_input(
            f"Your prediction{unit}",
            question.low,
            question.high,
            None,
            question.step,
            format="%g",
            key=f"learn predict {name}",
            help=f"From {question.low:g} to {question.high:g}; up to {question.tolerance:g} off is right.",
        )
    return sketch(question, name)


def sketch(question: Question, name: str) -> Prediction | None:
    """One slider a bar and the picture they make; None while no bar was touched."""
    edges = question.edges()
    bars = []
    for place, column in enumerate(st.columns(question.bins)):
        with column:
            label = f"{edges[place]:g} to {edges[place + 1]:g}"
            bars.append(
                st.slider(label, 0, 100, START, 5, key=f"learn predict {name} {place}", help=SKETCH_HELP)
            )
    draw(question, {"your sketch": [float(bar) for bar in bars]}, f"sketch {name}")
    touched = any(bar != START for bar in bars) and any(bars)
    if not touched:
        st.caption("Move the bars: only their heights relative to each other count.")
    return tuple(map(float, bars)) if touched else None


SKETCH_HELP = "How many of the pairs lie in this part of the axis; what counts is the share of all bars."


def draw(question: Question, shown: dict[str, Sequence[float]], name: str) -> None:
    """Bars of shares side by side, with their summary."""
    import plotly.graph_objects as go

    from lab.figures.palette import NEGATIVE, POSITIVE, REFERENCE
    from ui.figures.show import is_dark, show

    edges = question.edges()
    labels = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
    colours = {"the run": NEGATIVE if question.side == "negative" else POSITIVE}
    figure = go.Figure()
    words = []
    for title, bars in shown.items():
        total = sum(bars) or 1.0
        shares = [100 * bar / total for bar in bars]
        colour = colours.get(title, "#A6A6A6" if is_dark() else REFERENCE)
        figure.add_bar(x=labels, y=shares, name=title, marker_color=colour)
        most = max(range(len(shares)), key=shares.__getitem__)
        words.append(f"{capital(title)}: most pairs, {shares[most]:.0f} %, from {labels[most]}.")
    figure.update_layout(
        xaxis_title=f"distance of {question.side} pairs",
        yaxis_title="share in %",
        yaxis_range=[0, 105],
        margin={"l": 50, "r": 10, "t": 10, "b": 45},
        showlegend=len(shown) > 1,
        legend={"orientation": "h", "y": 1.15},
    )
    show(figure, " ".join(words), name, name.replace(" ", "-"), 240)


def told(question: Question, prediction: Prediction) -> str:
    """A prediction in words, short."""
    if question.kind == CHOICE:
        return question.choices[int(prediction)].text  # type: ignore[arg-type]
    if question.kind == NUMBER:
        return f"{prediction:g}{f' {question.unit}' if question.unit else ''}"
    bars: Any = prediction
    edges, most = question.edges(), max(range(len(bars)), key=bars.__getitem__)
    return f"most pairs from {edges[most]:g} to {edges[most + 1]:g}"


def capital(text: str) -> str:
    """The text with a capital at its start; a Greek letter stays, because its capital is another symbol."""
    return f"{text[:1].upper()}{text[1:]}" if text[:1].isascii() else text
