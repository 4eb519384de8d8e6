"""What the home page is made of. Nothing heavy is imported: it is the first thing a visitor waits for."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from ui.navigation import entries


@dataclass(frozen=True)
class Preset:
    """Settings worth a look: they open the Train page, one press of Play from running."""

    title: str
    what: str
    settings: dict[str, str]


PRESETS = (
    Preset(
        "Digits on a circle",
        "Real handwritten digits, a small CNN, two coordinates: watch ten classes find their place.",
        {"data": "mnist", "loss": "ContrastiveLoss"},
    ),
    Preset(
        "Temperature",
        "NT-Xent looks mostly at the hardest negatives; the curve on the histogram shows how mostly.",
        {"data": "mnist", "loss": "NTXentLoss", "dim": "8"},
    ),
    Preset(
        "Just the loss",
        "No network at all: every point is moved by the supervised contrastive loss alone.",
        {"data": "blobs", "encoder": "free", "loss": "SupConLoss", "lr": "0.03"},
    ),
    Preset(
        "Failure: margin already satisfied",
        "A negative margin of 0.05 asks for almost nothing, so almost no negative pair has a gradient.",
        {"data": "blobs", "loss": "ContrastiveLoss", "ContrastiveLoss.neg_margin": "0.05"},
    ),
    Preset(
        "Failure: collapse",
        "A learning rate of 1,000,000 throws every embedding onto one point: recall@1 falls to chance.",
        {"data": "blobs", "loss": "NTXentLoss", "optimizer": "sgd", "lr": "1e+06"},
    ),
    Preset(
        "Failure: the numbers run away",
        "An absurd margin, squared, and an absurd learning rate: two steps, and nothing is a number.",
        {
            "data": "blobs",
            "output": "none",
            "optimizer": "sgd",
            "lr": "1e+06",
            "ContrastiveLoss.squared": "true",
            "ContrastiveLoss.neg_margin": "1e+06",
        },
    ),
)


def introduction() -> None:
    """Two sentences."""
    st.markdown(
        "Loss Lab trains a small encoder before your eyes and shows what a metric loss does to it: the map "
        "of embeddings, the distances of positive and negative pairs with the margin or temperature drawn on "
        "them, and the retrieval quality on data it never saw. Turn the margin, the temperature or the "
        "learning rate while it trains, and every view follows."
    )


def presets() -> None:
    """Cards that open the Train page with settings."""
    st.subheader("Start from something worth seeing", anchor=False)
    for row in range(0, len(PRESETS), 3):
        for column, preset in zip(st.columns(3), PRESETS[row : row + 3], strict=False):
            with column.container(border=True, height="stretch"):
                st.page_link(
                    "pages/train.py",
                    label=f"**{preset.title}**",
                    icon=":material/play_circle:",
                    query_params=preset.settings,
                )
                st.markdown(preset.what)


def doors() -> None:
    """One line a page."""
    st.subheader("Pages", anchor=False)
    for entry in entries()[1:]:
        st.page_link(entry.path, label=f"**{entry.title}**", icon=":material/arrow_forward:")
        st.caption(entry.summary)
