"""Unreduced terms and pair weights of every registered loss, entry by entry against the oracles."""

from typing import Any

import pytest
import torch
from torch import Tensor

from losslib import reducers
from losslib.regularizers import LpRegularizer
from tests.contract.inputs import DEGENERATE, KINDS, balanced
from tests.contract.registered import NAMES, build, catalog, label_of, needs_labels
from tests.oracles import oracle

EVERY_KIND = {**KINDS, **DEGENERATE}
CASES = [
    pytest.param(name, options, kind, id=f"{name}-{label_of(options)}-{kind}")
    for name in NAMES
    for options in ({}, *oracle(name).more)
    for kind in EVERY_KIND
    if kind != "zero_rows"  # meets margins exactly: tested elsewhere, away from the ties
    if not (needs_labels(options) and EVERY_KIND[kind]().labels is None)
]


def places_of(indices: Any) -> list[Any]:
    """Index of each value as an int or a tuple of ints."""
    if isinstance(indices, tuple):
        return list(zip(*(part.tolist() for part in indices), strict=True))
    return indices.tolist()


def table(indices: list[Any], values: list[float]) -> list[tuple[Any, float]]:
    return sorted(zip(indices, values, strict=True), key=lambda entry: (str(entry[0]), entry[1]))


@pytest.mark.parametrize(("name", "options", "kind"), CASES)
def test_the_terms_written_out_are_those_of_the_equation(
    name: str, options: dict[str, Any], kind: str
) -> None:
    given = EVERY_KIND[kind]()
    terms = build(name, options).loss_terms(**given.arguments())
    expected = oracle(name).terms(options=options, **given.arguments())
    assert list(terms) == list(expected)
    for term, wanted in zip(terms.values(), expected.values(), strict=True):
        values = [float(v) for v in wanted.values]
        if wanted.reduced:
            assert term["indices"] is None
            assert float(term["losses"].detach()) == pytest.approx(values[0], rel=1e-9, abs=1e-12)
            continue
        got = table(places_of(term.indices), term.losses.tolist())
        want = table(wanted.indices, values)
        assert [place for place, _ in got] == [place for place, _ in want]
        assert [value for _, value in got] == pytest.approx([v for _, v in want], rel=1e-9, abs=1e-11)
        assert (term.divisor is None) == (wanted.divisor is None)
        if wanted.divisor is not None:
            assert float(term["divisor"]) == wanted.divisor


def weights_of(name: str, options: dict[str, Any], given: Any) -> tuple[Tensor, Any]:
    """Derivative of the oracle by each distance, and its batch."""
    batch = oracle(name).batch(**given.arguments())
    batch.values = batch.values.detach().requires_grad_()
    total = oracle(name).reduced(batch, options=options)
    if not total.requires_grad:
        return torch.zeros_like(batch.values), batch
    (weights,) = torch.autograd.grad(total, batch.values, allow_unused=True, materialize_grads=True)
    return weights, batch


# a swapped triplet also depends on distances between references, which have no place in the matrix
WEIGHED = [case for case in CASES if not case.values[1].get("swap")]


@pytest.mark.parametrize(("name", "options", "kind"), WEIGHED)
def test_pair_weights_are_the_derivative_by_each_distance(
    name: str, options: dict[str, Any], kind: str
) -> None:
    given = EVERY_KIND[kind]()
    found = build(name, options).pair_weights(**given.arguments())
    expected, batch = weights_of(name, options, given)
    torch.testing.assert_close(found.values, batch.values.detach(), rtol=1e-9, atol=1e-9)
    scale = float(expected.abs().max()) if expected.numel() else 0.0
    torch.testing.assert_close(found.weights, expected, rtol=1e-7, atol=1e-8 * max(scale, 1e-3))
    for mask, pairs in ((found.positive, batch.positives), (found.negative, batch.negatives)):
        assert mask.dtype == torch.bool
        assert set(map(tuple, mask.nonzero().tolist())) == set(pairs)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["balanced", "unbalanced", "reference", "one_row", "no_row"])
def test_active_pairs_follow_the_loss_s_kind_of_activity(name: str, kind: str) -> None:
    given = EVERY_KIND[kind]()
    found = build(name).pair_weights(**given.arguments())
    weights, batch = weights_of(name, {}, given)
    pairs = set(batch.positives) | set(batch.negatives)
    active = set()
    for a, other in pairs:
        size = abs(float(weights[a, other]))
        largest = float(weights[a].abs().max())
        limit = 0.0 if catalog.get(name).activity == "hinge" else 0.01 * largest
        if size > limit:
            active.add((a, other))
    got = {pair for pair in map(tuple, found.active.nonzero().tolist()) if pair in pairs}
    assert got == active
    share = float(found.active_share)
    assert share == pytest.approx(len(active) / len(pairs)) if pairs else share != share  # noqa: PLR0124


@pytest.mark.parametrize("name", NAMES)
def test_a_regulariser_is_added_after_the_reduction(name: str) -> None:
    given = balanced()
    plain = build(name)(**given.arguments())
    loss = catalog.get(name)(embedding_regularizer=LpRegularizer(), embedding_reg_weight=0.3)
    norms = [float((row**2).sum()) ** 0.5 for row in given.embeddings]
    expected = float(plain) + 0.3 * sum(norms) / len(norms)
    assert float(loss.double()(**given.arguments())) == pytest.approx(expected, rel=1e-7)
    assert "embedding_reg_loss" in loss.loss_terms(**given.arguments())


@pytest.mark.parametrize("name", [name for name in NAMES if oracle(name).reducer is not None])
def test_do_nothing_returns_the_terms(name: str) -> None:
    given = balanced()
    terms = catalog.get(name)(reducer=reducers.DoNothingReducer()).double()(**given.arguments())
    expected = oracle(name).terms(**given.arguments())
    assert list(terms) == list(expected)
    for term, wanted in zip(terms.values(), expected.values(), strict=True):
        assert float(term["losses"].sum()) == pytest.approx(float(sum(wanted.values)), rel=1e-6)


@pytest.mark.parametrize("options", [{}, {"num_classes": 6}], ids=label_of)
def test_a_learned_boundary_gets_the_equation_s_gradient(options: dict[str, Any]) -> None:
    given = balanced()
    settings = {"nu": 0.3, "learn_beta": True, **options}
    loss = build("MarginLoss", settings)
    loss(**given.arguments()).backward()
    beta = torch.full((options.get("num_classes", 1),), 1.2, dtype=torch.float64, requires_grad=True)
    oracle("MarginLoss").value(**given.arguments(), options={**settings, "beta": beta}).backward()
    torch.testing.assert_close(loss.beta.grad, beta.grad, rtol=1e-9, atol=1e-12)
