"""Is the gradient the derivative of the value, again and again?"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from losslib.check.registry import Finding, NotApplicable, check
from losslib.check.subject import Subject, is_finite, learnable, relative_error, worst

STEP = 1e-6
SMALL = 1e-5
PARAMETER_ENTRIES = 24
# A hinge may open within a step, where the slope is no limit of differences: where the first batch fails, the
# middle one of three is looked at.
KINKS = (80, 82)


def _numeric(function: Callable[[], Tensor], at: Tensor, entries: list[int]) -> Tensor:
    """Central differences of `function()` by some entries of `at`, which is changed and put back."""
    flat = at.data.view(-1)
    found = []
    for i in entries:
        kept = flat[i].item()
        flat[i] = kept + STEP
        above = function().detach()
        flat[i] = kept - STEP
        below = function().detach()
        flat[i] = kept
        found.append((above - below) / (2 * STEP))
    return torch.stack(found)


@check(
    "finite differences",
    "a gradient that is not the derivative of the value trains towards something other than the loss shown",
    slopes=True,
)
def finite_differences(subject: Subject) -> Finding:
    """Central differences by every coordinate, by references and by the loss's parameters."""
    if subject.samples:
        raise NotApplicable("the loss draws its triplets at random")
    reason = subject.declares("stop_gradient", "")
    error, where, names = _against_differences(subject, seed=1)
    if not reason and error >= SMALL:
        found = [(error, where, names), *(_against_differences(subject, seed) for seed in KINKS)]
        error, where, names = sorted(found)[len(KINKS) // 2]
    tried = f"central differences by {', '.join(names)}, float64, step {STEP:g}"
    if reason:
        expected = f"a difference, because {reason}"
        return Finding(error > 1e-4, tried, f"relative difference {error:.1e} ({where})", expected)
    return Finding(error < SMALL, tried, f"relative error {error:.1e} ({where})", f"below {SMALL:g}")


def _against_differences(subject: Subject, seed: int) -> tuple[float, str, list[str]]:
    """By how much the gradient differs from central differences, where most, and all that was moved."""
    loss = subject.copy(torch.float64)
    embeddings, labels = subject.batch(seed)
    embeddings = (embeddings[: 2 * subject.num_classes + 2]).requires_grad_()
    labels = labels[: len(embeddings)]
    errors = []
    leaves = [("embeddings", embeddings)]
    leaves += [(f"parameter {name}", p) for name, p in learnable(loss).items()]

    def call() -> Tensor:
        return subject.value(embeddings, labels, loss=loss)

    gradients = torch.autograd.grad(call(), [leaf for _, leaf in leaves], allow_unused=True)
    for (name, leaf), gradient in zip(leaves, gradients, strict=True):
        entries = list(range(leaf.numel()))
        if name != "embeddings":
            entries = entries[:PARAMETER_ENTRIES]
        exact = torch.zeros_like(leaf) if gradient is None else gradient
        numeric = _numeric(call, leaf, entries)
        errors.append((name, relative_error(exact.reshape(-1)[entries], numeric, floor=1e-6)))
    where, error = worst(errors)
    return error, where, [name for name, _ in errors]


@check(
    "double backward", "gradient penalties and second-order methods differentiate the gradient", slopes=True
)
def double_backward(subject: Subject) -> Finding:
    """The gradient's derivative in one direction against differences of the gradient."""
    if subject.samples:
        raise NotApplicable("the loss draws its triplets at random")
    if subject.declares("stop_gradient", ""):
        raise NotApplicable(f"its gradient is no derivative: {subject.declares('stop_gradient')}")
    try:
        error = _second(subject, seed=2)
        if error >= 1e-4:
            error = sorted([error, *(_second(subject, seed) for seed in KINKS)])[len(KINKS) // 2]
    except RuntimeError as refusal:
        if "plain()" in str(refusal):
            raise NotApplicable(f"the one-pass form has none and says so: {refusal}") from refusal
        raise
    tried = "the gradient differentiated once more, in a random direction, float64"
    return Finding(error < 1e-4, tried, f"relative error {error:.1e}", "below 1e-4")


def _second(subject: Subject, seed: int) -> float:
    """Error of the gradient's derivative in a random direction."""
    embeddings, labels = subject.batch(seed)
    direction = subject.rows(len(embeddings), seed + 1)
    leaf = embeddings.clone().requires_grad_()
    (first,) = torch.autograd.grad(subject.value(leaf, labels), leaf, create_graph=True)
    along = (first * direction).sum()  # not grad_outputs: for those torch imports sympy, 30 MB of the process
    (second,) = torch.autograd.grad(along, leaf) if first.requires_grad else (0 * leaf,)
    _, above = subject.gradient(embeddings + STEP * direction, labels)
    _, below = subject.gradient(embeddings - STEP * direction, labels)
    return relative_error(second, (above - below) / (2 * STEP), floor=1e-3)


@check(
    "repeated backward",
    "a graph kept from the last step (a running value that was not detached) grows or breaks the second step",
)
def repeated_backward(subject: Subject) -> Finding:
    """Two forward and backward passes on one loss object."""
    loss = subject.copy(torch.float64)
    embeddings, labels = subject.batch(seed=4)
    tried = "forward and backward twice with the same loss object"
    try:
        torch.manual_seed(subject.seed)
        _, first = subject.gradient(embeddings, labels, loss=loss)
        torch.manual_seed(subject.seed)
        _, second = subject.gradient(embeddings, labels, loss=loss)
    except RuntimeError as error:
        return Finding(False, tried, f"RuntimeError: {error}", "no error")
    return Finding(is_finite(first, second), tried, "two finite gradients", "two finite gradients")


@check("parameters", "a parameter without a gradient never learns, and nothing says so")
def parameters_learn(subject: Subject) -> Finding:
    """Every learnable parameter gets a finite gradient."""
    loss = subject.copy(torch.float64)
    parameters = learnable(loss)
    if not parameters:
        raise NotApplicable("the loss has no learnable parameters")
    embeddings, labels = subject.batch(seed=5)
    subject.gradient(embeddings, labels, loss=loss)
    bad = [n for n, p in parameters.items() if p.grad is None or not is_finite(p.grad)]
    got = f"no finite gradient for {', '.join(bad)}" if bad else "a finite gradient for each"
    return Finding(not bad, "backward on an ordinary batch", got, "a finite gradient for each parameter")
