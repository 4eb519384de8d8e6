"""Rules of similarity, and the label comparison behind every loss."""

import pytest
import torch
from torch import Tensor

from losslib import catalog, pairs
from losslib.base import PairLoss
from losslib.distances import LpDistance
from losslib.errors import ParameterError, ShapeError
from losslib.losses import ContrastiveLoss, GE2ELoss, NTXentLoss, SelfSupervisedLoss
from losslib.miners import BatchHardMiner


def listed(mask: Tensor) -> list[tuple[int, int]]:
    return [(int(i), int(j)) for i, j in mask.nonzero()]


def test_same_label() -> None:
    masks = pairs.same_label(torch.tensor([3, 5, 3]))
    assert listed(masks.positive) == [(0, 2), (2, 0)]
    assert listed(masks.negative) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    masks = pairs.same_label(torch.tensor([3, 5]), torch.tensor([5, 5, 3]))
    assert listed(masks.positive) == [(0, 2), (1, 0), (1, 1)]


def test_same_label_refuses_more_than_one_label_a_row() -> None:
    column, row = torch.zeros(4, 1), torch.zeros(4)
    with pytest.raises(ShapeError, match=r"same_label: labels must have shape \(N,\).*got \(4, 1\)"):
        pairs.same_label(column)
    with pytest.raises(ShapeError, match=r"same_label: ref_labels must have shape \(N,\).*got \(4, 1\)"):
        pairs.same_label(row, column)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (torch.int64, [2**53, 2**53 + 1, 2**53]),
        (torch.int64, [-(2**63), 2**63 - 1, -(2**63)]),
        (torch.int32, [-1, 0, -1]),
        (torch.int16, [300, 44, 300]),
        (torch.uint8, [255, 0, 255]),
        (torch.bool, [True, False, True]),
        (torch.float32, [0.1, 0.2, 0.1]),
        (torch.float64, [0.1, 0.1 + 1e-16, 0.1]),
        (torch.float16, [1.0, 2.0, 1.0]),
    ],
)
def test_labels_compare_in_their_own_dtype(dtype: torch.dtype, values: list[float]) -> None:
    labels = torch.tensor(values, dtype=dtype)
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    terms = ContrastiveLoss().loss_terms(x, labels)
    assert [i.tolist() for i in terms["pos_loss"].indices] == [[0, 2], [2, 0]]
    assert terms["neg_loss"].losses.numel() == 4


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_unsigned_labels(dtype: torch.dtype) -> None:
    labels = torch.tensor([1, 2, 1], dtype=torch.int64).to(dtype)
    terms = ContrastiveLoss().loss_terms(torch.randn(3, 2), labels)
    assert [i.tolist() for i in terms["pos_loss"].indices] == [[0, 2], [2, 0]]


def test_a_label_that_is_not_a_number_is_like_nothing_and_not_its_own_negative() -> None:
    labels = torch.tensor([float("nan"), 1.0, 1.0, float("nan")])
    terms = ContrastiveLoss().loss_terms(torch.randn(4, 2), labels)
    assert [i.tolist() for i in terms["pos_loss"].indices] == [[1, 2], [2, 1]]
    anchors, others = terms["neg_loss"].indices
    assert not bool((anchors == others).any())


def test_within_delta() -> None:
    masks = pairs.within_delta(torch.tensor([0.0, 0.5, 1.0, 2.0]), 0.5)
    assert listed(masks.positive) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert listed(masks.negative) == [(0, 2), (0, 3), (1, 3), (2, 0), (2, 3), (3, 0), (3, 1), (3, 2)]
    two = pairs.within_delta(torch.tensor([[0.0, 0.0]]), 0.5, torch.tensor([[0.5, 0.1], [0.1, 0.6]]))
    assert listed(two.positive) == [(0, 0)]
    for delta in (-1.0, float("nan")):
        with pytest.raises(ParameterError, match="delta must be a number >= 0"):
            pairs.within_delta(torch.zeros(2), delta)


