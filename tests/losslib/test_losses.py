"""Values worked out by hand from the equations, and what each document says of its loss."""

import math

import pytest
import torch

from losslib import catalog
from losslib.base import BaseLoss, PairLoss
from losslib.distances import CosineSimilarity, DotProductSimilarity, LpDistance
from losslib.losses import (
    CenterLoss,
    ContrastiveLoss,
    CosineEmbeddingLoss,
    DecoupledContrastiveLoss,
    LargeMarginSoftmaxLoss,
    MultiSimilarityLoss,
    NTXentLoss,
    SphereFaceLoss,
    SupConLoss,
    ThresholdConsistentMarginLoss,
)
from losslib.reducers import MeanReducer, SumReducer
from tests.losslib.circle import cosine, on_circle

PAIR_LOSSES = [name for name, cls in catalog.losses().items() if issubclass(cls, PairLoss)]
LINE = torch.tensor([[0.0], [0.5], [0.25], [2.0]], dtype=torch.float64)  # on a line, un-normalised
LABELS = torch.tensor([0, 0, 1, 1])
PLAIN = LpDistance(normalize_embeddings=False)


class TestContrastive:
    def test_by_hand(self) -> None:
        # positives 0.5 and 1.75 apart, each twice; negatives 0.25, 2, 0.25, 1.5: two hinges of 0.75
        loss = ContrastiveLoss(distance=PLAIN)
        assert loss(LINE, LABELS).item() == pytest.approx((0.5 + 1.75) / 2 + 0.75)
        loss.pos_margin = 1.0
        assert loss(LINE, LABELS).item() == pytest.approx(0.75 + 0.75)

    def test_squared(self) -> None:
        loss = ContrastiveLoss(squared=True, distance=PLAIN)
        expected = (0.5**2 / 2 + 1.75**2 / 2) / 2 + 0.75**2 / 2
        assert loss(LINE, LABELS).item() == pytest.approx(expected)

    def test_a_similarity_turns_the_inequalities(self) -> None:
        loss = ContrastiveLoss(pos_margin=1, neg_margin=0, distance=CosineSimilarity())
        x = on_circle(0, 60, 30, 120)
        positive = 1 - cosine(60), 1 - cosine(90)
        negative = [s for s in (cosine(30), cosine(120), cosine(30), cosine(60)) if s > 0]
        expected = sum(positive) / 2 + sum(negative) / 3
        assert loss(x, LABELS).item() == pytest.approx(expected)

    def test_a_similarity_with_the_defaults_of_a_distance_warns_once(self) -> None:
        with pytest.warns(UserWarning, match="use values such as pos_margin=1, neg_margin=0") as caught:
            loss = ContrastiveLoss(distance=CosineSimilarity())
        loss(on_circle(0, 60, 30, 120), LABELS)  # a second warning would be an error here
        assert len(caught) == 1
        assert caught[0].filename == __file__


def test_nt_xent_takes_each_positive_alone_against_the_negatives() -> None:
    x, y = on_circle(0, 40, 70, 180), torch.tensor([0, 0, 0, 1])
    tau = 0.5
    expected = []
    angles = (0, 40, 70)
    for a in angles:
        negative = math.exp(cosine(180 - a) / tau)
        for p in angles:
            if p != a:
                positive = math.exp(cosine(a - p) / tau)
                expected.append(-math.log(positive / (positive + negative)))
    # the last row has no positive
    assert NTXentLoss(temperature=tau)(x, y).item() == pytest.approx(sum(expected) / 6)


def test_nt_xent_counts_a_pair_without_negatives_as_zero() -> None:
    pairs = torch.tensor([0, 2]), torch.tensor([1, 3]), torch.tensor([0]), torch.tensor([2])
    x = on_circle(0, 60, 90, 100)
    loss = NTXentLoss(temperature=1.0)
    only = math.log(1 + math.exp(cosine(90) - cosine(60)))
    assert loss(x, None, pairs).item() == pytest.approx(only / 2)
    assert loss.loss_terms(x, None, pairs)["loss"].losses.tolist() == pytest.approx([only, 0.0])


