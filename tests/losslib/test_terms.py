"""Terms of all kinds against the same values written out, and triplets as indices."""

import itertools

import pytest
import torch
from torch import Tensor

from losslib.all_triplets import AllTripletsTerm, HingeTripletsTerm, SumTripletsTerm
from losslib.block_triplets import BlockTripletsTerm
from losslib.terms import DenseTerm, IndexedTerm, Term, as_term
from losslib.triplets import joined, sampled
from losslib.types import PairIndices, TripletIndices

ROWS, WIDTH = 6, 9


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def a_batch(seed: int = 0, ties: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Distances (6, 9), masks of positives and negatives; some pairs in neither, one row without each."""
    values = torch.rand(ROWS, WIDTH, generator=generator(seed), dtype=torch.float64)
    if ties:
        values = (values * 4).round() / 4
    kind = torch.randint(0, 3, (ROWS, WIDTH), generator=generator(seed + 1))
    positive, negative = kind == 1, kind == 2
    positive[1] = False
    negative[2] = False
    return values, positive, negative


def listed_triplets(positive: Tensor, negative: Tensor) -> list[tuple[int, int, int]]:
    every = itertools.product(range(len(positive)), range(positive.shape[1]), range(positive.shape[1]))
    return [(a, p, n) for a, p, n in every if positive[a, p] and negative[a, n]]


def hinge(values: Tensor, triplets: list[tuple[int, int, int]], margin: float) -> Tensor:
    return torch.stack([(values[a, p] - values[a, n] + margin).relu() for a, p, n in triplets])


def make(kind: str, values: Tensor, positive: Tensor, negative: Tensor) -> tuple[Term, Tensor]:
    """A term of each kind over all triplets, and its values by plain loops, in order."""
    triplets = listed_triplets(positive, negative)
    if kind == "hinge":
        return HingeTripletsTerm(values, positive, negative, 0.25), hinge(values, triplets, 0.25)
    if kind == "sum":
        near, far = (values - 0.5).relu(), (0.75 - values).relu()
        plain = torch.stack([near[a, p] + far[a, n] for a, p, n in triplets])
        return SumTripletsTerm(near, far, positive, negative, None), plain
    between = (torch.arange(WIDTH).unsqueeze(1) - torch.arange(WIDTH)).abs().double() / 8
    swap = between if "swap" in kind else None
    smooth = "smooth" in kind
    plain = []
    for a, p, n in triplets:
        far_away = values[a, n] if swap is None else torch.minimum(values[a, n], swap[p, n])
        violation = values[a, p] - far_away + 0.25
        plain.append(torch.log1p(violation.exp()) if smooth else violation.relu())
    return BlockTripletsTerm(values, positive, negative, 0.25, swap, smooth), torch.stack(plain)


KINDS = ["hinge", "sum", "swap", "smooth", "swap smooth"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("large", [False, True], ids=["direct", "sorted"])
class TestAllTriplets:
    @pytest.fixture(autouse=True)
    def _small_limits(self, large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        if large:  # take the forms of a large batch on a batch that loops can follow
            monkeypatch.setattr("losslib.all_triplets._SMALL", 0)
            monkeypatch.setattr("losslib.block_triplets._BLOCK", 1)
            monkeypatch.setattr(BlockTripletsTerm, "_blocks", lambda self: ((0, 2), (2, 3), (5, 1)))

    def test_sum_count_and_gradient(self, kind: str, ties: bool) -> None:
        values, positive, negative = a_batch(ties=ties)
        values.requires_grad_()
        term, plain = make(kind, values, positive, negative)
        torch.testing.assert_close(term.sum(), plain.sum(), rtol=1e-12, atol=1e-12)
        assert int(term.count()) == len(plain)
        assert int(term.count_positive()) == int((plain > 0).sum())
        grads = [torch.autograd.grad(t, values, retain_graph=True)[0] for t in (term.sum(), plain.sum())]
        if not ties or "swap" not in kind:  # at a tie the minimum may pick either
            torch.testing.assert_close(*grads, rtol=1e-12, atol=1e-12)

    def test_values_and_indices_in_order(self, kind: str, ties: bool) -> None:
        values, positive, negative = a_batch(ties=ties)
        term, plain = make(kind, values, positive, negative)
        torch.testing.assert_close(term.losses, plain, rtol=1e-12, atol=1e-12)
        assert isinstance(term.indices, TripletIndices)
        assert list(zip(*(i.tolist() for i in term.indices), strict=True)) == listed_triplets(
            positive, negative
        )

    def test_per_anchor(self, kind: str, ties: bool) -> None:
        values, positive, negative = a_batch(ties=ties)
        term, plain = make(kind, values, positive, negative)
        sums, counts = term.per_anchor(ROWS)
        anchors = [a for a, _, _ in listed_triplets(positive, negative)]
        for row in range(ROWS):
            own = plain[[i for i, a in enumerate(anchors) if a == row]]
            assert int(counts[row]) == len(own)
            torch.testing.assert_close(sums[row], own.sum(), rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize(
        "limits",
        [
            (None, None),
            (0.0, None),
            (0.25, None),
            (None, 0.5),
            (0.25, 0.75),
            (-1.0, 0.5),
            (0.5, 0.25),
            (None, 0.0),
        ],
    )
    def test_values_between_limits(
        self, kind: str, ties: bool, limits: tuple[float | None, float | None]
    ) -> None:
        values, positive, negative = a_batch(ties=ties)
        term, plain = make(kind, values, positive, negative)
        low, high = limits
        inside = torch.ones_like(plain, dtype=torch.bool)
        inside = inside if low is None else inside & (plain > low)
        inside = inside if high is None else inside & (plain < high)
        total, number = term.between(low, high)
        assert int(number) == int(inside.sum())
        torch.testing.assert_close(total, plain[inside].sum(), rtol=1e-12, atol=1e-12)

    def test_a_sample_says_so(self, kind: str, ties: bool) -> None:
        values, positive, negative = a_batch(ties=ties)
        term, plain = make(kind, values, positive, negative)
        part = term.to_indexed(limit=7)
        assert part.losses.shape == (7,)
        assert part.sample_of == len(plain)
        places = [
            listed_triplets(positive, negative).index(t)
            for t in zip(*(i.tolist() for i in part.indices), strict=True)
        ]
        assert sorted(set(places)) == places  # distinct, in order
        torch.testing.assert_close(part.losses, plain[places])
        assert term.to_indexed(limit=10**6).sample_of is None


def test_all_triplets_without_any() -> None:
    for shape in ((0, 0), (0, 4), (3, 0), (3, 4)):
        values = torch.rand(shape, requires_grad=True)
        none = torch.zeros(shape, dtype=torch.bool)
        terms: list[AllTripletsTerm] = [
            HingeTripletsTerm(values, none, none, 0.2),
            SumTripletsTerm(values, values, none, none, None),
            BlockTripletsTerm(values, none, none, 0.2, None, True),
            BlockTripletsTerm(values, none, none, 0.2, torch.rand(shape[1], shape[1]), False),
        ]
        for term in terms:
            assert term.sum().item() == 0.0
            assert int(term.count()) == 0
            assert term.losses.shape == (0,)
            term.sum().backward()
            assert values.grad is not None
            assert not values.grad.any()


def test_the_hinge_in_single_precision_has_no_bias() -> None:
    values, positive, negative = a_batch()
    wide = HingeTripletsTerm(values + 1000, positive, negative, 0.2).sum()
    narrow = HingeTripletsTerm((values + 1000).float(), positive, negative, 0.2).sum()
    exact = HingeTripletsTerm((values + 1000).float().double(), positive, negative, 0.2).sum()
    torch.testing.assert_close(narrow.double(), exact, rtol=1e-6, atol=0)
    torch.testing.assert_close(
        wide, HingeTripletsTerm(values, positive, negative, 0.2).sum(), rtol=1e-9, atol=0
    )


class TestDenseTerm:
    values = torch.tensor([[1.0, -2.0, 0.0], [3.0, 5.0, -1.0]])
    mask = torch.tensor([[True, True, True], [False, True, True]])

    def test_by_mask(self) -> None:
        term = DenseTerm(self.values, self.mask)
        assert term.sum().item() == 3.0
        assert int(term.count()) == 5
        assert [x.item() for x in term.between(0.0, None)] == [6.0, 2]
        assert [x.item() for x in term.between(-1.5, 1.0)] == [-1.0, 2]
        assert int(term.count_positive()) == 2
        assert term.losses.tolist() == [1.0, -2.0, 0.0, 5.0, -1.0]
        assert [i.tolist() for i in term.indices] == [[0, 0, 0, 1, 1], [0, 1, 2, 1, 2]]
        assert [x.tolist() for x in term.per_anchor(2)] == [[-1.0, 4.0], [3, 2]]
        assert term["losses"].tolist() == term.losses.tolist()
        assert term.to_indexed(limit=2).sample_of == 5

    def test_by_counts(self) -> None:
        term = DenseTerm(torch.tensor([2.0, -1.0, 4.0]), torch.tensor([3, 0, 1]))
        assert term.sum().item() == 10.0
        assert int(term.count()) == 4
        assert [x.item() for x in term.between(0.0, 3.0)] == [6.0, 3]
        assert term.losses.tolist() == [2.0, 2.0, 2.0, 4.0]
        assert term.indices.tolist() == [0, 0, 0, 2]

    def test_unknown_keys(self) -> None:
        with pytest.raises(KeyError):
            DenseTerm(self.values, self.mask)["reduction_type"]


def test_indexed_terms_and_mappings() -> None:
    term = as_term({"losses": torch.tensor([1.0, 0.0, 3.0]), "indices": torch.tensor([2, 0, 2])})
    assert isinstance(term, IndexedTerm)
    assert [x.tolist() for x in term.per_anchor(4)] == [[0.0, 0.0, 4.0, 0.0], [1, 0, 2, 0]]
    assert int(term.count_positive()) == 2
    assert term.divisor is None
    assert not term.reduced
    assert as_term({"losses": torch.tensor(2.0), "indices": None}).reduced
    with pytest.raises(ValueError, match="without indices"):
        as_term({"losses": torch.tensor([1.0])})


def test_pairs_that_share_an_anchor_join_to_triplets() -> None:
    pairs = PairIndices(*(torch.tensor(v) for v in ([0, 2, 0, 5], [1, 3, 1, 4], [2, 0, 1, 0], [7, 8, 9, 6])))
    found = sorted(zip(*(i.tolist() for i in joined(pairs)), strict=True))
    assert found == [(0, 1, 6), (0, 1, 6), (0, 1, 8), (0, 1, 8), (2, 3, 7)]


class TestSampling:
    def test_exactly_k_for_each_anchor_that_has_triplets(self) -> None:
        _, positive, negative = a_batch()
        anchors, positives, negatives = sampled(positive, negative, 50)
        has_any = positive.any(1) & negative.any(1)
        assert torch.bincount(anchors, minlength=ROWS).tolist() == (has_any * 50).tolist()
        assert bool(positive[anchors, positives].all())
        assert bool(negative[anchors, negatives].all())

    def test_uniform_over_positive_negative_pairs(self) -> None:
        positive = torch.tensor([[True, False, True, False, False, True]])
        negative = torch.tensor([[False, True, False, False, True, False]])
        torch.manual_seed(0)
        _, positives, negatives = sampled(positive, negative, 60_000)
        drawn = torch.bincount(positives * 6 + negatives, minlength=36).double() / 60_000
        expected = (positive.T & negative).flatten().double() / 6
        assert float((drawn - expected).abs().max()) < 0.006  # four standard deviations

    def test_by_torch_s_generator(self) -> None:
        _, positive, negative = a_batch()
        draws = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            draws.append(torch.stack(list(sampled(positive, negative, 5))).tolist())
        assert draws[0] == draws[1] != draws[2]
