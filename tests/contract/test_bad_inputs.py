"""Every registered loss refuses inputs that do not fit, in one line that names the loss and the argument."""

from typing import Any

import pytest
import torch

from tests.contract.registered import NAMES, catalog

X = torch.randn(6, 4, generator=torch.Generator().manual_seed(1))
Y = torch.tensor([0, 1, 0, 1, 2, 2])
R, RY = X[:5].clone(), torch.tensor([0, 1, 2, 2, 1])
I = torch.tensor([0, 1])  # noqa: E741 - indices
FAR, LONG = torch.tensor([0, 6]), torch.tensor([0, 1, 2])

# what is wrong: the arguments, a word of the message
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "one row as a vector": ({"embeddings": X[0], "labels": Y}, "embeddings"),
    "three dimensions": ({"embeddings": X[None], "labels": Y}, "embeddings"),
    "no columns": ({"embeddings": X[:, :0], "labels": Y}, "embeddings"),
    "whole numbers as embeddings": ({"embeddings": X.long(), "labels": Y}, "embeddings"),
    "complex embeddings": ({"embeddings": X.to(torch.complex64), "labels": Y}, "embeddings"),
    "a list of embeddings": ({"embeddings": X.tolist(), "labels": Y}, "embeddings"),
    "no embeddings": ({"embeddings": None, "labels": Y}, "embeddings"),
    "neither labels nor a tuple": ({"embeddings": X}, "labels"),
    "a column of labels": ({"embeddings": X, "labels": Y[:, None]}, "labels"),
    "one-hot labels": ({"embeddings": X, "labels": torch.nn.functional.one_hot(Y)}, "labels"),
    "one label for all": ({"embeddings": X, "labels": torch.tensor(0)}, "labels"),
    "a label that would broadcast": ({"embeddings": X, "labels": Y[:1]}, "labels"),
    "too many labels": ({"embeddings": X, "labels": torch.cat([Y, Y])}, "labels"),
    "a list of labels": ({"embeddings": X, "labels": Y.tolist()}, "labels"),
    "complex labels": ({"embeddings": X, "labels": Y.to(torch.complex64)}, "labels"),
    "two index tensors": ({"embeddings": X, "indices_tuple": (I, I)}, "indices_tuple"),
    "five index tensors": ({"embeddings": X, "indices_tuple": (I,) * 5}, "indices_tuple"),
    "one index tensor": ({"embeddings": X, "indices_tuple": I}, "indices_tuple"),
    "lists of indices": ({"embeddings": X, "indices_tuple": ([0], [1], [2])}, "indices_tuple"),
    "float indices": ({"embeddings": X, "indices_tuple": (I.float(), I, I)}, "indices_tuple"),
    "boolean indices": ({"embeddings": X, "indices_tuple": (I.bool(), I, I)}, "indices_tuple"),
    "small integers as indices": (
        {"embeddings": X, "indices_tuple": (I.to(torch.uint8), I, I)},
        "indices_tuple",
    ),
    "an anchor out of range": ({"embeddings": X, "indices_tuple": (FAR, I, I)}, "anchors"),
    "a positive out of range": ({"embeddings": X, "indices_tuple": (I, FAR, I)}, "positives"),
    "a negative out of range": ({"embeddings": X, "indices_tuple": (I, I, I, -I)}, "negatives"),
    "triplets of unequal length": ({"embeddings": X, "indices_tuple": (I, I, LONG)}, "indices_tuple"),
    "pairs of unequal length": ({"embeddings": X, "indices_tuple": (I, LONG, I, I)}, "indices_tuple"),
    "two-dimensional indices": ({"embeddings": X, "indices_tuple": (I[None], I, I)}, "indices_tuple"),
    "an index beyond the reference": (
        {"embeddings": X, "indices_tuple": (I, torch.tensor([0, 5]), I), "ref_emb": R},
        "positives",
    ),
    "a reference without labels": ({"embeddings": X, "labels": Y, "ref_emb": R}, "ref_labels"),
    "labels of no reference": ({"embeddings": X, "labels": Y, "ref_labels": RY}, "ref_emb"),
    "a reference of another width": (
        {"embeddings": X, "labels": Y, "ref_emb": R[:, :3], "ref_labels": RY},
        "ref_emb",
    ),
    "a reference of another dtype": (
        {"embeddings": X, "labels": Y, "ref_emb": R.double(), "ref_labels": RY},
        "ref_emb",
    ),
    "a reference of whole numbers": (
        {"embeddings": X, "labels": Y, "ref_emb": R.long(), "ref_labels": RY},
        "ref_emb",
    ),
    "too few labels of the reference": (
        {"embeddings": X, "labels": Y, "ref_emb": R, "ref_labels": RY[:4]},
        "ref_labels",
    ),
    "whole labels against floating ones": (
        {"embeddings": X, "labels": Y, "ref_emb": R, "ref_labels": RY.float()},
        "ref_labels",
    ),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wrong", BAD)
