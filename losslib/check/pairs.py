"""Do positives pull and negatives push, each pair once, and only where the equation says so?"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from losslib.check.registry import Finding, NotApplicable, check
from losslib.check.subject import Subject, all_pairs, relative_error

LABELS = torch.tensor([0, 0, 1, 1])
EQUAL = 1e-9
ROUNDING = 1e-10  # of the gradient's length, what is left of it at right angles to the path
LEVEL = 1e-6  # slopes this much smaller than the largest one are rounding


def _axes(size: int) -> Tensor:
    """Five orthonormal directions of mean 0, shape (5, size): lengths, angles and variances all agree."""
    if size < 6:
        raise NotApplicable(f"needs an embedding size of 6 or more, this audit has {size}")
    generator = torch.Generator().manual_seed(7)
    made = torch.randn(size, 5, generator=generator, dtype=torch.float64)
    return torch.linalg.qr(made - made.mean(dim=0))[0].T


def two_classes(size: int, within: float, between: float) -> Tensor:
    """Two pairs of unit rows.

    The rows of a class stand `within` radians from its centre, each class along an axis of its own; the
    centres stand `between` radians apart. With centres at right angles a change of `within` changes only
    the positive pairs; a change of `between` changes only the negative ones.
    """
    e = _axes(size)
    first = e[0]
    second = math.cos(between) * e[0] + math.sin(between) * e[1]
    c, s = math.cos(within), math.sin(within)
    return torch.stack(
        [c * first + s * e[2], c * first - s * e[2], c * second + s * e[3], c * second - s * e[3]]
    )


def hard_rows(size: int, opening: float) -> Tensor:
    """Rows beside one of the other class; the two rows of a class are `opening` radians apart."""
    e = _axes(size)
    side = math.cos(math.radians(8)) * e[0] + math.sin(math.radians(8)) * e[1]
    c, s = math.cos(opening), math.sin(opening)
    return torch.stack([e[0], c * e[0] + s * e[2], side, c * side + s * e[2]])


def _pulls_and_pushes(subject: Subject) -> None:
    subject.needs_labels()
    if subject.has_proxies:
        raise NotApplicable("the rows move against the loss's own parameters, not only against each other")
    subject.needs_two_classes()


class _Path(NamedTuple):
    """The loss along a path of batches: its slopes, what of them is rounding, and by how much it rises."""

    slopes: list[float]
    rounding: float
    rise: float

    def holds(self, sign: int) -> bool:
        """Whether it only rises (1) or only falls (-1), does so somewhere, and is finite everywhere."""
        if not all(map(math.isfinite, (*self.slopes, self.rise))):
            return False
        signed = [sign * slope for slope in self.slopes]
        floor = max(self.rounding, LEVEL * max(signed))
        return min(signed) >= -floor and (max(signed) > self.rounding or sign * self.rise > self.rounding)

    def words(self) -> str:
        """What came."""
        change = f"from end to end it {'rises' if self.rise > 0 else 'falls'} by {abs(self.rise):.2e}"
        return f"slopes from {min(self.slopes):.2e} to {max(self.slopes):.2e}; {change}"


def _along(subject: Subject, rows: list[Tensor]) -> _Path:
    """The loss along a path, at its inner points, by autograd."""
    slopes, sizes, values = [], [], []
    for before, here, after in zip(rows, rows[1:], rows[2:], strict=False):
        value, gradient = subject.gradient(here, LABELS)
        move = (after - before) / 2
        slopes.append(float((gradient * move).sum()))
        sizes.append(float(gradient.norm() * move.norm()))
        values.append(float(value))
    return _Path(slopes, ROUNDING * max(sizes), values[-1] - values[0])


def _closed(subject: Subject, path: _Path, side: str) -> None:
    """Raises NotApplicable where a hinge with these margins leaves all pairs of that side at rest."""
    at_rest = max(map(abs, (*path.slopes, path.rise))) <= path.rounding
    if at_rest and subject.declares("activity") == "hinge" and callable(subject.declares("marks")):
        raise NotApplicable(f"with these margins no {side} pair of this path has a gradient")


@check("positive pairs", "a loss that does not fall when positives approach does not gather classes")
def positive_pairs(subject: Subject) -> Finding:
    """The loss rises, or stays, as the rows of each class move apart while negatives stay where they are."""
    _pulls_and_pushes(subject)
    angles = torch.linspace(math.radians(1), math.radians(88), 30, dtype=torch.float64).tolist()
    path = _along(subject, [two_classes(subject.embedding_size, a, math.pi / 2) for a in angles])
    _closed(subject, path, "positive")
    tried = "positive pairs moved apart from 4 to 170 degrees, negatives kept at 90"
    return Finding(path.holds(1), tried, path.words(), "none below 0, some above, or a rise")


@check("negative pairs", "a loss that does not fall when negatives part does not separate classes")
def negative_pairs(subject: Subject) -> Finding:
    """The loss falls, or stays, as two classes move apart while positives stay where they are."""
    _pulls_and_pushes(subject)
    angles = torch.linspace(math.radians(2), math.radians(178), 40, dtype=torch.float64).tolist()
    path = _along(subject, [two_classes(subject.embedding_size, math.radians(20), a) for a in angles])
    _closed(subject, path, "negative")
    tried = "two classes moved apart from 2 to 178 degrees, positives kept at 40"
    return Finding(path.holds(-1), tried, path.words(), "none above 0, some below, or a fall")


@check(
    "hard pairs",
    "an epsilon inside a logarithm, or a saturated exponential, stops learning where it matters most",
)
def hard_pairs(subject: Subject) -> Finding:
    """The pull on the hardest positives, with a negative at 8 degrees, has not faded beside easier ones."""
    _pulls_and_pushes(subject)
    if subject.samples:
        raise NotApplicable("the loss draws its triplets at random")
    cold = isinstance(subject.declares("temperature"), (int, float))
    loss = subject.copy(torch.float64, temperature=0.01) if cold else subject.copy(torch.float64)
    openings = [20.0, 50.0, 80.0, 110.0, 140.0, 165.0]
    pulls = []
    for opening in openings:
        near, far = (hard_rows(subject.embedding_size, math.radians(opening + d)) for d in (-0.01, 0.01))
        _, gradient = subject.gradient((near + far) / 2, LABELS, loss=loss)
        similarity = (far[0] @ far[1] - near[0] @ near[1]).item()
        pulls.append(abs(float((gradient * (far - near)).sum()) / similarity))
    finite = all(map(math.isfinite, pulls))
    ratio = pulls[-1] / max(pulls) if finite and max(pulls) > 0 else 0.0 if finite else math.nan
    tried = "positives opened from 20 to 165 degrees, each row beside a negative" + (
        ", temperature 0.01" if cold else ""
    )
    return Finding(ratio > 0.02, tried, f"{ratio:.1e} of the strongest pull is left", "at least 2 %")


@check(
    "temperature", "a temperature applied twice, or not at all, makes published settings mean something else"
)
def temperature(subject: Subject) -> Finding:
    """At low temperatures the loss is (hardest negative - positive) / temperature."""
    if not isinstance(subject.declares("temperature"), (int, float)):
        raise NotApplicable("the loss has no temperature")
    _pulls_and_pushes(subject)
    rows = hard_rows(subject.embedding_size, math.radians(150))
    values = [
        float(subject.value(rows, LABELS, loss=subject.copy(torch.float64, temperature=t)).detach())
        for t in (0.02, 0.01)
    ]
    ratio = values[1] / values[0] if values[0] else math.nan
    tried = "one hard batch at temperatures 0.02 and 0.01"
    return Finding(abs(ratio - 2) < 0.05, tried, f"the loss grew {ratio:.3f} times", "2 times")


@check(
    "pair weights",
    "the weight of a pair is the pull or push it gets: with the wrong sign it does the opposite",
    slopes=True,
)
def pair_weights(subject: Subject) -> Finding:
    """Positive distances get weights >= 0, negative ones <= 0 (turned for similarities), all others 0."""
    weights_of = subject.declares("pair_weights")
    if not callable(weights_of):
        raise NotApplicable("the loss has no pair_weights")
    if subject.has_proxies:
        raise NotApplicable("the loss compares embeddings with its own parameters")
    subject.needs_two_classes()
    # One positive an anchor: among several, a softmax over them all may rightly push the easiest away.
    labels = torch.arange(subject.num_classes).repeat(2)
    loss = subject.copy(torch.float64)
    found = loss.pair_weights(subject.rows(len(labels), seed=20), labels)  # type: ignore[attr-defined]
    sign = -1.0 if subject.declares("distance").is_inverted else 1.0
    pull, push = sign * found.weights[found.positive], -sign * found.weights[found.negative]
    other = found.weights[~(found.positive | found.negative)].abs().max()
    low = min(float(pull.min()), float(push.min()))
    top = float(found.weights.abs().max())
    holds = low >= -LEVEL * top and float(other) == 0.0 and top > 0
    got = f"smallest pull or push {low:.2e}, largest {top:.2e}, on no pair {float(other):.1e}"
    return Finding(holds, "random rows, two a class", got, "none below 0, some above, 0 on no pair")


@check(
    "self pairs",
    "a row compared with itself is a positive at distance 0: it dilutes means and fills denominators",
)
def self_pairs(subject: Subject) -> Finding:
    """Labels give the value that an explicit list of all pairs gives, none of them a row with itself."""
    subject.needs("indices_tuple")
    if subject.samples:
        raise NotApplicable("the loss draws its triplets at random")
    embeddings, labels = subject.batch(seed=21)
    try:
        listed = subject.value(embeddings, labels, indices_tuple=all_pairs(labels))
    except ValueError as refusal:
        raise NotApplicable(f"refuses index tuples: {refusal}") from refusal
    error = relative_error(subject.value(embeddings, labels), listed)
    tried = "labels against the list of all pairs without a row's pair with itself"
    return Finding(error < EQUAL, tried, f"relative difference {error:.1e}", "equal values")
