"""A loss as an object: repeatable, copyable, and modest in memory."""

from __future__ import annotations

import io
import math
import pickle
import random
import sys
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from losslib.check.registry import Finding, NotApplicable, check
from losslib.check.subject import Subject

SMALL, LARGE = 66, 132  # above the size up to which a dense cube of triplets is the quickest form


@check("determinism", "a run that cannot be repeated cannot be explained")
def determinism(subject: Subject) -> Finding:
    """Three calls after the same seed agree to the last bit, in value and gradient."""
    embeddings, labels = subject.batch(seed=70)
    loss = subject.copy(torch.float64)
    results = []
    for _ in range(3):
        torch.manual_seed(subject.seed)
        results.append(subject.gradient(embeddings, labels, loss=loss))
    same = all(torch.equal(r[0], results[0][0]) and torch.equal(r[1], results[0][1]) for r in results)
    got = ", ".join(f"{float(value):.17g}" for value, _ in results)
    return Finding(same, "three calls with the same seed", got, "three equal values and gradients")


def _random_states() -> dict[str, Any]:
    """The generators' states; numpy's only where something else has loaded it."""
    states: dict[str, Any] = {"torch": torch.get_rng_state().tolist(), "random": random.getstate()}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        states["numpy"] = numpy.random.get_state()[1].tolist()
    return states


@check("random state", "a loss that draws numbers in secret changes every later batch and initialisation")
def random_state(subject: Subject) -> Finding:
    """No generator moves, except torch's where the options ask for sampled triplets."""
    embeddings, labels = subject.batch(seed=71)
    loss = subject.copy(torch.float64)
    before = _random_states()
    subject.gradient(embeddings, labels, loss=loss)
    after = _random_states()
    moved = [name for name in before if before[name] != after[name]]
    if subject.samples and "torch" in moved:
        moved.remove("torch")
    got = f"{' and '.join(moved)} moved" if moved else "none moved"
    return Finding(not moved, f"generators of {', '.join(before)} before and after", got, "none moved")


def _value(subject: Subject, loss: Any) -> float:
    torch.manual_seed(subject.seed)
    return float(subject.value(*subject.batch(seed=72), loss=loss).detach())


@check("copies", "tensors of an old graph kept on a module break deepcopy, pickle and checkpoints")
def copies(subject: Subject) -> Finding:
    """deepcopy, pickle and torch.save, before and after a backward pass, give the same value."""
    if not isinstance(subject.loss, torch.nn.Module):
        raise NotApplicable("the loss is no module")
    loss = subject.copy(torch.float64)
    values = {}
    for when in ("before", "after"):
        values[f"deepcopy {when}"] = _value(subject, Subject(loss).copy())
        values[f"pickle {when}"] = _value(subject, pickle.loads(pickle.dumps(loss)))
        stream = io.BytesIO()
        torch.save(loss, stream)
        stream.seek(0)
        values[f"torch.save {when}"] = _value(subject, torch.load(stream, weights_only=False))
        torch.manual_seed(subject.seed)
        value, _ = subject.gradient(*subject.batch(seed=72), loss=loss)
    different = [name for name, found in values.items() if found != float(value)]
    got = f"another value from {', '.join(different)}" if different else f"{float(value):.6g} from each"
    return Finding(not different, "copies before and after backward", got, "the same value from each")


@check("state_dict", "state that state_dict forgets is lost with every checkpoint")
def state_dict(subject: Subject) -> Finding:
    """A loss whose state was changed and reloaded gives the old value."""
    if not isinstance(subject.loss, torch.nn.Module):
        raise NotApplicable("the loss is no module")
    loss, other = subject.copy(torch.float64), subject.copy(torch.float64)
    assert isinstance(loss, torch.nn.Module)
    assert isinstance(other, torch.nn.Module)
    subject.gradient(*subject.batch(seed=72), loss=loss)
    with torch.no_grad():
        for tensor in other.state_dict().values():
            if tensor.is_floating_point():
                tensor.add_(0.37)
    result = other.load_state_dict(loss.state_dict(), strict=True)
    same = _value(subject, other) == _value(subject, loss)
    got = f"{len(loss.state_dict())} entries, {'the same' if same else 'another'} value"
    tried = "state_dict after backward, loaded into a copy whose state was changed"
    return Finding(same and not result.missing_keys, tried, got, "the same value")


class _LargestTensor(TorchDispatchMode):
    """Remembers the bytes of the largest tensor made while it is active."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Else torch imports its compiler, half a second and 30 MB, only to keep out of here."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for part in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(part, torch.Tensor):
                # an expanded view owns no memory of its own
                owned = part.untyped_storage().nbytes()
                self.bytes = max(self.bytes, min(part.numel() * part.element_size(), owned))
        return result


@check("memory growth", "a tensor with one entry a triplet needs gigabytes at a batch of 1,000")
def memory_growth(subject: Subject) -> Finding:
    """The largest tensor grows no faster than the square of the batch."""
    largest = []
    for count in (SMALL, LARGE):
        rows, labels = subject.rows(count, seed=73, dtype=torch.float32), subject.labels(count)
        subject.gradient(rows, labels)  # a store that is kept from call to call is made now
        with _LargestTensor() as seen:
            subject.gradient(rows, labels)
        largest.append(seen.bytes)
    exponent = math.log2(largest[1] / largest[0])
    tried = f"forward and backward with {SMALL} and {LARGE} rows"
    got = f"largest tensors of {largest[0]:,} and {largest[1]:,} bytes: power {exponent:.1f} of the batch"
    return Finding(exponent < 2.4, tried, got, "power 2 or less")


@check(
    "inputs untouched", "a loss that writes into its inputs changes what the next loss and the metrics see"
)
def inputs_untouched(subject: Subject) -> Finding:
    """Embeddings and labels are what they were after forward and backward."""
    embeddings, labels = subject.batch(seed=74)
    leaf, given = embeddings.clone().requires_grad_(), labels.clone()
    subject.value(leaf, given).backward()
    changed = [
        name
        for name, now, before in (("embeddings", leaf.detach(), embeddings), ("labels", given, labels))
        if not torch.equal(now, before)
    ]
    got = f"{' and '.join(changed)} changed" if changed else "both as they were"
    return Finding(not changed, "inputs before and after a step", got, "both as they were")


@check("no gradient", "a loss that cannot be evaluated without a graph is of no use for validation")
def no_gradient(subject: Subject) -> Finding:
    """The same value under torch.no_grad and for embeddings that need no gradient."""
    embeddings, labels = subject.batch(seed=75)
    torch.manual_seed(subject.seed)
    value, _ = subject.gradient(embeddings, labels)
    torch.manual_seed(subject.seed)
    frozen = subject.value(embeddings, labels).detach()
    torch.manual_seed(subject.seed)
    with torch.no_grad():
        without = subject.value(embeddings.clone().requires_grad_(), labels)
    same = float(value) == float(frozen) == float(without)
    got = f"{float(frozen):.6g} and {float(without):.6g} against {float(value):.6g}"
    tried = "embeddings that need no gradient, and torch.no_grad"
    return Finding(same and not without.requires_grad, tried, got, "equal values")
