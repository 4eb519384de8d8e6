"""The memory against a ring kept as a plain list, and what survives errors, copies and reloads."""

import copy
import io
import pickle
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
    SupConLoss,
    TripletMarginLoss,
)
from losslib.types import PairIndices, TripletIndices
from tests.oracles import oracle

SIZES = [3, 3, 3, 1, 2, 3, 7, 1]
NAMES = [
    "ContrastiveLoss",
    "TripletMarginLoss",
    "NTXentLoss",
    "SupConLoss",
    "MarginLoss",
    "MultiSimilarityLoss",
]


def batches(seed: int = 0, sizes: list[int] = SIZES) -> list[tuple[Tensor, Tensor]]:
    source = torch.Generator().manual_seed(seed)
    return [
        (
            torch.randn(size, 4, generator=source, dtype=torch.float64),
            torch.randint(0, 3, (size,), generator=source),
        )
        for size in sizes
    ]


class Ring:
    """Rows in the places they were written to, the oldest replaced first."""

    def __init__(self, size: int) -> None:
        self.size, self.rows, self.next = size, [], 0

    def write(self, x: Tensor, y: Tensor, step: int) -> None:
        for i in range(len(x)):
            row = (x[i], int(y[i]), (step, i))
            if len(self.rows) < self.size:
                self.rows.append(row)
            else:
                self.rows[self.next] = row
            self.next = (self.next + 1) % self.size

    def pairs(self, y: Tensor, step: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        every = [(i, j) for i in range(len(y)) for j in range(len(self.rows))]
        positive = [(i, j) for i, j in every if int(y[i]) == self.rows[j][1] and self.rows[j][2] != (step, i)]
        return positive, [(i, j) for i, j in every if int(y[i]) != self.rows[j][1]]


def expected_values(name: str, size: int, given: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
    ring, values = Ring(size), []
    for step, (x, y) in enumerate(given):
        ring.write(x, y, step)
        positive, negative = ring.pairs(y, step)
        indices = [torch.tensor([ij[k] for ij in pairs]) for pairs in (positive, negative) for k in (0, 1)]
        references = torch.stack([row[0] for row in ring.rows])
        values.append(oracle(name).value(x, None, tuple(i.long() for i in indices), references))
    return values


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


class TestTransaction:
    def test_nothing_is_remembered_when_the_loss_fails(self) -> None:
        def fails(*_: Any) -> None:
            raise RuntimeError("no")

        memory = CrossBatchMemory(ContrastiveLoss(), 4, 8)
        (x, y), (u, v) = batches(7, [3, 3])
        memory(x, y)
        before = copy.deepcopy(memory.state_dict())
        memory.miner = fails
        with pytest.raises(RuntimeError):
            memory(u, v)
        with pytest.raises(ShapeError):
            memory(u, v[:2])
        for name, value in memory.state_dict().items():
            assert torch.equal(value, before[name])
        memory.miner = None
        untroubled = CrossBatchMemory(ContrastiveLoss(), 4, 8)
        untroubled(x, y)
        torch.testing.assert_close(memory(u, v), untroubled(u, v))

    def test_memories_inside_other_losses_change_all_together_or_not_at_all(self) -> None:
        def fails(*_: Any) -> None:
            raise RuntimeError("no")

        first, second = (CrossBatchMemory(loss, 4, 8) for loss in (ContrastiveLoss(), NTXentLoss()))
        both = MultipleLosses({"first": MultipleLosses([first]), "second": second})
        (x, y), (u, v) = batches(7, [3, 3])
        both(x, y)
        before = copy.deepcopy(both.state_dict())
        second.miner = fails
        with pytest.raises(RuntimeError):
            both(u, v)
        assert (first.fill, second.fill) == (3, 3)
        for name, value in both.state_dict().items():
            assert torch.equal(value, before[name]), name
        second.miner = None
        alone = CrossBatchMemory(ContrastiveLoss(), 4, 8)
        alone(x, y)
        both(u, v)
        alone(u, v)
        assert torch.equal(first.embedding_memory, alone.embedding_memory)
        assert (first.position, first.fill) == (6, 6)

    def test_terms_alone_are_not_remembered(self) -> None:
        memory = CrossBatchMemory(ContrastiveLoss(), 4, 8)
        memory.loss_terms(*batches(7)[0])
        assert memory.fill == 0

    def test_random_state_and_gradients_of_inputs_do_not_matter(self) -> None:
        memory = CrossBatchMemory(ContrastiveLoss(), 4, 8)
        x, y = batches(8)[0]
        memory(x.requires_grad_(), y)
        assert not memory.embedding_memory.requires_grad
        x.detach().zero_()
        assert bool(memory.embedding_memory[:3].any())


class TestKeeping:
    def continued(self, memory: Any) -> list[float]:
        return [float(memory(x, y)) for x, y in batches(10)]

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_position_and_fill_survive(self, dtype: torch.dtype) -> None:
        memory = CrossBatchMemory(SupConLoss(), 4, 7)
        for x, y in batches(9):
            memory(x.to(dtype), y)
        fresh = CrossBatchMemory(SupConLoss(), 4, 7)
        file = io.BytesIO()
        torch.save(memory.state_dict(), file)
        file.seek(0)
        fresh.load_state_dict(torch.load(file, weights_only=True))
        copies = [fresh, copy.deepcopy(memory), pickle.loads(pickle.dumps(memory))]
        given = [(x.to(dtype), y) for x, y in batches(10)]
        expected = [float(memory(x, y)) for x, y in given]
        for made in copies:
            assert [float(made(x, y)) for x, y in given] == expected

    def test_a_part_of_a_larger_model(self) -> None:
        model = torch.nn.Sequential(CrossBatchMemory(ContrastiveLoss(), 4, 7))
        model[0](*batches()[0])
        fresh = torch.nn.Sequential(CrossBatchMemory(ContrastiveLoss(), 4, 7))
        fresh.load_state_dict(model.state_dict())
        assert (fresh[0].position, fresh[0].fill) == (3, 3)

    def test_reset(self) -> None:
        memory = CrossBatchMemory(ContrastiveLoss(), 4, 7)
        first = self.continued(memory)
        memory.reset()
        assert memory.fill == 0
        assert self.continued(memory) == first


class TestPrecision:
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_half(self, dtype: torch.dtype) -> None:
        memory, wide = (CrossBatchMemory(NTXentLoss(temperature=0.5), 4, 7) for _ in range(2))
        for x, y in batches(11):
            low = x.to(dtype).requires_grad_()
            value = memory(low, y)
            assert value.dtype == torch.float32
            torch.testing.assert_close(value, wide(low.detach().float(), y))
            value.backward()

    def test_autocast(self) -> None:
        memory, wide = (CrossBatchMemory(ContrastiveLoss(), 4, 7) for _ in range(2))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for x, y in batches(12):
                low = torch.nn.functional.linear(x.float(), torch.eye(4))
                torch.testing.assert_close(memory(low, y), wide(low.float(), y))

    def test_another_dtype_than_the_memorys_is_refused(self) -> None:
        memory = CrossBatchMemory(ContrastiveLoss(), 4, 7)
        x, y = batches()[0]
        memory(x.float(), y)
        with pytest.raises(ValueError, match=r"embeddings must be torch.float32 .* got torch.float64"):
            memory(x, y)
        memory.to(torch.float64)
        memory(x, y)
        with pytest.raises(TypeError, match="labels must be of one kind"):
            memory(x, y.double())

    def test_labels_of_any_kind(self) -> None:
        x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
        big = torch.tensor([2**53, 2**53 + 1, 2**53])
        terms = CrossBatchMemory(ContrastiveLoss(), 2, 8).loss_terms(x, big)
        assert [i.tolist() for i in terms["pos_loss"].indices] == [[0, 2], [2, 0]]
        memory = CrossBatchMemory(ContrastiveLoss(), 2, 8)
        memory(x, torch.tensor([1, 2, 1], dtype=torch.int16))
        terms = memory.loss_terms(x[:1], torch.tensor([2**40 + 1]))
        assert len(terms["pos_loss"].losses) == 0
        memory = CrossBatchMemory(ContrastiveLoss(), 2, 8)
        memory(x, torch.tensor([0.5, 1.5, 0.5]))
        assert memory.label_memory[:3].tolist() == [0.5, 1.5, 0.5]


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
