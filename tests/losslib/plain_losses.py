"""Two right losses in plain torch: an audit has to work for any module, so they use nothing of losslib."""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn


class Euclidean:
    is_inverted = False
    normalize_embeddings = True

    @staticmethod
    def margin(x: Any, y: Any) -> Any:
        return x - y


class Cosine:
    is_inverted = True
    normalize_embeddings = True

    @staticmethod
    def margin(x: Any, y: Any) -> Any:
        return y - x


class AvgNonZeroReducer:
    """Only its name matters: the audit works the mean out by itself."""


def unit(x: Tensor) -> Tensor:
    squared = (x * x).sum(dim=1, keepdim=True)
    zero = squared == 0
    return torch.where(zero, 0.0, x) / torch.where(zero, 1.0, squared).sqrt()


class Pairwise(nn.Module):
    """Pairs of a batch, with everything that a caller may get wrong refused."""

    def same(self, labels: Tensor, ref_labels: Tensor) -> Tensor:
        for given in (labels, ref_labels):
            if given.ndim != 1:
                raise ValueError(f"labels must have shape (B,), got {tuple(given.shape)}")
        return labels[:, None] == ref_labels[None, :]

    def normalised(self, x: Tensor) -> Tensor:
        return unit(x)

    def precise(self, x: Tensor) -> Tensor:
        return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x

    def itself(self, size: int) -> Tensor:
        return torch.eye(size, dtype=torch.bool)

    def counts(self, count: int, reference_count: int, listed: Any) -> tuple[Tensor, Tensor]:
        """How often each pair is listed, for positives and negatives."""
        if len(listed) not in (3, 4):
            raise ValueError("indices_tuple must have 3 or 4 tensors")
        for part in listed:
            if part.dtype not in (torch.int32, torch.int64):
                raise TypeError("indices must be whole numbers")
            if bool(((part < 0) | (part >= max(count, reference_count))).any()):
                raise ValueError("index out of range")
        a, p, b, n = listed if len(listed) == 4 else (listed[0], listed[1], listed[0], listed[2])
        made = []
        for rows, columns in ((a, p), (b, n)):
            zeros = torch.zeros(count, reference_count, dtype=torch.float64)
            made.append(
                zeros.index_put((rows, columns), torch.ones(len(rows), dtype=torch.float64), accumulate=True)
            )
        return made[0], made[1]

    def pairs(self, x: Tensor, labels: Any, listed: Any, ref_emb: Any, ref_labels: Any) -> tuple[Tensor, ...]:
        """Values (B, R), and how often each pair counts as positive and as negative."""
        if (ref_emb is None) != (ref_labels is None) and (listed is None or ref_emb is None):
            raise ValueError("ref_emb and ref_labels go together")
        y = x if ref_emb is None else ref_emb
        if listed is not None:
            positive, negative = self.counts(len(x), len(y), listed)
        else:
            other_labels = labels if ref_emb is None else ref_labels
            if labels.ndim == 1 and (len(labels) != len(x) or len(other_labels) != len(y)):
                raise ValueError("one label a row")
            same = self.same(labels, other_labels)
            positive = (same & ~self.itself(len(x))) if ref_emb is None else same
            negative = ~same
        with torch.autocast("cpu", enabled=False):
            values = self.values(self.normalised(self.precise(x)), self.normalised(self.precise(y)))
        return values, positive.to(values.dtype), negative.to(values.dtype)

    def forward(
        self,
        embeddings: Tensor,
        labels: Any = None,
        indices_tuple: Any = None,
        ref_emb: Any = None,
        ref_labels: Any = None,
    ) -> Tensor:
        values, positive, negative = self.pairs(embeddings, labels, indices_tuple, ref_emb, ref_labels)
        with torch.autocast("cpu", enabled=False):
            return self.reduce(values, positive, negative)


class Contrastive(Pairwise):
    """Hinges on normalised Euclidean distances, averaged over the active pairs of each kind."""

    activity = "hinge"

    def __init__(self, pos_margin: float = 0.0, neg_margin: float = 1.0) -> None:
        super().__init__()
        self.pos_margin, self.neg_margin = pos_margin, neg_margin
        self.distance, self.reducer = Euclidean(), AvgNonZeroReducer()

    def values(self, x: Tensor, y: Tensor) -> Tensor:
        squared = ((x[:, None] - y[None, :]) ** 2).sum(dim=2)
        coincident = squared == 0
        return torch.where(coincident, 0.0, torch.where(coincident, 1.0, squared).sqrt())

    def hinges(self, values: Tensor) -> tuple[Tensor, Tensor]:
        return torch.relu(values - self.pos_margin), torch.relu(self.neg_margin - values)

    def average(self, hinge: Tensor, count: Tensor) -> Tensor:
        active = count * (hinge > 0)
        return (hinge * active).sum() / active.sum().clamp_min(1)

    def reduce(self, values: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        near, far = self.hinges(values)
        return self.average(near, positive) + self.average(far, negative)

    def loss_terms(self, embeddings: Tensor, labels: Tensor) -> dict[str, dict[str, Tensor]]:
        values, positive, negative = self.pairs(embeddings, labels, None, None, None)
        near, far = self.hinges(values)
        return {"pos_loss": {"losses": near[positive > 0]}, "neg_loss": {"losses": far[negative > 0]}}

    def pair_weights(self, embeddings: Tensor, labels: Tensor) -> SimpleNamespace:
        values, positive, negative = self.pairs(embeddings, labels, None, None, None)
        values = values.detach().requires_grad_()
        (weights,) = torch.autograd.grad(self.reduce(values, positive, negative), values)
        return SimpleNamespace(
            values=values.detach(), weights=weights, positive=positive > 0, negative=negative > 0
        )

    def marks(self) -> tuple[SimpleNamespace, ...]:
        return (
            SimpleNamespace(kind="line", side="positive", value=self.pos_margin),
            SimpleNamespace(kind="line", side="negative", value=self.neg_margin),
        )

    def value_at_collapse(self, labels: Tensor) -> float:
        same = labels[:, None] == labels[None, :]
        return self.neg_margin * float((~same).any())


class NTXent(Pairwise):
    """Each positive pair against its anchor's negatives, on cosines."""

    def __init__(self, temperature: float = 0.07) -> None:
        super().__init__()
        self.temperature = temperature
        self.distance = Cosine()

    def values(self, x: Tensor, y: Tensor) -> Tensor:
        return x @ y.T

    def logits(self, values: Tensor) -> Tensor:
        return values / self.temperature

    def others(self, positive: Tensor, negative: Tensor) -> Tensor:
        """Weights of the pairs beside the positive in the denominator."""
        return negative

    def each(self, logits: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        weight = self.others(positive, negative)
        shifted = logits.masked_fill(weight == 0, -1e30)
        top = shifted.amax(dim=1, keepdim=True).detach() if logits.numel() else shifted
        total = (weight * (shifted - top).clamp_min(-700).exp()).sum(dim=1, keepdim=True)
        empty = total == 0
        spread = torch.where(empty, 1.0, total).log() + torch.where(empty, 0.0, top)
        return torch.where(empty, 0.0, nn.functional.softplus(spread - logits))

    def reduce(self, values: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        each = self.each(self.logits(values), positive, negative)
        return (each * positive).sum() / positive.sum().clamp_min(1)

    def value_at_collapse(self, labels: Tensor) -> float:
        same = labels[:, None] == labels[None, :]
        positives = same.sum(dim=1) - 1
        logs = (1 + (~same).sum(dim=1).double()).log()
        return float((positives * logs).sum() / positives.sum())
