"""Losses over two views of the same samples: row i of one and row i of the other."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from losslib.base import BaseLoss
from losslib.inputs import Batch, read_views


class TwoViewLoss(BaseLoss):
    """Called as `loss(embeddings, ref_emb=other_view)`, both (B, D): no labels, and no index tuple."""

    family = "two-view"
    needs = ("two views",)

    def read(self, *given: Any) -> Batch:
        """Both views, checked and in working precision."""
        embeddings, labels, indices_tuple, ref_emb, ref_labels = given
        owner = type(self).__name__
        if labels is not None or ref_labels is not None:
            raise ValueError(
                f"{owner}: takes no labels, because row i of both views is one sample; call "
                "loss(embeddings, ref_emb=other_view)"
            )
        if indices_tuple is not None:
            raise ValueError(f"{owner}: takes no indices_tuple, because row i of both views is one sample")
        return read_views(owner, embeddings, ref_emb)

    def not_by_anchor(self, has_reference: bool) -> str:
        """Why it does not split by anchor."""
        return "it compares two views row by row, and takes no labels"


def centred(x: Tensor) -> Tensor:
    """The rows less their mean, (B, D)."""
    return x - x.sum(0) / max(len(x), 1)