@pytest.mark.parametrize(
    ("dtype", "values", "delta"),
    [
        (torch.uint8, [1, 3, 250], 3),  # 1 - 3 is 254 in this type
        (torch.int8, [-100, -97, 100], 60),  # -100 - 100 is 56 in this type
        (torch.bool, [False, False, True], 0.5),
        (torch.int64, [2**53, 2**53, 2**53 + 1], 0.0),
        (torch.int32, [0, 2**24, 2**24 + 2], 2.0**24 + 1),
        (torch.int64, [1, 2, 4], 1.9),
    ],
)
def test_within_delta_of_whole_numbers(dtype: torch.dtype, values: list[int], delta: float) -> None:
    # in each case the first two are similar and the first and the last are not
    masks = pairs.within_delta(torch.tensor(values, dtype=dtype), delta)
    assert masks.positive[0].tolist() == [False, True, False]
    assert masks.negative[0].tolist() == [False, False, True]


def test_within_delta_refuses_shapes_it_would_broadcast() -> None:
    assert bool(pairs.within_delta(torch.tensor([1, 10**9]), float("inf")).positive[0, 1])
    for targets, others in ((torch.zeros(2, 3), torch.zeros(4, 1)), (torch.zeros(2, 2, 2), None)):
        with pytest.raises(ShapeError, match="within_delta: targets must be"):
            pairs.within_delta(targets, 1.0, others)


def test_two_views_agree_with_the_wrapper() -> None:
    first, second = torch.randn(5, 3), torch.randn(5, 3)
    masks = pairs.two_views(5)
    assert listed(masks.positive) == [(i, (i + 5) % 10) for i in range(10)]
    direct = NTXentLoss()(torch.cat([first, second]), indices_tuple=masks.indices())
    torch.testing.assert_close(direct, SelfSupervisedLoss(NTXentLoss())(first, second))
    assert pairs.two_views(2, views=3).positive.sum(1).tolist() == [2] * 6


def test_semi_supervised() -> None:
    labels = torch.tensor([7, 7, 9, 0, 0])
    known = torch.tensor([True, True, True, False, False])
    sample = torch.tensor([0, 1, 2, 0, 3])
    masks = pairs.semi_supervised(labels, known, sample)
    # 0 and 1 by their label; 0 and 3 as views; the equal labels of 3 and 4 are not known
    assert listed(masks.positive) == [(0, 1), (0, 3), (1, 0), (3, 0)]
    assert not bool((masks.positive & masks.negative).any())
    assert not bool(masks.negative.diagonal().any())
    assert int(masks.negative.sum()) == 5 * 4 - 4
    with pytest.raises(ShapeError, match="must all have shape"):
        pairs.semi_supervised(labels, known[:3], sample)


def test_masks_as_index_tuple_equal_labels() -> None:
    x, y = torch.randn(8, 3), torch.arange(8) % 3
    by_masks = ContrastiveLoss()(x, indices_tuple=pairs.same_label(y).indices())
    torch.testing.assert_close(by_masks, ContrastiveLoss()(x, y))


class TestByMatrix:
    SIMILAR = torch.tensor([[1, 1, 0], [0, 1, 0], [1, 0, 0]], dtype=torch.bool)

    def test_a_matrix_decides(self) -> None:
        masks = pairs.by_matrix(self.SIMILAR)
        assert listed(masks.positive) == [(0, 1), (2, 0)]  # need not be symmetric
        assert listed(masks.negative) == [(0, 2), (1, 0), (1, 2), (2, 1)]
        assert bool(self.SIMILAR[0, 0])  # the caller's matrix is as it was

    def test_pairs_that_take_no_part(self) -> None:
        dissimilar = torch.zeros(3, 3, dtype=torch.bool)
        dissimilar[1, 2] = True
        masks = pairs.by_matrix(self.SIMILAR, dissimilar)
        assert listed(masks.negative) == [(1, 2)]
        x = torch.eye(3)
        # d(0, 1) = d(2, 0) = sqrt(2) pulls; d(1, 2) = sqrt(2) is beyond the margin of 1
        assert float(ContrastiveLoss()(x, indices_tuple=masks.indices())) == pytest.approx(2**0.5)

    def test_references(self) -> None:
        masks = pairs.by_matrix(self.SIMILAR, reference=True)
        assert listed(masks.positive) == [(0, 0), (0, 1), (1, 1), (2, 0)]
        masks = pairs.by_matrix(self.SIMILAR[:2], reference=True)
        assert masks.positive.shape == (2, 3)

    def test_bad_matrices(self) -> None:
        with pytest.raises(
            ShapeError, match=r"\(B, B\); for a reference set give reference=True, got \(2, 3\)"
        ):
            pairs.by_matrix(self.SIMILAR[:2])
        with pytest.raises(ShapeError, match=r"got \(3, 3\) and \(2, 3\)"):
            pairs.by_matrix(self.SIMILAR, self.SIMILAR[:2])
        with pytest.raises(TypeError, match=r"boolean tensors, got torch\.int64"):
            pairs.by_matrix(self.SIMILAR.long())
        with pytest.raises(ParameterError, match=r"got both for \(0, 1\)"):
            pairs.by_matrix(self.SIMILAR, self.SIMILAR)


