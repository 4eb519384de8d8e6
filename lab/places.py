"""How a point of the map comes to stand in the batch of the last step, where the loss can act on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from lab.brief import brief
from lab.phases import OneStep
from lab.replay import step_of

if TYPE_CHECKING:
    from lab.run import Run


class Place(NamedTuple):
    """Where a point stands in a batch.

    Attributes:
        embeddings: of the batch, with the point in it, (R, D).
        inputs: the other arguments of the loss.
        samples: data set index of every row, (R,).
        row: the point's.
        how: "batch" where it stands there itself, else in words; "" where it cannot be put there.
        sentence: says so to people.
    """

    embeddings: Tensor
    inputs: dict[str, Any]
    samples: Tensor
    row: int = 0
    how: str = ""
    sentence: str = ""


def place_of(run: Run, one: OneStep, of: str, point: int, given: Place) -> Place | None:
    """Where a point stands in the batch of a step, None where there is no such point.

    A row of the batch stands there itself, and so do free points that were drawn. Any other point of the map
    is put there for once.

    Args:
        run: it is only looked at.
        one: the step.
        of: "batch" or "map".
        point: row of the batch, or place on the map.
        given: the batch: embeddings, inputs, samples; the rest is filled in.
    """
    samples, step = given.samples, step_of(run, one)
    of_batch = "the first batch" if step == 0 else f"the batch of step {step}"
    if of == "batch":
        if not 0 <= point < len(samples):
            return None
        return given._replace(row=point, how="batch", sentence=_was_in(int(samples[point]), step))
    if not 0 <= point < len(run.probe.index):
        return None
    sample = int(run.probe.index[point])
    rows = (samples == sample).nonzero()[:, 0] if run.trainer.free else samples[:0]
    if len(rows):
        return given._replace(row=int(rows[0]), how="batch", sentence=_was_in(sample, step, len(rows)))
    if run.trainer.free:
        known = (
            f"Sample {sample} was not in {of_batch}, so no pair pulled it; the optimiser's momentum may "
            "move it."
        )
    else:
        known = (
            f"Sample {sample} is held out: no step trains on it, and it moves only as the encoder changes."
        )
    index = torch.from_numpy(run.probe.index.copy())
    here = run.trainer.embed(index if run.trainer.free else index[point : point + 1])
    here = here[point if run.trainer.free else 0].double().cpu()
    return _stand_in(run, sample, here, given, known, of_batch)


def _was_in(sample: int, step: int, times: int = 1) -> str:
    if step == 0:
        return (
            f"Sample {sample} is in the first batch. Nothing has moved yet: these are its forces in step 1, "
            "before the update."
        )
    twice = f" {times} times; these are the forces on the first" if times > 1 else ""
    return f"Sample {sample} was in the batch of step {step}{twice}: the forces before that update."


def _stand_in(run: Run, sample: int, here: Tensor, given: Place, known: str, of_batch: str) -> Place:
    """The point in the place of its nearest class mate of the batch, or as one more row."""
    label = run.data.labels[sample]
    name = brief(run.data.class_names)[int(label)]
    mates = torch.from_numpy(run.data.labels[given.samples.numpy()] == label).nonzero()[:, 0]
    if len(mates):
        apart = torch.linalg.vector_norm(given.embeddings[mates] - here, dim=1)
        row = int(mates[apart.argmin()])
        embeddings, samples = given.embeddings.clone(), given.samples.clone()
        embeddings[row], samples[row] = here, sample
        sentence = (
            f"{known} Shown is what the loss would do to it in {of_batch}, in the place of the nearest "
            f"{'view of a sample' if run.trainer.pairing.rule.views else 'sample'} of its class {name} there "
            f"(sample {int(given.samples[row])})."
        )
        return Place(embeddings, given.inputs, samples, row, "in the place of another", sentence)
    labels = given.inputs.get("labels")
    if set(given.inputs) != {"labels"} or run.config.pairing != "label" or labels is None:
        return given._replace(
            sentence=f"{known} {of_batch[0].upper()}{of_batch[1:]} has no sample of its class {name} whose "
            "place it could take: take another step, or choose a point of the batch."
        )
    inputs = {"labels": torch.cat([labels, labels.new_tensor([int(label)])])}
    return Place(
        torch.cat([given.embeddings, here.unsqueeze(0)]),
        inputs,
        torch.cat([given.samples, given.samples.new_tensor([sample])]),
        len(given.samples),
        "as one more",
        f"{known} Shown is what the loss would do to it in {of_batch} as one more sample, because that "
        f"batch has none of its class {name}.",
    )
