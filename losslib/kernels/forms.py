"""The fused forms of each loss, and which of its options they take."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from losslib import losses
from losslib.distances import CosineSimilarity, DotProductSimilarity, LpDistance
from losslib.inputs import Batch
from losslib.kernels import (
    blocked_angular,
    blocked_hinges,
    blocked_right_wrong,
    blocked_softmax_losses,
    blocked_triplets,
    by_rows,
    decoupled_weights,
    dense_further,
    dense_hinges,
    dense_right_wrong,
    dense_softmax,
    first_pairs,
    hinges_by_rows,
    reduce,
    triplets_by_rows,
)
from losslib.kernels.blocked_softmax import out_of_reach
from losslib.reducers import AvgNonZeroReducer, DivisorReducer

_STEEP_FROM = 384  # rows above which blocks are quicker than a matrix off each row's largest logit
_FLAT = 90.0  # about how far apart logits may be that need not be taken off each row's largest
_LARGEST_SCALE = 1e6  # of logits: beyond it a masked entry's filler would be no longer far away


@dataclass(frozen=True)
class Kernel:
    """The fused forms of one loss.

    dense: on the whole distance matrix; None for a loss of its own kind, which `blocked` then is.
    unfit: why the loss's options have no fused form, "" where they have.
    blocked: in blocks of rows sorted by label, (loss, rows, batch, wanted) -> Found.
    unblocked: why the options have no such form, whatever their logits span.
    reach: how far apart the logits of the blocks may be, 0 for hinges.
    blocked_from: number of rows above which it is the quicker one, and `by_rows` for as many references.
    span: how far apart the dense form's logits may be: up to a limit a constant is taken off, which is quick.
    own: what the dense form gets besides values and masks.
    learned: the parameter of the loss that is trained with the embeddings, None without one.
    takes_references: whether the references may be a set of their own.
    by_rows: in blocks of whole rows, (loss, inputs, batch, needs) -> Found, where `blocked` cannot be.
    unfit_by_rows: why the options have no such form; None where the distance and the reducer alone tell.
    even: numbers of rows with which classes of one size are quickest as one matrix in the order of labels.
    """

    dense: Callable[..., Any] | None
    unfit: Callable[[Any], str]
    blocked: Callable[..., Any] | None = None
    unblocked: Callable[[Any], str] = lambda loss: ""
    reach: Callable[[Any], float] = lambda loss: 0.0
    blocked_from: int = 384
    span: Callable[[Any], float] = lambda loss: 0.0
    own: Callable[[Any, Batch], Tensor | None] = lambda loss, batch: None
    learned: Callable[[Any], Tensor | None] = lambda loss: None
    takes_references: bool = True
    by_rows: Callable[..., Any] | None = None
    unfit_by_rows: Callable[[Any], str] | None = None
    even: Callable[[Any], range] = lambda loss: range(0)

    def evenly(self, loss: Any, rows: int) -> bool:
        """Whether so many rows, of classes of one size, are quickest in the order of their labels."""
        return rows in self.even(loss) and self.reach(loss) <= _FLAT

    def above(self, loss: Any) -> int:
        """Number of rows above which blocks are quicker under the loss's options."""
        steep = self.span(loss) > dense_softmax.SPAN
        return min(self.blocked_from, _STEEP_FROM) if steep else self.blocked_from

    def not_in_blocks(self, loss: Any, rows: int) -> str:
        """Why so many rows have no blocked form under the loss's options, "" where they have."""
        return self.unblocked(loss) or out_of_reach(self.reach(loss), rows)


def unfit_parts(loss: Any, reducers: tuple[type, ...] | None = None) -> str:
    """Why the distance or reducer has no fused form, "" where they have."""
    distance = loss.distance
    if type(distance) is LpDistance:
        if distance.p != 2 or distance.power not in (1, 2):
            return "it takes Euclidean distances, to the power 1 or 2, and similarities"
    elif type(distance) not in (CosineSimilarity, DotProductSimilarity):
        return f"{type(distance).__name__} has no fused form"
    if "reducer" not in loss.parts:
        return ""
    fits = reduce.known(loss.reducer) if reducers is None else type(loss.reducer) in reducers
    return "" if fits else f"{type(loss.reducer).__name__} needs the terms"


