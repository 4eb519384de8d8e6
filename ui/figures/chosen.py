"""Points chosen in a map: which they are, how they stand to their class, what they look like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from lab.brief import brief
from lab.moment_words import chosen_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lab.moment import Moment, Standing

THUMBNAILS = 24
LISTED = 500


def hover_columns(now: Moment, rows: NDArray[np.int64], names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """What a point says on hover beside its class and number; `names` are those of the classes."""
    standing = now.standing
    if standing is None:
        return {}
    known = np.array([*names, "none"], dtype=object)
    return {
        "distance to own class mean": standing.to_own[rows],
        "nearest other class": known[standing.other[rows]],
        "distance to its mean": standing.to_other[rows],
    }


def describe_chosen(now: Moment, chosen: NDArray[np.int64], images: NDArray[np.uint8] | None) -> None:
    """The chosen points in words, as images and as a table."""
    recording = now.recording
    samples = recording.probe[chosen]
    st.markdown(chosen_words(chosen, recording.labels, recording.class_names))
    if images is not None:
        few = samples[:THUMBNAILS]
        shown = brief(recording.class_names)
        names = [shown[c] for c in recording.labels[chosen[:THUMBNAILS]]]
        st.image([images[i] for i in few], [f"{n} ({i})" for n, i in zip(names, few, strict=True)], width=56)
    st.dataframe(chosen_table(now, chosen[:LISTED], now.standing), hide_index=True, height=240)
    if len(chosen) > LISTED:
        st.caption(f"The first {LISTED} of {len(chosen):,}.")


def chosen_table(now: Moment, chosen: NDArray[np.int64], standing: Standing | None) -> dict[str, list[Any]]:
    """Sample, class and standing of the chosen points."""
    names = now.recording.class_names
    columns: dict[str, list[Any]] = {
        "sample": now.recording.probe[chosen].tolist(),
        "class": [names[c] for c in now.recording.labels[chosen]],
    }
    if standing is not None:
        columns |= {name: values.tolist() for name, values in hover_columns(now, chosen, names).items()}
    return columns
