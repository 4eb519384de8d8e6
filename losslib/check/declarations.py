"""What a loss declares of itself: marks, terms and reducer, value at collapse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from losslib.check.registry import Finding, NotApplicable, check
from losslib.check.subject import Subject, relative_error

TOLERANCE = 1e-9


@check(
    "closed hinge",
    "a hinge that still pulls beyond its margin, or opens on the wrong side of it, never rests",
)
def closed_hinge(subject: Subject) -> Finding:
    """Pair weights are 0 on the closed side of every declared threshold, and only there."""
    if subject.declares("activity") != "hinge" or not callable(subject.declares("marks")):
        raise NotApplicable("the loss declares no hinge")
    if subject.samples:
        raise NotApplicable("the loss draws its triplets at random")
    subject.needs_two_classes()
    lines = [mark for mark in subject.loss.marks() if mark.kind == "line"]  # type: ignore[attr-defined]
    sides = {side: [m.value for m in lines if m.side == side] for side in ("positive", "negative")}
    if not any(sides.values()):
        return _separated(subject)
    loss = subject.copy(torch.float64)
    embeddings, labels = subject.batch(seed=30)
    found = loss.pair_weights(embeddings, labels)  # type: ignore[attr-defined]
    margin = subject.declares("distance").margin
    wrong = 0
    for side, mask in (("positive", found.positive), ("negative", found.negative)):
        if len(sides[side]) != 1:
            continue  # nothing marked on this side
        threshold = torch.tensor(sides[side][0], dtype=torch.float64)
        violation = margin(found.values, threshold) if side == "positive" else margin(threshold, found.values)
        wrong += int(((found.weights != 0) != (violation > 0))[mask].sum())
    tried = f"{int((found.positive | found.negative).sum())} pairs against the thresholds the loss marks"
    got = f"{wrong} pairs with a weight on the closed side or none on the open one"
    return Finding(wrong == 0, tried, got, "0 pairs")


def _separated(subject: Subject) -> Finding:
    """A batch of two collapsed, opposite classes, which leaves a margin between triplets satisfied."""
    gaps = [m.value for m in subject.loss.marks() if m.kind == "gap"]  # type: ignore[attr-defined]
    if not gaps:
        raise NotApplicable("the loss marks neither a threshold a side nor a gap")
    point = subject.rows(1, seed=31)
    embeddings = torch.cat([point, point, -point, -point])
    labels = torch.tensor([0, 0, 1, 1])
    distance = subject.declares("distance")
    values = distance(embeddings)
    reached = float(distance.margin(values[0, 2], values[0, 1]))
    if reached <= max(gaps):
        raise NotApplicable(f"no arrangement tried has a gap of {max(gaps):g}")
    value, gradient = subject.gradient(embeddings, labels)
    got = f"value {float(value):.2e}, largest gradient {float(gradient.abs().max()):.1e}"
    holds = float(value) == 0.0 and not bool(gradient.any())
    return Finding(holds, f"two collapsed, opposite classes: a gap of {reached:.3g}", got, "0 and 0")


def _field(term: Any, name: str) -> Any:
    return term.get(name) if isinstance(term, Mapping) else getattr(term, name, None)


def _reduced(term: Any, kind: str, reducer: Any) -> Tensor | None:
    """The term under a reducer of that kind, worked out here; None for a kind not known here."""
    values = _field(term, "losses")
    if values.ndim == 0:
        return values
    if kind == "AvgNonZeroReducer":
        values = values[values > 0]
    elif kind == "ThresholdReducer":
        low = -torch.inf if reducer.low is None else reducer.low
        high = torch.inf if reducer.high is None else reducer.high
        values = values[(values > low) & (values < high)]
    elif kind == "DivisorReducer":
        divisor = float(_field(term, "divisor"))
        return values.sum() / divisor if divisor else values.sum() * 0
    elif kind == "SumReducer":
        return values.sum()
    elif kind != "MeanReducer":
        return None
    return values.mean() if values.numel() else values.sum()


@check("reduction", "a mean over all pairs where the active ones are meant fades as training goes well")
def reduction(subject: Subject) -> Finding:
    """The value is the sum of the terms, each reduced as the reducer's definition says."""
    if not callable(subject.declares("loss_terms")):
        raise NotApplicable("the loss has no loss_terms")
    if subject.samples:
        raise NotApplicable("the loss draws its triplets at random")
    embeddings, labels = subject.batch(seed=32)
    loss = subject.copy(torch.float64)
    reducer = subject.declares("reducer")
    kinds = [cls.__name__ for cls in type(reducer).__mro__] if reducer is not None else ["MeanReducer"]
    given = subject.arguments(embeddings, labels)
    terms = loss.loss_terms(**given)  # type: ignore[attr-defined]
    total = torch.zeros((), dtype=torch.float64)
    for term in terms.values():
        found = next((r for k in kinds if (r := _reduced(term, k, reducer)) is not None), None)
        if found is None:
            raise NotApplicable(f"{kinds[0]} is not one of the reducers known here")
        total = total + found
    error = relative_error(subject.value(embeddings, labels), total)
    tried = f"{', '.join(terms)} of loss_terms under {kinds[0]}"
    return Finding(error < TOLERANCE, tried, f"relative difference {error:.1e}", "equal values")


@check("collapse", "a wrong count in a denominator shows as a wrong constant when all embeddings are equal")
def collapse(subject: Subject) -> Finding:
    """All embeddings equal: the constant that the loss declares for these labels."""
    declared = subject.declares("value_at_collapse")
    if not callable(declared):
        raise NotApplicable("the loss declares no value at collapse")
    usual = getattr(type(subject.loss), "default_reducer", None)
    if usual is not None and type(subject.declares("reducer")) is not type(usual()):
        raise NotApplicable("it is declared for the default reducer only")
    subject.needs_two_classes()
    errors, words = [], []
    for counts in ((4, 4), (2, 2, 2), (3, 2, 1)):
        if len(counts) > subject.num_classes:
            continue
        labels = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
        expected = declared(labels)
        if expected is None:
            raise NotApplicable("the loss declares no value at collapse for these options")
        point = torch.nn.functional.normalize(subject.rows(1, seed=33), dim=1)
        value = subject.value(point.expand(len(labels), -1), labels).detach()
        errors.append(abs(float(value) - float(expected)) / max(1.0, abs(float(expected))))
        words.append(f"{float(value):.6g} (declared {float(expected):.6g})")
    tried = "all rows equal, classes of 4 and 4; 2, 2 and 2; 3, 2 and 1 rows"
    return Finding(all(error < 1e-7 for error in errors), tried, "; ".join(words), "the declared constants")
