"""Run the checks on one loss."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
from collections.abc import Callable, Collection
from typing import Any

import torch

from losslib.check.cause import cause
from losslib.check.registry import CHECKS, CheckFunction, NotApplicable
from losslib.check.report import FAILED, NO_ERROR, PASSED, SKIPPED, Check, Report
from losslib.check.subject import Subject
from losslib.errors import ParameterError


def checks() -> dict[str, CheckFunction]:
    """All checks by name, those of every module of this package."""
    package = importlib.import_module("losslib.check")
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("__"):
            importlib.import_module(f"losslib.check.{module.name}")
    return dict(CHECKS)


def audit(
    loss: Callable[..., Any],
    *,
    embedding_size: int | None = None,
    num_classes: int | None = None,
    seed: int = 0,
    only: Collection[str] | None = None,
    skip: Collection[str] = (),
) -> Report:
    """Try a loss on the inputs on which losses go wrong, and say what came of each.

    Any `torch.nn.Module` called as `loss(embeddings, labels)` will do. What it accepts beyond that
    (`indices_tuple`, `ref_emb`, `ref_labels`) is read from its signature. A loss of this library is also
    held to what it declares: pair weights, terms, marks, its value at collapse. A loss may set
    `not_claimed = {"name of a check": "reason"}`; that check is then skipped for the reason given.

    Args:
        loss: the loss, already built.
        embedding_size: size of the embeddings to try, 1 or more; by default the loss's own, else 8.
        num_classes: number of classes to try; by default the loss's own up to 3, else 3.
        seed: seed of the batches tried.
        only: names of the checks to run; all when None.
        skip: names of checks to leave out.

    Returns:
        A Report; `report.passed` is True when no check failed.

    Raises:
        ParameterError: for an unknown name in `only` or `skip`, a size or a number of classes below 1.
        Exception: whatever the loss raises on an ordinary batch, since nothing can be said of such a loss.

    Example:
        >>> from losslib.losses import ContrastiveLoss
        >>> audit(ContrastiveLoss()).passed
        True
    """
    known = checks()
    for name in [*(only or ()), *skip]:
        if name not in known:
            raise ParameterError(f"audit: no check named {name!r}; there are {', '.join(known)}")
    subject = Subject(loss, embedding_size, num_classes, seed)
    chosen = [c for c in known.values() if c.name not in skip and (only is None or c.name in only)]
    try:
        subject.value(*subject.batch())  # raises here, once, when the loss cannot be called at all
    except Exception as error:
        with contextlib.suppress(Exception):
            subject.value(*subject.batch(dtype=torch.float32))
            return _single_only(subject.name, chosen, known["float64"], error)
        raise
    return Report(subject.name, tuple(_run(c, subject) for c in chosen))


def _single_only(name: str, chosen: list[CheckFunction], precise: CheckFunction, error: Exception) -> Report:
    """The report on a loss that takes float32 and not float64: one failure, the cause of all others."""
    failed = Check(precise.name, FAILED, "the ordinary batch in float64", cause(error), NO_ERROR, precise.why)
    reason = "needs a loss that takes float64: in float32 rounding hides what this check looks for"
    others = [c for c in chosen if c is not precise]
    return Report(name, (failed, *(Check(c.name, SKIPPED, "", reason, "", c.why) for c in others)))


def _run(function: CheckFunction, subject: Subject) -> Check:
    reasons = subject.declares("not_claimed", {})
    if function.name in reasons:
        return Check(function.name, SKIPPED, "", f"not claimed: {reasons[function.name]}", "", function.why)
    state = torch.get_rng_state()
    torch.manual_seed(subject.seed)
    try:
        found = function.run(subject)
        if function.slopes and not found.holds:
            subject.needs_slopes()
    except NotApplicable as reason:
        return Check(function.name, SKIPPED, "", str(reason), "", function.why)
    except Exception as error:
        return Check(function.name, FAILED, "an input of this check", cause(error), NO_ERROR, function.why)
    finally:
        torch.set_rng_state(state)
    status = PASSED if found.holds else FAILED
    return Check(function.name, status, found.tried, found.got, found.expected, function.why)
