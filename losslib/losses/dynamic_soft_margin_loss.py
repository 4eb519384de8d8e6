"""Dynamic soft margin loss."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.base import PairLoss
from losslib.inputs import Batch
from losslib.losses.threshold_consistent_margin_loss import no_reducer
from losslib.pair_matrix import Pairs
from losslib.params import Integer, Interval, Param
from losslib.precision import known_on_cpu, transforming, without_autocast
from losslib.terms import IndexedTerm, Term
from losslib.triplet_weights import TripletDifferences
from losslib.types import Paper, PmlSpelling


class DynamicSoftMarginLoss(PairLoss):
    """Weighs each triplet by how hard it is among those seen of late, with no margin to set.

    The weight is the share of recent triplets that were easier: the hardest weigh nearly 1, the easiest
    nearly 0, whatever the scale of the distances. Nothing is asked beyond that, so triplets never rest, and
    with all of them satisfied the value is negative. The memory follows slowly: a sudden change of the
    learning rate or of the data leaves old weights for about 1 / momentum steps.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the weighted mean over the triplets of d_ap - d_an (0-d), 0 without any.

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, ValueError
    where the buffer is on another device than the embeddings. There is no reducer.

    Terms: `loss`, already reduced. A pair given twice counts twice. `histogram`, (num_bins + 1,), is the
    memory: a buffer, in state_dict, empty at first. A forward pass in training mode moves it, once the loss
    has succeeded; evaluation mode, `loss_terms`, `pair_weights` and torch.func do not. Differences beyond
    `min_val` and its opposite fall into the last bins. A similarity turns the difference.

    Numerics: the weights are constants, so the value is linear in the distances and triplets are only
    counted, in blocks: memory B x R.

    Differs from the paper in taking all triplets, not the hardest negative of each pair, which a miner can
    supply. In pytorch-metric-learning the memory stays in the graph, so a second step fails, and a
    difference in the topmost bin is out of range.

    Example: one triplet at distances 0.5 and 1.5, an empty memory, bins 0.4 wide: the difference -1 lies in
    the middle of its bin, half of the histogram is at its lower node, the loss is -1 * 0.5 = -0.5.
    """

    title = "Dynamic soft margin"
    summary = "Weighs each triplet by how hard it is among those seen of late, with no margin to set."
    family = "triplet"
    activity = "softmax"
    paper = Paper(
        "Zhang, Rusinkiewicz",
        2019,
        "Learning Local Descriptors With a CDF-Based Dynamic Soft Margin",
        "https://openaccess.thecvf.com/content_ICCV_2019/html/"
        "Zhang_Learning_Local_Descriptors_With_a_CDF-Based_Dynamic_Soft_Margin_ICCV_2019_paper.html",
    )
    equation = (
        r"\mathrm{E}\left[\mathrm{CDF}(d_{ap} - d_{an}) (d_{ap} - d_{an})\right],"
        r" \quad \mathrm{PDF} \leftarrow (1 - \mu) \mathrm{PDF} + \mu\, h,"
        r" \quad h \text{ over } L \text{ bins of } [v, -v]"
    )
    pml = PmlSpelling("DynamicSoftMarginLoss")
    default_reducer = staticmethod(no_reducer)
    parts = ("distance", "embedding_regularizer", "embedding_reg_weight")
    stop_gradient = "the weights are read from the histogram as constants"

    min_val = Param(
        -2.0,
        valid=Interval(hi=0.0, closed="neither"),
        explore=(-4.0, -0.5),
        symbol="v",
        meaning="least difference of distances that is told apart; its opposite is the greatest",
        larger="finer bins over a narrower range",
        title="Least difference",
    )
    num_bins = Param(
        10,
        valid=Integer(1),
        explore=(4, 50),
        symbol="L",
        meaning="number of bins of the histogram of differences",
        larger="finer weights, noisier memory",
        title="Bins",
        fixed=True,
    )
    momentum = Param(
        0.01,
        valid=Interval(0.0, 1.0),
        explore=(0.001, 0.5),
        symbol=r"\mu",
        meaning="share of the present batch in the memory",
        larger="the memory follows faster and noisier",
    )
    histogram: Tensor

    def prepare(self) -> None:
        """Make the empty memory."""
        self.register_buffer("histogram", torch.zeros(self.num_bins + 1))

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss`, already reduced."""
        weights, moved = self.weights(pairs)
        return {"loss": _WeighedTerm((weights * pairs.separation).sum(), moved)}

    def weights(self, pairs: Pairs) -> tuple[Tensor, Tensor]:
        """The weight of each distance (B, R), and the memory that the batch leaves."""
        width = -2 * self.min_val / self.num_bins
        with torch.no_grad():
            triplets = TripletDifferences(pairs, self.min_val, width, self.num_bins)
            seen = triplets.histogram()
            some = seen.sum().clamp_min(1)
            moved = self._moved((seen / some).to(self.histogram.dtype), pairs.batch)
            return triplets.weights(moved.cumsum(0)) / some.to(pairs.values.dtype), moved

    def _moved(self, batch_histogram: Tensor, batch: Batch) -> Tensor:
        """The memory as a batch with this histogram, 0 without any triplet, leaves it."""
        memory = self.histogram
        if memory.device != batch.embeddings.device:
            raise ValueError(
                f"{type(self).__name__}: histogram must be on {batch.embeddings.device} as the embeddings "
                f"are, got {memory.device}; call loss.to(device)"
            )
        if known_on_cpu(batch_histogram) and not transforming():
            if not batch_histogram.sum().item() > 0:
                return memory
            alpha = self.momentum if memory.sum().item() else 1.0
            return torch.add(memory, batch_histogram - memory, alpha=alpha)
        share = torch.where(memory.sum() == 0, 1.0, self.momentum)
        # of an equal batch nothing moves, to the last digit; nor of one with NaN, which would stay for good
        moved = memory + share.to(memory.dtype) * (batch_histogram - memory)
        return torch.where(batch_histogram.sum() > 0, moved, memory)

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Any = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> Any:
        """The loss, 0-d; arguments as in any loss. In training mode the memory moves."""
        from losslib.kernels.weighed import weighed  # which imports the losses

        batch = self.read(embeddings, labels, indices_tuple, ref_emb, ref_labels)
        with without_autocast(embeddings):
            found = weighed(self, batch)
            term = self.compute(batch)["loss"] if found is None else _WeighedTerm(*found)
            value = self._reduced(self._with_penalties({"loss": term}, batch), embeddings, labels)
        if self.training and isinstance(term, _WeighedTerm) and not transforming():
            with torch.no_grad():
                self.histogram.copy_(term.memory)
        return value

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector: all differences are 0."""
        return 0.0


class _WeighedTerm(IndexedTerm):
    """The reduced loss, with the memory that its batch leaves."""

    def __init__(self, value: Tensor, memory: Tensor) -> None:
        super().__init__(value, None)
        self.memory = memory
