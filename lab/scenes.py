"""Small fixed batches in which one row slides: among pairs, away from a proxy, away from another view.

The row moves on the unit circle from the first axis to the opposite point; all else stands still, off the
plane in which it moves. Coordinates of an axis sum to 0, so that distances of variances see the same angle.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from losslib.proxies import ProxyLoss
from losslib.two_views import TwoViewLoss

AXES = torch.tensor([[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]], dtype=torch.float64) / 2
CLASSES = 2
DRAWS = (torch.randn, torch.rand, Tensor.normal_, Tensor.uniform_)
SIZES: dict[str, Any] = {"num_classes": CLASSES, "embedding_size": 4, "class_counts": (20, 10)}


def stays(loss: Any, side: str) -> None:
    """Most losses have no proxies."""


def first_axes(side: str) -> tuple[Tensor, Tensor, Tensor]:
    """Away from the first axis, towards the second."""
    return AXES[0], AXES[0], AXES[1]


@dataclass(frozen=True)
class Scene:
    """Where things stand while x, (1, 4), slides away from the first axis.

    Attributes:
        held: what slides and what is held, in a sentence.
        call: the loss of a position of x, (1, D).
        place: puts the loss's own proxies where the scene has them, before x slides.
        plane: for a side, what x slides away from, and the two axes of the plane in which it slides,
            (D,) each, of the length that x has.
        edge: radians kept from both ends, where distances to others change and this one does not.
    """

    held: str
    call: Callable[[Any, Tensor, str], Tensor]
    place: Callable[[Any, str], None] = stays
    plane: Callable[[str], tuple[Tensor, Tensor, Tensor]] = first_axes
    edge: float = 0.0


def at_angle(degrees: float, axis: int = 2) -> Tensor:
    """The unit row (4,) at that angle to the first axis, off the plane in which x slides."""
    radians = math.radians(degrees)
    return math.cos(radians) * AXES[0] + math.sin(radians) * AXES[axis]


def among_pairs(positives: tuple[float, ...], negatives: tuple[float, ...]) -> Callable[..., Tensor]:
    """One anchor; x and rows at these angles to it are its references."""

    def call(loss: Any, x: Tensor, side: str) -> Tensor:
        near, far = (positives[1:], negatives) if side == "positive" else (positives, negatives[1:])
        others = [at_angle(angle) for angle in (*near, *far)]
        labels = [int(side == "negative"), *[0] * len(near), *[1] * len(far)]
        references = torch.cat([x, torch.stack(others)])
        value: Tensor = loss(AXES[:1], torch.tensor([0]), None, references, torch.tensor(labels))
        return value

    return call


def in_one_batch(loss: Any, x: Tensor, side: str) -> Tensor:
    """As among pairs, for losses whose batch must be its own reference: two classes of two rows."""
    rows, labels = [AXES[0], x[0], at_angle(60), at_angle(90)], [0, 0, 1, 1]
    if side == "negative":
        labels = [0, 1, 0, 1]
    value: Tensor = loss(torch.stack(rows), torch.tensor(labels))
    return value


def place_proxies(loss: Any, side: str) -> None:
    """What slides past stands on the first axis: the own proxy, or the other class's."""
    own, other = (AXES[0], AXES[2]) if side == "positive" else (AXES[2], AXES[0])
    times = len(loss.weight) // CLASSES
    with torch.no_grad():
        loss.weight.copy_(torch.stack([own, other]).repeat_interleave(times, 0))


def to_proxies(loss: Any, x: Tensor, side: str) -> Tensor:
    """One row of class 0; it slides away from its own proxy, or from the other class's."""
    value: Tensor = loss(x, torch.tensor([0]))
    return value


def to_other_view(loss: Any, x: Tensor, side: str) -> Tensor:
    """Three samples in two views; one row slides away from its other view, or from another sample's."""
    own, other = (AXES[0], AXES[2]) if side == "positive" else (AXES[2], AXES[0])
    first = torch.stack([x[0], at_angle(100), at_angle(150)])
    value: Tensor = loss(first, ref_emb=torch.stack([own, other, at_angle(140)]))
    return value


PAIRS = (
    Scene(
        "One pair slides. Its anchor has one other pair, of the other kind, held at 60 degrees "
        "(Euclidean distance 1, cosine similarity 0.5).",
        among_pairs((60,), (60,)),
    ),
    Scene(
        "One pair slides. Its anchor has three other pairs, held at 45 and 75 degrees (positives) and at 60 "
        "and 90 degrees (negatives), less the one that slides.",
        among_pairs((60, 45, 75), (60, 60, 90)),
    ),
    Scene(
        "One pair slides in a batch of two classes of two rows; the other two rows are held at 60 and "
        "90 degrees to its anchor.",
        in_one_batch,
    ),
)
PROXIES = Scene(
    "One row slides away from its own proxy (positive) or from that of the other class (negative), while "
    "its other proxy is held at 90 degrees.",
    to_proxies,
    place_proxies,
)
VIEWS = Scene(
    "One row slides away from its other view (positive) or from another sample's view (negative), in a "
    "batch of three samples whose other rows are held.",
    to_other_view,
)


def scenes_of(cls: type[Any]) -> tuple[Scene, ...]:
    """The scenes to try, the plainest first."""
    if issubclass(cls, ProxyLoss):
        return (PROXIES,)
    if issubclass(cls, TwoViewLoss):
        return (VIEWS,)
    return () if cls.needs else PAIRS


class OwnDraws(TorchFunctionMode):
    """Random numbers of the block come from a generator of its own.

    The global generator belongs to the runs that train in another thread: not one number may be taken.
    """

    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(0)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """The call, a draw with the block's generator."""
        draws = func in DRAWS or getattr(func, "__module__", "") == nn.init.__name__
        own = {"generator": self.generator} if draws else {}
        return func(*args, **{**(kwargs or {}), **own})


def built(cls: type[Any], sizes: dict[str, Any] | None = None, **options: Any) -> Any:
    """The loss in float64, equal at every call.

    Args:
        cls: its class.
        sizes: what it must be given; for two classes and four coordinates where left out.
        options: options and parts; defaults where left out.
    """
    given = {**SIZES, **(sizes or {})}
    with warnings.catch_warnings(), OwnDraws():
        warnings.simplefilter("ignore", UserWarning)
        return cls(**{name: given[name] for name in cls.required}, **options).double()
