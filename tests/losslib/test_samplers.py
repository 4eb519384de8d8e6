"""What the samplers promise: coverage, sizes, classes, and the seed."""

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from losslib.errors import ParameterError, ShapeError
from losslib.samplers import FixedSetOfTriplets, HierarchicalSampler, MPerClassSampler

UNEVEN = torch.tensor([5] * 13 + [2] * 4 + [9] * 7 + [0] * 1 + [7] * 30 + [3] * 6)
SIZES = [(2, 4), (4, 12), (3, 18), (1, 6), (5, 30), (4, None), (1, 1)]


@pytest.mark.parametrize(("m", "batch_size"), SIZES)
@pytest.mark.parametrize("labels", [UNEVEN, torch.arange(40) % 8], ids=["uneven", "even"])
class TestMPerClass:
    def test_covers_the_data_with_m_of_each_class(
        self, labels: Tensor, m: int, batch_size: int | None
    ) -> None:
        sampler = MPerClassSampler(labels, m, batch_size, torch.Generator().manual_seed(0))
        seen: Counter[int] = Counter()
        batches = list(sampler)
        assert len(batches) == len(sampler)
        for batch in batches:
            assert len(batch) == (batch_size or m * len(labels.unique()))
            assert set(Counter(labels[batch].tolist()).values()) == {m}
            seen.update(batch)
            sizes = Counter(labels.tolist())
            for c in set(labels[batch].tolist()):
                own = [i for i in batch if int(labels[i]) == c]
                assert len(set(own)) == min(m, sizes[c])  # repeated in a batch only where it must be
        assert set(seen) == set(range(len(labels)))

    def test_no_longer_than_it_must_be(self, labels: Tensor, m: int, batch_size: int | None) -> None:
        groups = [-(-count // m) for count in Counter(labels.tolist()).values()]
        per_batch = (batch_size or m * len(groups)) // m
        assert len(MPerClassSampler(labels, m, batch_size)) == max(*groups, -(-sum(groups) // per_batch))


def test_even_classes_are_each_seen_once() -> None:
    labels = torch.arange(48) % 6
    seen = Counter(i for batch in MPerClassSampler(labels, 4, 12) for i in batch)
    assert set(seen.values()) == {1}


def passes(make: Any) -> tuple[list[Any], list[Any], list[Any]]:
    torch.manual_seed(4)
    sampler = make(None)
    first, second = list(sampler), list(sampler)
    torch.manual_seed(4)
    return first, second, list(make(None))


@pytest.mark.parametrize(
    "make",
    [
        lambda source: MPerClassSampler(UNEVEN, 2, 6, source),
        lambda source: HierarchicalSampler(TREE, 8, 2, generator=source),
        lambda source: FixedSetOfTriplets(UNEVEN, 20, source),
    ],
    ids=["m per class", "hierarchical", "triplets"],
)
def test_the_seed_decides(make: Any) -> None:
    first, second, again = passes(make)
    assert first == again
    assert first != second
    state = torch.get_rng_state()
    own = list(make(torch.Generator().manual_seed(1)))
    assert own == list(make(torch.Generator().manual_seed(1)))
    assert torch.equal(state, torch.get_rng_state())


def test_in_a_data_loader() -> None:
    data = TensorDataset(torch.arange(len(UNEVEN)), UNEVEN)
    loader = DataLoader(data, batch_sampler=MPerClassSampler(UNEVEN.tolist(), 3, 9))
    for _, labels in loader:
        assert sorted(Counter(labels.tolist()).values()) == [3, 3, 3]


def test_labels_of_any_kind() -> None:
    for labels in ([0.5, 0.5, 1.5, 1.5], [True, False, True, False], (3, 1, 3, 1)):
        batch = next(iter(MPerClassSampler(labels, 2)))
        assert sorted(batch) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((UNEVEN, 0), "m must be a whole number >= 1"),
        ((UNEVEN, 2, 5), "batch_size must be a multiple of m=2, got 5"),
        ((UNEVEN, 2, 14), "batch_size // m must be at most 6, the number of classes, got 7"),
        ((UNEVEN, 2, 0), "batch_size must be a whole number >= 1"),
    ],
)
def test_sizes_that_do_not_fit(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ParameterError, match=f"MPerClassSampler: {message}"):
        MPerClassSampler(*arguments)


def test_labels_of_another_shape() -> None:
    with pytest.raises(ShapeError, match=r"labels must have shape \(N,\), got \(61, 1\)"):
        MPerClassSampler(UNEVEN.unsqueeze(1), 2)
    with pytest.raises(ShapeError, match=r"labels must be \(N, L\)"):
        HierarchicalSampler(UNEVEN, 8, 2)


# classes 0..11, three or more in each of super classes 0, 1 and 2
TREE = torch.stack([torch.arange(72) % 12, torch.arange(72) % 12 // 4], 1)


class TestHierarchical:
    def test_batches(self) -> None:
        sampler = HierarchicalSampler(TREE, 12, 3, batches_per_super_tuple=5)
        batches = list(sampler)
        assert len(batches) == len(sampler) == 3 * 5
        tuples: Counter[tuple[int, ...]] = Counter()
        for batch in batches:
            inner, outer = TREE[batch].T
            assert set(Counter(inner.tolist()).values()) == {3}
            above = Counter(outer.tolist())
            assert set(above.values()) == {6}
            assert len(set(batch)) == 12
            tuples[tuple(sorted(above))] += 1
        assert tuples == {(0, 1): 5, (0, 2): 5, (1, 2): 5}

    def test_all_samples_of_each_class(self) -> None:
        for batch in HierarchicalSampler(TREE, 40, "all"):
            classes = Counter(TREE[batch][:, 0].tolist())
            assert set(classes.values()) == {6}  # 72 / 12 samples
            assert len(classes) == 6  # three whole classes fit in each half

    def test_columns(self) -> None:
        batch = next(iter(HierarchicalSampler(TREE.flip(1), 8, 2, inner_label=1, outer_label=0)))
        assert set(Counter(TREE[batch][:, 0].tolist()).values()) == {2}

    def test_a_small_class_is_repeated(self) -> None:
        labels = torch.tensor([[0, 0], [1, 1], [1, 1]])
        batch = next(iter(HierarchicalSampler(labels, 4, 2)))
        assert sorted(batch) == [0, 0, 1, 2]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((TREE, 9, 3), "batch_size must be a multiple of"),
            ((TREE, 8, 3), "batch_size must be a multiple of"),
            ((TREE, 8, "some"), "samples_per_class must be"),
            ((TREE, 8, 2, 4, 4), "super_classes_per_batch must be at most 3"),
        ],
    )
    def test_sizes_that_do_not_fit(self, arguments: tuple[Any, ...], message: str) -> None:
        with pytest.raises(ParameterError, match=f"HierarchicalSampler: {message}"):
            HierarchicalSampler(*arguments)


class TestFixedSetOfTriplets:
    def test_triplets(self) -> None:
        sampler = FixedSetOfTriplets(UNEVEN, 50)
        assert len(sampler) == 150
        a, p, n = sampler.triplets.T
        assert bool((UNEVEN[a] == UNEVEN[p]).all())
        assert bool((UNEVEN[a] != UNEVEN[n]).all())
        assert not bool((a == p).any())
        assert int(UNEVEN[a].unique().numel()) == 5  # the class of one sample has no positive

    def test_a_pass_is_the_same_triplets_in_another_order(self) -> None:
        sampler = FixedSetOfTriplets(UNEVEN, 50)
        known = sorted(map(tuple, sampler.triplets.tolist()))
        for _ in range(2):
            flat = list(sampler)
            assert sorted(zip(flat[::3], flat[1::3], flat[2::3], strict=True)) == known

    @pytest.mark.parametrize("labels", [[1, 1, 1], [1, 2, 3]])
    def test_labels_without_triplets(self, labels: list[int]) -> None:
        with pytest.raises(ParameterError, match="two classes or more, one of them with two samples"):
            FixedSetOfTriplets(labels, 3)
