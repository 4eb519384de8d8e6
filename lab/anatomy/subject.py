"""What is taken apart: a loss with its options, a distance and a reducer, hashable."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from lab.scenes import SIZES, OwnDraws, built, scenes_of
from losslib import catalog
from losslib.distances import CosineSimilarity, Distance, DotProductSimilarity, LpDistance, SNRDistance
from losslib.loss_table import spelled
from losslib.reducers import AvgNonZeroReducer, MeanReducer, SumReducer

DEFAULT = "default"
Values = tuple[tuple[str, Any], ...]

_DISTANCES: tuple[Callable[[], Distance], ...] = (
    LpDistance,
    lambda: LpDistance(power=2),
    lambda: LpDistance(normalize_embeddings=False),
    lambda: LpDistance(p=1),
    CosineSimilarity,
    DotProductSimilarity,
    SNRDistance,
)
_REDUCERS = (MeanReducer, SumReducer, AvgNonZeroReducer)
DISTANCES = {spelled(make()).removesuffix("()"): make for make in _DISTANCES}
REDUCERS = {make.__name__: make for make in _REDUCERS}


@dataclass(frozen=True)
class Subject:
    """A loss as it is set.

    Args:
        loss: its class name.
        options: its options, as pairs of name and checked value; those left out are at their default.
        distance: a key of `DISTANCES`, or "default".
        reducer: a key of `REDUCERS`, or "default".
    """

    loss: str
    options: Values = ()
    distance: str = DEFAULT
    reducer: str = DEFAULT

    @property
    def cls(self) -> type[Any]:
        """The loss's class. Raises ParameterError where there is none of that name."""
        return catalog.get(self.loss)

    def built(self, **sizes: Any) -> Any:
        """The loss in float64, equal at every call. Raises ValueError or TypeError where it refuses.

        sizes: what the loss must be given, such as num_classes, where two classes and four coordinates are
            not meant.
        """
        return built(self.cls, sizes, **dict(self.options), **self._parts())

    def _parts(self) -> dict[str, Any]:
        parts: dict[str, Any] = {}
        if self.distance != DEFAULT:
            parts["distance"] = DISTANCES[self.distance]()
        if self.reducer != DEFAULT:
            parts["reducer"] = REDUCERS[self.reducer]()
        return parts

    def warned(self) -> tuple[str, ...]:
        """What the loss warns of when it is built so."""
        cls = self.cls
        with warnings.catch_warnings(record=True) as caught, OwnDraws():
            warnings.simplefilter("always", UserWarning)
            cls(**{name: SIZES[name] for name in cls.required}, **dict(self.options), **self._parts())
        return tuple(str(one.message) for one in caught)

    def value(self, name: str) -> Any:
        """The value of an option."""
        return dict(self.options).get(name, self.cls.params[name].default)

    def with_option(self, name: str, value: Any) -> Subject:
        """The same with another value of one option."""
        return replace(self, options=(*((n, v) for n, v in self.options if n != name), (name, value)))


def measure(loss: Any) -> Distance:
    """The loss's distance, or the Euclidean one where it has none."""
    distance: Distance = loss.distance if "distance" in loss.parts else LpDistance()
    return distance


@cache
def distances_for(name: str) -> tuple[str, ...]:
    """The distances a loss accepts, its default first; "default" alone where it takes none."""
    cls = catalog.get(name)
    own = spelled(cls.default_distance()).removesuffix("()") if "distance" in cls.parts else ""
    accepted = [one for one in DISTANCES if own and one != own and _evaluates(Subject(name, distance=one))]
    return (DEFAULT, *accepted)


@cache
def reducers_for(name: str) -> tuple[str, ...]:
    """The reducers a loss accepts, its default first; "default" alone where it takes none."""
    cls = catalog.get(name)
    own = cls.default_reducer() if "reducer" in cls.parts else None
    if own is None:
        return (DEFAULT,)
    others = [one for one in REDUCERS if one != type(own).__name__]
    return (DEFAULT, *(one for one in others if _evaluates(Subject(name, reducer=one))))


def _evaluates(subject: Subject) -> bool:
    """Whether the loss takes its parts and gives a number in a scene."""
    try:
        subject.built()
    except (ValueError, TypeError):
        return False
    scenes = scenes_of(subject.cls)
    return not scenes or any(_called(subject, scene) for scene in scenes)


def _called(subject: Subject, scene: Any) -> bool:
    loss = subject.built()
    partner, _, across = scene.plane("positive")
    try:
        scene.place(loss, "positive")
        with OwnDraws():
            scene.call(loss, (0.8 * partner + 0.6 * across).unsqueeze(0), "positive")
    except (ValueError, TypeError):
        return False
    return True