def _softmax(*scales: str, inverse: bool = False) -> Callable[[Any], str]:
    """The check of a softmax loss whose logits are scaled by these options, or by one over them."""

    def unfit(loss: Any) -> str:
        if why := unfit_parts(loss):
            return why
        if not loss.distance.normalize_embeddings:
            return "its logits have no bound without normalised embeddings"
        for name in scales:
            value = getattr(loss, name)
            if value is not None and (1 / value if inverse else value) > _LARGEST_SCALE:
                return f"{name}={value:g} is too extreme for it"
        return ""

    return unfit


def _not_negative(loss: Any) -> str:
    return "its terms may be negative" if type(loss.reducer) is AvgNonZeroReducer else unfit_parts(loss)


def _no_avg_non_zero(loss: Any) -> str:
    if type(loss.reducer) is AvgNonZeroReducer:
        return "AvgNonZeroReducer needs the terms, which may be negative"
    return _softmax("temperature", "sigma", inverse=True)(loss)


def _margin(loss: Any) -> str:
    if loss.triplets_per_anchor != "all":
        return "triplets are drawn at random"
    return unfit_parts(loss, (DivisorReducer,))


def _triplets(loss: Any) -> str:
    if loss.triplets_per_anchor != "all":
        return "triplets are drawn at random"
    if loss.swap or loss.smooth_loss:
        return "swapped and smooth triplets have no shortcut"
    return unfit_parts(loss)


def _angular(loss: Any) -> str:
    exponent = 4 * math.tan(math.radians(loss.alpha)) ** 2
    if exponent > dense_further.LARGEST_EXPONENT:
        return f"alpha={loss.alpha:g} is too wide for it"
    return unfit_parts(loss)


def _beta_of_anchors(loss: Any, batch: Batch) -> Tensor:
    beta: Tensor = loss._beta_of_anchors(batch)
    return beta


def _one_power(loss: Any) -> str:
    return "" if getattr(loss.distance, "power", 1) == 1 else "blocks take distances to the power 1"


def _unsquared(loss: Any) -> str:
    return "squared hinges have no form in blocks" if loss.squared else _one_power(loss)


def _one_boundary(loss: Any) -> str:
    return "every class has its own beta" if loss.num_classes is not None else _one_power(loss)


def _cosines(loss: Any) -> str:
    return "" if loss.distance.is_inverted else "softmax losses in blocks take cosines"


def _nca(loss: Any) -> str:
    if not loss.distance.is_inverted and loss.distance.power != 2:
        return "blocks take cosines and squared distances"
    return ""


def _by_temperature(loss: Any) -> float:
    span: float = 2 / loss.temperature
    return span


def _weighted(loss: Any) -> float:
    return math.inf if loss.sigma is not None else _by_temperature(loss)


def _multi_similarity(loss: Any) -> float:
    span: float = max(loss.alpha, loss.beta) * (1 + abs(loss.base))
    return span


def _nca_span(loss: Any) -> float:
    span: float = (2 if loss.distance.is_inverted else 4) * loss.softmax_scale
    return span


def _circle(loss: Any) -> float:
    if loss.margin < 0:  # whose logits are no differences of squares
        return math.inf
    return blocked_softmax_losses.circle_span(loss)


def kernels() -> dict[type, Kernel]:
    """The fused forms by class of loss."""
    return _KERNELS


