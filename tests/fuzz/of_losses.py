"""Losses, miners and reducers on random batches: finite, right, or refused in a sentence."""

from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from losslib import catalog, reducers
from losslib.params import Param
from tests.contract.fuzz import random_value
from tests.contract.registered import SAMPLING, sizes
from tests.fuzz.holds import holds, said

LOSSES = sorted(catalog.losses())
MINERS = sorted(catalog.miners())
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
REDUCERS = ("MeanReducer", "SumReducer", "AvgNonZeroReducer", "DoNothingReducer", "ThresholdReducer")
HALF = (torch.float16, torch.bfloat16)
LARGE = 1000.0  # intermediate values of half precision may then exceed 65,504


@st.composite
def batches(draw: Any) -> tuple[Tensor, Tensor]:
    """Embeddings (B, D) of any size and precision, some rows equal or zero, and labels (B,)."""
    count, size = draw(st.integers(0, 10)), draw(st.integers(1, 6))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    rows = torch.randn(count, size, generator=generator, dtype=torch.float64)
    rows = rows * draw(st.sampled_from([1.0, 1.0, 1e-3, 30.0])) + draw(st.sampled_from([0.0, 0.0, 3.0]))
    if count and draw(st.integers(0, 2)) == 0:
        rows[draw(st.integers(0, count - 1))] = draw(st.sampled_from([0.0, 1.0]))
    if count > 1 and draw(st.integers(0, 2)) == 0:
        rows[draw(st.integers(0, count - 1))] = rows[draw(st.integers(0, count - 1))].clone()
    labels = torch.tensor([draw(st.integers(0, 3)) for _ in range(count)], dtype=torch.int64)
    return rows.to(draw(st.sampled_from(DTYPES))), labels


def drawn(params: dict[str, Param], random: Any) -> dict[str, Any]:
    """Some options, from the ranges worth exploring and a little beyond.

    A temperature of 1e-288 is allowed, but its gradient exceeds every number; a tenth of the range is left.
    """
    found = {
        option: random_value(random, param)
        for option, param in params.items()
        if option not in SAMPLING and random.random() < 0.4
    }
    for option, value in found.items():
        low = (params[option].explore or (0,))[0]
        if isinstance(value, float) and isinstance(low, float) and low > 0:
            found[option] = max(value, low / 10)
    return found


def built(name: str, size: int, random: Any) -> torch.nn.Module:
    """The loss with drawn options."""
    cls = catalog.get(name)
    needed = {**sizes(name), **({"embedding_size": size} if "embedding_size" in cls.required else {})}
    made: torch.nn.Module = cls(**needed, **drawn(cls.params, random))
    return made


@holds(weight=3, name=st.sampled_from(LOSSES), batch=batches(), random=st.randoms(use_true_random=False))
def a_loss_is_finite_with_a_finite_gradient_or_refuses(
    name: str, batch: tuple[Tensor, Tensor], random: Any
) -> None:
    """Half precision may overflow where its largest number is exceeded, nothing else may."""
    rows, labels = batch
    torch.manual_seed(0)
    try:
        loss = built(name, rows.shape[1], random)
        if rows.dtype == torch.float64:
            loss = loss.double()
        given = rows.clone().requires_grad_()
        views = "two views" in catalog.get(name).needs
        value = loss(given, ref_emb=rows.flip(0)) if views else loss(given, labels)
    except ValueError as error:
        said(error)
        return
    assert value.ndim == 0
    if value.requires_grad:
        value.backward()
    slope = torch.zeros(1) if given.grad is None else given.grad
    if bool(value.isfinite() & slope.isfinite().all()):
        return
    assert rows.dtype in HALF, f"{loss}: value {value}, gradient {slope}"
    wide = rows.double().requires_grad_()
    loss = loss.double()
    exact = loss(wide, ref_emb=wide.detach().flip(0)) if views else loss(wide, labels)
    exact.backward()
    steepest = torch.zeros(1) if wide.grad is None else wide.grad
    largest = max(abs(float(exact)), float(steepest.abs().max()))
    assert largest > LARGE, f"{loss}: value {value}, in double precision {exact}, gradient {largest}"


@holds(weight=3, name=st.sampled_from(MINERS), batch=batches(), random=st.randoms(use_true_random=False))
def a_miner_takes_pairs_of_the_right_relation(name: str, batch: tuple[Tensor, Tensor], random: Any) -> None:
    """Positives share the label and are not the anchor itself, negatives differ; all places exist."""
    rows, labels = batch
    cls = catalog.miners()[name]
    torch.manual_seed(0)
    try:
        options = drawn(cls.params, random)
        found = cls(**options)(rows, labels)
    except ValueError as error:
        said(error)
        return
    if len(found) == 3:
        anchors, positives, negatives = found
        first, second = anchors, anchors
    else:
        first, positives, second, negatives = found
    assert len(first) == len(positives)
    assert len(second) == len(negatives)
    assert bool((labels[first] == labels[positives]).all())
    assert bool((first != positives).all())
    assert bool((labels[second] != labels[negatives]).all())


@holds(weight=2, values=st.lists(st.floats(-100, 100, width=32), max_size=12), name=st.sampled_from(REDUCERS))
def a_reducer_is_its_own_sentence(values: list[float], name: str) -> None:
    """Each reducer against the plain definition, on listed terms."""
    losses = torch.tensor(values, dtype=torch.float64)
    made = (
        getattr(reducers, name)(low=-1.0, high=50.0)
        if name == "ThresholdReducer"
        else getattr(reducers, name)()
    )
    index = torch.arange(len(values))
    terms = {"loss": {"losses": losses, "indices": index, "reduction_type": "element"}}
    found = made(terms, torch.zeros(max(len(values), 1), 2, dtype=torch.float64), None)
    if name == "DoNothingReducer":
        return
    chosen = {
        "MeanReducer": values,
        "SumReducer": values,
        "AvgNonZeroReducer": [v for v in values if v > 0],
        "ThresholdReducer": [v for v in values if -1 < v < 50],
    }[name]
    total = sum(chosen)
    expected = total if name == "SumReducer" else total / len(chosen) if chosen else 0.0
    assert abs(float(found) - expected) <= 1e-9 * max(1.0, sum(map(abs, values)))
