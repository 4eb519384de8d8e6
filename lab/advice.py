"""From distances as they are now: the range of a margin or temperature in which pairs have a gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lab.config import live_options
from lab.percent import percent
from lab.short import short
from losslib import catalog
from losslib.errors import ParameterError
from losslib.params import Param

LEAST, MOST = 0.1, 0.6  # share of pairs with a gradient: fewer teach little, more hide the hard ones
GRID = 17
HALVINGS = 7
WIDE = 50  # ratio of the ends of a range from which it is looked at on a logarithmic scale
ROWS = 256  # pairs grow with the square: more rows change the shares little
CHANGE = 0.02  # an option that changes the share by less than this has no range to advise


@dataclass(frozen=True)
class Advice:
    """How many pairs have a gradient, by one option.

    Attributes:
        option: name of the option.
        title: the option as it stands in a sentence.
        symbol: its LaTeX symbol, or "".
        now: its value.
        share: share of pairs that have a gradient now, from 0 to 1.
        values: grid of values, ascending.
        shares: share at each.
        range: ends of the range with 10 to 60 % of the pairs, or None where there is none.
    """

    option: str
    title: str
    symbol: str
    now: float
    share: float
    values: tuple[float, ...]
    shares: tuple[float, ...]
    range: tuple[float, float] | None

    def sentence(self) -> str:
        """The advice in words, with its figures."""
        now = (
            f"{self.title} is {short(self.now)}, where {percent(self.share, 0)} of the pairs have a gradient"
        )
        if self.range is None:
            low, high = min(self.shares), max(self.shares)
            return (
                f"Between {self.title} {short(self.values[0])} and {short(self.values[-1])} from "
                f"{percent(low, 0)} to {percent(high, 0)} of the pairs have a gradient, never "
                f"10 to 60 %; {now}."
            )
        low, high = self.range
        now = f"{now[:1].upper()}{now[1:]}"
        if low <= self.now <= high:
            return (
                f"{now}: within {short(low)} to {short(high)}, where 10 to 60 % do. More would let easy "
                "pairs drown the hard ones, fewer teach little."
            )
        return (
            f"{now}. At these distances {self.title} from {short(low)} to {short(high)} would give 10 to "
            "60 % of the pairs a gradient."
        )


def advise(
    loss: str, options: Mapping[str, Any], embeddings: Tensor, labels: Tensor, seed: int = 0
) -> tuple[Advice, ...]:
    """Advice on each option of a loss that decides which pairs have a gradient.

    A pair counts as `PairWeights.active` does: any gradient for hinges, more than 1 % of its anchor's
    largest for softmax kinds.

    Args:
        loss: class name.
        options: its options; the others have their defaults.
        embeddings: (N, D) finite; at most 256 of them are used.
        labels: (N,).
        seed: chooses these.

    Returns:
        One for each option that changes the share of pairs with a gradient; the most telling first.

    Raises:
        ParameterError: the loss has no pairs with weights, or an option is wrong.
    """
    cls = catalog.get(loss)
    if cls.needs or not hasattr(cls, "pair_weights"):
        raise ParameterError(f"the {cls.title} loss weighs no pairs of samples, so no range can be advised")
    if len(embeddings) > ROWS:
        chosen = torch.randperm(len(embeddings), generator=torch.Generator().manual_seed(seed))[:ROWS]
        embeddings, labels = embeddings[chosen], labels[chosen]
    built = cls(**dict(options))
    found = []
    for name, param in live_options(loss).items():
        if (advice := _for_option(built, name, param, embeddings, labels)) is not None:
            found.append(advice)
    return tuple(sorted(found, key=lambda one: min(one.shares) - max(one.shares)))


def _for_option(loss: Any, name: str, param: Param, embeddings: Tensor, labels: Tensor) -> Advice | None:
    now = float(getattr(loss, name))

    def share(value: float) -> float:
        setattr(loss, name, value)
        try:
            return float(loss.pair_weights(embeddings, labels).active_share)
        except ValueError:
            return float("nan")  # goes with no other option's value
        finally:
            setattr(loss, name, now)

    values = grid_of(param)
    shares = [share(value) for value in values]
    known = [one for one in shares if not math.isnan(one)]
    if not known or max(known) - min(known) < CHANGE:
        return None
    inside = widest_run([LEAST <= one <= MOST for one in shares])
    ends = None if inside is None else _ends(values, shares, inside, share)
    if inside is None and (crossing := _crossing(values, shares)) is not None:
        ends = _between(values[crossing], values[crossing + 1], share)
    return Advice(
        name, param.title.lower(), param.symbol, now, share(now), tuple(values), tuple(shares), ends
    )


def grid_of(param: Param) -> list[float]:
    """Values over the range worth exploring; logarithmic where it spans more than a factor of 50."""
    low, high = (float(end) for end in (param.explore or (0.0, 1.0))[:: len(param.explore or (0, 1)) - 1])
    spaced = np.geomspace if low > 0 and high / low >= WIDE else np.linspace
    found: list[float] = spaced(low, high, GRID).tolist()
    return found


def widest_run(inside: list[bool]) -> tuple[int, int] | None:
    """First and last place of the longest run of True, or None."""
    best: tuple[int, int] | None = None
    start = 0
    for at, good in enumerate([*inside, False]):
        if not good:
            if at > start and (best is None or at - start > best[1] - best[0] + 1):
                best = (start, at - 1)
            start = at + 1
    return best


def _ends(
    values: list[float], shares: list[float], run: tuple[int, int], share: Callable[[float], float]
) -> tuple[float, float]:
    """The ends of the range, refined by bisection towards the neighbours outside."""
    first, last = run
    low, high = values[first], values[last]
    if first > 0 and not math.isnan(shares[first - 1]):
        low = _edge(low, values[first - 1], share)
    if last < len(values) - 1 and not math.isnan(shares[last + 1]):
        high = _edge(high, values[last + 1], share)
    return low, high


def _edge(inside: float, outside: float, share: Callable[[float], float]) -> float:
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2
        if LEAST <= share(middle) <= MOST:
            inside = middle
        else:
            outside = middle
    return inside


def _crossing(values: list[float], shares: list[float]) -> int | None:
    """Where the share jumps over the whole range between two values of the grid, or None."""
    for at in range(len(values) - 1):
        if min(shares[at : at + 2]) < LEAST and max(shares[at : at + 2]) > MOST:
            return at
    return None


def _between(one: float, other: float, share: Callable[[float], float]) -> tuple[float, float] | None:
    """The range between two values of which one gives too few pairs and the other too many."""
    few, many = (one, other) if share(one) < LEAST else (other, one)
    for _ in range(3 * HALVINGS):
        middle = (few + many) / 2
        found = share(middle)
        if LEAST <= found <= MOST:
            ends = sorted((_edge(middle, few, share), _edge(middle, many, share)))
            return ends[0], ends[1]
        few, many = (middle, many) if found < LEAST else (few, middle)
    return None
