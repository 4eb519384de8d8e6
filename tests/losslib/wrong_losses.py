"""Losses that are wrong in a line or two, each in a way that real ones have been."""

import random
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from tests.losslib.plain_losses import Contrastive, Euclidean, NTXent, unit


class WrongSign(NTXent):
    def logits(self, values: Tensor) -> Tensor:
        return -super().logits(values)


class GraphKeptFromStepToStep(NTXent):
    running: Any = 0.0

    def reduce(self, values: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        self.running = 0.9 * self.running + 0.1 * super().reduce(values, positive, negative)
        return self.running * 1.0


class TensorOfAGraphKept(NTXent):
    def reduce(self, values: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        self.last = values * 1.0
        return super().reduce(values, positive, negative)


class DetachedFactor(Contrastive):
    def hinges(self, values: Tensor) -> tuple[Tensor, Tensor]:
        near, far = super().hinges(values)
        return near * (1 + values.detach()), far


class MissingDetach(NTXent):
    """Declares that its weights are constants, and forgets to detach them."""

    stop_gradient = "the self-paced weights are constants"

    def each(self, logits: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        each = super().each(logits, positive, negative)
        return each * torch.tanh(each)


class EpsilonInTheLogarithm(NTXent):
    def each(self, logits: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return -torch.log(torch.exp(-super().each(logits, positive, negative)) + 1e-8)


class MeanOverAllPairs(Contrastive):
    def average(self, hinge: Tensor, count: Tensor) -> Tensor:
        return (hinge * count).sum() / count.sum().clamp_min(1)


class SelfPairsKept(NTXent):
    def itself(self, size: int) -> Tensor:
        return torch.zeros(size, size, dtype=torch.bool)


class LabelsBroadcast(NTXent):
    def same(self, labels: Tensor, ref_labels: Tensor) -> Tensor:
        return labels[:, None] == ref_labels


class TemperatureTwice(NTXent):
    def logits(self, values: Tensor) -> Tensor:
        return super().logits(values) / self.temperature


class HingeOnTheWrongSide(Contrastive):
    def hinges(self, values: Tensor) -> tuple[Tensor, Tensor]:
        return torch.relu(values - self.pos_margin), torch.relu(values - self.neg_margin)


class HalfAccumulated(NTXent):
    def precise(self, x: Tensor) -> Tensor:
        return x

    def reduce(self, values: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        each = self.each(self.logits(values), positive, negative) * positive
        total = torch.zeros((), dtype=values.dtype)
        for value in each.reshape(-1):
            total = total + value
        return total / positive.sum().clamp_min(1)


class ThroughFloat32(NTXent):
    def precise(self, x: Tensor) -> Tensor:
        return x.float()


class AutocastInside(NTXent):
    def pairs(self, x: Tensor, *rest: Any) -> tuple[Tensor, ...]:
        values, positive, negative = super().pairs(x, *rest)
        if torch.is_autocast_enabled("cpu"):  # what a product left inside the region would do
            values = values.to(torch.bfloat16).float() * 1.1
        return values, positive, negative


class ReferenceIgnored(NTXent):
    def pairs(self, x: Tensor, labels: Any, listed: Any, ref_emb: Any, ref_labels: Any) -> tuple[Tensor, ...]:
        return super().pairs(x, labels, listed, None, None)


class PositivesInTheDenominator(NTXent):
    def others(self, positive: Tensor, negative: Tensor) -> Tensor:
        return positive + negative


class NotDeterministic(NTXent):
    generator = random.Random(1)

    def logits(self, values: Tensor) -> Tensor:
        return super().logits(values) * (1 + 1e-6 * self.generator.random())


class SecretRandomNumbers(NTXent):
    def logits(self, values: Tensor) -> Tensor:
        torch.rand(1)
        return super().logits(values)


class TuplesIgnored(NTXent):
    def pairs(self, x: Tensor, labels: Any, listed: Any, ref_emb: Any, ref_labels: Any) -> tuple[Tensor, ...]:
        return super().pairs(x, labels, None, ref_emb, ref_labels)


class IndicesUnchecked(NTXent):
    def counts(self, count: int, reference_count: int, listed: Any) -> tuple[Tensor, Tensor]:
        return super().counts(count, reference_count, tuple(part.long() % count for part in listed))


class HalfAReference(NTXent):
    def pairs(self, x: Tensor, labels: Any, listed: Any, ref_emb: Any, ref_labels: Any) -> tuple[Tensor, ...]:
        if ref_emb is None or ref_labels is None:
            ref_emb = ref_labels = None
        return super().pairs(x, labels, listed, ref_emb, ref_labels)


class OneTensorATriplet(Contrastive):
    def reduce(self, values: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        gaps = values[:, :, None] - values[:, None, :] + 0.2
        return (torch.relu(gaps) * positive[:, :, None] * negative[:, None, :]).mean()


class EpsilonInTheNorm(NTXent):
    def normalised(self, x: Tensor) -> Tensor:
        return nn.functional.normalize(x, dim=1)


class RootOfZero(Contrastive):
    def values(self, x: Tensor, y: Tensor) -> Tensor:
        return ((x[:, None] - y[None, :]) ** 2).sum(dim=2).sqrt()


class MeanOfNothing(NTXent):
    def reduce(self, values: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        each = self.each(self.logits(values), positive, negative)
        return (each * positive).sum() / positive.sum()


class ConstantAdded(NTXent):
    def reduce(self, values: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return super().reduce(values, positive, negative) + 1.0


class NotShifted(NTXent):
    def normalised(self, x: Tensor) -> Tensor:
        return x

    def each(self, logits: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        total = (logits.exp() * negative).sum(dim=1, keepdim=True) + logits.exp()
        return -(logits.exp() / total).log()


class LabelsAsFloats(NTXent):
    def same(self, labels: Tensor, ref_labels: Tensor) -> Tensor:
        return super().same(labels.double(), ref_labels.double())


class OrderMatters(NTXent):
    def reduce(self, values: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        each = self.each(self.logits(values), positive, negative) * positive
        return (
            each * torch.linspace(0.5, 1.5, max(len(values), 1), dtype=values.dtype)[: len(values), None]
        ).sum()


class HoleInTheMiddle(Contrastive):
    """Not a number where a pair stands in a narrow range of distances."""

    def hinges(self, values: Tensor) -> tuple[Tensor, Tensor]:
        near, far = super().hinges(values)
        hole = torch.where((values > self.hole[0]) & (values < self.hole[1]), torch.nan, 1.0)
        return near * hole, far * hole

    hole = (0.7, 0.75)


class HoleBeyondTheMargin(HoleInTheMiddle):
    hole = (1.5, 1.65)


class NotANumberAtThreeClasses(Contrastive):
    def forward(self, embeddings: Tensor, labels: Any = None, *rest: Any, **inputs: Any) -> Tensor:
        value = super().forward(embeddings, labels, *rest, **inputs)
        return value * torch.nan if labels is not None and len(labels.unique()) == 3 else value

    def value_at_collapse(self, labels: Tensor) -> float:
        return float(super().forward(torch.ones(len(labels), 8, dtype=torch.float64), labels))


class OneAxisFavoured(Contrastive):
    """Says it measures Euclidean distances, and stretches an axis."""

    def __init__(self) -> None:
        super().__init__()
        self.distance = type("LpDistance", (Euclidean,), {"p": 2})()

    def normalised(self, x: Tensor) -> Tensor:
        stretched = torch.ones(x.shape[1], dtype=x.dtype)
        stretched[0] = 1.1
        return unit(x) * stretched


class NotNormalised(Contrastive):
    def normalised(self, x: Tensor) -> Tensor:
        return x


class StateForgotten(NTXent):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("shift", torch.zeros((), dtype=torch.float64), persistent=True)
        self.steps = 0

    def logits(self, values: Tensor) -> Tensor:
        self.steps += 1
        return super().logits(values) * (1 + 0.01 * self.steps)


class WeightSign(Contrastive):
    def pair_weights(self, embeddings: Tensor, labels: Tensor) -> SimpleNamespace:
        found = super().pair_weights(embeddings, labels)
        found.weights = -found.weights
        return found


class NoGradientForItsParameter(NTXent):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def logits(self, values: Tensor) -> Tensor:
        return super().logits(values) * self.scale.detach().to(values.dtype)


class NoSecondDerivative(NTXent):
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, value: Tensor) -> Tensor:
            return value.clone()

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            return gradient

    def logits(self, values: Tensor) -> Tensor:
        return self.Once.apply(super().logits(values) ** 1)


class ClassesUnchecked(NTXent):
    num_classes = 3

    def same(self, labels: Tensor, ref_labels: Tensor) -> Tensor:
        return super().same(labels % self.num_classes, ref_labels % self.num_classes)


class WritesIntoItsLabels(NTXent):
    def pairs(self, x: Tensor, labels: Any, *rest: Any) -> tuple[Tensor, ...]:
        labels.add_(1)
        return super().pairs(x, labels, *rest)


class NeedsAGraph(NTXent):
    def values(self, x: Tensor, y: Tensor) -> Tensor:
        values = super().values(x, y)
        if values.requires_grad:
            values.register_hook(lambda gradient: gradient)
            return values
        return values * 0.5


class NeedsWeights(nn.Module):
    def forward(self, embeddings: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        return embeddings.sum()


class CannotBeBuilt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = {}["table"]


class FixedBatch(NTXent):
    """Has a table for batches of at most 12 rows."""

    def reduce(self, values: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        table = torch.ones(12, dtype=values.dtype)
        return super().reduce(values, positive, negative) * table[torch.tensor(max(len(values), 8) - 1)]


class SinglePrecisionOnly(nn.Module):
    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        turn = torch.eye(embeddings.shape[1], dtype=torch.float32)
        return (embeddings @ turn).pow(2).mean()


def mean_square(embeddings: Tensor, labels: Tensor) -> Tensor:
    return embeddings.pow(2).mean()
