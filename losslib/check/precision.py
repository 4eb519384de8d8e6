"""dtypes: float64 stays float64, half precision accumulates in float32."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.check.registry import Finding, NotApplicable, check
from losslib.check.subject import Subject, is_finite, relative_error

HALF = {"float16": torch.float16, "bfloat16": torch.bfloat16}


def _large_batch(subject: Subject) -> tuple[Tensor, Tensor]:
    """A batch with enough pairs for a sum in half precision to lose most of them."""
    labels = subject.labels(16 * subject.num_classes)
    return subject.rows(len(labels), seed=60), labels


def _fixed(subject: Subject) -> None:
    if subject.samples:
        raise NotApplicable("the loss draws its triplets at random")


@check("float64", "a value computed through float32 is useless for checking anything else", slopes=True)
def float64_stays(subject: Subject) -> Finding:
    """float64 in, float64 out, and float32 within its own rounding of it."""
    _fixed(subject)
    embeddings, labels = _large_batch(subject)
    value, gradient = subject.gradient(embeddings, labels)
    single, single_gradient = subject.gradient(embeddings.float(), labels)
    errors = relative_error(single, value), relative_error(single_gradient, gradient)
    exact = value.dtype == gradient.dtype == torch.float64
    got = f"float64 gave {value.dtype}; float32 is off by {errors[0]:.1e}, its gradient by {errors[1]:.1e}"
    holds = exact and single.dtype == torch.float32 and errors[0] < 1e-4 and errors[1] < 5e-3
    return Finding(holds, f"{len(labels)} rows in float64 and float32", got, "float64; below 1e-4 and 5e-3")


def _half(subject: Subject, autocast: bool) -> Finding:
    _fixed(subject)
    subject = subject.of_coarse_views()
    embeddings, labels = _large_batch(subject)
    words, holds = [], True
    for name, dtype in HALF.items():
        rounded = embeddings if autocast else embeddings.to(dtype).double()
        exact, exact_gradient = subject.gradient(rounded, labels)
        if autocast:  # around the forward pass alone, as torch asks
            leaf = embeddings.float().requires_grad_()
            with torch.autocast("cpu", dtype=dtype):
                value = subject.value(leaf, labels)
            value.backward()
            gradient = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
        else:  # parameters keep their own dtype: a loss that has some may refuse the mixture
            loss = subject.copy(torch.float32) if subject.parameters() else subject.copy()
            try:
                value, gradient = subject.gradient(embeddings.to(dtype), labels, loss=loss)
            except ValueError as refusal:
                words.append(f"{name}: refused ({refusal})")
                continue
        error = relative_error(value, exact, floor=1e-3)
        steepness = relative_error(gradient, exact_gradient, floor=1e-3)
        limit = (1e-3, 2e-2) if subject.declared else ((3e-2, 0.1) if name == "float16" else (6e-2, 0.2))
        holds &= error < limit[0] and steepness < limit[1] and is_finite(gradient)
        holds &= value.dtype == torch.float32 or not subject.declared
        words.append(f"{name}: {value.dtype}, value off by {error:.1e}, gradient by {steepness:.1e}")
    tolerance = (
        "1e-3, gradient 2e-2, as float32"
        if subject.declared
        else "3 % (float16) or 6 % (bfloat16), its gradient within 10 % or 20 %"
    )
    tried = f"{len(labels)} rows " + ("in float32 under autocast" if autocast else "in float16 and bfloat16")
    return Finding(holds, tried, "; ".join(words), f"float64's value within {tolerance}")


@check(
    "half precision",
    "a sum kept in half precision stops growing at a few thousand terms, and overflows at 65504",
)
def half_precision(subject: Subject) -> Finding:
    """float16 and bfloat16 rows against the same rounded rows in float64."""
    return _half(subject, autocast=False)


@check(
    "autocast", "autocast turns the matrix product inside a loss into bfloat16 without a word", slopes=True
)
def autocast(subject: Subject) -> Finding:
    """float32 rows inside a CPU autocast region against float64."""
    return _half(subject, autocast=True)


@check("device", "labels left on the CPU are the commonest mistake of all")
def device(subject: Subject) -> Finding:
    """On a GPU with labels on the CPU: the CPU's value."""
    if not torch.cuda.is_available():
        raise NotApplicable("no CUDA device here")
    _fixed(subject)
    embeddings, labels = _large_batch(subject)
    value, _ = subject.gradient(embeddings, labels)
    loss = subject.copy(torch.float64)
    if isinstance(loss, torch.nn.Module):
        loss = loss.cuda()
    there, gradient = subject.gradient(embeddings.cuda(), labels, loss=loss)
    error = relative_error(there.cpu(), value)
    holds = there.is_cuda and gradient.is_cuda and error < 1e-9
    return Finding(
        holds, "rows on the GPU, labels on the CPU", f"{there.device}, off by {error:.1e}", "equal"
    )