def test_a_pair_given_twice_counts_twice_in_per_pair_losses_and_once_in_per_anchor_ones() -> None:
    x = on_circle(0, 20, 50, 90)
    once = torch.tensor([0, 0]), torch.tensor([1, 2]), torch.tensor([0]), torch.tensor([3])
    twice = torch.tensor([0, 0, 0]), torch.tensor([1, 2, 1]), torch.tensor([0, 0]), torch.tensor([3, 3])
    for per_anchor in (SupConLoss(), MultiSimilarityLoss()):
        assert per_anchor(x, None, once).item() == per_anchor(x, None, twice).item()
    pull = ContrastiveLoss(reducer=SumReducer()).loss_terms(x, None, twice)["pos_loss"].losses
    assert pull.tolist() == pytest.approx([2 * math.sin(math.radians(a / 2)) for a in (20, 50, 20)])
    # NT-Xent: the doubled negative weighs twice, the doubled positive is two terms
    terms = [math.log(1 + 2 * math.exp(cosine(90) - cosine(a))) for a in (20, 50, 20)]
    assert NTXentLoss(temperature=1.0)(x, None, twice).item() == pytest.approx(sum(terms) / 3)


def test_sup_con_has_all_positives_in_the_denominator() -> None:
    x, y = on_circle(0, 40, 180), torch.tensor([0, 0, 0])
    tau, expected = 0.5, []
    for a, others in ((0, (40, 180)), (40, (0, 180)), (180, (0, 40))):
        logits = [cosine(a - o) / tau for o in others]
        total = math.log(sum(math.exp(v) for v in logits))
        expected.append(total - sum(logits) / 2)
    assert SupConLoss(temperature=tau)(x, y).item() == pytest.approx(sum(expected) / 3)  # one class


def test_multi_similarity_averages_over_anchors_with_a_pair() -> None:
    x = on_circle(0, 60, 90)
    pairs = torch.tensor([0]), torch.tensor([1]), torch.tensor([0]), torch.tensor([2])
    loss = MultiSimilarityLoss(alpha=2, beta=5, base=0.5)
    expected = math.log(1 + math.exp(-2 * (0.5 - 0.5))) / 2 + math.log(1 + math.exp(5 * (0 - 0.5))) / 5
    assert loss(x, None, pairs).item() == pytest.approx(expected)  # the other two rows have none
    assert loss.loss_terms(x, None, pairs)["loss"].indices.tolist() == [0]
    only_negatives = loss.loss_terms(x, torch.arange(3))["loss"]
    push = math.log(1 + math.exp(5 * (cosine(60) - 0.5)) + math.exp(5 * (0 - 0.5))) / 5
    assert only_negatives.losses[0].item() == pytest.approx(push)


