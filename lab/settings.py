"""The table of settings: from one declaration come the command line's option, the link's key, the control."""

from __future__ import annotations

import re
from copy import copy
from functools import cache

import datasets
from losslib.params import Choice, Integer, Interval, Param, non_negative, positive

OUTPUTS = ("none", "l2", "layernorm", "batchnorm")
OPTIMIZERS = ("sgd", "adam", "adamw")
DEVICES = ("auto", "cpu", "cuda")
DIMS = (2, 3, 8, 32, 128)
DEFAULT_LOSS = "ContrastiveLoss"
NO_MINER = "none"
MAX_STEPS = 100_000
WORD = 120  # characters of a value that are said back


@cache
def settings() -> dict[str, Param]:
    """Every setting but the options of losses and data sets, by name, in the order of a form."""
    # these import torch, so not before they are needed
    from lab.encoders import ENCODERS
    from lab.pairing import RULES
    from losslib import catalog

    declared = (
        Param(
            "mnist",
            valid=Choice(*datasets.catalog()),
            name="data",
            title="Data",
            meaning="what is embedded",
        ),
        Param(
            "label",
            valid=Choice(*RULES),
            name="pairing",
            title="Pairing",
            meaning="which samples of a batch are positives: those of one label, those whose continuous "
            "labels are within delta, the two augmented views of one sample, or views and known labels",
        ),
        Param(
            0.05,
            valid=non_negative,
            explore=(0.01, 0.3),
            symbol=r"\delta",
            name="delta",
            title="Delta",
            meaning="with a continuous label: by how much the labels of two positives differ at most",
            larger="makes more pairs positive and neighbourhoods wider",
            step=0.01,
        ),
        Param(
            0.1,
            valid=Interval(0.0, 1.0),
            explore=(0.0, 1.0),
            name="label_fraction",
            title="Label fraction",
            meaning="semi-supervised: the share of training samples whose label is known; 0 leaves the views",
            larger="pulls whole classes together instead of the two views of a sample",
            step=0.05,
        ),
        Param(
            "auto",
            valid=Choice("auto", *ENCODERS),
            name="encoder",
            title="Encoder",
            meaning="what turns a sample into its embedding; auto takes the CNN for images, else the MLP",
        ),
        Param(
            2,
            valid=Integer(2, 512),
            explore=DIMS,
            symbol="D",
            name="dim",
            title="Embedding size",
            meaning="number of coordinates of an embedding",
            larger="gives classes more room; above 2 the map shows principal components",
        ),
        Param(
            "l2",
            valid=Choice(*OUTPUTS),
            name="output",
            title="Output normalisation",
            meaning="what is done to an embedding before the loss sees it",
        ),
        Param(
            DEFAULT_LOSS,
            valid=Choice(*catalog.losses()),
            name="loss",
            title="Loss",
            meaning="what the encoder is trained to make small",
        ),
        Param(
            NO_MINER,
            valid=Choice(NO_MINER, *catalog.miners()),
            name="miner",
            title="Miner",
            meaning="which pairs or triplets of the batch the loss gets to see; none leaves all of them",
        ),
        Param(
            128,
            valid=Integer(2, 4096),
            explore=(16, 512),
            symbol="B",
            name="batch",
            title="Batch size",
            meaning="samples that one step sees together",
            larger="gives each anchor more positives and negatives, and slower steps",
            step=16,
        ),
        Param(
            8,
            valid=Integer(0, 512),
            explore=(0, 32),
            symbol="m",
            name="per_class",
            title="Samples per class",
            meaning="samples that each class in the batch brings at least; 0 draws the batch uniformly, as "
            "every pairing but by label does",
            larger="gives fewer classes a batch and more positives an anchor",
        ),
        Param(
            "adam",
            valid=Choice(*OPTIMIZERS),
            name="optimizer",
            title="Optimiser",
            meaning="rule of the update; SGD has momentum 0.9",
        ),
        Param(
            0.003,
            valid=positive,
            explore=(1e-4, 1.0),
            symbol=r"\eta",
            name="lr",
            title="Learning rate",
            meaning="length of an update",
            larger="learns faster, until it diverges",
        ),
        Param(
            300,
            valid=Integer(1, MAX_STEPS),
            explore=(50, 2000),
            name="steps",
            title="Steps",
            meaning="number of updates",
            step=50,
        ),
        Param(
            0,
            valid=Integer(0, 2**31 - 1),
            explore=(0, 100),
            name="seed",
            title="Seed",
            meaning="where all random numbers of a run start: data, initial weights, batches",
        ),
        Param(
            "auto",
            valid=Choice(*DEVICES),
            name="device",
            title="Device",
            meaning="where it is computed; auto takes a GPU where there is one and it pays",
        ),
    )
    return {param.name: param for param in declared}


def in_words(param: Param) -> Param:
    """The same declaration under its title: what it refuses, it refuses as its control is called."""
    found = copy(param)
    found.name = param.title.lower()
    return found


def sentence(text: str) -> str:
    """An error for a person: no owner "run", a capital unless a setting or a key begins it, and its end."""
    quoted = rf"(\b(?:got|setting|called|option) ')([^']{{{WORD + 1},}})'"  # a value that somebody typed
    text = re.sub(quoted, lambda found: f"{found[1]}{found[2][:WORD]}...'", text)
    text = re.sub(rf"\S{{{WORD + 9},}}", lambda word: f"{word[0][:WORD]}...", text)
    text = text.removeprefix("run: ").removesuffix(".")
    named = text.partition(" ")[0]
    as_typed = named in settings() or re.match(r"[a-z]\w*[._]\w", named) is not None
    begins = text if as_typed else f"{text[:1].upper()}{text[1:]}"
    return begins if begins.endswith("?") else f"{begins}."


def encoders_for(kind: str, pairing: str = "label") -> tuple[str, ...]:
    """Encoders that accept data of that kind ("points" or "images"), with an input to augment for views."""
    from lab.encoders import ENCODERS
    from lab.pairing import RULES

    views = RULES[pairing].views
    return tuple(n for n, spec in ENCODERS.items() if kind in spec.kinds and not (views and n == "free"))


def default_encoder(kind: str) -> str:
    """The encoder that `auto` stands for."""
    return "cnn" if kind == "images" else "mlp"
