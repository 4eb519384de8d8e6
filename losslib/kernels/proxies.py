"""Losses against proxies in one pass: value and gradients by the embeddings and by the proxies.

Each form takes the loss, the matrix (B, C * rows_per_class) of its distance between rows and proxies, which
it may overwrite, and the classes (B,), and returns the value and the slope by each entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from losslib import losses
from losslib.distances import CosineSimilarity, Distance, DotProductSimilarity, LpDistance
from losslib.inputs import Batch
from losslib.kernels import is_plain, reduce
from losslib.kernels.function import Found, Inputs, apply
from losslib.kernels.matrix import Matrix
from losslib.kernels.steep import LEAST
from losslib.precision import known_on_cpu, transforming
from losslib.reducers import DivisorReducer, MeanReducer, SumReducer

Slopes = tuple[Tensor, Tensor]

_FAR = 1e30  # taken off the logits of entries that do not count
_SMALL, _LARGE = 1e-15, 1e15  # norms whose squares are ordinary numbers in single precision


def fused(loss: Any, batch: Batch) -> Tensor | None:
    """The reduced loss without penalties, 0-d, or None where only the plain form does."""
    if refused(loss, len(batch.embeddings), batch.embeddings.device.type) or batch.ref_emb is not None:
        return None
    if batch.indices is not None or transforming():
        return None
    labels, of = loss.classes(batch), _FORMS[type(loss)]
    inputs = Inputs(batch.embeddings, loss._weight_for(batch))
    needs = tuple(
        torch.is_grad_enabled() and given.requires_grad for given in inputs[:2] if given is not None
    )

    def run(given: Inputs) -> Found:
        matrix = _matrix(given, loss.distance)
        value, slope = of(loss, matrix.values, labels)
        by_x, by_y = matrix.back(slope, needs[0], needs[1], False) if any(needs) else (None, None)
        return Found(value, by_x, by_y)

    def again(given: Inputs) -> Tensor:
        x = given.embeddings
        terms = loss.proxy_terms(x, given.references, labels, x.new_ones(len(x)))
        value: Tensor = loss._reduced(terms, x, labels)
        return value

    return apply(inputs, run, again)


def refused(loss: Any, rows: int, device: str) -> str:
    """Why the loss is not computed in one pass, "" where it is."""
    if not torch.compiler.is_compiling() and is_plain():
        return "losslib.kernels.plain() is in force"
    if type(loss) not in _FORMS:
        return "this loss has no fused form"
    if device not in ("cpu", "cuda"):
        return f"there is no fused form for {device}"
    if rows < 1:
        return "there are no rows to speak of"
    return of_distance(loss.distance) or _reducer(loss)


def of_distance(distance: Distance) -> str:
    """Why the distance is not computed in one pass with its gradient, "" where it is."""
    if type(distance) is LpDistance:
        fits = distance.p == 2 and distance.power in (1, 2)
        return "" if fits else "it takes Euclidean distances, to the power 1 or 2, and similarities"
    fits = type(distance) in (CosineSimilarity, DotProductSimilarity)
    return "" if fits else f"{type(distance).__name__} has no fused form"


def _reducer(loss: Any) -> str:
    if "reducer" not in loss.parts:
        return ""
    of_classes = type(loss) is losses.ProxyAnchorLoss
    fits = type(loss.reducer) is DivisorReducer if of_classes else reduce.known(loss.reducer)
    return "" if fits else f"{type(loss.reducer).__name__} needs the terms"


class _Unit:
    """Rows over their norms in single precision, where the squares of all norms are ordinary numbers."""

    def __init__(self, x: Tensor) -> None:
        norm = torch.linalg.vector_norm(x, dim=1, keepdim=True)
        least, most = (end.item() for end in torch.aminmax(norm))
        self.fits = least > _SMALL and most < _LARGE
        self.inverse = norm.reciprocal_()
        self.rows = x * self.inverse if self.fits else x

    def back(self, grad: Tensor) -> Tensor:
        """The gradient by the rows as they were, from that by the unit rows."""
        along = torch.linalg.vecdot(grad, self.rows).unsqueeze(1)
        return torch.addcmul(grad, self.rows, along, value=-1).mul_(self.inverse)


class _Cosines:
    """`Matrix` for the cosines of ordinary rows in single precision, in fewer steps."""

    def __init__(self, x: _Unit, y: _Unit) -> None:
        self.x, self.y, self.values = x, y, x.rows @ y.rows.t()

    def back(
        self, slope: Tensor, want_x: bool, want_y: bool, symmetric: bool
    ) -> tuple[Tensor | None, Tensor | None]:
        by_x = self.x.back(slope @ self.y.rows) if want_x else None
        return by_x, self.y.back(slope.t() @ self.x.rows) if want_y else None


def _matrix(given: Inputs, distance: Distance) -> Matrix | _Cosines:
    x, y = given.embeddings, given.references
    assert y is not None
    ordinary = x.dtype == torch.float32 and known_on_cpu(x)
    if ordinary and distance.is_inverted and distance.normalize_embeddings:
        units = _Unit(x), _Unit(y)
        if units[0].fits and units[1].fits:
            return _Cosines(*units)
    return Matrix(x, y, distance)


def _cross_entropy(loss: Any, logits: Tensor, own: Tensor) -> Slopes:
    """Cross-entropy of logits (B, C) at the own class (B, 1), reduced, and its slope by the logits."""
    share = torch.log_softmax(logits, 1)
    values = share.gather(1, own).neg_()
    share = share.clamp_min_(LEAST).exp_().scatter_add_(1, own, torch.full_like(values, -1.0))
    kind, rows = type(loss.reducer), len(logits)
    if kind is MeanReducer:
        return values.mean(), share.div_(rows)
    if kind is SumReducer:
        return values.sum(), share
    kept = values.relu()
    above = kept.sign()
    each = above.sum().clamp_min(1).reciprocal()
    return kept.sum() * each, share.mul_(above * each)


def _scaled(option: str, inverse: bool) -> Callable[[Any, Tensor, Tensor], Slopes]:
    """Logits are the similarity times an option, or over it."""

    def of(loss: Any, v: Tensor, labels: Tensor) -> Slopes:
        scale = getattr(loss, option)
        scale = (1 / scale if inverse else scale) * (1.0 if loss.distance.is_inverted else -1.0)
        value, slope = _cross_entropy(loss, v * scale, labels.unsqueeze(1))
        return value, slope.mul_(scale)

    return of


def cos_face(loss: Any, v: Tensor, labels: Tensor) -> Slopes:
    """CosFaceLoss."""
    own = labels.unsqueeze(1)
    lowered = v.scatter_add(1, own, v.new_full(own.shape, -loss.margin))
    value, slope = _cross_entropy(loss, lowered.mul_(loss.scale), own)
    return value, slope.mul_(loss.scale)


def arc_face(loss: Any, v: Tensor, labels: Tensor) -> Slopes:
    """ArcFaceLoss."""
    own = labels.unsqueeze(1)
    changed, by_own = _widened(v.gather(1, own), v.new_full((), loss.margin))
    return _with_own(loss, v, own, changed, by_own)


def sub_center(loss: Any, v: Tensor, labels: Tensor) -> Slopes:
    """SubCenterArcFaceLoss, and DynamicArcFaceLoss, whose margin each class has for itself."""
    own, centers = labels.unsqueeze(1), v.unflatten(1, (loss.num_classes, -1))
    cosine, nearest = centers.max(dim=2, keepdim=True)
    cosine = cosine.squeeze(2)
    if loss.margin is None:
        margins = loss.a * loss.counts.to(v.dtype).pow(-loss.lambda0) + loss.b
        margin = margins[labels].unsqueeze(1)
    else:
        margin = v.new_full((), loss.margin)
    changed, by_own = _widened(cosine.gather(1, own), margin)
    value, slope = _with_own(loss, cosine, own, changed, by_own)
    return value, torch.zeros_like(centers).scatter_(2, nearest, slope.unsqueeze(2)).flatten(1)


def _widened(cosine: Tensor, margin: Tensor) -> Slopes:
    """`losslib.angles.widened` and its derivative by the cosine, (B, 1)."""
    squared = 1 - cosine * cosine
    inside = (squared > 0).to(cosine.dtype)  # rounding can leave a cosine beyond 1
    sine = (squared * inside + (1 - inside)).sqrt()
    up, across = margin.cos(), margin.sin()
    within = cosine * up - sine * inside * across
    is_within = cosine >= -up
    slope = torch.where(is_within, up + across * inside * cosine / sine, 1.0)
    return torch.where(is_within, within, cosine - margin * across), slope


def _with_own(loss: Any, cosine: Tensor, own: Tensor, changed: Tensor, by_own: Tensor) -> Slopes:
    """The own class's cosine changed, of this slope, and all of them scaled."""
    value, slope = _cross_entropy(loss, cosine.scatter(1, own, changed).mul_(loss.scale), own)
    slope = slope.mul_(loss.scale)
    return value, slope.scatter_(1, own, slope.gather(1, own) * by_own)


