"""Every registered loss equals its brute-force oracle, in value and gradient, on every kind of input."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.contract.inputs import DEGENERATE, KINDS, Inputs, value_and_gradients
from tests.contract.parts import DISTANCES, REDUCERS
from tests.contract.registered import (
    EVERY_LOSS,
    NAMES,
    SAMPLING,
    build,
    label_of,
    needs_labels,
    own_options,
    variants,
)
from tests.oracles import oracle, oracles

EVERY_KIND = {**KINDS, **DEGENERATE}


def assert_equals_oracle(
    name: str, given: Inputs, options: dict[str, Any], distance: Any = None, reducer: Any = None
) -> None:
    """Value within 1e-9 and gradient within 1e-7 of the oracle."""

    def expected_call(**arguments: Any) -> Tensor:
        return oracle(name).value(distance=distance, reducer=reducer, options=options, **arguments)

    value, gradients = value_and_gradients(build(name, options, distance, reducer), given)
    expected, slopes = value_and_gradients(expected_call, given)
    assert value.dtype == torch.float64
    torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-11)
    for found, slope in zip(gradients, slopes, strict=True):
        scale = float(slope.abs().max()) if slope.numel() else 0.0
        torch.testing.assert_close(found, slope, rtol=1e-7, atol=1e-7 * max(scale, 1e-3))


def away_from_ties(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Thresholds moved a little: a zero row is 1 from every unit row, and 0 more than another one.

    Where a threshold is met exactly, rounding decides whether the pair counts.
    """
    every = {**own_options(oracle(name)), **options}
    thresholds = {k: v for k, v in every.items() if k.endswith("margin") or k == "beta"}
    return {**options, **{k: v + 0.0137 for k, v in thresholds.items()}}


def test_every_registered_loss_has_an_oracle() -> None:
    assert set(EVERY_LOSS) - set(oracles()) == set()


@pytest.mark.parametrize("name", NAMES)
def test_the_defaults_are_the_document_s(name: str) -> None:
    made = build(name)
    expected = own_options(oracle(name))
    assert {option: getattr(made, option) for option in expected if option != "beta"} == {
        option: value for option, value in expected.items() if option != "beta"
    }
    assert set(made.params) - set(expected) <= SAMPLING
    assert type(made.distance).__name__ == oracle(name).distance[0]
    if oracle(name).reducer is not None:
        assert type(made.reducer).__name__ == oracle(name).reducer[0]


CASES = [
    pytest.param(name, options, kind, id=f"{name}-{label_of(options)}-{kind}")
    for name in NAMES
    for options in variants(name)
    for kind in EVERY_KIND
    if not (needs_labels(options) and EVERY_KIND[kind]().labels is None)
]


@pytest.mark.parametrize(("name", "options", "kind"), CASES)
def test_each_option_at_its_ends_on_every_kind_of_input(
    name: str, options: dict[str, Any], kind: str
) -> None:
    if kind == "zero_rows":
        options = away_from_ties(name, options)
    if kind == "coincident" and options.get("margin_plus") == 1.0:
        options = {"margin_plus": 1.01}  # the cosine of equal rows is 1 up to rounding
    assert_equals_oracle(name, EVERY_KIND[kind](), options)


DISTANCE_CASES = [
    pytest.param(name, distance, kind, id=f"{name}-{label_of(distance)}-{kind}")
    for name in NAMES
    for distance in DISTANCES
    if oracle(name).allows(distance)
    for kind in ("balanced", "reference", "pair_tuple")
]


@pytest.mark.parametrize(("name", "distance", "kind"), DISTANCE_CASES)
def test_each_distance(name: str, distance: Any, kind: str) -> None:
    assert_equals_oracle(name, EVERY_KIND[kind](), {}, distance=distance)


REDUCER_CASES = [
    pytest.param(name, reducer, kind, id=f"{name}-{label_of(reducer)}-{kind}")
    for name in NAMES
    if oracle(name).reducer not in (None, ("DivisorReducer", {}))
    for reducer in REDUCERS
    for kind in ("unbalanced", "reference", "triplet_tuple", "one_class")
]


@pytest.mark.parametrize(("name", "reducer", "kind"), REDUCER_CASES)
def test_each_reducer(name: str, reducer: Any, kind: str) -> None:
    assert_equals_oracle(name, EVERY_KIND[kind](), {}, reducer=reducer)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [101, 102, 103])
def test_random_batches_of_random_classes(name: str, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    count = int(torch.randint(2, 12, (), generator=generator))
    x = torch.randn(count, 3, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 4, (count,), generator=generator)
    assert_equals_oracle(name, Inputs(x, labels), {})


@pytest.mark.parametrize("name", NAMES)
def test_labels_beyond_the_precision_of_floats_are_told_apart(name: str) -> None:
    big = 2**53
    labels = torch.tensor([big, big + 1, big, big + 1, big + 2, big + 2])
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
    assert_equals_oracle(name, Inputs(x, labels), {})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int32, torch.float32])
def test_labels_of_any_dtype(name: str, dtype: torch.dtype) -> None:
    labels = torch.tensor([0, 1, 1, 0, 1])
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    assert_equals_oracle(name, Inputs(x, labels.to(dtype)), {})
