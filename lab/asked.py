"""What people ask about the last step of a run: its batch on the map, and the forces on one of its points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from lab.phases import PHASES, OneStep, embedded_again
from lab.projections import project
from lab.randomness import undisturbed
from lab.why import Forces, forces_on, gradient_of
from losslib.pairs import PairMasks
from losslib.proxies import ProxyLoss

if TYPE_CHECKING:
    from lab.run import Run

LISTED = 12
SHOWN_NUMBERS = 3  # coordinates of a vector that are told


class Question(NamedTuple):
    """What a viewer asks.

    do: "batch" for the batch of the last step, or "why" for the forces on a point.
    of: for "why", "map" for a point of the map or "batch" for a row of the batch as "batch" told it.
    point: its place there, from 0.
    """

    do: str
    of: str = "map"
    point: int = 0


class Place(NamedTuple):
    """Where a point stands in a batch: the row, the batch, and in words how it comes to stand there."""

    row: int
    embeddings: Tensor
    inputs: dict[str, Any]
    samples: Tensor
    how: str
    sentence: str


def answer(run: Run, question: Question) -> dict[str, Any]:
    """The answer as plain numbers and texts, see `ui/live/wire.py`. The run goes on as if nobody had asked."""
    with undisturbed():
        told = batch(run) if question.do == "batch" else why(run, question.of, question.point)
    return {"of": question.of, "point": question.point, **told}


class Plane:
    """The map's plane: where embeddings lie on it, and arrows between them.

    Embeddings of more than two numbers lie where the map's own projection, refitted to its points, puts them.
    """

    def __init__(self, run: Run) -> None:
        self.size = run.config.dim
        if self.size <= 2:
            return
        points = run.trainer.embed(torch.from_numpy(run.probe.index.copy()))
        positions = project(points.float().cpu(), run.probe.previous).double()
        points = points.double().cpu()
        self.middle, self.offset = points.mean(0), positions.mean(0)
        self.axes = torch.linalg.lstsq(points - self.middle, positions - self.offset, driver="gelsd").solution

    def points(self, embeddings: Tensor) -> Tensor:
        """Positions (N, 2) of embeddings (N, D)."""
        if self.size <= 2:
            return self.arrows(embeddings)
        return (embeddings.double().cpu() - self.middle) @ self.axes + self.offset

    def arrows(self, vectors: Tensor) -> Tensor:
        """Vectors (N, D) seen in the plane, (N, 2)."""
        wide = vectors.double().cpu()
        if self.size == 1:
            return torch.cat([wide, torch.zeros_like(wide)], dim=1)
        return wide if self.size == 2 else wide @ self.axes


def batch(run: Run) -> dict[str, Any]:
    """The batch of the step under way, or of the last one: samples, positions, forces, movements."""
    one = run.under_way or run.last
    if one is None or not one.done:
        return {"rows": 0, "reason": "No batch was drawn yet."}
    index = samples_of(run, one)
    told: dict[str, Any] = {
        "step": _step_of(run, one),
        "phase": one.phase,
        "rows": len(index),
        "samples": index.tolist(),
        "xy": None,
        "arrows": None,
        "moved": None,
    }
    if one.done < _number("embed"):
        return told
    plane = Plane(run)
    told["xy"] = _rounded(plane.points(one.embeddings.detach()))
    if one.done >= _number("gradient") or one is run.last:
        told["arrows"] = _rounded(plane.arrows(-gradients(run, one)))
    if one.done == len(PHASES):
        after = embedded_again(one)
        told["moved"] = _rounded(plane.arrows(after.double() - one.embeddings.double()))
    return told


def gradients(run: Run, one: OneStep) -> Tensor:
    """dL/de of every row of a step's batch, (B, D) in double precision."""
    loss, embeddings, inputs = _exact(run, one)
    torch.set_rng_state(one.seen.random)
    return gradient_of(loss, embeddings, **inputs)


