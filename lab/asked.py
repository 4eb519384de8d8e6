"""What people ask about the last step of a run: its batch on the map, and the forces on one of its points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from lab.phases import embedded_again
from lab.places import Place, place_of
from lab.plane import Plane, number, rounded, vector
from lab.randomness import undisturbed
from lab.replay import exact_call, gradients, has, samples_of, step_of
from lab.why import Forces, forces_on
from losslib.proxies import ProxyLoss

if TYPE_CHECKING:
    from lab.run import Run

LISTED = 12


class Question(NamedTuple):
    """What a viewer asks.

    do: "batch" for the batch of the last step, or "why" for the forces on a point.
    of: for "why", "map" for a point of the map or "batch" for a row of the batch as "batch" told it.
    point: its place there, from 0.
    """

    do: str
    of: str = "map"
    point: int = 0


def answer(run: Run, question: Question) -> dict[str, Any]:
    """The answer in plain numbers and texts; the run goes on as if nobody had asked."""
    with undisturbed():
        told = batch(run) if question.do == "batch" else why(run, question.of, question.point)
    return {"of": question.of, "point": question.point, **told}


def batch(run: Run) -> dict[str, Any]:
    """The batch of the step under way, or of the last one: samples, positions, forces, movements."""
    one = run.under_way or run.last
    if one is None or not one.done:
        return {"rows": 0, "reason": "No batch was drawn yet."}
    index = samples_of(run, one)
    told: dict[str, Any] = {
        "step": step_of(run, one),
        "phase": one.phase,
        "rows": len(index),
        "samples": index.tolist(),
        "xy": None,
        "arrows": None,
        "moved": None,
    }
    if not has(one, "embed"):
        return told
    plane = Plane(run)
    told["xy"] = rounded(plane.points(one.embeddings.detach()))
    if has(one, "gradient") or one is run.last:
        told["arrows"] = rounded(plane.arrows(-gradients(run, one)))
    if has(one, "update"):
        after = embedded_again(one)
        told["moved"] = rounded(plane.arrows(after.double() - one.embeddings.double()))
    return told


def why(run: Run, of: str, point: int) -> dict[str, Any]:
    """The forces on a point of the map, or on a row of the batch."""
    one = run.under_way if run.under_way is not None and has(run.under_way, "loss") else run.last
    if one is None:
        return {"reason": "There was no step yet: press Step, and ask again.", "partners": []}
    if of == "batch" and run.under_way not in (None, one):
        return {"reason": "The loss has not seen this batch yet: its phase is still to come.", "partners": []}
    loss, embeddings, inputs = exact_call(run, one)
    place = place_of(run, one, of, point, Place(embeddings, inputs, samples_of(run, one)))
    if place is None:
        return {"reason": "There is no such point.", "partners": []}
    if not place.how:
        return {"reason": place.sentence, "partners": []}
    torch.set_rng_state(one.seen.random)
    forces = forces_on(loss, place.row, place.embeddings, **place.inputs)
    plane = Plane(run)
    told = _told(run, loss, place, forces, plane)
    if place.how == "batch" and has(one, "update"):
        after = embedded_again(one)[place.row].double().cpu()
        told["moved"] = _moved(after - place.embeddings[place.row], -forces.gradient, plane)
    return {"step": step_of(run, one), "loss_title": loss.title, **told}


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
        "xy": rounded(plane.points(point.unsqueeze(0)))[0],
        "size": number(forces.gradient.norm()),
        "total": vector(-forces.gradient),
        "arrow": rounded(plane.arrows(-forces.gradient.unsqueeze(0)))[0],
        "dim": len(point),
        "count": len(order),
        "rest": number(forces.rest.norm() / forces.gradient.norm().clamp_min(1e-30)),
        "partners": [
            _partner(run, loss, place, forces, int(k), float(shares[k]), plane, at[k]) for k in listed
        ],
        "pulls": _side(forces, forces.closer),
        "pushes": _side(forces, ~forces.closer),
        "others": {
            "count": len(others),
            "share": number(shares[others].sum()),
            "arrow": rounded(plane.arrows(forces.forces[others].sum(0, keepdim=True)))[0],
        },
    }


def _side(forces: Forces, side: Tensor) -> dict[str, Any]:
    shares = forces.shares[side]
    return {"count": int((shares > 0).sum()), "share": number(shares.sum())}


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
        "share": number(share),
        "value": number(forces.values[k]),
        "weight": number(forces.weights[k]),
        "back": number(forces.back[k]),
        "slope": number(slope),
        "unit": vector(forces.slopes[k] / slope.clamp_min(1e-30)),
        "force": vector(force),
        "size": number(force.norm()),
        "xy": rounded(plane.points(at.unsqueeze(0)))[0],
        "arrow": rounded(plane.arrows(force.unsqueeze(0)))[0],
    }


def _moved(step: Tensor, force: Tensor, plane: Plane) -> dict[str, Any]:
    """How far the update carried the point, and how far that is along the force: 1 is the same direction."""
    along = torch.dot(step, force) / (step.norm() * force.norm()).clamp_min(1e-30)
    return {
        "size": number(step.norm()),
        "along": number(along),
        "arrow": rounded(plane.arrows(step.unsqueeze(0)))[0],
    }