def test_what_does_not_fit_is_refused_in_one_line(name: str, wrong: str) -> None:
    arguments, word = BAD[wrong]
    for call in (catalog.get(name)(), catalog.get(name)().loss_terms, catalog.get(name)().pair_weights):
        with pytest.raises((ValueError, TypeError)) as caught:
            call(**arguments)
        message = str(caught.value)
        assert message.startswith(name), message
        assert word in message
        assert "\n" not in message


@pytest.mark.parametrize("name", NAMES)
def test_the_error_says_what_was_expected_and_what_came(name: str) -> None:
    with pytest.raises(ValueError, match=r"labels must have shape \(6,\).*got \(12,\)"):
        catalog.get(name)()(X, torch.cat([Y, Y]))
    with pytest.raises(ValueError, match=r"positives must lie in 0\.\.5.*6"):
        catalog.get(name)()(X, None, (I, FAR, I))


@pytest.mark.parametrize("name", NAMES)
def test_tuples_come_as_tuple_list_or_named_and_with_either_integer(name: str) -> None:
    from losslib.types import PairIndices, TripletIndices

    loss = catalog.get(name)()
    a, p, n = torch.tensor([0, 1]), torch.tensor([2, 3]), torch.tensor([1, 4])
    triplets = [loss(X, None, made) for made in ((a, p, n), [a, p, n], TripletIndices(a, p, n))]
    triplets.append(loss(X, None, tuple(part.int() for part in (a, p, n))))
    pairs = [loss(X, None, made) for made in ((a, p, a, n), [a, p, a, n], PairIndices(a, p, a, n))]
    for value in (*triplets, *pairs):
        assert float(value) == float(triplets[0])
    assert float(triplets[0]) != float(loss(X, Y))


@pytest.mark.parametrize("name", NAMES)
def test_rows_need_not_be_contiguous(name: str) -> None:
    loss = catalog.get(name)()
    turned = X.t().contiguous().t()
    assert not turned.is_contiguous()
    assert float(loss(turned, Y)) == pytest.approx(float(loss(X, Y)), rel=1e-6)
    every_second = X.repeat_interleave(2, dim=0)[::2]
    assert float(loss(every_second, Y.repeat_interleave(2)[::2])) == pytest.approx(
        float(loss(X, Y)), rel=1e-6
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_value_without_a_graph(name: str) -> None:
    loss = catalog.get(name)()
    with torch.no_grad():
        plain = loss(X.clone().requires_grad_(), Y)
    with torch.inference_mode():
        fast = loss(X, Y)
        weights = loss.pair_weights(X.clone(), Y).weights
    torch.testing.assert_close(weights, loss.pair_weights(X, Y).weights)
    assert not plain.requires_grad
    assert float(plain) == float(fast) == float(loss(X, Y))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", NAMES)
def test_one_graph_compiles_without_a_break(name: str) -> None:
    loss = catalog.get(name)()
    torch.compiler.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    found = []
    for call in (compiled, loss):
        leaf = X.clone().requires_grad_()
        value = call(leaf, Y)
        value.backward()
        found.append((float(value.detach()), leaf.grad))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)  # logits of 64 in single precision
    torch.testing.assert_close(found[0][1], found[1][1], rtol=1e-5, atol=1e-7)
