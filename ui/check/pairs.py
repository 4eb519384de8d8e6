"""The pairs and labels of somebody's embeddings that are worth a look."""

from __future__ import annotations

from typing import Any

import streamlit as st
import torch

from lab.brief import brief
from lab.embeddings.hard import NEIGHBOURS, hardest_pairs, suspects
from lab.uploads import Upload

CUT = "Long labels are cut in the middle here; the map says them whole."
COUNTED = "Rows of the file, counted from 0; a row of names is not counted."


def hard(upload: Upload) -> None:
    """The hardest pairs, and the rows whose neighbours have another label."""
    st.header("Pairs and labels to look at", anchor=False)
    positives, negatives, doubted = examined(upload.digest, upload)
    shown = brief(upload.class_names)  # two of them have to fit side by side
    if shown != upload.class_names:
        st.caption(CUT)
    places = st.columns(2, gap="medium")
    kept = upload.kept
    for place, title, pairs in (
        (places[0], "Farthest positive pairs", positives),
        (places[1], "Nearest negative pairs", negatives),
    ):
        with place:
            st.markdown(f"**{title}**")
            if not pairs:
                st.caption("There are none.")
                continue
            codes = [[upload.labels[row] for row in pair[:2]] for pair in pairs]
            said = [shown[a] if a == b else f"{shown[a]}, {shown[b]}" for a, b in codes]
            st.dataframe(
                {
                    "rows": [f"{kept[pair[0]]}, {kept[pair[1]]}" for pair in pairs],
                    "distance": [pair[2] for pair in pairs],
                    "label" if title.startswith("Farthest") else "labels": said,
                },
                hide_index=True,
                column_config={
                    "distance": st.column_config.NumberColumn(
                        format="%.3f", width="small", help="At length 1, 0 to 2."
                    ),
                    "rows": st.column_config.TextColumn(width="small", help=COUNTED),
                },
            )
    st.markdown("**Labels to check**")
    voters = min(NEIGHBOURS, len(upload.vectors) - 1)
    nearest = f"{voters} nearest neighbours" if voters > 1 else "nearest neighbour"
    if not doubted:
        st.caption(f"No row has half of its {nearest} in one other class.")
        return
    st.dataframe(
        {
            "row": [int(kept[one[0]]) for one in doubted],
            "label": [shown[one[1]] for one in doubted],
            "neighbours say": [shown[one[2]] for one in doubted],
            "votes": [100 * one[3] for one in doubted],
        },
        hide_index=True,
        column_config={
            "row": st.column_config.NumberColumn(width="small", help=COUNTED),
            "votes": st.column_config.NumberColumn(format="%.0f %%", width="small"),
        },
    )
    st.caption(f"At least half of the {nearest} have the other label.")


@st.cache_data(max_entries=32, show_spinner="Measuring")
def examined(digest: str, _upload: Upload) -> tuple[list[Any], list[Any], list[Any]]:
    """Hardest positives, hardest negatives, suspects."""
    rows, labels = torch.from_numpy(_upload.vectors), torch.from_numpy(_upload.labels)
    positives, negatives = hardest_pairs(rows, labels)
    return (
        [tuple(pair) for pair in positives],
        [tuple(pair) for pair in negatives],
        [tuple(one) for one in suspects(rows, labels)],
    )
