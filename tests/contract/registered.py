"""Every registered loss with the options, distances and reducers it is tried with, all from declarations."""

import inspect
import warnings
from typing import Any

import losslib.distances
import losslib.reducers
from losslib import catalog
from losslib.base import PairLoss
from losslib.params import Param
from tests.contract.parts import make_distance, make_reducer
from tests.oracles import Oracle, oracle

EVERY_LOSS = list(catalog.losses())
NAMES = [name for name, cls in catalog.losses().items() if issubclass(cls, PairLoss) and not cls.needs]
SAMPLING = {"triplets_per_anchor"}  # draws at random: tested by its properties, not by a value


def own_options(expected: Oracle) -> dict[str, Any]:
    """Options of an oracle's equation with their defaults."""
    parameters = list(inspect.signature(expected.equation).parameters.values())[1:]
    return {p.name: p.default for p in parameters}


def choices_of(param: Param) -> list[Any]:
    """Both ends of the range worth exploring, or every choice; what is not the default."""
    found = list(param.explore or ())
    if param.explore and None in param.valid.examples_in():
        found.append(None)
    return [value for value in found if value != param.default or type(value) is not type(param.default)]


def variants(name: str) -> list[dict[str, Any]]:
    """The defaults, then one option changed at a time."""
    cls = catalog.get(name)
    changed = [
        {option: value}
        for option, param in cls.params.items()
        if option not in SAMPLING
        for value in choices_of(param)
    ]
    return [{}, *changed, *getattr(oracle(name), "more", ())]


SIZES = {"num_classes": 6, "embedding_size": 4, "class_counts": (50, 3, 20, 7, 1, 12)}


def sizes(name: str, **changes: Any) -> dict[str, Any]:
    """The arguments without a default that the loss must be given, for the batches of `inputs`."""
    every = {**SIZES, **changes}
    return {needed: every[needed] for needed in catalog.get(name).required}


def build(name: str, options: dict[str, Any] | None = None, distance: Any = None, reducer: Any = None) -> Any:
    """The loss, with parts given as (name, options)."""
    parts: dict[str, Any] = {}
    if distance is not None:
        parts["distance"] = make_distance(losslib.distances, distance)
    if reducer is not None:
        parts["reducer"] = make_reducer(losslib.reducers, reducer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # margins that hardly suit the distance, on purpose
        made = catalog.get(name)(**{**sizes(name), **(options or {})}, **parts).double()
    for option, tensor in [*made.named_parameters(), *made.named_buffers()]:
        if option in made.params:  # a module is born in float32: give back the digits that cost
            tensor.data.fill_((options or {}).get(option, made.params[option].default))
    return made


def needs_labels(options: dict[str, Any]) -> bool:
    """Whether these options give the loss something per class."""
    return options.get("num_classes") is not None


def label_of(value: Any) -> str:
    """Short text for a test's name."""
    if isinstance(value, tuple):
        value = {"": value[0], **value[1]}
    return "-".join(f"{k}{v}" for k, v in value.items()) or "defaults"