class TestDecoupled:
    x = on_circle(0, 40, 90, 200)
    y = torch.tensor([0, 0, 1, 2])

    def test_by_hand(self) -> None:
        tau, values = 0.5, []
        for a, p in ((0, 40), (40, 0)):
            push = math.log(math.exp(cosine(90 - a) / tau) + math.exp(cosine(200 - a) / tau))
            values.append(push - cosine(a - p) / tau)
        assert DecoupledContrastiveLoss(temperature=tau)(self.x, self.y).item() == pytest.approx(
            sum(values) / 2
        )

    def test_it_may_be_negative(self) -> None:
        assert DecoupledContrastiveLoss()(on_circle(0, 0, 180), torch.tensor([0, 0, 1])).item() < -5

    def test_sigma_weighs_hard_positives_and_is_part_of_the_graph(self) -> None:
        x, y = on_circle(0, 40, 100, 200).requires_grad_(), torch.tensor([0, 0, 0, 1])
        sigma, tau = 0.5, 0.2
        loss = DecoupledContrastiveLoss(temperature=tau, sigma=sigma)
        pairs = [(a, p) for a in (0, 1, 2) for p in (0, 1, 2) if a != p]
        mean = sum((torch.dot(x[a], x[p]) / sigma).exp() for a, p in pairs) / 6
        values = []
        for a, p in pairs:
            s = torch.dot(x[a], x[p])
            weight = 2 - (s / sigma).exp() / mean
            values.append(-weight * s / tau + torch.dot(x[a], x[3]) / tau)
        expected = torch.stack(values).mean()
        got = loss(x, y)
        torch.testing.assert_close(got, expected)
        # on the unit circle the true gradient is the tangential part of the plain one
        plain = torch.autograd.grad(expected, x)[0]
        tangential = plain - x * (plain * x).sum(1, keepdim=True)
        torch.testing.assert_close(torch.autograd.grad(got, x)[0], tangential.detach())

    def test_pairs_without_negatives_stay_in_the_expectation(self) -> None:
        x = on_circle(0, 60, 90, 100)
        given = torch.tensor([0, 2]), torch.tensor([1, 3]), torch.tensor([0]), torch.tensor([2])
        mean = (math.exp(cosine(60)) + math.exp(cosine(10))) / 2
        weight = 2 - math.exp(cosine(60)) / mean
        loss = DecoupledContrastiveLoss(temperature=1.0, sigma=1.0)
        assert loss(x, None, given).item() == pytest.approx(-weight * cosine(60) + cosine(90))

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_a_tiny_sigma_does_not_overflow(self, dtype: torch.dtype) -> None:
        x = on_circle(0, 40, 41, 200, 0.1).to(dtype).requires_grad_()
        y = torch.tensor([0, 0, 0, 1, 2])  # a negative far more similar than any positive
        value = DecoupledContrastiveLoss(sigma=0.0005)(x, y)
        value.backward()
        assert bool(value.isfinite())
        assert x.grad is not None
        assert bool(x.grad.isfinite().all())

    def test_sigma_to_infinity_is_the_plain_loss(self) -> None:
        plain, weighted = DecoupledContrastiveLoss(), DecoupledContrastiveLoss(sigma=1e9)
        torch.testing.assert_close(weighted(self.x, self.y), plain(self.x, self.y), rtol=1e-7, atol=0)

    def test_a_distance_is_negated(self) -> None:
        x, y = torch.tensor([[0.0], [1.0], [3.0]], dtype=torch.float64), torch.tensor([0, 0, 1])
        value = DecoupledContrastiveLoss(temperature=1.0, distance=PLAIN)(x, y)
        assert value.item() == pytest.approx(((1 - 3) + (1 - 2)) / 2)


class TestThresholdConsistentMargin:
    def test_by_hand(self) -> None:
        x, y = on_circle(0, 10, 60, 61), torch.tensor([0, 0, 0, 1])
        loss = ThresholdConsistentMarginLoss(lambda_plus=2.0, lambda_minus=3.0)
        low = [0.9 - s for s in (cosine(10), cosine(60), cosine(50)) if s <= 0.9]
        high = [s - 0.5 for s in (cosine(61), cosine(51), cosine(1)) if s >= 0.5]
        expected = 2 * sum(low) / len(low) + 3 * sum(high) / len(high)
        assert loss(x, y).item() == pytest.approx(expected)

    def test_a_pair_at_its_threshold_counts_in_the_mean(self) -> None:
        x = torch.tensor([[1.0], [0.5], [0.25]])
        given = torch.tensor([0, 0]), torch.tensor([1, 2]), torch.tensor([0, 0]), torch.tensor([1, 2])
        loss = ThresholdConsistentMarginLoss(
            margin_plus=0.5, margin_minus=0.25, distance=DotProductSimilarity()
        )
        assert loss(x, None, given).item() == pytest.approx((0 + 0.25) / 2 + (0.25 + 0) / 2)

    def test_it_reduces_its_own_value(self) -> None:
        loss = ThresholdConsistentMarginLoss()
        term = loss.loss_terms(on_circle(0, 90), torch.tensor([0, 0]))["loss"]
        assert term.indices is None
        assert term["losses"].item() == pytest.approx(0.9)
        assert ThresholdConsistentMarginLoss.default_reducer() is None
        with pytest.raises(TypeError, match="ThresholdConsistentMarginLoss: has no option 'reducer'"):
            ThresholdConsistentMarginLoss(reducer=MeanReducer())

    def test_a_distance_is_refused_when_made_and_when_set(self) -> None:
        with pytest.raises(TypeError, match="distance must be a similarity, such as CosineSimilarity"):
            ThresholdConsistentMarginLoss(distance=LpDistance())
        loss = ThresholdConsistentMarginLoss()
        with pytest.raises(TypeError, match="must be a similarity"):
            loss.distance = LpDistance()


