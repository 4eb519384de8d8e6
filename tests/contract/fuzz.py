"""Random inputs and options for any registered loss, from one seed each."""

import random
from typing import Any

import torch
from torch import Tensor

from losslib.params import Boolean, Integer, Interval, Optional, Param
from tests.contract.inputs import Inputs
from tests.contract.parts import DISTANCES
from tests.contract.registered import SAMPLING, catalog
from tests.oracles import oracle

LABEL_DTYPES = (torch.int64, torch.int32, torch.uint8, torch.float32, torch.int16)


def random_rows(draw: random.Random, count: int, size: int) -> Tensor:
    generator = torch.Generator().manual_seed(draw.randrange(2**31))
    x = torch.randn(count, size, generator=generator, dtype=torch.float64)
    return x * draw.choice([1.0, 1.0, 0.1, 30.0]) + draw.choice([0.0, 0.0, 5.0])


def random_tuple(draw: random.Random, count: int, references: int, itself: bool) -> tuple[Tensor, ...]:
    """3 or 4 index tensors of any length, pairs repeated at times, of either integer type.

    Each pair is positive or negative, never both. `itself`: a row may be paired with its own number.
    """
    every = [(a, r) for a in range(count) for r in range(references) if itself or a != r]
    positives = [pair for pair in every if draw.random() < 0.5]
    negatives = [pair for pair in every if pair not in positives]
    some = [draw.choices(side, k=draw.randrange(6)) if side else [] for side in (positives, negatives)]
    if draw.random() < 0.5:
        parts = list(zip(*some[0], strict=True)) or [(), ()]
        parts += list(zip(*some[1], strict=True)) or [(), ()]
    else:
        triplets = [(a, p, n) for a, p in some[0] for b, n in negatives if a == b]
        chosen = draw.choices(triplets, k=draw.randrange(6)) if triplets else []
        parts = list(zip(*chosen, strict=True)) or [(), (), ()]
    kind = draw.choice([torch.int64, torch.int32])
    return tuple(torch.tensor(part, dtype=kind) for part in parts)


def random_inputs(draw: random.Random) -> Inputs:
    """Labels, or a tuple, or both; a reference or none."""
    count, size = draw.randrange(0, 9), draw.randrange(2, 6)
    dtype = draw.choice(LABEL_DTYPES)
    classes = draw.randrange(1, 5)

    def labels(number: int) -> Tensor:
        return torch.tensor([draw.randrange(classes) for _ in range(number)], dtype=torch.int64).to(dtype)

    x, y = random_rows(draw, count, size), labels(count)
    if draw.random() < 0.4:
        others = draw.randrange(1, 9)
        r, ry = random_rows(draw, others, size), labels(others)
    else:
        others, r, ry = count, None, None
    listed = random_tuple(draw, count, others, r is not None) if count and draw.random() < 0.4 else None
    if listed is not None and draw.random() < 0.5:
        return Inputs(x, None, listed, r)
    return Inputs(x, y, listed, r, ry)


def random_value(draw: random.Random, param: Param) -> Any:
    """A value from the range worth exploring, or a little beyond it."""
    domain = param.valid
    if param.explore is None:
        return param.default
    if isinstance(domain, Boolean):
        return draw.random() < 0.5
    low, high = param.explore[0], param.explore[-1]
    if isinstance(domain, Optional):
        return None if draw.random() < 0.5 else draw.uniform(low, high)
    if isinstance(domain, Interval):
        value = draw.uniform(low - 0.2 * (high - low), high + 0.2 * (high - low))
        return value if domain.contains(value) else draw.uniform(low, high)
    if isinstance(domain, Integer):
        return draw.randint(low, high)
    return draw.choice(param.explore)


def random_case(name: str, seed: int) -> tuple[Inputs, dict[str, Any], Any]:
    """Inputs, options and a distance (None: the loss's own)."""
    draw = random.Random(f"{name}-{seed}")
    params = catalog.get(name).params
    options = {
        option: random_value(draw, param)
        for option, param in params.items()
        if option not in SAMPLING and draw.random() < 0.5
    }
    given = random_inputs(draw)
    allowed = [spec for spec in DISTANCES if oracle(name).allows(spec)]
    return given, options, draw.choice([None, *allowed])
