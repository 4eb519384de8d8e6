"""Which losses look at the points, with which options, on which space; and which losses cannot."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from lab.playground.placement import CIRCLE, SPACES
from losslib import catalog
from losslib.distances import Distance
from losslib.errors import ParameterError
from losslib.params import Param
from losslib.proxies import ProxyLoss
from losslib.two_views import TwoViewLoss

MOST_LOSSES = 4
SAMPLING = {"triplets_per_anchor"}  # draws at random: the same points would not give the same number
KEPT = 256  # built losses, of all sessions together


@dataclass(frozen=True)
class Chosen:
    """One loss by name, with the options that are not at their default."""

    name: str
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Setup:
    """Everything but the points.

    Attributes:
        losses: one to four.
        space: "plane" or "circle".
        normalise: whether distances that can do so divide embeddings by their length first.
    """

    losses: tuple[Chosen, ...]
    space: str
    normalise: bool


@cache
def offered() -> dict[str, type[Any]]:
    """The losses that can look at points placed by hand, by class name."""
    return {name: cls for name, cls in catalog.losses().items() if not why_not(cls)}


def why_not(cls: type[Any]) -> str:
    """Why a loss cannot look at such points, in a sentence; "" where it can."""
    if issubclass(cls, TwoViewLoss):
        return "It compares two views of the same sample; here every point is a sample of its own."
    if issubclass(cls, ProxyLoss) or cls.required:
        return "It compares points with learned proxies of the classes, not with each other."
    return f"It needs {', '.join(cls.needs)}." if cls.needs else ""


def options_of(cls: type[Any]) -> dict[str, Param]:
    """The options that have a control: those that may change and draw nothing at random."""
    return {name: p for name, p in cls.params.items() if not p.fixed and name not in SAMPLING}


def read_chosen(name: Any, texts: Any) -> Chosen:
    """A loss by name with its options as texts. Raises ParameterError for what is not offered."""
    cls = catalog.get(name) if isinstance(name, str) else None
    if cls is None or name not in offered():
        raise ParameterError("losses: expected names of losses that the playground offers")
    params = options_of(cls)
    if not isinstance(texts, dict) or any(not isinstance(text, str) for text in texts.values()):
        raise ParameterError(f"{name}: expected options by name, values as texts")
    unknown = [key for key in texts if key not in params]
    if unknown:
        raise ParameterError(f"{name}: no option {unknown[0]!r}; options: {', '.join(params) or 'none'}")
    values = {key: params[key].parse(text, name) for key, text in texts.items()}
    return Chosen(name, tuple(sorted((k, v) for k, v in values.items() if v != params[k].default)))


def read_setup(message: dict[str, Any]) -> Setup:
    """The setup that a message asks for. Raises ParameterError when it is none."""
    losses, space, normalise = (message.get(key) for key in ("losses", "space", "normalise"))
    if space not in SPACES or not isinstance(normalise, bool):
        raise ParameterError(f"setup: expected a space ({', '.join(SPACES)}) and normalise (true or false)")
    if not isinstance(losses, list) or not 1 <= len(losses) <= MOST_LOSSES:
        raise ParameterError(f"setup: expected one to {MOST_LOSSES} losses")
    if any(not isinstance(pair, list) or len(pair) != 2 for pair in losses):
        raise ParameterError("setup: expected losses as [name, options]")
    return Setup(tuple(read_chosen(name, texts) for name, texts in losses), str(space), normalise)


@lru_cache(maxsize=KEPT)
def built(chosen: Chosen, normalise: bool) -> Any:
    """The loss in double precision and evaluation mode. Raises ParameterError for options that clash."""
    cls = catalog.get(chosen.name)
    parts = {} if normalise else plain_distance(cls)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of combinations that the picture itself shows
        try:
            made = cls(**dict(chosen.options), **parts)
        except TypeError:  # its distance must be normalised
            made = cls(**dict(chosen.options))
        except ValueError as error:
            raise ParameterError(str(error)) from error
    return made.double().eval()  # in evaluation mode no memory of earlier placements


def plain_distance(cls: type[Any]) -> dict[str, Distance]:
    """The loss's own distance without normalisation, as an argument; empty where it has no such option."""
    distance = cls.default_distance()
    if "distance" not in cls.parts or "normalize_embeddings" not in distance.params:
        return {}
    distance.normalize_embeddings = False
    return {"distance": distance}


def sees_directions_only(loss: Any) -> bool:
    """Whether moving a point along its ray changes nothing."""
    return bool(getattr(loss.distance, "normalize_embeddings", False))


def closeness(loss: Any, setup: Setup) -> str:
    """The distance in words: which way is closer, and what of the plane it sees."""
    distance = loss.distance
    said = f"{distance.title}: {'larger' if distance.is_inverted else 'smaller'} is closer."
    if setup.space == CIRCLE:
        return said
    if sees_directions_only(loss):
        fixed = "" if setup.normalise else " Normalising belongs to it."
        along = "moving a point along its ray from the centre changes nothing"
        return f"{said} It sees directions only: {along}.{fixed}"
    return f"{said} It sees the plane as it is, lengths included."
