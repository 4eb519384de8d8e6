"""Pair, tuple and ranking losses beyond the first ten: values by hand, refusals."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from losslib import catalog, losses
from losslib.distances import CosineSimilarity, DotProductSimilarity, LpDistance, SNRDistance
from tests.losslib.circle import cosine, on_circle


def rows(count: int, seed: int, size: int = 5) -> Tensor:
    return torch.randn(count, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def value(name: str, x: Tensor, labels: Any, *more: Any, **options: Any) -> float:
    return float(catalog.get(name)(**options)(x, labels, *more).detach())


PAIR = (torch.tensor([0]), torch.tensor([1]), torch.tensor([2]))  # anchor 0, positive 1, negative 2


class TestByHand:
    def test_circle(self) -> None:
        # positive and negative at similarity 0.6: the positive is at 1 - m, the negative 0.2 above m
        x = on_circle(0, math.degrees(math.acos(0.6)), -math.degrees(math.acos(0.6)))
        want = math.log(1 + math.exp(0.2))
        assert value("CircleLoss", x, None, PAIR, gamma=1.0) == pytest.approx(want, rel=1e-12)

    def test_tuplet_margin_lets_the_positive_be_thirty_degrees_farther(self) -> None:
        want = math.log(1 + math.exp(0 - cosine(30)))
        got = value("TupletMarginLoss", on_circle(0, 60, 90), None, PAIR, margin=30.0, scale=1.0)
        assert got == pytest.approx(want, rel=1e-12)

    def test_a_positive_within_the_tuplet_margin_is_pushed_away(self) -> None:
        x = on_circle(0, 3, 90).requires_grad_()
        losses.TupletMarginLoss(margin=10.0, scale=1.0)(x, None, PAIR).backward()
        assert x.grad is not None
        assert float(x.grad[1, 1]) < 0  # descending raises its angle

    def test_angular(self) -> None:
        # the negative is at right angles to anchor and positive, which have similarity 1/2
        x = torch.tensor([[1.0, 0.0, 0.0], [0.5, math.sqrt(0.75), 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
        want = math.log(1 + math.exp(-2))
        assert value("AngularLoss", x, None, PAIR, alpha=45.0) == pytest.approx(want, rel=1e-12)

    def test_nca_needs_only_one_of_two_positives(self) -> None:
        # squared distances: positives 0 and 4, negative 2
        got = value("NCALoss", on_circle(0, 0, 180, 90), torch.tensor([0, 0, 0, 1]))
        first = math.log(1 + math.exp(-2) / (1 + math.exp(-4)))  # of rows 0 and 1
        third = math.log(1 + math.exp(-2) / (2 * math.exp(-4)))  # of row 2
        assert got == pytest.approx((2 * first + third) / 3, rel=1e-12)

    def test_n_pairs_takes_one_pair_a_class(self) -> None:
        x, labels = on_circle(0, 0, 90, 90, 200), torch.tensor([0, 0, 1, 1, 0])
        assert value("NPairsLoss", x, labels) == pytest.approx(math.log(1 + math.exp(-1)), rel=1e-12)
        assert value("NPairsLoss", x[[4, 0, 1, 2, 3]], labels[[4, 0, 1, 2, 3]]) != pytest.approx(
            0.3133, abs=0.1
        )

    def test_lifted_structure_counts_the_negatives_of_both_members(self) -> None:
        # positive at distance 1; its members have one negative each, at distance 1 (60 degrees)
        got = value("LiftedStructureLoss", on_circle(0, 60, 120, -60), torch.tensor([0, 0, 1, 2]))
        far = 1 - 2 * math.sin(math.radians(60))  # the other negative of each member, at 120 degrees
        hinge = math.log(2 * math.exp(0) + 2 * math.exp(far)) + 1
        assert got == pytest.approx(hinge**2 / 2, rel=1e-12)

    def test_lifted_structure_without_negatives_is_zero(self) -> None:
        x = on_circle(0, 60, 120).requires_grad_()
        found = losses.LiftedStructureLoss()(x, torch.zeros(3, dtype=torch.int64))
        found.backward()
        assert float(found.detach()) == 0.0
        assert not x.grad.any()  # type: ignore[union-attr]

    def test_generalized_lifted_structure(self) -> None:
        # anchor 0: positive at distance 1, negative at sqrt(2)
        want = 1 + 1 - math.sqrt(2)
        assert value("GeneralizedLiftedStructureLoss", on_circle(0, 60, 90), None, PAIR) == pytest.approx(
            want
        )

    def test_noise_over_signal_is_not_symmetric(self) -> None:
        x = torch.tensor([[1.0, -1.0, 0.0], [2.0, -1.0, 0.5]], dtype=torch.float64)
        unit = x / x.norm(dim=1, keepdim=True)
        noise = (unit[0] - unit[1]).var(correction=0)
        for a in (0, 1):
            want = float(noise / unit[a].var(correction=0))
            pair = (torch.tensor([a]), torch.tensor([1 - a]), torch.tensor([], dtype=torch.int64))
            listed = (*pair[:2], pair[2], pair[2])
            assert value("SignalToNoiseRatioContrastiveLoss", x, None, listed) == pytest.approx(
                want, rel=1e-9
            )

    def test_intra_pair_variance_pulls_the_pair_short_of_the_mean(self) -> None:
        first, second = (math.degrees(math.acos(s)) for s in (0.8, 0.6))
        nothing = torch.tensor([], dtype=torch.int64)
        listed = (torch.tensor([0, 0]), torch.tensor([1, 2]), nothing, nothing)
        got = value("IntraPairVarianceLoss", on_circle(0, first, -second), None, listed)
        assert got == pytest.approx((0.99 * 0.7 - 0.6) ** 2 / 2, rel=1e-9)

    def test_fast_ap_of_a_positive_and_a_negative_at_one_distance(self) -> None:
        assert value("FastAPLoss", on_circle(0, 40, -40), None, PAIR) == pytest.approx(
            # both are shared by the same two bins: shares u and v of each
            self.two_in_the_same_bins(2 - 2 * cosine(40)),
            rel=1e-12,
        )

    @staticmethod
    def two_in_the_same_bins(squared: float) -> float:
        upper = squared / 0.4 - math.floor(squared / 0.4)
        lower = 1 - upper
        return 1 - (lower * lower / (2 * lower) + upper * 1 / 2)

    def test_smooth_ap_ranks_the_anchor_first(self) -> None:
        # a negative as similar as the only positive: ranks 1 of 1 and 2 of 2.5
        assert value("SmoothAPLoss", on_circle(0, 40, -40), None, PAIR) == pytest.approx(
            1 - (1 + 2 / 2.5) / 2, rel=1e-9
        )

    def test_histogram_is_the_chance_of_a_reversed_pair(self) -> None:
        # bins of width 1 over cosines; positives at 0, negatives at -1 and 1
        listed = tuple(torch.tensor(part) for part in ([0, 0], [1, 1], [2, 3]))
        got = value("HistogramLoss", on_circle(0, 90, 0, 180), None, listed, num_bins=2)
        assert got == pytest.approx(0.5, rel=1e-12)

    def test_ranked_list(self) -> None:
        # alpha 1.2, margin 0.4: both pairs at distance 1 are 0.2 on the wrong side
        assert value("RankedListLoss", on_circle(0, 60, -60), None, PAIR) == pytest.approx(
            (0.1 + 0.1) / 3, rel=1e-12
        )

    @pytest.mark.parametrize(
        ("variant", "of_half"),
        [
            ("O", 0.5),
            ("Ds", math.log(1.5)),
            ("Dq", 1 - 1 / 1.5),
            ("Iu", 1.5 * math.log(1.5)),
            ("Ib", (1 - math.log(2)) / 4),
        ],
    )
    def test_pnp_of_half_a_negative_before_the_positive(self, variant: str, of_half: float) -> None:
        got = value("PNPLoss", on_circle(0, 40, -40), None, PAIR, variant=variant)
        assert got == pytest.approx(of_half / 2, rel=1e-9)  # none before the anchor itself

    def test_pnp_without_positives_is_zero_for_every_variant(self) -> None:
        for variant in ("O", "Ds", "Dq", "Iu", "Ib"):
            assert value("PNPLoss", on_circle(0, 40, 80), torch.arange(3), variant=variant) == 0.0

    def test_dynamic_soft_margin_of_one_triplet(self) -> None:
        chord = [2 * math.degrees(math.asin(d / 2)) for d in (0.5, 1.5)]
        got = value("DynamicSoftMarginLoss", on_circle(0, chord[0], -chord[1]), None, PAIR)
        assert got == pytest.approx(-1 * 0.5, rel=1e-9)  # the middle of the third bin of ten

    def test_selectively_contrastive_triplets(self) -> None:
        hard = on_circle(0, math.degrees(math.acos(0.4)), -math.degrees(math.acos(0.7)))
        assert value("SelectivelyContrastiveTripletLoss", hard, None, PAIR) == pytest.approx(0.7, rel=1e-9)
        easy = hard[[0, 2, 1]]
        want = math.log(1 + math.exp((0.4 - 0.7) / 0.1))
        assert value("SelectivelyContrastiveTripletLoss", easy, None, PAIR) == pytest.approx(want, rel=1e-9)


REFUSED = [
    ("CircleLoss", LpDistance()),
    ("TupletMarginLoss", LpDistance()),
    ("TupletMarginLoss", DotProductSimilarity()),
    ("AngularLoss", LpDistance(normalize_embeddings=False)),
    ("AngularLoss", LpDistance(power=2)),
    ("AngularLoss", DotProductSimilarity()),
    ("SignalToNoiseRatioContrastiveLoss", CosineSimilarity()),
    ("FastAPLoss", LpDistance(normalize_embeddings=False)),
    ("FastAPLoss", SNRDistance()),
    ("SmoothAPLoss", LpDistance()),
    ("HistogramLoss", DotProductSimilarity()),
    ("RankedListLoss", CosineSimilarity()),
    ("PNPLoss", LpDistance()),
]


@pytest.mark.parametrize(("name", "distance"), REFUSED)
def test_a_distance_without_a_meaning_is_refused_at_construction_and_later(name: str, distance: Any) -> None:
    with pytest.raises(TypeError, match=f"{name}: distance must be"):
        catalog.get(name)(distance=distance)
    made = catalog.get(name)()
    with pytest.raises(TypeError, match=f"{name}: distance must be"):
        made.distance = distance


@pytest.mark.parametrize("name", ["DynamicSoftMarginLoss", "HistogramLoss", "PNPLoss"])
def test_a_loss_without_a_reducer_takes_none(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: has no option 'reducer'"):
        catalog.get(name)(reducer=None)
