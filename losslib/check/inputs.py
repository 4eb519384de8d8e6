"""Labels, references and index tuples: honoured or refused, never ignored or broadcast."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from losslib.check.registry import Finding, NotApplicable, check
from losslib.check.subject import Subject, all_pairs, relative_error

TOLERANCE = 1e-9


@check(
    "labels",
    "labels of a wrong shape broadcast into pairs that do not exist, and the loss still looks plausible",
)
def labels_are_checked(subject: Subject) -> Finding:
    """(B, 1), one-hot and too many labels are refused; (B, 1) may be read as (B,)."""
    subject.needs_labels()
    embeddings, labels = subject.batch(seed=40)
    column, one_hot = labels[:, None], torch.nn.functional.one_hot(labels)
    longer = torch.cat([labels, labels[:2]])
    accepted = []
    for name, wrong in (("(B, 1)", column), ("one-hot", one_hot), ("too many", longer)):
        if subject.refuses(partial(subject.value, embeddings, wrong)) is None:
            accepted.append(name)
    if "(B, 1)" in accepted:
        flattened = relative_error(subject.value(embeddings, column), subject.value(embeddings, labels))
        if flattened < TOLERANCE:
            accepted.remove("(B, 1)")
    tried = f"labels of shapes {tuple(column.shape)}, {tuple(one_hot.shape)} and {tuple(longer.shape)}"
    got = (
        f"{', '.join(accepted)} labels gave a number"
        if accepted
        else "an error for each that is not read as (B,)"
    )
    return Finding(not accepted, tried, got, "an error for each (or (B, 1) read as (B,))")


def _refused(subject: Subject, call: Callable[[], Any], what: str) -> None:
    """Raises NotApplicable when the loss says clearly that it takes no such input."""
    try:
        call()
    except ValueError as error:
        raise NotApplicable(f"refuses {what}: {error}") from error


@check(
    "reference set",
    "a reference that is ignored makes memory banks and two-view training silently wrong",
    slopes=True,
)
def reference_set(subject: Subject) -> Finding:
    """Gradient reaches the reference, its rows count as others only, and copies equal the same object."""
    subject.needs("ref_emb", "ref_labels")
    subject.needs_two_classes()
    embeddings, labels = subject.batch(seed=41)
    others = subject.rows(subject.num_classes * 3, seed=42).requires_grad_()
    other_labels = subject.labels(len(others))
    reference = {"ref_emb": others, "ref_labels": other_labels}
    _refused(subject, lambda: subject.value(embeddings, labels, **reference), "a reference set")
    subject.gradient(embeddings, labels, **reference)
    reached = others.grad is not None and bool(others.grad.any())
    torch.manual_seed(subject.seed)
    shared = subject.value(embeddings, labels, ref_emb=embeddings, ref_labels=labels)
    torch.manual_seed(subject.seed)
    copied = subject.value(embeddings, labels, ref_emb=embeddings.clone(), ref_labels=labels.clone())
    same = relative_error(shared, copied)
    tried = f"a reference of {len(others)} rows; the batch itself as reference, same object and copy"
    got = (
        f"gradient {'reaches' if reached else 'does not reach'} the reference; object against copy {same:.1e}"
    )
    return Finding(reached and same < TOLERANCE, tried, got, "gradient reaches it; equal values")


@check(
    "reference without labels",
    "half a reference set is a mistake in the caller, not a reason to use half of it",
)
def half_a_reference(subject: Subject) -> Finding:
    """ref_emb without labels or tuple, and ref_labels without ref_emb, are ValueError."""
    subject.needs("ref_emb", "ref_labels")
    embeddings, labels = subject.batch(seed=43)
    first = subject.refuses(lambda: subject.value(embeddings, labels, ref_emb=embeddings))
    second = subject.refuses(lambda: subject.value(embeddings, labels, ref_labels=labels))
    got = "; ".join(message or "no error" for message in (first, second))
    tried = "ref_emb without ref_labels; ref_labels without ref_emb"
    return Finding(first is not None and second is not None, tried, got, "an error for each")


@check("index tuples", "mined pairs that are ignored leave the miner without effect")
def index_tuples(subject: Subject) -> Finding:
    """Only listed rows get a gradient, with 3 and with 4 index tensors, with and without labels."""
    subject.needs("indices_tuple")
    subject.needs_two_classes()
    embeddings, labels = subject.batch(seed=44)
    rows = torch.arange(len(labels))
    same = [int(i) for i in rows if labels[i] == labels[0]]
    other = [int(i) for i in rows if labels[i] != labels[0]]
    triplets = (torch.tensor([0]), torch.tensor([same[1]]), torch.tensor([other[0]]))
    pairs = (triplets[0], triplets[1], triplets[0], triplets[2])
    _refused(subject, lambda: subject.value(embeddings, labels, indices_tuple=triplets), "index tuples")
    listed = torch.zeros(len(labels), dtype=torch.bool)
    listed[torch.cat(triplets)] = True
    stray, values = 0, []
    for tuple_ in (triplets, pairs):
        value, gradient = subject.gradient(embeddings, labels, indices_tuple=tuple_)
        stray += int(gradient[~listed].any(dim=1).sum())
        values.append(value)
    error = relative_error(values[0], values[1])
    tried = f"one anchor, one positive and one negative listed, of {len(labels)} rows, as 3 and as 4 tensors"
    got = f"{stray} rows not listed got a gradient; 3 against 4 tensors differ by {error:.1e}"
    return Finding(stray == 0 and error < TOLERANCE, tried, got, "0 rows; equal values")


@check("index values", "an index out of range, or of a float type, reads some other row")
def index_values(subject: Subject) -> Finding:
    """Indices out of range and of a floating type are refused."""
    subject.needs("indices_tuple")
    embeddings, labels = subject.batch(seed=45)
    listed = all_pairs(labels)
    _refused(subject, lambda: subject.value(embeddings, labels, indices_tuple=listed), "index tuples")
    wrong = {
        "an index equal to B": tuple(torch.cat([part, torch.tensor([len(labels)])]) for part in listed),
        "a negative index": tuple(torch.cat([part, torch.tensor([-1])]) for part in listed),
        "float indices": tuple(part.double() for part in listed),
        "two tensors": listed[:2],
    }
    accepted = [
        name
        for name, given in wrong.items()
        if subject.refuses(partial(subject.value, embeddings, labels, indices_tuple=given)) is None
    ]
    got = f"{', '.join(accepted)} accepted" if accepted else "an error for each"
    return Finding(not accepted, ", ".join(wrong), got, "an error for each")


@check("class indices", "labels counted from 1, or -1 for unknown, silently train another class")
def class_indices(subject: Subject) -> Finding:
    """Labels outside 0..C-1 are refused where the loss has something per class."""
    if not subject.class_indexed:
        raise NotApplicable("the loss has nothing per class")
    embeddings, labels = subject.batch(seed=46)
    classes = subject.declares("num_classes")
    accepted = []
    for wrong in (-1, classes):
        moved = torch.where(labels == 0, torch.tensor(wrong), labels)
        if subject.refuses(partial(subject.value, embeddings, moved)) is None:
            accepted.append(str(wrong))
    got = f"{', '.join(accepted)} accepted" if accepted else "an error for each"
    return Finding(not accepted, f"labels -1 and {classes} with {classes} classes", got, "an error for each")
