"""Batches: how many of which class, without repeats, and a sentence for what cannot be drawn."""

import pytest
import torch

from lab.batches import BatchSampler
from losslib.errors import ParameterError

LABELS = torch.tensor([4] * 30 + [7] * 20 + [1] * 50)[torch.randperm(100, generator=torch.Generator())]


def sampler(batch: int, per_class: int, labels: torch.Tensor = LABELS, seed: int = 0) -> BatchSampler:
    return BatchSampler(labels, batch, per_class, torch.Generator().manual_seed(seed))


def counts(rows: torch.Tensor, labels: torch.Tensor = LABELS) -> list[int]:
    return sorted(labels[rows].unique(return_counts=True)[1].tolist())


def test_m_per_class_draws_as_many_classes_as_fit() -> None:
    drawn = sampler(batch=8, per_class=4)
    seen = set()
    for _ in range(40):
        rows = drawn.draw()
        assert counts(rows) == [4, 4]
        assert len(set(rows.tolist())) == 8
        seen |= set(LABELS[rows].tolist())
    assert seen == {1, 4, 7}


def test_few_classes_share_the_batch_evenly() -> None:
    assert counts(sampler(batch=32, per_class=4).draw()) == [10, 11, 11]
    assert len(set(sampler(batch=32, per_class=4).draw().tolist())) == 32


def test_a_class_that_runs_out_repeats_its_samples_evenly() -> None:
    labels = torch.tensor([0] * 3 + [1] * 40)
    rows = sampler(batch=20, per_class=10, labels=labels).draw()
    assert counts(rows, labels) == [10, 10]
    repeats = rows[labels[rows] == 0].unique(return_counts=True)[1].tolist()
    assert sorted(repeats) == [3, 3, 4]


def test_uniform_draws_without_repeats_and_covers_everything() -> None:
    drawn = sampler(batch=60, per_class=0)
    rows = drawn.draw()
    assert len(set(rows.tolist())) == 60
    assert len({row for _ in range(20) for row in drawn.draw().tolist()}) == 100


def test_equal_seeds_draw_equal_batches() -> None:
    first, second = sampler(16, 4, seed=3), sampler(16, 4, seed=3)
    torch.rand(5)  # the global generator plays no part
    assert all(torch.equal(first.draw(), second.draw()) for _ in range(5))
    assert not torch.equal(sampler(16, 4, seed=4).draw(), sampler(16, 4, seed=3).draw())


def test_every_sample_of_a_class_is_as_likely_as_another() -> None:
    drawn = sampler(batch=8, per_class=4)
    hits = torch.zeros(100)
    for _ in range(2000):
        hits[drawn.draw()] += 1
    for label in (1, 4, 7):
        mine = hits[label == LABELS]
        assert mine.std() < 4 * mine.mean().sqrt()  # far from a sampler that favours some rows
        assert mine.min() > 0


def test_what_cannot_be_drawn_is_one_sentence() -> None:
    with pytest.raises(
        ParameterError, match="batch must be at most the 100 training points there are, got 101"
    ):
        sampler(batch=101, per_class=0)
    with pytest.raises(ParameterError, match="one class only; positives and negatives need at least two"):
        sampler(batch=4, per_class=2, labels=torch.zeros(20, dtype=torch.int64))
