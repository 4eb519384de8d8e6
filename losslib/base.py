"""The base of every loss: options, parts, the call, and pair weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from torch import Tensor

from losslib.declared import Declared, unknown_option
from losslib.distances import Distance, LpDistance
from losslib.inputs import Batch, read
from losslib.learned import HoldsTensors
from losslib.pair_matrix import Pairs
from losslib.params import Param, finite
from losslib.precision import without_autocast
from losslib.reducers import MeanReducer, Reducer, SumReducer
from losslib.regularizers import Regularizer
from losslib.terms import Term, reduced_term
from losslib.types import Mark, Paper, PmlSpelling
from losslib.weights import PairWeights, weights_of

_KINDS = {
    "distance": Distance,
    "reducer": Reducer,
    "embedding_regularizer": Regularizer,
    "weight_regularizer": Regularizer,
}


class BaseLoss(Declared, HoldsTensors):
    """A loss over embeddings. A subclass declares what it is and implements `compute`.

    Called as `loss(embeddings, labels=None, indices_tuple=None, ref_emb=None, ref_labels=None)`.
    Keyword-only options of every loss: `distance`, `reducer`, `embedding_regularizer`,
    `embedding_reg_weight`; each is an attribute of that name.
    """

    title: ClassVar[str]
    summary: ClassVar[str]
    family: ClassVar[str]  # pair, triplet, softmax, ranking, proxy, two-view
    equation: ClassVar[str]  # LaTeX
    paper: ClassVar[Paper]
    activity: ClassVar[str] = "hinge"  # hinge: a pair is active when its weight is not 0; or softmax
    pml: ClassVar[PmlSpelling | None] = None
    stop_gradient: ClassVar[str] = ""  # why the gradient is no derivative, where it is not
    needs_similarity: ClassVar[bool] = False  # a distance is refused
    needs: ClassVar[tuple[str, ...]] = ()  # arguments without a default, or in words what else it must get
    default_distance: ClassVar[Callable[[], Distance]] = LpDistance
    default_reducer: ClassVar[Callable[[], Reducer | None]] = MeanReducer
    parts: ClassVar[tuple[str, ...]] = (
        "distance",
        "reducer",
        "embedding_regularizer",
        "embedding_reg_weight",
    )

    distance: Distance
    reducer: Reducer
    embedding_regularizer: Regularizer | None
    embedding_reg_weight: float

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.required:
            cls.needs = tuple(cls.required)

    def __init__(self, *values: Any, **options: Any) -> None:
        super().__init__()
        given, cls = self._take_options(values, options), type(self)
        defaults = {"distance": cls.default_distance, "reducer": cls.default_reducer}
        for name in cls.parts:
            part = given.get(name)
            setattr(self, name, defaults[name]() if part is None and name in defaults else part)
        self.prepare()

    @property
    def activity_rule(self) -> str:
        """The kind of activity under the options as they are: `activity`, where no option changes it."""
        return self.activity

    def prepare(self) -> None:
        """Called once all options are set: make what the loss holds, warn of combinations."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.parts:
            value = self._checked_part(name, value)
        elif name in _PARTS:  # nothing would read it
            raise TypeError(unknown_option(type(self).__name__, name, [*self.params, *self.parts]))
        super().__setattr__(name, value)

    def _checked_part(self, name: str, value: Any) -> Any:
        owner = type(self).__name__
        if name in _REG_WEIGHTS:
            return _REG_WEIGHTS[name].check(1.0 if value is None else value, owner)
        kind = _KINDS.get(name)
        if isinstance(value, Distance):
            self.check_distance(value)
        if kind is None or isinstance(value, kind) or (value is None and "regularizer" in name):
            return value
        raise TypeError(f"{owner}: {name} must be a {kind.__name__}, got {value!r}")

    def check_distance(self, distance: Distance) -> None:
        """Raises TypeError for a distance that has no meaning in this loss."""
        if self.needs_similarity and not distance.is_inverted:
            raise TypeError(
                f"{type(self).__name__}: distance must be a similarity, such as CosineSimilarity(), "
                f"got {type(distance).__name__}"
            )

    def read(self, *given: Any) -> Batch:
        """The inputs of a call, checked and in working precision."""
        return read(type(self).__name__, *given)

    def compute(self, batch: Batch) -> dict[str, Term]:
        """The unreduced terms by name, from checked inputs in working precision."""
        raise NotImplementedError

    def not_by_anchor(self, has_reference: bool) -> str:
        """Why the terms of one anchor depend on more than that anchor and the references; "" where not.

        has_reference: whether the references are a set of their own, not the batch itself.
        """
        return ""

    def loss_terms(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Any = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> dict[str, Term]:
        """The unreduced terms by name; arguments as in a call.

        Each term has `losses`, `indices` and, where the loss defines one, `divisor`. A regularizer's term,
        `embedding_reg_loss`, is already reduced.
        """
        batch = self.read(embeddings, labels, indices_tuple, ref_emb, ref_labels)
        with without_autocast(embeddings):
            return self._with_penalties(self.compute(batch), batch)

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Any = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> Any:
        """The reduced loss, a 0-d tensor (with DoNothingReducer the terms by name).

        Args:
            embeddings: (B, D), floating; the anchors.
            labels: (B,), compared by equality; or None where indices_tuple is given.
            indices_tuple: (anchors, positives, negatives) or (pos_anchors, positives, neg_anchors,
                negatives), int64 or int32 index tensors; or the `PairMasks` of a rule of `losslib.pairs`.
            ref_emb: (R, D); positives and negatives come from it, nothing is excluded.
            ref_labels: (R,).

        Raises ShapeError or TypeError for inputs that do not fit.
        """
        batch = self.read(embeddings, labels, indices_tuple, ref_emb, ref_labels)
        with without_autocast(embeddings):
            return self._of_batch(batch, embeddings, labels)

    def _of_batch(self, batch: Batch, embeddings: Tensor, labels: Tensor | None) -> Any:
        """The reduced loss of checked inputs with its penalties, in one pass where there is such a form."""
        value = self._fused(batch)
        if value is None:
            return self._reduced(self._with_penalties(self.compute(batch), batch), embeddings, labels)
        for term in self._with_penalties({}, batch).values():
            value = value + term.losses
        return value

    def _fused(self, batch: Batch) -> Tensor | None:
        """The reduced loss in one pass, without penalties; None where there is no such form."""
        return None

    def _with_penalties(self, terms: dict[str, Term], batch: Batch) -> dict[str, Term]:
        if self.embedding_regularizer is not None:
            penalty = self.embedding_regularizer(batch.embeddings) * self.embedding_reg_weight
            terms["embedding_reg_loss"] = reduced_term(penalty)
        return terms

    def _reduced(self, terms: Mapping[str, Term], embeddings: Tensor, labels: Tensor | None) -> Any:
        reducer = self.reducer if "reducer" in self.parts else _ADD
        return reducer(terms, embeddings, labels)

    def marks(self) -> tuple[Mark, ...]:
        """What to draw on a histogram of the loss's own distance."""
        return ()

    def extra_repr(self) -> str:
        """The options, for printing."""
        return self._options_text()


class PairLoss(BaseLoss):
    """A loss that is a function of the distance matrix and its positive and negative pairs.

    A subclass implements `terms`; pair weights come from automatic differentiation.
    """

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """The unreduced terms by name."""
        raise NotImplementedError

    def read(self, *given: Any) -> Batch:
        """The inputs of a call, checked and in working precision; pairs given as masks stay masks."""
        embeddings, labels, indices_tuple, ref_emb, ref_labels = given
        owner = type(self).__name__
        return read(owner, embeddings, labels, indices_tuple, ref_emb, ref_labels, dense=True)

    def compute(self, batch: Batch) -> dict[str, Term]:
        """The terms, from the distance matrix of the batch."""
        return self.terms(Pairs(self.distance(batch.embeddings, batch.ref_emb), batch, self.distance))

    def _fused(self, batch: Batch) -> Tensor | None:
        from losslib.kernels.run import fused  # which imports the losses

        return fused(self, batch)

    def pair_weights(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Any = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> PairWeights:
        """The derivative of the reduced loss by each entry of the distance matrix; arguments as in a call.

        Raises ValueError where the reducer gives no single number.
        """
        batch = self.read(embeddings, labels, indices_tuple, ref_emb, ref_labels)
        with without_autocast(embeddings):
            return weights_of(self, batch)


_REG_WEIGHTS = {
    name: Param(1.0, valid=finite, name=name, meaning="weight of the regularizer")
    for name in ("embedding_reg_weight", "weight_reg_weight")
}
_PARTS = {*_KINDS, *_REG_WEIGHTS}
_ADD = SumReducer()
