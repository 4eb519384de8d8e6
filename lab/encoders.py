"""Encoders: what turns samples into embeddings, in one registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from losslib.errors import ParameterError

HIDDEN = 128


class FreePoints(nn.Module):
    """No network: one free embedding a training point, moved by the loss alone. Its input is the row numbers.

    An embedding is ten times its parameter. A weight of a network is pushed by every sample of every batch,
    a free point only by its own pairs in the few batches that draw it; the factor lets one learning rate
    serve both.
    """

    gain = 10.0

    def __init__(self, count: int, dim: int) -> None:
        super().__init__()
        self.points = nn.Parameter(torch.randn(count, dim) / self.gain)

    def forward(self, rows: Tensor) -> Tensor:
        """Embeddings (B, D) of the rows (B,)."""
        return self.gain * self.points[rows]


class L2Output(nn.Module):
    """Scales every embedding to length 1."""

    def forward(self, embeddings: Tensor) -> Tensor:
        """(B, D) to (B, D); a zero row stays zero."""
        return normalize(embeddings, dim=1)


@dataclass(frozen=True)
class EncoderSpec:
    """An encoder's name, what it is, the kinds of data it accepts, and how it is built.

    `build` takes the shape of one input, the embedding size and the number of training points.
    """

    name: str
    title: str
    summary: str
    kinds: tuple[str, ...]
    build: Callable[[tuple[int, ...], int, int], nn.Module]


def _free(_shape: tuple[int, ...], dim: int, count: int) -> nn.Module:
    return FreePoints(count, dim)


def _linear(shape: tuple[int, ...], dim: int, _count: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(_size(shape), dim))


def _mlp(shape: tuple[int, ...], dim: int, _count: int) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(_size(shape), HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, HIDDEN),
        nn.ReLU(),
        nn.Linear(HIDDEN, dim),
    )


def _cnn(shape: tuple[int, ...], dim: int, _count: int) -> nn.Module:
    # Strides instead of pooling, the first one such that about 9 x 9 places remain: 2,000 digits of
    # 28 x 28 embed in half the time that a stride of 2 takes.
    channels, height, width = shape
    stride = max(1, round(height / 9))
    places = [((length - 3) // stride + 2) // 2 for length in (height, width)]
    return nn.Sequential(
        nn.Conv2d(channels, 8, 5, stride=stride, padding=1),
        nn.ReLU(inplace=True),
        nn.Conv2d(8, 32, 3, stride=2, padding=1),
        nn.ReLU(inplace=True),
        nn.Flatten(),
        nn.Linear(32 * places[0] * places[1], HIDDEN),
        nn.ReLU(inplace=True),
        nn.Linear(HIDDEN, dim),
    )


def _size(shape: tuple[int, ...]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size


ENCODERS = {
    spec.name: spec
    for spec in (
        EncoderSpec(
            "free",
            "Free points",
            "No network: every training point has an embedding of its own, moved by the loss alone. "
            "There are no held-out points, so quality is measured on the points themselves.",
            ("points", "images"),
            _free,
        ),
        EncoderSpec("linear", "Linear", "One linear map.", ("points", "images"), _linear),
        EncoderSpec("mlp", "MLP", "Two hidden layers of 128 ReLU units.", ("points", "images"), _mlp),
        EncoderSpec(
            "cnn",
            "Small CNN",
            "Two strided convolutions, 8 and 32 channels, and 128 hidden units.",
            ("images",),
            _cnn,
        ),
    )
}


def output_layer(output: str, dim: int) -> nn.Module:
    """The output normalisation; none of them has parameters."""
    layers: dict[str, Callable[[], nn.Module]] = {
        "none": nn.Identity,
        "l2": L2Output,
        "layernorm": lambda: nn.LayerNorm(dim, elementwise_affine=False),
        "batchnorm": lambda: nn.BatchNorm1d(dim, affine=False),
    }
    return layers[output]()


def build_encoder(
    name: str, shape: tuple[int, ...], dim: int, count: int, output: str = "none"
) -> nn.Sequential:
    """Encoder and output normalisation, with initial weights from torch's global generator.

    Args:
        name: a key of `ENCODERS`.
        shape: shape of one input.
        dim: embedding size.
        count: number of training points (for free points).
        output: output normalisation.

    Raises:
        ParameterError: the CNN with inputs that are not images.
    """
    if name == "cnn" and len(shape) != 3:
        raise ParameterError(f"encoder: the CNN needs images (channels, height, width), got shape {shape}")
    return nn.Sequential(ENCODERS[name].build(shape, dim, count), output_layer(output, dim))
