"""Each phase of a step in one sentence, with the numbers of that very step."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lab.percent import percent
from lab.phases import PHASES, OneStep, embedded_again
from lab.randomness import undisturbed
from lab.replay import Halves, gradients, samples_of, step_of
from lab.short import short
from losslib.proxies import ProxyLoss

if TYPE_CHECKING:
    from lab.run import Run

# The views of the live panel that a phase concerns.
VIEWS = {
    "sample": ("phases",),
    "embed": ("map",),
    "pair": ("heat", "histogram"),
    "loss": ("loss",),
    "gradient": ("map", "gauges"),
    "update": ("map", "quality"),
}


def phase_note(run: Run, one: OneStep) -> dict[str, Any]:
    """What to say about the last phase done: number from 1, name, step, caption, and views it concerns."""
    with undisturbed():
        caption = _CAPTIONS[one.phase](run, one)
    return {
        "number": one.done,
        "of": len(PHASES),
        "name": one.phase,
        "step": step_of(run, one),
        "caption": caption,
        "views": list(VIEWS[one.phase]),
    }


def _sample(run: Run, one: OneStep) -> str:
    counts = np.unique(run.data.labels[samples_of(run, one).numpy()], return_counts=True)[1]
    least, most = int(counts.min()), int(counts.max())
    each = f"{most} a class" if least == most else f"{least} to {most} a class"
    views = ", each to be seen in two augmented views" if run.trainer.pairing.rule.views else ""
    return f"{_count(len(one.rows))} samples drawn from {len(counts)} classes, {each}{views}."


def _embed(run: Run, one: OneStep) -> str:
    norms = one.embeddings.detach().norm(dim=1)
    low, high = short(float(norms.min())), short(float(norms.max()))
    long = f"all of norm {low}" if low == high else f"norms from {low} to {high}"
    what = "free points, no network" if run.trainer.free else f"the {run.config.encoder} encoder"
    size = one.embeddings.shape[1]
    return f"{_count(len(one.embeddings))} embeddings of {size} numbers from {what}; {long}."


def _pair(run: Run, one: OneStep) -> str:
    loss = copy.deepcopy(run.trainer.loss)
    mined = one.inputs.get("indices_tuple")
    kept, rows = "", len(one.embeddings)
    if run.trainer.miner is not None and mined is not None:
        kind = "triplets" if len(mined) == 3 else "pairs"
        number = len(mined[0]) if len(mined) == 3 else len(mined[0]) + len(mined[2])
        kept = f"The miner keeps {_count(number)} {kind}. "
    if hasattr(loss, "pair_weights"):
        found = loss.pair_weights(one.embeddings.detach(), **one.inputs)
        pairs = found.positive | found.negative
        active = int((found.active & pairs).sum())
        total = int(pairs.sum())
        share = percent(active / total, 0) if total else "none"
        ends = "" if kept else ", each counted from both its ends"
        return (
            f"{kept}{_count(int(found.positive.sum()))} positive and {_count(int(found.negative.sum()))} "
            f"negative pairs{ends}; {_count(active)} are active ({share})."
        )
    if isinstance(loss, ProxyLoss):
        return f"{kept}Each of {_count(rows)} embeddings meets {_count(len(loss.weight))} proxies."
    return f"{kept}This loss compares all {_count(rows)} embeddings at once, not pair by pair."


def _loss(run: Run, one: OneStep) -> str:
    value = float(one.value.detach())
    if not math.isfinite(value):
        return f"The loss is {value}: the run stops here."
    former = run.recording.latest
    before = f" ({short(former.loss)} at step {former.step})" if former is not None and former.step else ""
    loss = one.seen.restored(run.trainer.loss)
    torch.set_rng_state(one.seen.random)
    with torch.no_grad():
        terms = _loss_terms(run, loss, one)
    parts = "; ".join(_term(name, term) for name, term in terms.items())
    return f"Loss {short(value)}{before}. {parts}."


def _loss_terms(run: Run, loss: Any, one: OneStep) -> dict[str, Any]:
    embeddings = one.embeddings.detach()
    if run.trainer.takes_halves:
        first, second = embeddings.chunk(2)
        return dict(loss.loss_terms(first, ref_emb=second))
    return dict(loss.loss_terms(embeddings, **one.inputs))


def _term(name: str, term: Any) -> str:
    words = name.replace("_", " ")
    return f"{words}: {_count(int(term.count_positive()))} of {_count(int(term.count()))} terms are above 0"


def _gradient(run: Run, one: OneStep) -> str:
    parameters = sum(p.numel() for p in run.trainer.encoder.parameters())
    sizes = gradients(run, one).norm(dim=1)
    largest = int(sizes.argmax())
    sample = int(samples_of(run, one)[largest])
    resting = int((sizes == 0).sum())
    none = f"; {_count(resting)} samples have none" if resting else ""
    what = "points' coordinates" if run.trainer.free else "parameters of the encoder"
    return (
        f"Gradient of norm {short(run.trainer.gradient_norm())} over {_count(parameters)} {what}; of the "
        f"embeddings, sample {sample} has the largest, {short(float(sizes[largest]))}{none}."
    )


def _update(run: Run, one: OneStep) -> str:
    after = embedded_again(one)
    moved = (after - one.embeddings).norm(dim=1)
    loss = copy.deepcopy(run.trainer.loss)
    torch.set_rng_state(one.seen.random)
    with torch.no_grad():
        again = float(Halves(loss)(after) if run.trainer.takes_halves else loss(after, **one.inputs))
    rate = run.recording.latest.learning_rate if run.recording.latest is not None else run.config.lr
    return (
        f"{_NAMES[run.config.optimizer]} at learning rate {short(rate)} moves the batch's embeddings by "
        f"{short(float(moved.mean()))} on average, {short(float(moved.max()))} at most; on this batch the "
        f"loss goes from {short(float(one.value))} to {short(again)}."
    )


def _count(number: int) -> str:
    return f"{number:,}"


_NAMES = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"}
_CAPTIONS = {
    "sample": _sample,
    "embed": _embed,
    "pair": _pair,
    "loss": _loss,
    "gradient": _gradient,
    "update": _update,
}