def why(run: Run, of: str, point: int) -> dict[str, Any]:
    """The forces on a point of the map, or on a row of the batch."""
    one = run.under_way if run.under_way and run.under_way.done >= _number("loss") else run.last
    if one is None:
        return {"reason": "There was no step yet: press Step, and ask again.", "partners": []}
    loss, embeddings, inputs = _exact(run, one)
    samples = samples_of(run, one)
    place = _place(run, one, of, point, Place(0, embeddings, inputs, samples, "", ""), loss)
    if place is None:
        return {"reason": "There is no such point.", "partners": []}
    if not place.how:
        return {"reason": place.sentence, "partners": []}
    torch.set_rng_state(one.seen.random)
    forces = forces_on(loss, place.row, place.embeddings, **place.inputs)
    plane = Plane(run)
    told = _told(run, loss, place, forces, plane)
    if place.how == "batch" and one.done == len(PHASES):
        after = embedded_again(one)[place.row].double().cpu()
        told["moved"] = _moved(after - place.embeddings[place.row], -forces.gradient, plane)
    return {"step": _step_of(run, one), "loss_title": loss.title, **told}


def _exact(run: Run, one: OneStep) -> tuple[Any, Tensor, dict[str, Any]]:
    """The loss as it was, the embeddings and the other inputs, in double precision on the CPU."""

    loss = one.seen.restored(run.trainer.loss).cpu().double()
    if run.trainer.takes_halves:
        loss = Halves(loss)
    inputs = {name: _on_cpu(value) for name, value in one.inputs.items()}
    return loss, one.embeddings.detach().cpu().double(), inputs


def _on_cpu(value: Any) -> Any:
    if isinstance(value, PairMasks):
        return PairMasks(value.positive.cpu(), value.negative.cpu())
    return value.cpu() if isinstance(value, Tensor) else type(value)(*(part.cpu() for part in value))


class Halves(nn.Module):
    """A loss of two views, called on all first views and then all second ones."""

    def __init__(self, loss: Any) -> None:
        super().__init__()
        self.loss, self.title, self.family = loss, loss.title, loss.family

    def forward(self, embeddings: Tensor) -> Tensor:
        """The loss, 0-d, of (2 B, D)."""
        first, second = embeddings.chunk(2)
        value: Tensor = self.loss(first, ref_emb=second)
        return value


def samples_of(run: Run, one: OneStep) -> Tensor:
    """Data set index of every row of the embeddings, (R,); of the rows drawn while there are no embeddings."""
    rows = run.trainer.train_index[one.rows.cpu()]
    return rows.repeat(2) if one.done >= _number("embed") and len(one.embeddings) > len(rows) else rows


def _place(run: Run, one: OneStep, of: str, point: int, given: Place, loss: Any) -> Place | None:
    samples, step = given.samples, _step_of(run, one)
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
        known = f"Sample {sample} was not in {of_batch}, so no pair pulled it; the optimiser's momentum may move it."
    else:
        known = f"Sample {sample} is held out: no step trains on it, and it moves only as the encoder changes."
    index = torch.from_numpy(run.probe.index.copy())
    here = run.trainer.embed(index if run.trainer.free else index[point : point + 1])
    here = here[point if run.trainer.free else 0].double().cpu()
    return _stand_in(run, sample, here, given, loss, known, of_batch)


def _was_in(sample: int, step: int, times: int = 1) -> str:
    if step == 0:
        return (
            f"Sample {sample} is in the first batch. Nothing has moved yet: these are its forces in step 1, "
            "before the update."
        )
    twice = f" {times} times; these are the forces on the first" if times > 1 else ""
    return f"Sample {sample} was in the batch of step {step}{twice}: the forces before that update."


def _stand_in(
    run: Run, sample: int, here: Tensor, given: Place, loss: Any, known: str, of_batch: str
) -> Place:
    """The point in the place of its nearest class mate of the batch, or as one more row."""
    label = run.data.labels[sample]
    name = run.data.class_names[int(label)]
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
        return Place(row, embeddings, given.inputs, samples, "in the place of another", sentence)
    labels = given.inputs.get("labels")
    if set(given.inputs) != {"labels"} or run.config.pairing != "label" or labels is None:
        return given._replace(
            sentence=f"{known} {of_batch[0].upper()}{of_batch[1:]} has no sample of its class {name} whose "
            "place it could take: take another step, or choose a point of the batch."
        )
    inputs = {"labels": torch.cat([labels, labels.new_tensor([int(label)])])}
    return Place(
        len(given.samples),
        torch.cat([given.embeddings, here.unsqueeze(0)]),
        inputs,
        torch.cat([given.samples, given.samples.new_tensor([sample])]),
        "as one more",
        f"{known} Shown is what the loss would do to it in {of_batch} as one more sample, because that batch has "
        f"none of its class {name}.",
    )


