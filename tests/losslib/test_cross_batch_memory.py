"""The memory against a ring kept as a plain list; its miners, losses and refusals."""

from typing import Any

import pytest
import torch
from pytorch_metric_learning import losses as pml
from torch import Tensor

from losslib import catalog, miners
from losslib.base import PairLoss
from losslib.errors import ParameterError, ShapeError
from losslib.losses import (
    ContrastiveLoss,
    CrossBatchMemory,
    MultipleLosses,
    NTXentLoss,
    TripletMarginLoss,
)
from losslib.types import PairIndices, TripletIndices
from tests.losslib.remembering import Ring, batches, expected_values

NAMES = [
    "ContrastiveLoss",
    "TripletMarginLoss",
    "NTXentLoss",
    "SupConLoss",
    "MarginLoss",
    "MultiSimilarityLoss",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [7, 8, 100])
def test_equals_a_ring_kept_as_a_list(name: str, size: int) -> None:
    given = batches()
    memory = CrossBatchMemory(catalog.get(name)(), 4, size)
    expected = expected_values(name, size, given)
    assert float(expected[-1]) > 0
    for (x, y), value in zip(given, expected, strict=True):
        leaf = x.clone().requires_grad_()
        found = memory(leaf, y)
        torch.testing.assert_close(found, value, rtol=1e-9, atol=1e-12)
        found.backward()
        assert leaf.grad is not None
        assert bool(torch.isfinite(leaf.grad).all())


def test_remembered_rows_are_constants_and_the_gradient_is_the_anchors() -> None:
    (x, y), (u, v) = batches(1, [4, 3])
    memory = CrossBatchMemory(ContrastiveLoss(), 4, 16)
    memory(x, y)
    leaf = u.clone().requires_grad_()
    memory(leaf, v).backward()
    other = u.clone().requires_grad_()
    places = torch.arange(3)
    references, classes = torch.cat([x, u]), torch.cat([y, v])
    positive = v.unsqueeze(1) == classes
    positive[places, 4 + places] = False
    pairs = PairIndices(*positive.nonzero(as_tuple=True), *(v.unsqueeze(1) != classes).nonzero(as_tuple=True))
    ContrastiveLoss()(other, v, pairs, references).backward()
    torch.testing.assert_close(leaf.grad, other.grad)


def test_two_losses_may_wait_for_their_backward() -> None:
    given = batches(2, [5, 5])
    memory = CrossBatchMemory(NTXentLoss(), 4, 6)
    leaves = [x.requires_grad_() for x, _ in given]
    total = sum(memory(x, y) for x, (_, y) in zip(leaves, given, strict=True))
    total.backward()  # the second batch must not have changed what the first one saved
    assert all(bool(torch.isfinite(x.grad).all()) for x in leaves)


@pytest.mark.parametrize(
    "name",
    [n for n, c in catalog.losses().items() if issubclass(c, PairLoss) and not c.required],
)
def test_masks_and_index_tuples_agree(name: str) -> None:
    """Without a miner most losses get masks; a miner that takes every pair must change nothing."""

    def every(x: Tensor, y: Tensor, r: Tensor, ry: Tensor) -> PairIndices:
        same = y.unsqueeze(1) == ry
        return PairIndices(*same.nonzero(as_tuple=True), *(~same).nonzero(as_tuple=True))

    plain = CrossBatchMemory(catalog.get(name)().double(), 4, 9)
    mined = CrossBatchMemory(catalog.get(name)().double(), 4, 9, miner=every)
    for x, y in batches(3):
        torch.testing.assert_close(plain(x, y), mined(x, y), rtol=1e-9, atol=1e-12)


def test_equals_pml_while_the_ring_is_not_full() -> None:
    ours = CrossBatchMemory(NTXentLoss(temperature=0.5), 4, 64)
    theirs = pml.CrossBatchMemory(pml.NTXentLoss(temperature=0.5), 4, 64)
    for x, y in batches(4, [4, 4, 6]):
        torch.testing.assert_close(ours(x, y), theirs(x, y), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["MultiSimilarityMiner", "BatchEasyHardMiner", "TripletMarginMiner"])
def test_a_miner_of_the_library_never_takes_the_own_copy(name: str) -> None:
    memory = CrossBatchMemory(TripletMarginLoss(), 4, 7, miner=catalog.miners()[name]())
    ring = Ring(7)
    for step, (x, y) in enumerate(batches(5)):
        terms = memory.loss_terms(x, y)
        ring.write(x, y, step)
        positive, negative = ring.pairs(y, step)
        anchors, positives, negatives = terms["loss"].indices
        assert set(zip(anchors.tolist(), positives.tolist(), strict=True)) <= set(positive)
        assert set(zip(anchors.tolist(), negatives.tolist(), strict=True)) <= set(negative)
        memory(x, y)