class TestCosineEmbedding:
    def test_the_direct_form_is_torch_s(self) -> None:
        x1, x2 = torch.randn(9, 4), torch.randn(9, 4)
        target = torch.tensor([1, -1, 1, -1, -1, 1, -1, -1, 1])
        for margin in (0.0, 0.3, -0.4):
            ours, theirs = CosineEmbeddingLoss(margin=margin), torch.nn.CosineEmbeddingLoss(margin=margin)
            torch.testing.assert_close(ours(x1, x2, target), theirs(x1, x2, target))
            torch.testing.assert_close(ours(x1=x1, x2=x2, target=target.double()), theirs(x1, x2, target))

    def test_the_document_s_cases(self) -> None:
        same, opposite = torch.tensor([[1.0, 0.0]]), torch.tensor([[-2.0, 0.0]])
        loss = CosineEmbeddingLoss(margin=0.5)
        similar, dissimilar = torch.tensor([1]), torch.tensor([-1])
        assert loss(same, opposite, similar).item() == 2.0
        assert loss(same, same, similar).item() == 0.0
        assert loss(same, opposite, dissimilar).item() == 0.0
        assert loss(same, same, dissimilar).item() == 0.5

    def test_labels_average_all_pairs_jointly(self) -> None:
        x, y = on_circle(0, 60, 90), torch.tensor([0, 0, 1])
        expected = (2 * (1 - 0.5) + 2 * 0.0 + 2 * cosine(30)) / 6
        assert CosineEmbeddingLoss()(x, y).item() == pytest.approx(expected)

    def test_a_distance_is_refused(self) -> None:
        with pytest.raises(TypeError, match="must be a similarity"):
            CosineEmbeddingLoss(distance=LpDistance())


@pytest.mark.parametrize("name", PAIR_LOSSES)
class TestEveryLoss:
    def test_labels_on_a_reference_that_is_the_same_object(self, name: str) -> None:
        x, y = torch.randn(6, 3, dtype=torch.float64), torch.arange(6) % 2
        loss = catalog.get(name)().double()
        assert loss(x, y, None, x, y).item() == pytest.approx(loss(x, y, None, x.clone(), y.clone()).item())

    def test_a_reference_excludes_nothing(self, name: str) -> None:
        x, y = torch.randn(4, 3, dtype=torch.float64), torch.arange(4)
        weights = catalog.get(name)().double().pair_weights(x, y, None, x, y)
        assert bool(weights.positive.equal(torch.eye(4, dtype=torch.bool)))

    def test_the_declared_facts(self, name: str) -> None:
        cls = catalog.get(name)
        assert cls.family in ("pair", "triplet", "softmax", "ranking", "proxy", "two-view")
        assert cls.activity in ("hinge", "softmax")
        assert cls.equation.count("{") == cls.equation.count("}")
        assert cls.paper.url.startswith("http")
        assert all(p.meaning and p.larger for p in cls.params.values())
        for heading in ("Shapes:", "Returns", "Raises", "Numerics:", "Example:"):
            assert heading in cls.__doc__

    def test_marks_follow_the_options(self, name: str) -> None:
        loss = catalog.get(name)()
        marks = loss.marks()
        if type(loss).marks is BaseLoss.marks:  # nothing of it can be drawn on a distance
            assert marks == ()
            return
        assert len(marks) >= 1
        option = {"temperature", "margin", "pos_margin", "margin_plus", "base", "alpha"} & set(loss.params)
        for key in option:
            setattr(loss, key, 0.625)
        for key in {"gamma", "softmax_scale", "scale"} & set(loss.params):
            setattr(loss, key, 1 / 0.625)  # marked as the temperature that it is the inverse of
        values = [mark.value for mark in loss.marks()]
        assert any(v == pytest.approx(0.625) or v == pytest.approx(1.2 - 0.625) for v in values)
        assert {mark.kind for mark in marks} <= {"line", "gap", "temperature"}
        assert {mark.side for mark in marks} <= {"positive", "negative", "both"}


