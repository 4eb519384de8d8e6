"""Center loss."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.distances import Distance, LpDistance
from losslib.proxies import ProxyLoss
from losslib.terms import DenseTerm, Term
from losslib.types import Paper


def squared_length() -> LpDistance:
    """The default distance."""
    return LpDistance(normalize_embeddings=False, power=2)


class CenterLoss(ProxyLoss):
    """Pulls each row to its class's learned centre; nothing is pushed.

    The pull grows with the distance and fades at the centre. Alone it collapses: all rows and centres at one
    point cost nothing, so it is added to a loss that separates classes, such as a softmax.

    Shapes: embeddings (B, D), labels (B,) in 0..C-1; `weight` (C, D), one centre a class. An index tuple
    weighs rows by how often it lists them.

    Returns the mean over the rows (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for a similarity, ValueError for a reference set, and where `weight` does not match the embeddings'
    device and dtype outside autocast.

    Terms: `loss`, one value per row: half the distance to the own centre, squared and not normalised by
    default. `get_logits` gives the distances to all centres.

    Numerics: differences of each row and its own centre only.

    Differs from the paper: a mean over rows, not a sum, and the centres are trained by gradient descent,
    where the paper moves them by a rate of their own.

    Example: a row at distance 2 from its centre: 4 / 2 = 2.
    """

    title = "Center"
    summary = "Pulls each row to its class's learned centre and pushes nothing."
    activity = "hinge"
    paper = Paper(
        "Wen, Zhang, Li, Qiao",
        2016,
        "A Discriminative Feature Learning Approach for Deep Face Recognition",
        "https://doi.org/10.1007/978-3-319-46478-7_31",
    )
    equation = r"\frac{1}{2} \left\| x - c_y \right\|_2^2"
    default_distance = staticmethod(squared_length)

    def check_distance(self, distance: Distance) -> None:
        """Raises TypeError for a similarity."""
        if distance.is_inverted:
            raise TypeError(
                f"CenterLoss: distance must be a distance, such as LpDistance(normalize_embeddings=False, "
                f"power=2), got {type(distance).__name__}"
            )

    def proxy_terms(self, x: Tensor, weight: Tensor, labels: Tensor, times: Tensor) -> dict[str, Term]:
        """`loss` per row of the batch."""
        values = self.distance.pairwise(x, weight[labels]) / 2
        return {"loss": DenseTerm(values * times, torch.ones_like(labels, dtype=torch.bool))}
