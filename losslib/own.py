"""Losses from outside: any module called as `loss(embeddings, labels)`, with its options read from its
signature, made into a class that stands in the catalogue beside ours.
"""

from __future__ import annotations

import inspect
import re
from typing import Any, ClassVar

from torch import Tensor, nn

from losslib.base import BaseLoss
from losslib.distances import LpDistance
from losslib.errors import ParameterError, ShapeError
from losslib.inputs import Batch
from losslib.params import Choice, Integer, Param, Required, boolean, finite, positive
from losslib.terms import Term, reduced_term
from losslib.types import Paper

SIZES = ("num_classes", "embedding_size")  # what the data and the embedding size decide


class OwnLoss(BaseLoss):
    """A module from outside, held as `inner`. Options are set on it by name, or build it anew.

    It weighs no pairs that could be shown. `distance` is only the axis on which pairs are drawn.

    Raises ShapeError when the module gives anything but one number, ValueError without labels and for
    index tuples or references, which it is not known to take.
    """

    made_by: ClassVar[type[nn.Module]]
    family = "own"
    activity = "softmax"
    default_distance = LpDistance
    parts = ("distance",)
    not_claimed: ClassVar[dict[str, str]] = {
        "scale": "a module from outside does not say whether it normalises"
    }

    def prepare(self) -> None:
        """Builds the module from the options."""
        given = {name: getattr(self, name) for name in (*self.required, *self.params)}
        self.inner = self.made_by(**given)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in self.params and "inner" in self.__dict__.get("_modules", {}):
            setattr(self.inner, name, getattr(self, name))

    def compute(self, batch: Batch) -> dict[str, Term]:
        """The module's value as the only term."""
        owner = type(self).__name__
        if (
            batch.labels is None
            or batch.indices is not None
            or batch.masks is not None
            or batch.ref_emb is not None
        ):
            raise ValueError(f"{owner}: is called with embeddings and labels alone")
        value = self.inner(batch.embeddings, batch.labels)
        if not isinstance(value, Tensor) or value.numel() != 1:
            what = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise ShapeError(f"{owner}: must give one number, a 0-d tensor, got {what}")
        return {"loss": reduced_term(value.reshape(()))}

    def _with_penalties(self, terms: dict[str, Term], batch: Batch) -> dict[str, Term]:
        return terms  # it has no regularizers

    def not_by_anchor(self, has_reference: bool) -> str:
        """A module from outside says nothing of its terms."""
        return "it is a module from outside, which says nothing of its terms"


def as_loss(cls: type[nn.Module]) -> type[BaseLoss]:
    """The class itself if it is one of ours by its base, else a class that holds it.

    Args:
        cls: a module called as `loss(embeddings, labels)`.

    Raises:
        ParameterError: it cannot be called so, or needs an argument that nothing here can give.
    """
    if issubclass(cls, BaseLoss):
        return cls
    refuse_other_calls(cls)
    text = (inspect.getdoc(cls) or "").strip().split("\n\n")[0]
    summary = re.sub(r"\s+", " ", text) if cls.__doc__ else f"A loss of your own, {cls.__name__}."
    declared = options_of(cls)
    body = {
        "__doc__": f"{summary}\n\nA module from outside, {cls.__module__}:{cls.__name__}.",
        "__module__": __name__,
        "made_by": cls,
        "title": re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", cls.__name__.removesuffix("Loss")) or cls.__name__,
        "summary": summary if summary.endswith(".") else f"{summary}.",
        "equation": rf"\text{{{cls.__name__}}}(x, y)",
        "paper": Paper("Your own", 0, f"class {cls.__name__} of {cls.__module__}", ""),
        **declared,
    }
    return type(cls.__name__, (OwnLoss,), body)


def refuse_other_calls(cls: type[nn.Module]) -> None:
    """Raises ParameterError unless its forward takes embeddings and labels, and needs nothing else."""
    names = list(inspect.signature(cls.forward).parameters.values())[1:]
    positional = [p for p in names if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    several = any(p.kind == p.VAR_POSITIONAL for p in names)
    needed = [p for p in names if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if (len(positional) < 2 and not several) or len(needed) > 2:
        raise ParameterError(
            f"{cls.__name__}: its forward takes ({', '.join(p.name for p in names)}); a loss is called with "
            "embeddings and labels"
        )


def options_of(cls: type[nn.Module]) -> dict[str, Param | Required]:
    """Declarations made from its signature: numbers, switches and texts by their defaults.

    Raises:
        ParameterError: an argument without a default that is no size of the data.
    """
    found: dict[str, Param | Required] = {}
    for name, parameter in list(inspect.signature(cls.__init__).parameters.items())[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        default = parameter.default
        if default is parameter.empty:
            if name not in SIZES:
                raise ParameterError(
                    f"{cls.__name__}: its argument {name!r} has no default; give it one, or call it "
                    f"{' or '.join(SIZES)} if it is one of these"
                )
            found[name] = Required(valid=Integer(1), meaning=name.replace("_", " "))
        elif (param := declared_by(name, default)) is not None:
            found[name] = param
    return found


def declared_by(name: str, default: Any) -> Param | None:
    """A declaration for an argument with that default; None leaves it to the module."""
    meaning = f"{name.replace('_', ' ')}, as the class declares it"
    if isinstance(default, bool):
        return Param(default, valid=boolean, meaning=meaning, fixed=True)
    if isinstance(default, int):
        return Param(default, valid=Integer(None, None), meaning=meaning, fixed=True)
    if isinstance(default, float):
        above = default > 0 and name in ("temperature", "tau", "scale", "gamma", "alpha", "beta", "sigma")
        low, high = (default / 10, default * 10) if above else (min(0.0, 2 * default), max(1.0, 2 * default))
        return Param(default, valid=positive if above else finite, explore=(low, high), meaning=meaning)
    if isinstance(default, str):
        return Param(default, valid=Choice(default), meaning=meaning, fixed=True)
    return None