def _told(run: Run, loss: Any, place: Place, forces: Forces, plane: Plane) -> dict[str, Any]:
    order, shares = forces.ranked, forces.shares
    listed, others = order[:LISTED], order[LISTED:]
    proxies = isinstance(loss, ProxyLoss)
    if proxies:
        at = loss.distance.normalize(loss.weight.detach())[forces.partners]
    else:
        references = place.inputs.get("ref_emb")
        at = (place.embeddings if references is None else references)[forces.partners]
    point = place.embeddings[place.row]
    return {
        "sample": int(place.samples[place.row]),
        "how": place.how,
        "sentence": place.sentence,
        "reason": forces.reason,
        "distance": loss.distance.title if hasattr(loss, "distance") else "",
        "inverted": bool(hasattr(loss, "distance") and loss.distance.is_inverted),
        "xy": _rounded(plane.points(point.unsqueeze(0)))[0],
        "size": _number_of(forces.gradient.norm()),
        "total": _vector(-forces.gradient),
        "arrow": _rounded(plane.arrows(-forces.gradient.unsqueeze(0)))[0],
        "dim": len(point),
        "count": len(order),
        "rest": _number_of(forces.rest.norm() / forces.gradient.norm().clamp_min(1e-30)),
        "partners": [
            _partner(run, loss, place, forces, int(k), float(shares[k]), plane, at[k]) for k in listed
        ],
        "others": {
            "count": len(others),
            "share": _number_of(shares[others].sum()),
            "arrow": _rounded(plane.arrows(forces.forces[others].sum(0, keepdim=True)))[0],
        },
    }


def _partner(
    run: Run, loss: Any, place: Place, forces: Forces, k: int, share: float, plane: Plane, at: Tensor
) -> dict[str, Any]:
    row, force = int(forces.partners[k]), forces.forces[k]
    if isinstance(loss, ProxyLoss):
        who = {"proxy": row % loss.rows_per_class, "of_class": row // loss.rows_per_class, "sample": None}
    else:
        same = place.inputs.get("ref_emb") is None or len(place.inputs["ref_emb"]) == len(place.samples)
        sample = int(place.samples[row]) if same else None
        who = {"sample": sample, "row": row if place.inputs.get("ref_emb") is None else None}
    slope = forces.slopes[k].norm()
    return {
        **who,
        "positive": bool(forces.positive[k]),
        "closer": bool(forces.closer[k]),
        "share": _number_of(share),
        "value": _number_of(forces.values[k]),
        "weight": _number_of(forces.weights[k]),
        "back": _number_of(forces.back[k]),
        "slope": _number_of(slope),
        "unit": _vector(forces.slopes[k] / slope.clamp_min(1e-30)),
        "force": _vector(force),
        "size": _number_of(force.norm()),
        "xy": _rounded(plane.points(at.unsqueeze(0)))[0],
        "arrow": _rounded(plane.arrows(force.unsqueeze(0)))[0],
    }


def _moved(step: Tensor, force: Tensor, plane: Plane) -> dict[str, Any]:
    """How far the update carried the point, and how far that is along the force: 1 is the same direction."""
    along = torch.dot(step, force) / (step.norm() * force.norm()).clamp_min(1e-30)
    return {
        "size": _number_of(step.norm()),
        "along": _number_of(along),
        "arrow": _rounded(plane.arrows(step.unsqueeze(0)))[0],
    }


def _step_of(run: Run, one: OneStep) -> int:
    return run.steps_done if one is run.last else run.steps_done + 1


def _number(phase: str) -> int:
    return PHASES.index(phase) + 1


def _number_of(value: Any) -> float:
    return float(f"{float(value):.6g}")


def _vector(values: Tensor) -> list[float]:
    return [_number_of(v) for v in values[:SHOWN_NUMBERS].tolist()]


def _rounded(values: Tensor) -> list[list[float]]:
    return [[_number_of(v) for v in row] for row in values.tolist()]
