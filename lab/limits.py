"""What a server allows, and how long it keeps what nobody watches; each limit may be set by a variable."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from lab.config import RunConfig
from lab.pairing import RULES
from lab.recording import EMBEDDING_BYTES, FRAME_BYTES
from losslib import catalog
from losslib.errors import ParameterError
from losslib.params import Integer, Param, positive

TRIPLET_MINERS = ("AngularMiner", "TripletMarginMiner")


class LimitError(ParameterError):
    """A run asks for more than this server allows."""


@dataclass(frozen=True)
class Limits:
    """What a server allows, and how long it keeps what nobody watches.

    A run whose tab was closed is paused within 10 seconds and gone within 60: the worker looks twice
    a second.

    Attributes:
        runs: runs in memory at once; more wait in a queue.
        queue: runs that may wait.
        runs_per_owner: runs of one owner, waiting ones included.
        steps: steps a run.
        points: points of a generated data set.
        batch: batch size.
        memory: bytes that all runs together may take, estimated.
        pause_after: seconds without a viewer until a run pauses.
        drop_after: seconds an orphan is kept.
        forget_after: seconds a run without viewers is kept although its session lives.
        quantum: seconds a slice.
        slice_steps: steps a slice at most.
    """

    runs: int = 32
    queue: int = 64
    runs_per_owner: int = 4
    steps: int = 20_000
    points: int = 10_000
    batch: int = 1024
    memory: int = 1_000_000_000
    pause_after: float = 9.0
    drop_after: float = 55.0
    forget_after: float = 1800.0
    quantum: float = 0.005
    slice_steps: int = 10

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Limits:
        """The defaults, with each limit that a variable sets: LOSSLAB_RUNS=60, LOSSLAB_DROP_AFTER=300.

        Raises:
            ParameterError: a variable is not a number above 0.
        """
        found: dict[str, Any] = {}
        for field in fields(cls):
            name = f"LOSSLAB_{field.name.upper()}"
            if name in environment:
                valid = Integer(1, None) if isinstance(field.default, int) else positive
                found[field.name] = Param(field.default, valid=valid, name=name).parse(
                    environment[name], name
                )
        return cls(**found)


def estimated_bytes(config: RunConfig) -> int:
    """About the memory a run takes: its recording, its batch's matrices, its weights."""
    matrices = 12 * 4 * rows_of_batch(config) ** 2 + 4 * 3 * 8 * written_triplets(config)
    weights = 4 * 4 * (200_000 + 200 * config.dim)
    if config.encoder == "free":
        weights = 4 * 4 * config.dim * 10_000
    return FRAME_BYTES + EMBEDDING_BYTES + matrices + weights


def rows_of_batch(config: RunConfig) -> int:
    """Embeddings of a batch: one a sample, or one a view."""
    return config.batch * (2 if RULES[config.pairing].views else 1)


def written_triplets(config: RunConfig) -> int:
    """About how many triplets a miner writes out at most; without one, or with one pair an anchor, none."""
    if config.miner in ("none", "BatchHardMiner", "BatchEasyHardMiner"):
        return 0
    rows, most = rows_of_batch(config), config.miner_values["tuples_per_anchor"]
    if config.miner not in TRIPLET_MINERS and catalog.get(config.loss).family != "triplet":
        return 0  # pairs stay pairs
    of_anchor = rows**2 // 8  # a quarter of the batch positives, half of it negatives
    if config.miner not in TRIPLET_MINERS:
        most = most if isinstance(most, str) else most**2
    return rows * (of_anchor if isinstance(most, str) else min(int(most), of_anchor))
