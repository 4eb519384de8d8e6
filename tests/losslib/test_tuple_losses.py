"""Pair, tuple and ranking losses beyond the first ten: values by hand, blocks, memory, refusals."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from losslib import catalog, losses
from losslib.distances import CosineSimilarity, DotProductSimilarity, LpDistance, SNRDistance
from tests.oracles import oracle
from tests.oracles.softmax import multi_supcon_of_sets
from tests.oracles.triplet import gaps_of, histogram_of, weighed_by


def rows(count: int, seed: int, size: int = 5) -> Tensor:
    return torch.randn(count, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def at(*degrees: float) -> Tensor:
    """Unit rows of the plane at these angles."""
    angles = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def value(name: str, x: Tensor, labels: Any, *more: Any, **options: Any) -> float:
    return float(catalog.get(name)(**options)(x, labels, *more).detach())


PAIR = (torch.tensor([0]), torch.tensor([1]), torch.tensor([2]))  # anchor 0, positive 1, negative 2


def cos(degrees: float) -> float:
    return math.cos(math.radians(degrees))


class TestByHand:
    def test_circle(self) -> None:
        # positive and negative at similarity 0.6: the positive is at 1 - m, the negative 0.2 above m
        x = at(0, math.degrees(math.acos(0.6)), -math.degrees(math.acos(0.6)))
        want = math.log(1 + math.exp(0.2))
        assert value("CircleLoss", x, None, PAIR, gamma=1.0) == pytest.approx(want, rel=1e-12)

    def test_tuplet_margin_lets_the_positive_be_thirty_degrees_farther(self) -> None:
        want = math.log(1 + math.exp(0 - cos(30)))
        got = value("TupletMarginLoss", at(0, 60, 90), None, PAIR, margin=30.0, scale=1.0)
        assert got == pytest.approx(want, rel=1e-12)

    def test_a_positive_within_the_tuplet_margin_is_pushed_away(self) -> None:
        x = at(0, 3, 90).requires_grad_()
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
        got = value("NCALoss", at(0, 0, 180, 90), torch.tensor([0, 0, 0, 1]))
        first = math.log(1 + math.exp(-2) / (1 + math.exp(-4)))  # of rows 0 and 1
        third = math.log(1 + math.exp(-2) / (2 * math.exp(-4)))  # of row 2
        assert got == pytest.approx((2 * first + third) / 3, rel=1e-12)

    def test_n_pairs_takes_one_pair_a_class(self) -> None:
        x, labels = at(0, 0, 90, 90, 200), torch.tensor([0, 0, 1, 1, 0])
        assert value("NPairsLoss", x, labels) == pytest.approx(math.log(1 + math.exp(-1)), rel=1e-12)
        assert value("NPairsLoss", x[[4, 0, 1, 2, 3]], labels[[4, 0, 1, 2, 3]]) != pytest.approx(
            0.3133, abs=0.1
        )

    def test_lifted_structure_counts_the_negatives_of_both_members(self) -> None:
        # positive at distance 1; its members have one negative each, at distance 1 (60 degrees)
        got = value("LiftedStructureLoss", at(0, 60, 120, -60), torch.tensor([0, 0, 1, 2]))
        far = 1 - 2 * math.sin(math.radians(60))  # the other negative of each member, at 120 degrees
        hinge = math.log(2 * math.exp(0) + 2 * math.exp(far)) + 1
        assert got == pytest.approx(hinge**2 / 2, rel=1e-12)

    def test_lifted_structure_without_negatives_is_zero(self) -> None:
        x = at(0, 60, 120).requires_grad_()
        found = losses.LiftedStructureLoss()(x, torch.zeros(3, dtype=torch.int64))
        found.backward()
        assert float(found.detach()) == 0.0
        assert not x.grad.any()  # type: ignore[union-attr]

    def test_generalized_lifted_structure(self) -> None:
        # anchor 0: positive at distance 1, negative at sqrt(2)
        want = 1 + 1 - math.sqrt(2)
        assert value("GeneralizedLiftedStructureLoss", at(0, 60, 90), None, PAIR) == pytest.approx(want)

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
        got = value("IntraPairVarianceLoss", at(0, first, -second), None, listed)
        assert got == pytest.approx((0.99 * 0.7 - 0.6) ** 2 / 2, rel=1e-9)

    def test_fast_ap_of_a_positive_and_a_negative_at_one_distance(self) -> None:
        assert value("FastAPLoss", at(0, 40, -40), None, PAIR) == pytest.approx(
            # both are shared by the same two bins: shares u and v of each
            self.two_in_the_same_bins(2 - 2 * cos(40)),
            rel=1e-12,
        )

    @staticmethod
    def two_in_the_same_bins(squared: float) -> float:
        upper = squared / 0.4 - math.floor(squared / 0.4)
        lower = 1 - upper
        return 1 - (lower * lower / (2 * lower) + upper * 1 / 2)

    def test_smooth_ap_ranks_the_anchor_first(self) -> None:
        # a negative as similar as the only positive: ranks 1 of 1 and 2 of 2.5
        assert value("SmoothAPLoss", at(0, 40, -40), None, PAIR) == pytest.approx(
            1 - (1 + 2 / 2.5) / 2, rel=1e-9
        )

    def test_histogram_is_the_chance_of_a_reversed_pair(self) -> None:
        # bins of width 1 over cosines; positives at 0, negatives at -1 and 1
        listed = tuple(torch.tensor(part) for part in ([0, 0], [1, 1], [2, 3]))
        got = value("HistogramLoss", at(0, 90, 0, 180), None, listed, num_bins=2)
        assert got == pytest.approx(0.5, rel=1e-12)

    def test_ranked_list(self) -> None:
        # alpha 1.2, margin 0.4: both pairs at distance 1 are 0.2 on the wrong side
        assert value("RankedListLoss", at(0, 60, -60), None, PAIR) == pytest.approx(
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
        got = value("PNPLoss", at(0, 40, -40), None, PAIR, variant=variant)
        assert got == pytest.approx(of_half / 2, rel=1e-9)  # none before the anchor itself

    def test_pnp_without_positives_is_zero_for_every_variant(self) -> None:
        for variant in ("O", "Ds", "Dq", "Iu", "Ib"):
            assert value("PNPLoss", at(0, 40, 80), torch.arange(3), variant=variant) == 0.0

    def test_dynamic_soft_margin_of_one_triplet(self) -> None:
        chord = [2 * math.degrees(math.asin(d / 2)) for d in (0.5, 1.5)]
        got = value("DynamicSoftMarginLoss", at(0, chord[0], -chord[1]), None, PAIR)
        assert got == pytest.approx(-1 * 0.5, rel=1e-9)  # the middle of the third bin of ten

    def test_selectively_contrastive_triplets(self) -> None:
        hard = at(0, math.degrees(math.acos(0.4)), -math.degrees(math.acos(0.7)))
        assert value("SelectivelyContrastiveTripletLoss", hard, None, PAIR) == pytest.approx(0.7, rel=1e-9)
        easy = hard[[0, 2, 1]]
        want = math.log(1 + math.exp((0.4 - 0.7) / 0.1))
        assert value("SelectivelyContrastiveTripletLoss", easy, None, PAIR) == pytest.approx(want, rel=1e-9)


class TestBlocks:
    """Sizes and options at which sums go block by block, against dense forms."""

    LABELS = torch.cat([torch.zeros(75, dtype=torch.int64), torch.arange(1, 26).repeat(3)])

    @staticmethod
    def check(loss: Any, expected: Any, x: Tensor, rtol: float = 1e-9) -> None:
        leaf, other = x.clone().requires_grad_(), x.clone().requires_grad_()
        got, want = loss(leaf), expected(other)
        torch.testing.assert_close(got, want, rtol=rtol, atol=0)
        got.backward()
        want.backward()
        scale = float(other.grad.abs().max())  # type: ignore[union-attr]
        torch.testing.assert_close(leaf.grad, other.grad, rtol=0, atol=1e3 * rtol * scale)

    def cubes(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Cosines, and masks of the own class (with the row itself) and of the others."""
        unit = torch.nn.functional.normalize(x, dim=1)
        same = self.LABELS[:, None] == self.LABELS
        return unit @ unit.T, same, ~same

    def test_smooth_ap_and_pnp(self) -> None:
        def counted(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            s, same, other = self.cubes(x)
            before = torch.sigmoid((s[:, None, :] - s[:, :, None]) / 0.05)  # anchor, item, other
            near = (before * same[:, None, :]).sum(2) + 0.5
            return near, (before * other[:, None, :]).sum(2), same.double()

        def smooth_ap(x: Tensor) -> Tensor:
            near, far, same = counted(x)
            return (1 - (near / (near + far) * same).sum(1) / same.sum(1)).mean()

        def pnp(x: Tensor) -> Tensor:
            _, far, same = counted(x)
            return ((far * same).sum(1) / same.sum(1)).mean()

        x = rows(150, 1)
        self.check(lambda leaf: losses.SmoothAPLoss(temperature=0.05)(leaf, self.LABELS), smooth_ap, x)
        self.check(lambda leaf: losses.PNPLoss(anneal=0.05)(leaf, self.LABELS), pnp, x)

    def test_selectively_contrastive_triplets(self) -> None:
        def expected(x: Tensor) -> Tensor:
            s, same, other = self.cubes(x)
            near, far = s[:, :, None], s[:, None, :]
            values = torch.where(
                far > near, far, torch.nn.functional.softplus((far - near) / 0.1, threshold=60)
            )
            positive = same & ~torch.eye(len(x), dtype=torch.bool)
            return values[positive[:, :, None] & other[:, None, :]].mean()

        loss = losses.SelectivelyContrastiveTripletLoss()
        self.check(lambda leaf: loss(leaf, self.LABELS), expected, rows(150, 2))

    def test_dynamic_soft_margin(self) -> None:
        def expected(x: Tensor) -> Tensor:
            s, same, other = self.cubes(x)
            d = (2 - 2 * s).clamp_min(1e-30).sqrt()
            positive = same & ~torch.eye(len(x), dtype=torch.bool)
            gaps = (d[:, :, None] - d[:, None, :])[positive[:, :, None] & other[:, None, :]]
            place = (gaps.detach() + 2) / 0.4
            below = place.floor().long()
            share = place - below
            nodes = torch.zeros(11, dtype=torch.float64).index_add(0, below, 1 - share)
            cdf = nodes.index_add(0, below + 1, share).cumsum(0) / len(gaps)
            return (cdf[below] * gaps).mean()

        self.check(
            lambda leaf: losses.DynamicSoftMarginLoss().double()(leaf, self.LABELS),
            expected,
            rows(150, 3),
            1e-7,
        )

    @pytest.mark.parametrize("alpha", [85.0, 70.0, 60.0])
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
    def test_angular_at_wide_angles_sums_in_logarithms(self, alpha: float, dtype: torch.dtype) -> None:
        x, labels = rows(12, 4), torch.arange(4).repeat(3)
        want = float(oracle("AngularLoss").value(x, labels, options={"alpha": alpha}))
        got = losses.AngularLoss(alpha=alpha)(x.to(dtype), labels)
        assert float(got) == pytest.approx(want, rel=1e-9 if dtype == torch.float64 else 1e-4)


class TestMemory:
    """The memory of the dynamic soft margin loss."""

    def test_a_second_batch_moves_it_by_the_momentum(self) -> None:
        loss = losses.DynamicSoftMarginLoss(momentum=0.25).double()
        labels = torch.tensor([0, 0, 1, 1, 0])
        first, second = rows(5, 10), rows(5, 11)
        loss(first, labels)
        batches = [oracle("DynamicSoftMarginLoss").batch(x, labels) for x in (first, second)]
        before, own = (histogram_of(gaps_of(batch), -2.0, 10) for batch in batches)
        memory = [0.75 * m + 0.25 * h for m, h in zip(before, own, strict=True)]
        want = weighed_by(gaps_of(batches[1]), memory, -2.0, batches[1])["loss"].values[0]
        assert float(loss(second, labels)) == pytest.approx(float(want), rel=1e-9)
        assert loss.histogram.tolist() == pytest.approx(memory, rel=1e-9)

    def test_only_a_call_in_training_mode_moves_it(self) -> None:
        loss, labels = losses.DynamicSoftMarginLoss(), torch.tensor([0, 0, 1, 1, 0])
        loss(rows(5, 10), labels)
        kept = loss.histogram.clone()
        loss.loss_terms(rows(5, 11), labels)
        loss.pair_weights(rows(5, 11), labels)
        loss.eval()(rows(5, 11), labels)
        loss.train()(rows(5, 11), torch.arange(5))  # no triplet
        assert torch.equal(loss.histogram, kept)
        with pytest.raises(ValueError, match="labels"):
            loss(rows(5, 11), labels[:4])
        assert torch.equal(loss.histogram, kept)
        loss(rows(5, 11), labels)
        assert not torch.equal(loss.histogram, kept)

    def test_it_survives_state_dict(self) -> None:
        loss, other = losses.DynamicSoftMarginLoss(), losses.DynamicSoftMarginLoss()
        loss(rows(5, 10), torch.tensor([0, 0, 1, 1, 0]))
        other.load_state_dict(loss.state_dict())
        assert torch.equal(other.histogram, loss.histogram)
        assert float(loss.histogram.sum()) == pytest.approx(1.0)


class TestLabelSets:
    SETS = ({0, 1}, {0, 1, 2}, {2}, {0}, set(), {1, 2})

    @classmethod
    def labels(cls, sets: Any = None) -> Tensor:
        chosen = cls.SETS if sets is None else sets
        return torch.tensor([[c in own for c in range(4)] for own in chosen])

    @pytest.mark.parametrize("threshold", [0.1, 0.5, 2 / 3, 1.0])
    def test_overlap_decides_and_weighs(self, threshold: float) -> None:
        x = rows(6, 20).requires_grad_()
        options = {"temperature": 0.3, "threshold": threshold}
        want = multi_supcon_of_sets(x, list(self.SETS), x, list(self.SETS), True, **options)
        got = losses.MultiSupConLoss(**options)(x, self.labels())
        assert float(got.detach()) == pytest.approx(float(want.detach()), rel=1e-9)
        if float(want.detach()):
            slopes = (torch.autograd.grad(y, x)[0] for y in (got, want))
            torch.testing.assert_close(*slopes, rtol=1e-8, atol=1e-12)

    def test_a_reference_set_has_sets_too(self) -> None:
        x, r, others = rows(6, 20), rows(3, 21), [{0, 1}, {2}, {3}]
        want = multi_supcon_of_sets(x, list(self.SETS), r, others, False)
        loss = losses.MultiSupConLoss()
        got = loss(x, self.labels(), ref_emb=r, ref_labels=self.labels(others))
        assert float(got) == pytest.approx(float(want), rel=1e-9)
        weights = loss.pair_weights(x, self.labels(), ref_emb=r, ref_labels=self.labels(others))
        assert weights.positive.nonzero().tolist() == [[0, 0], [1, 0], [2, 1], [3, 0], [5, 1]]

    def test_one_label_a_sample_is_sup_con(self) -> None:
        x, labels = rows(6, 20), torch.tensor([0, 1, 0, 1, 2, 2])
        one_hot = torch.nn.functional.one_hot(labels).bool()
        want = float(losses.SupConLoss()(x, labels))
        assert float(losses.MultiSupConLoss()(x, labels)) == pytest.approx(want, rel=1e-12)
        assert float(losses.MultiSupConLoss()(x, one_hot)) == pytest.approx(want, rel=1e-12)

    def test_what_are_no_sets_is_refused(self) -> None:
        loss, x = losses.MultiSupConLoss(), rows(6, 20)
        with pytest.raises(ValueError, match="MultiSupConLoss: labels must have shape"):
            loss(x, self.labels().long())
        with pytest.raises(ValueError, match=r"labels must have shape \(6,\).*got \(5,\)"):
            loss(x, self.labels()[:5])
        with pytest.raises(ValueError, match="both be boolean label sets"):
            loss(x, self.labels(), ref_emb=x, ref_labels=torch.arange(6))
        with pytest.raises(ValueError, match="4 columns"):
            loss(x, self.labels(), ref_emb=x, ref_labels=self.labels()[:, :3])


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