def soft_triple(loss: Any, v: Tensor, labels: Tensor) -> Slopes:
    """SoftTripleLoss."""
    own, centers = labels.unsqueeze(1), v.unflatten(1, (loss.num_classes, -1))
    logits = centers / loss.gamma
    if 2 / loss.gamma > -LEAST:  # a softmax makes subnormal numbers
        logits = logits.sub_(logits.amax(2, keepdim=True)).clamp_min_(LEAST)
    share = logits.softmax(2)
    relaxed = (share * centers).sum(2, keepdim=True)
    lowered = relaxed.squeeze(2).scatter_add(1, own, v.new_full(own.shape, -loss.margin))
    value, slope = _cross_entropy(loss, lowered.mul_(loss.la), own)
    by_centers = (centers - relaxed).div_(loss.gamma).add_(1).mul_(share)
    return value, by_centers.mul_(slope.mul_(loss.la).unsqueeze(2)).flatten(1)


def p2s_grad(loss: Any, v: Tensor, labels: Tensor) -> Slopes:
    """P2SGradLoss."""
    own = labels.unsqueeze(1)
    missing = v.scatter_add(1, own, v.new_full(own.shape, -1.0))
    return missing.square().mean(), missing.mul_(2 / missing.numel())


def proxy_anchor(loss: Any, v: Tensor, labels: Tensor) -> Slopes:
    """ProxyAnchorLoss."""
    scale = loss.alpha if loss.distance.is_inverted else -loss.alpha
    v = v.t().contiguous()  # (C, B)
    own = torch.zeros_like(v).scatter_(0, labels.unsqueeze(0), 1.0)
    near, pull = _log1p_sums((v - loss.margin).mul_(-scale), own)
    far, push = _log1p_sums((v + loss.margin).mul_(scale), 1 - own)
    over = own.amax(1).sum().reciprocal()  # there is a row, so there is a class
    value = near.sum() * over + far.mean()
    return value, push.mul_(scale / len(v)).sub_(pull.mul_(over * scale)).t()


def _log1p_sums(logits: Tensor, mask: Tensor) -> Slopes:
    """log(1 + sum of exp) over a mask's entries of each row (C, 1), and its derivative by the logits."""
    largest = torch.addcmul(logits, mask - 1, mask.new_full((), _FAR)).amax(1, keepdim=True).clamp_min_(0)
    share = logits.sub_(largest).clamp_(LEAST, 0.0).exp_().mul_(mask)
    beyond = share.sum(1, keepdim=True).add_(torch.expm1(-largest))  # e^-m + sum, less 1
    return beyond.log1p() + largest, share.div_(beyond.add_(1))


_FORMS: dict[type, Callable[[Any, Tensor, Tensor], Slopes]] = {
    losses.NormalizedSoftmaxLoss: _scaled("temperature", inverse=True),
    losses.ProxyNCALoss: _scaled("softmax_scale", inverse=False),
    losses.CosFaceLoss: cos_face,
    losses.ArcFaceLoss: arc_face,
    losses.SubCenterArcFaceLoss: sub_center,
    losses.DynamicArcFaceLoss: sub_center,
    losses.SoftTripleLoss: soft_triple,
    losses.P2SGradLoss: p2s_grad,
    losses.ProxyAnchorLoss: proxy_anchor,
}
