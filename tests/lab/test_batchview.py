"""Which pairs of a batch are listed: the heaviest, and among equal weights the hardest."""

import math

import pytest
import torch

from lab.batchview import look_at_batch
from losslib.distances import CosineSimilarity, LpDistance
from losslib.losses import ContrastiveLoss, NTXentLoss

# Points on a line: class 0 at 0, 1 and 3, class 1 at 3.5 and 10. The margins ask for 0 and 2.
PLACES = torch.tensor([[0.0], [1.0], [3.0], [3.5], [10.0]])
LABELS = torch.tensor([0, 0, 0, 1, 1])
INDEX = torch.tensor([10, 11, 12, 13, 14])


def listed(loss, embeddings=PLACES, labels=LABELS):
    top = look_at_batch(loss, embeddings, labels, INDEX[: len(labels)]).view.top
    return [(pair.anchor, pair.other) for pair in top], top


def on_circle(*degrees):
    angles = torch.tensor(degrees) * math.pi / 180
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def test_equal_weights_list_the_farthest_positives_first():
    # positives at 1, 2, 3 and 6.5, each with weight 1 / 4; one negative below 2, at 0.5, with weight 1
    pairs, top = listed(ContrastiveLoss(neg_margin=2.0, distance=LpDistance(normalize_embeddings=False)))
    assert pairs == [(12, 13), (13, 14), (10, 12), (11, 12), (10, 11)]
    assert [pair.value for pair in top] == [0.5, 6.5, 3.0, 2.0, 1.0]
    assert top[0].share == pytest.approx(1 / 2)
    assert [pair.share for pair in top[1:]] == pytest.approx([1 / 8] * 4)


def test_equal_weights_list_the_nearest_negatives_first():
    # no positive violates a margin of 9; all negatives but the one at 10 are nearer than 9.5
    pairs, top = listed(
        ContrastiveLoss(pos_margin=9.0, neg_margin=9.5, distance=LpDistance(normalize_embeddings=False))
    )
    assert pairs == [(12, 13), (11, 13), (10, 13), (12, 14), (11, 14)]
    assert [pair.value for pair in top] == [0.5, 2.5, 3.5, 7.0, 9.0]


def test_for_a_similarity_the_smallest_positive_comes_first():
    embeddings, labels = on_circle(0.0, 20.0, 50.0), torch.tensor([0, 0, 0])
    loss = ContrastiveLoss(pos_margin=1.0, neg_margin=0.0, distance=CosineSimilarity())
    assert listed(loss, embeddings, labels)[0] == [(10, 12), (11, 12), (10, 11)]


def test_unequal_weights_are_listed_by_weight_alone():
    _, top = listed(NTXentLoss(temperature=0.5), on_circle(0.0, 60.0, 100.0, 170.0, 280.0))
    shares = [pair.share for pair in top]
    assert shares == sorted(shares, reverse=True)
    assert len(set(shares)) > 4