def test_the_catalog_names_near_misses() -> None:
    assert list(catalog.losses()) == sorted(catalog.losses())
    with pytest.raises(ValueError, match="no loss is called 'ContrastivLoss'; did you mean ContrastiveLoss"):
        catalog.get("ContrastivLoss")


def test_the_regularizer_is_added_after_the_reduction() -> None:
    from losslib.regularizers import LpRegularizer

    x = torch.tensor([[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]], requires_grad=True)
    y = torch.tensor([0, 0, 1])
    plain = ContrastiveLoss()
    loss = ContrastiveLoss(embedding_regularizer=LpRegularizer(), embedding_reg_weight=0.5)
    assert (loss(x, y) - plain(x, y)).item() == pytest.approx(0.5 * (5 + 0 + 10) / 3)
    term = loss.loss_terms(x, y)["embedding_reg_loss"]
    assert term.indices is None
    assert LpRegularizer(p=1, power=2)(x).item() == pytest.approx((49 + 0 + 196) / 3)
    loss(x, y).backward()
    assert x.grad is not None
    assert bool(x.grad.isfinite().all())


@pytest.mark.parametrize("cls", [SphereFaceLoss, LargeMarginSoftmaxLoss])
def test_norms_whose_squares_single_precision_cannot_hold(cls: type[LargeMarginSoftmaxLoss]) -> None:
    loss = cls(num_classes=3, embedding_size=4, margin=3)
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)) * 1e21
    single, own = x.clone().requires_grad_(), (torch.arange(6), torch.arange(6) % 3)
    value = loss(single, own[1])
    exact, w = x.double().requires_grad_(), loss.weight.detach().double()
    norms = exact.square().sum(1, keepdim=True).sqrt(), w.square().sum(1).sqrt()
    cosines = exact @ w.t() / norms[0] / norms[1]
    angle = cosines[own].acos()
    turns = (3 * angle.detach() / math.pi).floor()
    logits = cosines.index_put(own, (-1) ** turns * (3 * angle).cos() - 2 * turns) * norms[0]
    logits = logits * norms[1] if cls is LargeMarginSoftmaxLoss else logits
    expected = (logits.logsumexp(1) - logits[own]).mean()
    torch.autograd.backward([value, expected])
    assert value.item() == pytest.approx(expected.item(), rel=1e-5)
    torch.testing.assert_close(single.grad, exact.grad.float(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("size", "want"), [(1e18, 6.5e36), (1e20, math.inf)])
def test_center_loss_of_large_rows(size: float, want: float) -> None:
    loss = CenterLoss(num_classes=2, embedding_size=2, weight_init_func=torch.nn.init.zeros_)
    x = (size * torch.tensor([[3.0, 4.0], [1.0, 0.0]])).requires_grad_()  # (25 + 1) s^2 / 2, over 2 rows
    value = loss(x, torch.tensor([0, 1]))
    value.backward()
    assert value.item() == pytest.approx(want, rel=1e-5)
    torch.testing.assert_close(x.grad, x.detach() / 2)
