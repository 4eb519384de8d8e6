"""The same batch through losslib and pytorch-metric-learning, and why the two may differ."""

from __future__ import annotations

import math
import sys
import warnings
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from lab.loss_documents import DIFFERENCES, losslib_snippet, paragraphs, pml_snippet
from lab.peer_values import CLASSES, ROWS, SIZE, Pair
from lab.peer_values import SAME as AGREE
from losslib import catalog

PEER = "pytorch_metric_learning"


@dataclass(frozen=True)
class Parity:
    """One loss in two spellings.

    Attributes:
        name, title: of the loss.
        ours: its value.
        theirs: the peer's; NaN where there is none.
        said: the convention that differs, or why there is no value.
    """

    name: str
    title: str
    ours: float
    theirs: float
    said: str

    @property
    def difference(self) -> float:
        """Relative difference; NaN where one of the values is missing."""
        return Pair(self.ours, self.theirs).difference

    @property
    def agrees(self) -> bool:
        """Whether the values are the same."""
        return self.difference <= AGREE


def has_peer() -> bool:
    """Whether pytorch-metric-learning is installed."""
    return find_spec(PEER) is not None


def batch(seed: int = 0) -> tuple[Tensor, Tensor]:
    """Embeddings (64, 128) in float64 around 8 centres, and labels (64,)."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(ROWS) % CLASSES
    centres = torch.randn(CLASSES, SIZE, generator=generator, dtype=torch.float64)
    return centres[labels] + torch.randn(ROWS, SIZE, generator=generator, dtype=torch.float64), labels


def parity(name: str, seed: int = 0, unit: bool = False) -> Parity:
    """One loss with default options on that batch, built by the very snippets that the pages show.

    Args:
        name: class name of the loss.
        seed: of the batch.
        unit: whether its embeddings are divided by their lengths.

    Raises:
        ParameterError: no loss is called so.
    """
    cls = catalog.get(name)
    embeddings, labels = batch(seed)
    if unit:
        embeddings = torch.nn.functional.normalize(embeddings, dim=1)
    said = " ".join(paragraphs(cls).get(DIFFERENCES, "").split())
    if cls.required or "two views" in cls.needs:
        why = (
            "Two views have another call there."
            if "two views" in cls.needs
            else "Parameters of its own start anew."
        )
        return Parity(name, cls.title, math.nan, math.nan, why)
    ours = value_of(losslib_snippet(cls), embeddings, labels)
    code, note = pml_snippet(cls)
    if not code:
        return Parity(name, cls.title, ours, math.nan, note)
    theirs = value_of(code, embeddings, labels) if has_peer() else math.nan
    return Parity(name, cls.title, ours, theirs, said or note)


def value_of(code: str, embeddings: Tensor, labels: Tensor) -> float:
    """What a snippet of `lab.loss_documents` computes on a batch of ours."""
    lines = [line for line in code.split("\n") if not line.startswith(("embeddings =", "labels =", "loss"))]
    made = code[code.index("loss_func = ") :].partition("\nembeddings =")[0].partition("\nloss = ")[0]
    imports = "\n".join(line for line in lines if line.startswith(("import ", "from ")))
    scope: dict[str, object] = {"embeddings": embeddings, "labels": labels}
    call = next(line for line in code.split("\n") if line.startswith("loss = "))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the peer's own, on indexing and on temperatures
        scipy_later()
        exec(f"{imports}\n{made}", scope)  # our own snippet: no text from outside
        loss_func = scope["loss_func"]
        if isinstance(loss_func, torch.nn.Module):
            loss_func.double()
        exec(call, scope)
    return float(scope["loss"].detach())  # type: ignore[attr-defined]


def scipy_later() -> None:
    """Let scipy load where it is first used: the peer imports 70 MB of it for what is not called here."""
    if find_spec("scipy") is None:
        return
    for name in ("scipy.special", "scipy.stats"):
        if name not in sys.modules and (spec := find_spec(name)) is not None:
            sys.modules[name] = standing_in(module_from_spec(spec))


def standing_in(empty: ModuleType) -> ModuleType:
    """A module that has not run; whoever asks for anything in it gets that of the real one."""

    def of_the_real_one(attribute: str) -> Any:
        if sys.modules.get(empty.__name__) is empty:
            del sys.modules[empty.__name__]
        return getattr(import_module(empty.__name__), attribute)

    empty.__getattr__ = of_the_real_one  # type: ignore[method-assign]
    return empty
