"""Losses, miners and reducers on random batches: finite, right, or refused in a sentence."""

import copy
import random
from typing import Any, NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor

import losslib.distances
import losslib.reducers
from losslib import catalog
from losslib.params import Param
from tests.contract.fuzz import random_value
from tests.contract.parts import DISTANCES, make_distance
from tests.contract.registered import SAMPLING, sizes
from tests.fuzz.holds import Draws, holds, said

LOSSES = sorted(catalog.losses())
MINERS = sorted(catalog.miners())
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
LABEL_DTYPES = (torch.int64, torch.int64, torch.int32, torch.uint8, torch.float32)
REDUCERS = ("MeanReducer", "SumReducer", "AvgNonZeroReducer", "DoNothingReducer", "ThresholdReducer")
EDGES = ["none", "none", "zero row", "row of ones", "equal rows", "opposite rows", "classes"]
HALF = (torch.float16, torch.bfloat16)
LARGE = 1000.0  # intermediate values of half precision may then exceed 65,504


class Form(NamedTuple):
    """What a batch is, but for its values."""

    rows: int
    size: int
    dtype: torch.dtype
    label_dtype: torch.dtype
    classes: int
    scale: float
    shift: float
    edge: str


FORMS = st.builds(
    Form,
    rows=st.integers(0, 10),
    size=st.integers(1, 6),
    dtype=st.sampled_from(DTYPES),
    label_dtype=st.sampled_from(LABEL_DTYPES),
    classes=st.integers(1, 6),
    scale=st.sampled_from([1.0, 1.0, 1e-3, 30.0, 0.0]),
    shift=st.sampled_from([0.0, 0.0, 3.0]),
    edge=st.sampled_from(
        ["none", "none", "zero row", "row of ones", "equal rows", "opposite rows", "classes"]
    ),
)


def batch(form: Form, draw: random.Random) -> tuple[Tensor, Tensor]:
    """Embeddings (B, D) and labels (B,) of that form."""
    count = form.rows
    generator = torch.Generator().manual_seed(draw.getrandbits(32))
    rows = torch.randn(count, form.size, generator=generator, dtype=torch.float64) * form.scale + form.shift
    labels = torch.tensor([draw.randrange(form.classes) for _ in range(count)], dtype=torch.int64)
    if count:
        place, other = draw.randrange(count), draw.randrange(count)
        if form.edge == "zero row":
            rows[place] = 0.0
        elif form.edge == "row of ones":
            rows[place] = 1.0
        elif form.edge == "equal rows":
            rows[place] = rows[other].clone()
        elif form.edge == "opposite rows":
            rows[place] = -rows[other]
        elif form.edge == "classes":  # each class collapsed to its label's value
            rows = labels.double()[:, None].expand(-1, form.size).clone()
    return rows.to(form.dtype), labels.to(form.label_dtype)


def drawn(params: dict[str, Param], draw: random.Random) -> dict[str, Any]:
    """Some options, from the ranges worth exploring and a little beyond.

    A temperature of 1e-288 is allowed, but its gradient exceeds every number; a tenth of the range is left.
    """
    found = {
        option: random_value(draw, param)
        for option, param in params.items()
        if option not in SAMPLING and draw.random() < 0.4
    }
    for option, value in found.items():
        low = (params[option].explore or (0,))[0]
        if isinstance(value, float) and isinstance(low, float) and low > 0:
            found[option] = max(value, low / 10)
    return found


def built(name: str, size: int, draw: random.Random) -> torch.nn.Module:
    """The loss with drawn options."""
    cls = catalog.get(name)
    needed = {**sizes(name), **({"embedding_size": size} if "embedding_size" in cls.required else {})}
    torch.default_generator.manual_seed(0)
    made: torch.nn.Module = cls(**needed, **drawn(cls.params, draw))
    return made


def value_of(loss: torch.nn.Module, rows: Tensor, labels: Tensor) -> Tensor:
    """The loss of the batch; of two views, the rows in turned order are the second."""
    views = "two views" in catalog.get(type(loss).__name__).needs
    value: Tensor = loss(rows, ref_emb=rows.detach().flip(0)) if views else loss(rows, labels)
    return value


