"""A loss's documents, from its class: the paragraphs of its docstring, and snippets in two spellings."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping
from typing import Any

from lab.peer_values import sentence
from losslib.params import Param
from losslib.two_views import TwoViewLoss

BEHAVIOUR = "When it gives gradient, how it fails"
DIFFERENCES = "Differences"
HEADINGS = {
    "Shapes:": "Shapes",
    "Returns": "Returns",
    "Raises": "Raises",
    "Terms:": "Terms",
    "Numerics:": "Numerics",
    "Differs": DIFFERENCES,
    "Example:": "Example",
}
ORDER = (BEHAVIOUR, "Example", DIFFERENCES, "Numerics", "Shapes", "Returns", "Terms", "Raises")


def paragraphs(cls: type[Any]) -> dict[str, str]:
    """The docstring by heading, in the order of interest; the first sentence is left to `cls.summary`."""
    found: dict[str, list[str]] = {heading: [] for heading in ORDER}
    for block in (inspect.getdoc(cls) or "").split("\n\n")[1:]:
        text = re.sub(r"\s+", " ", block).strip()
        start = next((start for start in HEADINGS if text.startswith(start)), None)
        if start is None:
            found[BEHAVIOUR].append(text)
            continue
        rest = text if start == "Differs" else text.removeprefix(start).strip()
        found[HEADINGS[start]].append(rest[:1].upper() + rest[1:])
    return {heading: "\n\n".join(texts) for heading, texts in found.items() if texts}


def losslib_snippet(cls: type[Any]) -> str:
    """Code that computes the loss on a batch, every option written out at its default."""
    given = [f"{name}={value}" for name, value in arguments(cls).items()]
    lines = [
        "import torch",
        "from losslib import losses",
        "",
        f"loss_func = {called('losses', cls.__name__, given)}",
    ]
    if issubclass(cls, TwoViewLoss):
        lines += [
            f"{name} = torch.randn(32, 128, requires_grad=True)" for name in ("embeddings", "other_view")
        ]
    else:
        lines += [
            "embeddings = torch.randn(32, 128, requires_grad=True)",
            "labels = torch.randint(0, 8, (32,))",
        ]
    return "\n".join([*lines, called_on(cls), "loss.backward()"])


def called_on(cls: type[Any], labels: str = "labels") -> str:
    """The line that calls the loss on the snippet's batch; `labels` is the argument that takes them."""
    if issubclass(cls, TwoViewLoss):
        return "loss = loss_func(embeddings, ref_emb=other_view)"
    given = "labels" if labels == "labels" else f"{labels}=labels"
    return f"loss = loss_func(embeddings, {given})"


def pml_snippet(cls: type[Any]) -> tuple[str, str]:
    """The same in pytorch-metric-learning, and a sentence on what has no counterpart; code "" for none."""
    if cls.pml is None:
        return "", "pytorch-metric-learning has no counterpart of this loss."
    renamed = cls.pml.renamed
    imports, made = pml_call(cls, arguments(cls), {name: param.default for name, param in cls.params.items()})
    lines = [
        f"from pytorch_metric_learning import {', '.join(imports)}",
        "",
        f"loss_func = {made}",
        called_on(cls, cls.pml.labels),
    ]
    missing = [name for name, theirs in renamed.items() if not theirs]
    said = [f"It has no counterpart of {' and '.join(f'`{name}`' for name in missing)}."] if missing else []
    said += [f"There `{renamed.get(name, name)}` is in degrees." for name in angles(cls)]
    if differs_from_peer(cls):
        said.append(f"The two do not agree everywhere: see {DIFFERENCES.lower()}. {sentence(cls.__name__)}")
    return "\n".join(lines), " ".join(said).strip()


def differs_from_peer(cls: type[Any]) -> bool:
    """Whether the docstring names a difference from pytorch-metric-learning, not only what is as there."""
    said = paragraphs(cls).get(DIFFERENCES, "")
    return "pytorch-metric-learning" in re.sub(r"\b(as in|equal to)\b[^.;:]*", "", said)


def angles(cls: type[Any]) -> list[str]:
    """Options that are in radians here, and in degrees there."""
    return [name for name, param in cls.params.items() if param.unit == "radians"]


def pml_call(cls: type[Any], given: dict[str, str], values: Mapping[str, Any]) -> tuple[list[str], str]:
    """What pytorch-metric-learning's modules are called that are imported, and the call that makes the loss.

    Args:
        cls: has a spelling there.
        given: every argument as Python code in our spelling.
        values: the options' values.
    """
    renamed = cls.pml.renamed
    own = given | {name: f"{math.degrees(values[name]):.9g}" for name in angles(cls)}
    theirs = {renamed.get(name, name): text for name, text in own.items()}
    imports = ["losses"]
    for kind, package in (("distance", "distances"), ("reducer", "reducers")):
        part = getattr(cls, f"default_{kind}")() if kind in cls.parts else None
        if part is not None:
            imports.append(package)
            options = [f"{n}={value(p, getattr(part, n))}" for n, p in part.params.items()]
            theirs[kind] = f"{package}.{type(part).__name__}({', '.join(options)})"
    written = [f"{name}={text}" for name, text in theirs.items() if name]
    return sorted(imports), called("losses", cls.pml.class_name, written)


def arguments(cls: type[Any]) -> dict[str, str]:
    """Every argument as Python code: what must be given as for the snippet's batch, options at defaults."""
    sizes = {"num_classes": "8", "embedding_size": "128", "class_counts": "(40, 30, 20, 10, 5, 5, 2, 2)"}
    return {name: sizes[name] for name in cls.required} | {
        name: value(param, param.default) for name, param in cls.params.items()
    }


def value(param: Param, given: Any) -> str:
    """A value as Python code, numbers as short as their option reads them back."""
    if isinstance(given, float):
        return f'float("{given}")' if abs(given) == float("inf") else param.format(given)
    return f'"{given}"' if isinstance(given, str) else repr(given)


def called(package: str, name: str, given: list[str]) -> str:
    """A call, one argument a line where it would grow long."""
    line = f"{package}.{name}({', '.join(given)})"
    return (
        line if len(line) < 70 else f"{package}.{name}(\n" + "".join(f"    {text},\n" for text in given) + ")"
    )
