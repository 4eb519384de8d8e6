"""Norms and distances: what the output normalisation does, and what two distances make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import streamlit as st

from lab import glossary
from lab.figures.norm_histogram import norm_histogram
from lab.figures.pair_distances import pair_distances
from lab.norm_words import distance_sentences, norm_sentences
from lab.norms import OUTPUTS, comparison, norm_lesson
from losslib.types import Mark
from ui.figures.show import is_dark, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from lab.norms import Afterwards, NormLesson, Separation


HEIGHT = 380


class Measured(NamedTuple):
    """What is measured of embeddings before anything is drawn."""

    lesson: NormLesson
    rows: tuple[Afterwards, ...]


def measured(embeddings: NDArray[np.floating[Any]], labels: NDArray[np.integer[Any]]) -> Measured:
    """The norms and distances of embeddings (N, D) with labels (N,)."""
    return Measured(norm_lesson(embeddings, labels), comparison(embeddings, labels))


def norms_and_distances(
    embeddings: NDArray[np.floating[Any]],
    labels: NDArray[np.integer[Any]],
    output: str = "",
    name: str = "norms",
    file: str = "norms",
    found: Measured | None = None,
) -> None:
    """Norms, the same pairs by Euclidean distance and by cosine similarity, and what more normalising does.

    Args:
        embeddings: (N, D) finite, N >= 1, as they are: not normalised for the purpose.
        labels: (N,).
        output: "none", "l2", "layernorm" or "batchnorm" where the encoder's is known.
        name: prefix of the keys, unique on the page.
        file: what saved files are called.
        found: what `measured` found of them, where the caller keeps it.
    """
    lesson, rows = found or measured(embeddings, labels)
    columns = st.columns(3)
    first, *further = norm_sentences(lesson, output)
    with columns[0]:
        show(
            norm_histogram(lesson, output, dark=is_dark()), first, f"{name} lengths", f"{file}-norms", HEIGHT
        )
    for column, side, note in zip(columns[1:], (lesson.euclidean, lesson.cosine), notes(lesson), strict=True):
        with column:
            title = f"Pairs by {side.title}"
            drawn = pair_distances(side.histogram, best(side), side.title, side.inverted, title, is_dark())
            show(drawn, note, f"{name} {side.title}", f"{file}-{side.title.split()[0].lower()}", HEIGHT)
    st.markdown("\n".join(f"- {sentence}" for sentence in (*further, *distance_sentences(lesson))))
    table(rows)


def best(side: Separation) -> tuple[Mark, ...]:
    """The best threshold as a line."""
    known = side.threshold.value == side.threshold.value
    return (Mark("line", "both", side.threshold.value, "t", "best threshold"),) if known else ()


def notes(lesson: NormLesson) -> list[str]:
    """A sentence under each of the two histograms."""
    return [
        f"AUC {side.auc:.3f}: how often a positive pair is closer than a negative one; 0.5 is chance."
        if side.auc == side.auc
        else "There are not both positive and negative pairs."
        for side in (lesson.euclidean, lesson.cosine)
    ]


def table(rows: Sequence[Afterwards]) -> None:
    """The same embeddings after each normalisation."""
    st.markdown("**The same embeddings, normalised once more**")
    st.dataframe(
        {
            "afterwards": [{"none": "as they are"}.get(row.output, OUTPUTS[row.output]) for row in rows],
            "mean norm": [row.norm_mean for row in rows],
            "deviation of norms": [row.norm_deviation for row in rows],
            "AUC Euclidean": [row.euclidean_auc for row in rows],
            "AUC cosine": [row.cosine_auc for row in rows],
            "Spearman": [row.rank_agreement for row in rows],
        },
        hide_index=True,
        column_config={
            name: st.column_config.NumberColumn(format="%.3f", help=text)
            for name, text in (
                ("mean norm", "Mean length of the embeddings."),
                ("deviation of norms", "Standard deviation of the lengths; 0 when all are equal."),
                ("AUC Euclidean", f"{glossary.define('AUC')} By Euclidean distance."),
                ("AUC cosine", f"{glossary.define('AUC')} By cosine similarity."),
                ("Spearman", "1 when both distances rank all pairs alike."),
            )
        },
    )
    st.caption(
        "L2 and LayerNorm leave only directions: there the two distances agree. BatchNorm keeps lengths, "
        "so they may part. Cosine similarity never sees what L2 takes away."
    )