@holds(weight=3, name=st.sampled_from(LOSSES), form=FORMS, options=st.integers(0, 2**32 - 1))
def a_loss_is_finite_with_a_finite_gradient_or_refuses(
    name: str, form: Form, options: int, draws: Draws
) -> None:
    """Half precision may overflow where its largest number is exceeded, nothing else may."""
    loss = None
    for draw in draws:
        try:
            loss = loss or built(name, form.size, random.Random(options))
            loss = loss.double() if form.dtype == torch.float64 else loss
            rows, labels = batch(form, draw)
            given = rows.requires_grad_()
            value = value_of(loss, given, labels)
        except (TypeError, ValueError) as error:
            said(error)
            if isinstance(error, TypeError) and "labels must be whole numbers" not in str(error):
                raise
            if loss is None:  # no batch is tried with options that are refused
                return
            continue
        assert value.ndim == 0
        if value.requires_grad:
            value.backward()
        slope = torch.zeros(1) if given.grad is None else given.grad
        if not bool(value.isfinite() & slope.isfinite().all()):
            overflows(loss, given, labels, value)


def overflows(loss: torch.nn.Module, rows: Tensor, labels: Tensor, value: Tensor) -> None:
    """A value or gradient that is not finite is one of half precision, and large in double precision."""
    assert rows.dtype in HALF, f"{loss} of {rows.tolist()}, {labels.tolist()}: value {value}, {rows.grad}"
    wide = rows.detach().double().requires_grad_()
    exact = value_of(copy.deepcopy(loss).double(), wide, labels)
    exact.backward()
    steepest = torch.zeros(1) if wide.grad is None else wide.grad
    largest = max(abs(float(exact)), float(steepest.abs().max()))
    assert largest > LARGE, (
        f"{loss} of {rows.tolist()}, {labels.tolist()}: {value}, in double precision {exact}, {largest}"
    )


@holds(weight=3, name=st.sampled_from(MINERS), form=FORMS, options=st.integers(0, 2**32 - 1))
def a_miner_takes_pairs_of_the_right_relation(name: str, form: Form, options: int, draws: Draws) -> None:
    """Positives share the label and are not the anchor itself, negatives differ; all places exist."""
    cls = catalog.miners()[name]
    miner = None
    for draw in draws:
        rows, labels = batch(form, draw)
        torch.default_generator.manual_seed(draw.getrandbits(32))
        try:
            miner = miner or cls(**drawn(cls.params, random.Random(options)))
            found = miner(rows, labels)
        except ValueError as error:
            said(error)
            if miner is None:
                return
            continue
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


@holds(weight=2, name=st.sampled_from(REDUCERS), count=st.integers(0, 12), digits=st.integers(-12, 3))
def a_reducer_is_its_own_sentence(name: str, count: int, digits: int, draws: Draws) -> None:
    """Each reducer against the plain definition, on listed terms, some of them zero or at a threshold."""
    options = {"low": -1.0, "high": 50.0} if name == "ThresholdReducer" else {}
    made = getattr(losslib.reducers, name)(**options)
    for draw in draws:
        drawn_here = [draw.uniform(-1, 1) * 10.0**digits for _ in range(count)]
        values = [draw.choice([one, one, one, 0.0, -1.0, 50.0]) for one in drawn_here]
        losses = torch.tensor(values, dtype=torch.float64)
        terms = {"loss": {"losses": losses, "indices": torch.arange(count), "reduction_type": "element"}}
        found = made(terms, torch.zeros(max(count, 1), 2, dtype=torch.float64), None)
        if name == "DoNothingReducer":
            assert found["loss"].losses is losses
            continue
        chosen = {
            "MeanReducer": values,
            "SumReducer": values,
            "AvgNonZeroReducer": [v for v in values if v > 0],
            "ThresholdReducer": [v for v in values if -1 < v < 50],
        }[name]
        total = sum(chosen)
        expected = total if name == "SumReducer" else total / len(chosen) if chosen else 0.0
        assert abs(float(found) - expected) <= 1e-9 * max(1.0, sum(map(abs, values))), values


@holds(weight=1, form=FORMS, which=st.sampled_from(DISTANCES))
def a_distance_is_symmetric_and_right_on_each_pair(form: Form, which: Any, draws: Draws) -> None:
    """The matrix of all pairs equals the distance of each pair alone, and its gradient is finite."""
    distance = make_distance(losslib.distances, which)
    for draw in draws:
        rows, _ = batch(form._replace(dtype=torch.float64), draw)
        if not len(rows):
            continue
        given = rows.requires_grad_()
        matrix = distance(given)
        matrix.sum().backward()
        assert given.grad is not None
        assert bool(given.grad.isfinite().all()), rows.tolist()
        place, other = draw.randrange(len(rows)), draw.randrange(len(rows))
        alone = distance(rows[place : place + 1].detach(), rows[other : other + 1].detach())
        near = 1e-6 * max(1.0, float(rows.detach().abs().max()) ** 2)
        assert abs(float(matrix[place, other]) - float(alone)) <= near, (which, rows.tolist(), place, other)
