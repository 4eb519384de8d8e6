"""The manifold loss: against its oracle, a series of walks, and against pytorch-metric-learning."""

import math
from typing import Any

import pytest
import torch
from pytorch_metric_learning import losses as theirs
from torch import Tensor

from losslib.check import audit
from losslib.losses import ManifoldLoss
from tests.contract.inputs import balanced, rows, unbalanced, value_and_gradients, zero_rows
from tests.oracles import oracle

PROXIES, SIZE = 7, 4
OPTIONS: list[dict[str, Any]] = [
    {},
    {"alpha": 0.3},
    {"alpha": 0.95},
    {"margin": 0.0},
    {"margin": 0.01},
    {"lambda_c": 0.0},
    {"lambda_c": 3.0},
    {"lambda_c": math.inf},
]


def built(proxies: Tensor, **options: Any) -> ManifoldLoss:
    made = ManifoldLoss(embedding_size=SIZE, num_proxies=len(proxies), **options).double()
    with torch.no_grad():
        made.proxies.copy_(proxies)
    return made


@pytest.mark.parametrize("given", [balanced, unbalanced, zero_rows])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_value_and_gradients_are_those_of_summed_walks(given: Any, options: dict[str, Any]) -> None:
    proxies = rows(PROXIES, 300).requires_grad_()
    loss = built(proxies, **options)
    value, gradients = value_and_gradients(loss, given())

    def expected_call(**arguments: Any) -> Tensor:
        return oracle("ManifoldLoss").value(**arguments, options={**options, "proxies": proxies})

    expected, slopes = value_and_gradients(expected_call, given())
    torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(gradients[0], slopes[0], rtol=1e-7, atol=1e-10)
    loss(**given().arguments()).backward()
    (slope,) = torch.autograd.grad(expected_call(**given().arguments()), proxies)
    torch.testing.assert_close(loss.proxies.grad, slope, rtol=1e-7, atol=1e-10)


def test_it_equals_pml_where_meta_classes_are_given() -> None:
    given, proxies = balanced(), rows(PROXIES, 301)
    other = theirs.ManifoldLoss(l=SIZE, K=PROXIES, lambdaC=2.0, alpha=0.7, margin=0.003).double()
    other.proxies.data = proxies.clone()
    expected = other(given.embeddings, indices_tuple=given.labels)
    got = built(proxies, lambda_c=2.0, alpha=0.7, margin=0.003)(given.embeddings, given.labels)
    torch.testing.assert_close(got, expected.double(), rtol=1e-5, atol=0)  # they invert in single precision


def test_it_passes_the_audit() -> None:
    report = audit(ManifoldLoss(embedding_size=8))
    assert report.failed == (), str(report)


def test_references_and_tuples_are_refused_with_the_reason() -> None:
    loss, x, labels = built(rows(PROXIES, 302)), rows(5, 1), torch.tensor([0, 1, 2, 1, 0])
    with pytest.raises(ValueError, match="ManifoldLoss: takes no ref_emb"):
        loss(x, labels, ref_emb=x, ref_labels=labels)
    index = torch.tensor([0])
    with pytest.raises(ValueError, match="ManifoldLoss: takes no indices_tuple"):
        loss(x, labels, (index, index, index))
    with pytest.raises(ValueError, match=r"labels must lie in 0\.\.6"):
        loss(x, labels + 5)
    with pytest.raises(ValueError, match=r"4 columns \(embedding_size\), got 3"):
        loss(x[:, :3], labels)
    with pytest.raises(TypeError, match="reducer"):
        ManifoldLoss(embedding_size=SIZE, reducer=None)


def test_one_proxy_leaves_nothing_to_compare() -> None:
    value = built(rows(1, 303))(rows(5, 1), torch.zeros(5, dtype=torch.int64))
    assert float(value.detach()) == 0.0
