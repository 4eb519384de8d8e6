"""Batches in which there is little or nothing to compare."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.check.registry import Finding, check
from losslib.check.subject import Subject, is_finite

GRADIENT_LIMIT = 1e6


def _describe(subject: Subject, cases: dict[str, tuple[Tensor, Tensor]]) -> tuple[list[str], list[str]]:
    """Names of the cases that gave something not finite, and what each gave."""
    bad, words = [], []
    for name, (embeddings, labels) in cases.items():
        try:
            value, gradient = subject.gradient(embeddings, labels)
        except Exception as error:
            bad.append(name)
            words.append(f"{name}: {type(error).__name__}: {error}")
            continue
        largest = float(gradient.abs().max()) if gradient.numel() else 0.0
        if not is_finite(value, gradient) or largest > GRADIENT_LIMIT:
            bad.append(name)
        words.append(f"{name}: {float(value):.4g}, largest gradient {largest:.2g}")
    return bad, words


def _finite(subject: Subject, tried: str, cases: dict[str, tuple[Tensor, Tensor]]) -> Finding:
    bad, words = _describe(subject, cases)
    return Finding(not bad, tried, "; ".join(words), f"finite values, gradients below {GRADIENT_LIMIT:g}")


@check("nothing to do", "0 / 0 in a batch without positives or negatives turns every weight into NaN")
def nothing_to_do(subject: Subject) -> Finding:
    """One class, all classes different, one row, no row: a finite value with a gradient path."""
    count = 6
    rows = subject.rows(count, seed=50)
    cases = {"one class": (rows, torch.zeros(count, dtype=torch.int64))}
    different = min(count, subject.declares("num_classes")) if subject.class_indexed else count
    cases["all classes different"] = (rows[:different], torch.arange(different))
    cases["a batch of one"] = (rows[:1], torch.zeros(1, dtype=torch.int64))
    cases["a batch of zero"] = (rows[:0], torch.zeros(0, dtype=torch.int64))
    return _finite(subject, ", ".join(cases), cases)


@check("no pairs", "a loss that is not 0 without any pair pushes a lone row in a direction nothing asked for")
def no_pairs(subject: Subject) -> Finding:
    """A batch of one and a batch of zero: exactly 0, zero gradient, and backward works."""
    results = []
    rows = subject.rows(1, seed=51)
    lone = () if subject.has_proxies else (1,)
    for count in (*lone, 0):
        labels = torch.zeros(count, dtype=torch.int64)
        value, gradient = subject.gradient(rows[:count], labels)
        results.append((count, float(value), bool(gradient.any())))
    wrong = [r for r in results if r[1] != 0.0 or r[2]]
    got = "; ".join(f"{n} rows: {v:.4g}, gradient {'not zero' if g else 'zero'}" for n, v, g in results)
    return Finding(not wrong, "batches of one and of zero rows", got, "0 with a zero gradient")


@check("identical points", "the derivative of a distance at 0 is NaN unless it is taken with care")
def identical_points(subject: Subject) -> Finding:
    """All rows equal; one pair equal; rows that differ in the last digits."""
    embeddings, labels = subject.batch(seed=52)
    pair = embeddings.clone()
    pair[subject.num_classes] = pair[0]  # a positive of row 0
    pair[1] = pair[0]  # and a negative, where there are two classes
    near = embeddings[:1] + 1e-12 * subject.rows(len(labels), seed=53)
    single = embeddings[:1].expand_as(embeddings).contiguous()
    cases = {
        "all equal": (single, labels),
        "all equal, float32": (single.float(), labels),
        "a positive and a negative equal to the anchor": (pair, labels),
    }
    bad, words = _describe(subject, cases)
    value, gradient = subject.gradient(near, labels)  # its gradient may be large, but not NaN
    words.append(f"1e-12 apart: {float(value):.4g}")
    holds = not bad and is_finite(value, gradient)
    return Finding(holds, "coincident rows", "; ".join(words), f"finite, gradients below {GRADIENT_LIMIT:g}")


@check("zero rows", "normalising a row of zeros by its length plus epsilon gives a gradient of 1/epsilon")
def zero_rows(subject: Subject) -> Finding:
    """One row, and all rows, exactly zero."""
    embeddings, labels = subject.batch(seed=54)
    one = embeddings.clone()
    one[0] = 0
    cases = {"one row of zeros": (one, labels), "one row of zeros, float32": (one.float(), labels)}
    cases["all rows zero"] = (torch.zeros_like(embeddings), labels)
    return _finite(subject, ", ".join(cases), cases)


@check("huge values", "an exponential or a square that overflows ends the run in NaN")
def huge_values(subject: Subject) -> Finding:
    """Rows of length 1e4 in float32, and one row 1e4 times longer than the others."""
    embeddings, labels = subject.batch(seed=55)
    uneven = embeddings.clone()
    uneven[0] *= 1e4
    cases = {
        "rows of length 1e4": (1e4 * embeddings.float(), labels),
        "one long row": (uneven.float(), labels),
    }
    return _finite(subject, ", ".join(cases), cases)
