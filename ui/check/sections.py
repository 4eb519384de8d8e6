"""The sections on somebody's embeddings: measures, losses, distances, map, hard pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import streamlit as st
import torch

from lab import glossary
from lab.percent import percent
from lab.short import short
from lab.uploads import Upload
from losslib import catalog
from ui.check.pairs import hard
from ui.controls import control

LOSS = "check.distances"
FIRST = "ContrastiveLoss"
PAIRS = 20_000


def sections(upload: Upload) -> None:
    """Everything that is seen in the embeddings."""
    if len(upload.vectors) < 2:
        st.info("One vector has no pairs: there is nothing to compare. Two or more are needed.")
        return
    quality(upload)
    left, right = st.columns([3, 2], gap="large")
    with left:
        distances(upload)
    with right:
        embedding_map(upload)
    if upload.has_labels:
        losses(upload)
        hard(upload)
    norms(upload)


def quality(upload: Upload) -> None:
    """The measures, each with its reference."""
    st.header("How good they are", anchor=False)
    found = measured(upload.digest, upload)
    with st.container(horizontal=True):
        for name, text, reference in found:
            with st.container(width=210 if len(text) > 8 else 150):
                st.metric(name, text, help=glossary_text(name))
                st.caption(reference)


def glossary_text(name: str) -> str | None:
    """The term's sentence, if the glossary has it."""
    for term in (name, name.split(maxsplit=1)[0], f"{name.split('@', maxsplit=1)[0]}@k"):
        try:
            return glossary.define(term)
        except (KeyError, ValueError):
            continue
    return None


@st.cache_data(max_entries=32, show_spinner="Measuring")
def measured(digest: str, _upload: Upload) -> list[tuple[str, str, str]]:
    """Name, value and reference of each measure."""
    from lab.embeddings.quality import measures

    labels = torch.from_numpy(_upload.labels) if _upload.has_labels else None
    return [
        (one.name, one.text(), one.reference) for one in measures(torch.from_numpy(_upload.vectors), labels)
    ]


def losses(upload: Upload) -> None:
    """Every loss's value and active share."""
    st.header("What every loss makes of them", anchor=False)
    rows = valued(upload.digest, upload)
    known = [row for row in rows if not row[5]]
    st.dataframe(
        {
            "loss": [row[1] for row in known],
            "family": [row[2] for row in known],
            "value": [row[3] for row in known],
            "active share": [100 * row[4] for row in known],
        },
        hide_index=True,
        column_config={
            "value": st.column_config.NumberColumn(
                format="%.4g", help="With default options; the scales of different losses cannot be compared."
            ),
            "active share": st.column_config.ProgressColumn(
                format="%.0f %%",
                min_value=0,
                max_value=100,
                help="Share of pairs that still have a gradient.",
            ),
        },
    )
    from lab.embeddings.losses import ROWS

    if len(upload.vectors) > ROWS:
        st.caption(f"On a random sample of {ROWS} vectors.")
    with st.expander("Losses without a value, and why"):
        st.markdown("\n".join(f"- {row[1]}: {row[5]}." for row in rows if row[5]))


@st.cache_data(max_entries=32, show_spinner="Measuring")
def valued(digest: str, _upload: Upload) -> list[tuple[str, str, str, float, float, str]]:
    """The rows of the table of losses."""
    from lab.embeddings.losses import loss_rows

    rows = loss_rows(torch.from_numpy(_upload.vectors), torch.from_numpy(_upload.labels))
    return [(r.name, r.title, r.family, r.value, r.active_share, r.note.rstrip(".")) for r in rows]


def distances(upload: Upload) -> None:
    """The distances of pairs on a loss's own axis, its thresholds, and the advice."""
    st.header("Distances of pairs", anchor=False)
    names = pair_losses()
    name = st.selectbox("On the axis of", names, key=LOSS, bind="query-params")
    params = {n: p for n, p in catalog.get(name).params.items() if p.kind == "float" and not p.fixed}
    options: dict[str, str] = {}
    for column, (option, param) in zip(st.columns(2) * 4, params.items(), strict=False):
        with column:
            options[option] = control(param, f"check.my.{name}.{option}")
    given = {option: params[option].parse(text, name) for option, text in options.items()}
    loss = catalog.get(name)(**given)
    from lab.figures.pair_distances import pair_distances
    from ui.figures.show import is_dark, show

    title = f"Pairs by {loss.distance.title.removesuffix(' of normalised embeddings')}"
    histogram = counted(upload.digest, name, upload)
    axis = loss.distance.title
    figure = pair_distances(histogram, loss.marks(), axis, loss.distance.is_inverted, title, is_dark())
    show(figure, histogram_words(histogram, upload), "check distances", "distances", 380)
    if upload.has_labels:
        for sentence in advised(upload.digest, name, tuple(given.items()), upload):
            st.markdown(f"- {sentence}")