class TestByComparator:
    SETS = torch.tensor([[1, 1, 0], [0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=torch.bool)

    def test_a_shared_class(self) -> None:
        masks = pairs.by_comparator(self.SETS, lambda a, b: (a & b).any(-1))
        assert listed(masks.positive) == [(0, 1), (1, 0), (1, 2), (2, 1)]
        assert listed(masks.negative) == [
            (i, j) for i in range(4) for j in range(4) if i != j and (i, j) not in listed(masks.positive)
        ]

    def test_three_ways_and_references(self) -> None:
        ages = torch.tensor([10.0, 20.0])
        masks = pairs.by_comparator(
            ages,
            lambda a, b: (a - b).abs() < 2,
            torch.tensor([11.0, 14.0, 30.0, 20.0]),
            differ=lambda a, b: (a - b).abs() > 5,
        )
        assert listed(masks.positive) == [(0, 0), (1, 3)]
        assert listed(masks.negative) == [(0, 2), (0, 3), (1, 0), (1, 1), (1, 2)]

    def test_equality_is_the_rule_of_labels(self) -> None:
        y = torch.arange(9) % 4
        by_label, by_function = pairs.same_label(y), pairs.by_comparator(y, lambda a, b: a == b)
        assert torch.equal(by_label.positive, by_function.positive)
        assert torch.equal(by_label.negative, by_function.negative)

    def test_functions_that_return_something_else(self) -> None:
        with pytest.raises(ShapeError, match=r"must return shape \(4, 4\), got \(4, 4, 3\)"):
            pairs.by_comparator(self.SETS, lambda a, b: a & b)
        with pytest.raises(TypeError, match=r"boolean tensors, got torch\.float32"):
            pairs.by_comparator(torch.zeros(4), lambda a, b: a - b)


def test_label_overlap() -> None:
    # Jaccard: {0,1} and {1,2} 1/3, {1,2} and {2} 1/2, {0,1} and {2} 0; nothing with the empty set
    sets = TestByComparator.SETS
    assert listed(pairs.label_overlap(sets, 0.5).positive) == [(1, 2), (2, 1)]
    assert listed(pairs.label_overlap(sets, 1 / 3).positive) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert listed(pairs.label_overlap(sets, 0.51, sets[1:]).positive) == [(1, 0), (2, 1)]
    assert int(pairs.label_overlap(sets, 0.5).negative.sum()) == 10
    with pytest.raises(ParameterError, match="least must be a number > 0 and <= 1"):
        pairs.label_overlap(sets, 0.0)
    with pytest.raises(TypeError, match="must be boolean"):
        pairs.label_overlap(sets.long(), 0.5)
    with pytest.raises(ShapeError, match=r"\(B, C\) and \(R, C\)"):
        pairs.label_overlap(sets, 0.5, sets[:, :2])


PAIRWISE = [name for name, cls in catalog.losses().items() if issubclass(cls, PairLoss)]


@pytest.mark.parametrize("name", PAIRWISE)
def test_masks_stand_for_the_index_tuples_they_write_out(name: str) -> None:
    x = torch.randn(24, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    masks = pairs.within_delta(torch.linspace(0, 1, 24, dtype=torch.float64) ** 2, 0.12)
    loss = catalog.get(name)().double()
    values, gradients = [], []
    labels = torch.arange(24) // 3
    for named, given in ((None, masks), (None, masks.indices()), (labels, masks), (labels, masks.indices())):
        leaf = x.clone().requires_grad_()
        value = loss(leaf, named, given)
        values.append(value.detach())
        gradients.append(torch.autograd.grad(value, leaf)[0])
    for first, second in ((0, 1), (2, 3)):  # the labels beside the pairs change nothing but in N-pairs
        torch.testing.assert_close(values[first], values[second], rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(gradients[first], gradients[second], rtol=1e-8, atol=1e-10)


def test_masks_of_a_reference_set_and_masks_that_do_not_fit() -> None:
    x, y = torch.randn(3, 2), torch.randn(5, 2)
    masks = pairs.within_delta(torch.arange(3.0), 1.0, torch.arange(5.0))
    direct = ContrastiveLoss()(x, indices_tuple=masks, ref_emb=y)
    torch.testing.assert_close(direct, ContrastiveLoss()(x, indices_tuple=masks.indices(), ref_emb=y))
    with pytest.raises(ShapeError, match=r"masks must have shape \(3, 3\), got positive of \(3, 5\)"):
        ContrastiveLoss()(x, indices_tuple=masks)
    with pytest.raises(TypeError, match="masks must be boolean"):
        ContrastiveLoss()(x, indices_tuple=pairs.PairMasks(torch.eye(3), torch.eye(3)))


def test_a_loss_that_takes_no_tuples_refuses_masks_too() -> None:
    masks = pairs.same_label(torch.tensor([0, 0, 1, 1]))
    with pytest.raises(ValueError, match="GE2ELoss: takes no indices_tuple"):
        GE2ELoss()(torch.randn(4, 2), torch.tensor([0, 0, 1, 1]), masks)


def test_a_miner_chooses_among_the_pairs_of_a_rule() -> None:
    targets = torch.tensor([0.0, 0.4, 1.0, 2.0])
    x = torch.tensor([[0.0], [5.0], [4.0], [1.0]])
    miner = BatchHardMiner(distance=LpDistance(normalize_embeddings=False))
    chosen = miner(x, pairs.within_delta(targets, 0.6))
    # positives 0-1 and 1-2; the farthest of each anchor, and the nearest of the rest
    assert [index.tolist() for index in chosen] == [[0, 1, 2], [1, 0, 1], [3, 3, 3]]


def brute_within(targets: list[float], delta: float) -> set[tuple[int, int]]:
    rows = range(len(targets))
    return {(i, j) for i in rows for j in rows if i != j and abs(targets[i] - targets[j]) <= delta}


@pytest.mark.parametrize("delta", [0.0, 0.05, 0.3, 2.0])
def test_within_delta_against_a_loop(delta: float) -> None:
    targets = torch.rand(40, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    masks = pairs.within_delta(targets, delta)
    expected = brute_within(targets.tolist(), delta)
    assert set(listed(masks.positive)) == expected
    everything = {(i, j) for i in range(40) for j in range(40) if i != j}
    assert set(listed(masks.negative)) == everything - expected


def test_semi_supervised_against_a_loop() -> None:
    source = torch.Generator().manual_seed(4)
    labels = torch.randint(0, 3, (15,), generator=source).repeat(2)
    known = (torch.rand(15, generator=source) < 0.5).repeat(2)
    sample = torch.arange(15).repeat(2)
    masks = pairs.semi_supervised(labels, known, sample)
    for i in range(30):
        for j in range(30):
            views = sample[i] == sample[j]
            together = bool(views | (known[i] & known[j] & (labels[i] == labels[j])))
            assert bool(masks.positive[i, j]) == (together and i != j)
            assert bool(masks.negative[i, j]) == (not together)


def test_label_overlap_against_sets() -> None:
    sets = torch.rand(20, 6, generator=torch.Generator().manual_seed(5)) < 0.4
    masks = pairs.label_overlap(sets, 0.4)
    classes = [{k for k in range(6) if row[k]} for row in sets.tolist()]
    for i, mine in enumerate(classes):
        for j, theirs in enumerate(classes):
            share = len(mine & theirs) / len(mine | theirs) if mine | theirs else 0.0
            assert bool(masks.positive[i, j]) == (i != j and share >= 0.4)
            assert bool(masks.negative[i, j]) == (i != j and share < 0.4)