def _table() -> dict[type, Kernel]:
    softmax, hinges, in_blocks = dense_softmax, dense_hinges, blocked_softmax_losses
    by_temperature = _softmax("temperature", inverse=True)
    return {
        losses.ContrastiveLoss: Kernel(
            hinges.contrastive,
            unfit_parts,
            blocked_hinges.contrastive,
            _unsquared,
            blocked_from=320,
            by_rows=hinges_by_rows.contrastive,
        ),
        losses.ThresholdConsistentMarginLoss: Kernel(
            hinges.threshold_consistent,
            unfit_parts,
            blocked_hinges.threshold_consistent,
            blocked_from=320,
            by_rows=hinges_by_rows.threshold_consistent,
        ),
        losses.MarginLoss: Kernel(
            hinges.margin,
            _margin,
            blocked_hinges.margin,
            _one_boundary,
            own=_beta_of_anchors,
            learned=lambda loss: loss.beta if loss.learn_beta else None,
            by_rows=hinges_by_rows.margin,
            unfit_by_rows=_margin,
            even=lambda loss: range(320, 897),
        ),
        losses.TripletMarginLoss: Kernel(
            hinges.triplets,
            _triplets,
            blocked_triplets.triplets,
            _one_power,
            blocked_from=128,
            by_rows=triplets_by_rows.triplets,
            unfit_by_rows=_triplets,
        ),
        losses.SupConLoss: Kernel(
            softmax.sup_con,
            by_temperature,
            in_blocks.sup_con,
            _cosines,
            _by_temperature,
            blocked_from=512,
            span=_by_temperature,
            by_rows=by_rows.sup_con,
            even=lambda loss: range(400, 897),
        ),
        losses.NTXentLoss: Kernel(
            softmax.nt_xent,
            by_temperature,
            in_blocks.nt_xent,
            _cosines,
            _by_temperature,
            by_rows=by_rows.nt_xent,
            even=lambda loss: range(224, 1025),
        ),
        losses.DecoupledContrastiveLoss: Kernel(
            softmax.decoupled,
            _no_avg_non_zero,
            decoupled_weights.blocked,
            _cosines,
            _by_temperature,
            blocked_from=512,
            span=_weighted,
            by_rows=by_rows.decoupled,
            unfit_by_rows=_not_negative,
            even=lambda loss: range(320 if loss.sigma is None else 224, 1025),
        ),
        losses.MultiSimilarityLoss: Kernel(
            softmax.multi_similarity,
            _softmax("alpha", "beta"),
            in_blocks.multi_similarity,
            _cosines,
            in_blocks.multi_similarity_span,
            blocked_from=512,
            span=_multi_similarity,
            by_rows=by_rows.multi_similarity,
            even=lambda loss: range(320, 897),
        ),
        losses.CircleLoss: Kernel(
            softmax.circle,
            _softmax("gamma"),
            in_blocks.circle,
            _cosines,
            _circle,
            by_rows=by_rows.circle,
            even=lambda loss: range(224, 897),
        ),
        losses.NCALoss: Kernel(
            dense_right_wrong.nca,
            _softmax("softmax_scale"),
            blocked_right_wrong.nca,
            _nca,
            _nca_span,
            blocked_from=512,
            span=_nca_span,
            by_rows=by_rows.nca,
            even=lambda loss: range(448, 1025),
        ),
        losses.InstanceLoss: Kernel(
            dense_right_wrong.instance,
            _softmax("gamma"),
            blocked_right_wrong.instance,
            _cosines,
            lambda loss: loss.gamma,
            blocked_from=512,
            span=lambda loss: loss.gamma,
            by_rows=by_rows.instance,
            even=lambda loss: range(448, 897),
        ),
        losses.GeneralizedLiftedStructureLoss: Kernel(
            dense_further.generalized_lifted,
            _softmax(),
            blocked_from=1024,
            by_rows=by_rows.generalized_lifted,
        ),
        losses.AngularLoss: Kernel(
            dense_further.angular,
            _angular,
            blocked_angular.angular,
            blocked_from=256,
            own=dense_further.squares,
            takes_references=False,
        ),
        losses.NPairsLoss: Kernel(None, unfit_parts, first_pairs.n_pairs),
    }


_KERNELS = _table()