def pair_losses() -> list[str]:
    """Losses that weigh pairs of samples and need nothing else; the first is shown first."""
    found = [n for n, c in catalog.losses().items() if not c.needs and hasattr(c, "pair_weights")]
    return sorted(found, key=lambda name: name != FIRST)


def histogram_words(histogram: Any, upload: Upload) -> str:
    """The figure in words."""
    if not upload.has_labels:
        return "Without labels all pairs count as positive."
    middle = np.linspace(histogram.low, histogram.high, 2 * len(histogram.positive) + 1)[1::2]
    means = [
        float((middle * side).sum() / side.sum()) if side.sum() else float("nan")
        for side in (histogram.positive, histogram.negative)
    ]
    if any(np.isnan(means)):
        return "There are not both positive and negative pairs."
    half = (middle[1] - middle[0]) / 2
    return (
        f"Read from the bars, so to within {half:.2g}: positive pairs are at {short(means[0])} on average, "
        f"negative pairs at {short(means[1])}."
    )


@st.cache_data(max_entries=32, show_spinner="Measuring")
def counted(digest: str, name: str, _upload: Upload) -> Any:
    """Histogram of a fixed sample of pairs on the axis of that loss."""
    from lab.frame import Histogram
    from lab.probe_pairs import sample_pairs

    distance: Any = catalog.get(name)().distance
    rows = torch.from_numpy(_upload.vectors).double()
    rng = np.random.default_rng(0)
    sides = []
    for positive in (True, False):
        first, second = sample_pairs(_upload.labels, positive, PAIRS, rng)
        sides.append(distance.pairwise(rows[first], rows[second]).numpy())
    low, high = distance.bounds()
    every = np.concatenate(sides)
    low = low if np.isfinite(low) else float(every.min(initial=0.0))
    high = high if np.isfinite(high) else float(every.max(initial=1.0))
    counts = [np.histogram(side, 64, (low, high if high > low else low + 1))[0] for side in sides]
    return Histogram(low, high, counts[0].astype(np.int32), counts[1].astype(np.int32))


@st.cache_data(max_entries=32, show_spinner="Measuring")
def advised(digest: str, name: str, options: tuple[tuple[str, Any], ...], _upload: Upload) -> list[str]:
    """In which range of each option 10 to 60 % of the pairs have a gradient."""
    from lab.advice import advise

    found = advise(name, dict(options), torch.from_numpy(_upload.vectors), torch.from_numpy(_upload.labels))
    return [one.sentence() for one in found] or [
        f"No option of {catalog.get(name).title} decides which pairs have a gradient."
    ]


def embedding_map(upload: Upload) -> None:
    """The two principal components."""
    st.header("Map", anchor=False)
    from lab.figures.embedding_map import embedding_map as drawn
    from ui.figures.show import is_dark, show

    chosen, positions, share = projected(upload.digest, upload)
    figure = drawn(
        positions,
        upload.labels[chosen],
        upload.class_names,
        upload.kept[chosen],
        title="The plane of most variance",
        dark=is_dark(),
    )
    words = f"The plane holds {percent(share, 0)} of the variance; {len(chosen):,} vectors are drawn."
    show(figure, words, "check map", "map", map_height(upload.class_names))


def map_height(names: Sequence[str]) -> int:
    """Pixels of the map in its narrow column: what the lines of its legend need is not taken from the map."""
    from lab.brief import brief
    from lab.figures.tool_bar import LINE, lines_of_legend

    return min(max(480, 400 + LINE * lines_of_legend(brief(names), 290)), 800)


@st.cache_data(max_entries=32, show_spinner="Measuring")
def projected(digest: str, _upload: Upload) -> tuple[Any, Any, float]:
    """Places of the vectors drawn, (M,), their principal components, (M, 2), and the share of variance."""
    from lab.projections import project

    count = len(_upload.vectors)
    chosen = np.linspace(0, count - 1, min(count, 2000)).astype(int)
    # squares of huge and of tiny numbers leave single precision
    size = max(float(np.abs(_upload.vectors).max()), 1e-37)
    vectors = torch.from_numpy(_upload.vectors[chosen] / np.float32(size))
    centred = (vectors - vectors.mean(0)).double()
    positions = project(vectors).numpy()
    kept = np.square(positions - positions.mean(0)).sum()
    share = min(float(kept / max(float(centred.square().sum()), 1e-30)), 1.0)
    return chosen, positions * np.float32(size), share


def norms(upload: Upload) -> None:
    """Norms, and what two distances make of the same pairs."""
    from ui.figures.norms import norms_and_distances

    with st.expander("Norms and distances"):
        found = normed(upload.digest, upload)
        norms_and_distances(upload.vectors, upload.labels, name="check norms", file="check", found=found)


@st.cache_data(max_entries=32, show_spinner="Measuring")
def normed(digest: str, _upload: Upload) -> Any:
    """The norms, and the distances of a sample of pairs."""
    from ui.figures.norms import measured

    return measured(_upload.vectors, _upload.labels)
