"""The controls of what makes positives: the rule of pairing, its number, and the miner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import streamlit as st

from lab.augmentations import AUGMENTATIONS
from lab.config import miner_params, pairings_for
from lab.pairing import RULES, why_no_tuples
from lab.settings import NO_MINER
from losslib import catalog
from ui.controls import options_of

if TYPE_CHECKING:
    from datasets import DatasetSpec


class Draw(Protocol):
    """Draws the control of a setting and returns its value as the link spells it."""

    def __call__(self, name: str, choices: tuple[str, ...] = ()) -> str:
        """choices: what is offered, where that depends on other settings."""


def pairing_controls(draw: Draw, data: DatasetSpec) -> str:
    """The rule of pairing with its number, and in a sentence what positives then are; returns the rule."""
    name = draw("pairing", pairings_for(data))
    rule, number = RULES[name], ""
    if name == "continuous":
        number = draw("delta")
    elif name == "semi":
        number = f"{100 * float(draw('label_fraction')):g} %"
    st.caption(rule.positives.format(delta=number, fraction=number, what=data.continuous))
    st.caption(" ".join(filter(None, (AUGMENTATIONS[data.kind].summary if rule.views else "", rule.quality))))
    return name


def miner_controls(draw: Draw, loss: str) -> dict[str, str]:
    """The miner and its options; returns the options as texts. A loss that takes no tuples says why."""
    why = why_no_tuples(loss)
    if why:
        st.caption(f"No miner: {catalog.get(loss).title} takes no pairs or triplets, because {why}.")
        return {}
    name = draw("miner")
    if name == NO_MINER:
        return {}
    summary = catalog.miners()[name].summary
    st.caption(f"{summary} Active share and pair weights are those of the pairs it chose.")
    return options_of(name, name, miner_params(name))


def batch_settings(pairing: str) -> tuple[str, ...]:
    """Settings of the batch that apply under a rule: only pairing by label may draw by class."""
    hidden = () if pairing == "label" else ("per_class",)
    return tuple(n for n in ("batch", "per_class", "optimizer", "steps", "seed", "device") if n not in hidden)