def test_the_own_copy_does_not_hide_the_nearest_positive() -> None:
    x = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    memory = CrossBatchMemory(ContrastiveLoss(), 2, 8, miner=miners.BatchEasyHardMiner("easy", "all"))
    terms = memory.loss_terms(x, torch.tensor([0, 0, 1]))
    assert [i.tolist() for i in terms["pos_loss"].indices] == [[0, 1], [1, 0]]


def test_tuples_of_a_foreign_miner_lose_own_copies() -> None:
    def mined(x: Tensor, y: Tensor, r: Tensor, ry: Tensor) -> TripletIndices:
        a = torch.tensor([0, 1, 1])
        return TripletIndices(a, torch.tensor([len(r) - 2, 0, 0]), torch.tensor([1, 1, len(r) - 1]))

    memory = CrossBatchMemory(TripletMarginLoss(), 2, 8, miner=mined)
    x, y = torch.eye(2), torch.tensor([0, 1])
    memory(torch.eye(2), y)
    terms = memory.loss_terms(x, y)
    assert [i.tolist() for i in terms["loss"].indices] == [[1], [0], [1]]


def test_tuples_of_the_batch_are_added() -> None:
    (x, y), (u, v) = batches(6, [4, 3])
    memory = CrossBatchMemory(ContrastiveLoss(), 4, 16)
    memory(x, y)
    given = TripletIndices(torch.tensor([0]), torch.tensor([1]), torch.tensor([2]))
    plain, more = memory.loss_terms(u, v), memory.loss_terms(u, v, indices_tuple=given)
    for term, other in (("pos_loss", 1), ("neg_loss", 2)):
        assert more[term].indices[0].tolist() == [*plain[term].indices[0].tolist(), 0]
        assert more[term].indices[1].tolist() == [*plain[term].indices[1].tolist(), 4 + other]
    triplets = CrossBatchMemory(TripletMarginLoss(), 4, 16, miner=miners.TripletMarginMiner())
    pairs = PairIndices(*(torch.tensor([i]) for i in (0, 1, 0, 2)))
    with_pairs = triplets.loss_terms(u, v, pairs)["loss"].indices
    assert [int(i[-1]) for i in with_pairs] == [0, 1, 2]


def test_any_loss_that_takes_references() -> None:
    both = MultipleLosses([ContrastiveLoss(), NTXentLoss()])
    memory, first, second = (CrossBatchMemory(loss, 4, 7) for loss in (both, ContrastiveLoss(), NTXentLoss()))
    for x, y in batches(13):
        torch.testing.assert_close(memory(x, y), first(x, y) + second(x, y))
    outer = MultipleLosses([CrossBatchMemory(ContrastiveLoss(), 4, 7), NTXentLoss()], weights=[0.5, 1])
    alone = CrossBatchMemory(ContrastiveLoss(), 4, 7)
    for x, y in batches(13):
        torch.testing.assert_close(outer(x, y), 0.5 * alone(x, y) + NTXentLoss()(x, y))
    with pytest.raises(ValueError, match="takes no ref_emb, because its references are its memory"):
        alone(x, y, None, x, y)
    refusing = CrossBatchMemory(catalog.get("ArcFaceLoss")(num_classes=3, embedding_size=4), 4, 7)
    with pytest.raises(ValueError, match="ArcFaceLoss"):
        refusing(*((x.float(), y) for x, y in batches()).__next__())
    assert refusing.fill == 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((ContrastiveLoss(), 0), ParameterError, "embedding_size must be a whole number >= 1"),
        ((ContrastiveLoss(), 4, True), ParameterError, "memory_size must be"),
        (("loss", 4), TypeError, "loss must be a loss"),
        ((ContrastiveLoss(), 4, 8, "hard"), TypeError, "miner must be callable"),
    ],
)
def test_bad_arguments(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"CrossBatchMemory: {message}"):
        CrossBatchMemory(*arguments)


def test_bad_batches() -> None:
    memory = CrossBatchMemory(ContrastiveLoss(), 4, 7)
    x, y = batches(14, [8])[0]
    with pytest.raises(ShapeError, match="at most memory_size=7 rows, got 8"):
        memory(x, y)
    with pytest.raises(ShapeError, match="must have 4 columns, got 3"):
        memory(x[:2, :3], y[:2])
    with pytest.raises(ShapeError, match="labels must be a tensor"):
        memory(x[:2], None)
    with pytest.raises(ShapeError, match=r"must lie in 0\.\.1"):
        memory(x[:2], y[:2], TripletIndices(*(torch.tensor([2]) for _ in range(3))))
    assert memory.fill == 0
    assert float(memory(x[:0], y[:0])) == 0
    assert float(memory(x[:1], y[:1])) == 0
    assert memory.fill == 1
