"""The two triplet losses: values worked out by hand, and the document's own class."""

import math

import pytest
import torch
from torch import Tensor

from losslib.distances import LpDistance
from losslib.losses import (
    TripletLoss,
    TripletMarginLoss,
)
from losslib.reducers import DoNothingReducer, MeanReducer, SumReducer
from losslib.types import TripletIndices
from tests.losslib.circle import cosine, on_circle

LINE = torch.tensor([[0.0], [0.5], [0.25], [2.0]], dtype=torch.float64)  # on a line, un-normalised
LABELS = torch.tensor([0, 0, 1, 1])
PLAIN = LpDistance(normalize_embeddings=False)


class DocumentTriplet(torch.nn.Module):
    """The document's own code."""

    def __init__(self, margin: float = 0.35) -> None:
        super().__init__()
        self.cos_sim = torch.nn.CosineSimilarity()
        self.margin = margin

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        pos_dist = 1 - self.cos_sim(anchor, positive)
        neg_dist = 1 - self.cos_sim(anchor, negative)
        dists = pos_dist - neg_dist + self.margin
        return torch.mean(torch.maximum(dists, torch.zeros_like(dists)))


class TestTriplet:
    def test_the_direct_form_is_the_document_s(self) -> None:
        anchor, positive, negative = (torch.randn(20, 5, dtype=torch.float64) for _ in range(3))
        torch.testing.assert_close(
            TripletLoss()(anchor, positive, negative), DocumentTriplet()(anchor, positive, negative)
        )
        torch.testing.assert_close(
            TripletLoss(0.1)(anchor=anchor, positive=positive, negative=negative),
            DocumentTriplet(0.1)(anchor, positive, negative),
        )

    def test_the_euclidean_form_is_torch_s(self) -> None:
        anchor, positive, negative = (torch.randn(20, 5, dtype=torch.float64) for _ in range(3))
        ours = TripletLoss(margin=1.0, distance=PLAIN)
        torch.testing.assert_close(
            ours(anchor, positive, negative),
            torch.nn.TripletMarginLoss(margin=1.0, eps=0.0)(anchor, positive, negative),
        )

    def test_labels_take_all_triplets_in_the_mean(self) -> None:
        x, y = on_circle(0, 60, 90), torch.tensor([0, 0, 1])
        hinges = [max(0.0, cosine(90) - 0.5 + 0.35), max(0.0, cosine(30) - 0.5 + 0.35)]
        assert TripletLoss()(x, y).item() == pytest.approx(sum(hinges) / 2)

    def test_terms_of_the_direct_form(self) -> None:
        rows = torch.randn(3, 2)
        terms = TripletLoss(reducer=DoNothingReducer())(rows, rows, rows)
        assert terms["loss"].losses.tolist() == pytest.approx([0.35] * 3)
        assert terms["loss"].indices.tolist() == [0, 1, 2]


class TestTripletMargin:
    def test_by_hand(self) -> None:
        # anchor 0: +0.5 against 0.25 and 2; anchor 0.5: +0.5 against 0.25 and 1.5;
        # anchor 0.25: +1.75 against 0.25 and 0.25; anchor 2: +1.75 against 2 and 1.5
        hinges = [0.45, 0.0, 0.45, 0.0, 1.7, 1.7, 0.0, 0.45]
        loss = TripletMarginLoss(margin=0.2, distance=PLAIN)
        assert loss(LINE, LABELS).item() == pytest.approx(sum(hinges) / 5)
        loss.reducer = MeanReducer()
        assert loss(LINE, LABELS).item() == pytest.approx(sum(hinges) / 8)
        loss.reducer = SumReducer()
        assert loss(LINE, LABELS).item() == pytest.approx(sum(hinges))

    def test_swap_takes_the_nearer_of_anchor_and_positive(self) -> None:
        # the negative at 2 is 2 from the anchor and 1.5 from the positive
        given = TripletIndices(torch.tensor([0]), torch.tensor([1]), torch.tensor([3]))
        plain = TripletMarginLoss(margin=2.0, distance=PLAIN)
        swapped = TripletMarginLoss(margin=2.0, swap=True, distance=PLAIN)
        assert plain(LINE, None, given).item() == pytest.approx(0.5 - 2 + 2)
        assert swapped(LINE, None, given).item() == pytest.approx(0.5 - 1.5 + 2)

    def test_swap_with_a_reference_compares_references(self) -> None:
        anchors, references = LINE[:1], torch.tensor([[0.5], [0.75]], dtype=torch.float64)
        loss = TripletMarginLoss(margin=1.0, swap=True, distance=PLAIN)
        value = loss(anchors, LABELS[:1], None, references, torch.tensor([0, 1]))
        assert value.item() == pytest.approx(0.5 - 0.25 + 1.0)

    def test_smooth(self) -> None:
        given = TripletIndices(torch.tensor([0]), torch.tensor([1]), torch.tensor([3]))
        loss = TripletMarginLoss(margin=0.2, smooth_loss=True, distance=PLAIN)
        assert loss(LINE, None, given).item() == pytest.approx(math.log(1 + math.exp(0.5 - 2 + 0.2)))

    def test_smooth_stays_exact_where_it_is_nearly_linear(self) -> None:
        x = torch.tensor([[0.0], [25.0], [0.0]], dtype=torch.float64)
        value = TripletMarginLoss(margin=0.0, smooth_loss=True, distance=PLAIN)
        given = TripletIndices(torch.tensor([0]), torch.tensor([1]), torch.tensor([2]))
        assert value(x, None, given).item() == pytest.approx(25 + math.log1p(math.exp(-25)), rel=1e-15)

    def test_sampling_draws_exactly_k(self) -> None:
        x, y = torch.randn(10, 3), torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 2, 3])
        indices = TripletMarginLoss(triplets_per_anchor=4).loss_terms(x, y)["loss"].indices
        assert torch.bincount(indices.anchors, minlength=10).tolist() == [4] * 9 + [0]
        assert bool((y[indices.anchors] == y[indices.positives]).all())
        assert bool((indices.anchors != indices.positives).all())
        assert bool((y[indices.anchors] != y[indices.negatives]).all())

    def test_given_triplets_are_taken_as_they_are(self) -> None:
        given = TripletIndices(torch.tensor([0]), torch.tensor([1]), torch.tensor([3]))
        terms = TripletMarginLoss(triplets_per_anchor=7).loss_terms(LINE, LABELS, given)
        assert terms["loss"].losses.shape == (1,)
