"""Messages in, answers out: what the socket and the slow way share. Everything in a message is checked."""

from __future__ import annotations

import math
from typing import Any

from lab.playground.evaluate import Evaluation, evaluate, step
from lab.playground.geometry import no_ring, rings
from lab.playground.placement import NAMES, Placement, checked
from lab.playground.region import ALONE, ZERO, Region
from lab.playground.setup import Setup, built
from lab.playground.words import headline, pairs_in_words, rings_in_words
from losslib import catalog
from losslib.errors import ParameterError

RATES = (0.001, 10.0)
BLUR = 0.005  # share of the square by which the borders of two regions may differ


def answer(setup: Setup, message: dict[str, Any]) -> dict[str, Any]:
    """The answer to a message that does "place" or "step". Raises ParameterError for a wrong one.

    {"do": "place", "id": 7, "points": [[x, y, class], ...], "selected": 0}; "step" has also "rate" and
    "follow", the place of the loss to descend on. The answer: {"id", "points": [[x, y], ...],
    "losses": [...]}, one entry a loss, see `told`.
    """
    number, placement, selected = read_place(setup, message)
    if message.get("do") == "step":
        follow, rate = read_step(setup, message)
        placement = step(built(setup.losses[follow], setup.normalise), placement, setup.space, rate)
    losses = [told(setup, place, placement, selected) for place in range(len(setup.losses))]
    return {"id": number, "points": [list(point) for point in placement.points], "losses": losses}


def told(setup: Setup, place: int, placement: Placement, selected: int) -> dict[str, Any]:
    """What is drawn and said of one loss.

    value; arrows [[x, y], ...], minus the gradient; pulls [[first, second, positive, attracts, share of the
    heaviest, weight, value], ...] or null; rings [[kind, size, side, label], ...]; words.
    """
    chosen = setup.losses[place]
    loss = built(chosen, setup.normalise)
    found = evaluate(loss, placement, setup.space)
    drawn = rings(loss, placement, selected, setup.space)
    said = (
        headline(catalog.get(chosen.name).title, found),
        pairs_in_words(found),
        rings_in_words(drawn, selected, no_ring(loss, placement, selected)),
    )
    return {
        "value": found.value,
        "arrows": [list(arrow) for arrow in found.arrows],
        "pulls": pull_rows(found),
        "rings": [[ring.kind, ring.size, ring.side, ring.label] for ring in drawn],
        "words": " ".join(filter(None, said)),
    }


def pull_rows(found: Evaluation) -> list[list[Any]] | None:
    """The active pairs as rows."""
    if found.pulls is None:
        return None
    most = max((abs(pull.weight) for pull in found.pulls), default=0.0) or 1.0
    return [
        [p.first, p.second, p.positive, p.attracts, abs(p.weight) / most, p.weight, p.value]
        for p in found.pulls
    ]


def read_place(setup: Setup, message: dict[str, Any]) -> tuple[int, Placement, int]:
    """Number, placement and selected point of a message. Raises ParameterError for a wrong one."""
    number, selected = message.get("id"), message.get("selected")
    if not is_index(number, 2**53):
        raise ParameterError("id: expected a whole number")
    placement = checked(message.get("points"), setup.space)
    if not is_index(selected, len(placement.points)):
        raise ParameterError("selected: expected the place of a point, from 0")
    return int(number or 0), placement, int(selected or 0)


def read_step(setup: Setup, message: dict[str, Any]) -> tuple[int, float]:
    """The loss to descend on and the rate. Raises ParameterError for a wrong one."""
    rate, follow = message.get("rate"), message.get("follow")
    if not is_number(rate) or not RATES[0] <= float(rate or 0) <= RATES[1]:
        raise ParameterError(f"rate: expected a number from {RATES[0]:g} to {RATES[1]:g}")
    if not is_index(follow, len(setup.losses)):
        raise ParameterError("follow: expected the place of a loss, from 0")
    return int(follow or 0), float(rate or 0)


def regions(setup: Setup, message: dict[str, Any]) -> tuple[int, int, list[Region]]:
    """Number, selected point and one search a loss, for a message that does "region"."""
    number, placement, selected = read_place(setup, message)
    losses = [built(chosen, setup.normalise) for chosen in setup.losses]
    return number, selected, [Region(loss, placement, selected, setup.space) for loss in losses]


def region_answer(number: int, place: int, selected: int, found: Region) -> dict[str, Any]:
    """{"id", "region": place of the loss, "wedges", "polygons", "words"}, angles in radians."""
    return {
        "id": number,
        "region": place,
        "wedges": [[round(low, 4), round(high, 4), kind] for low, high, kind in found.wedges],
        "polygons": [
            [[[round(x, 4), round(y, 4)] for x, y in corners], kind] for corners, kind in found.polygons
        ],
        "words": region_in_words(selected, found),
    }


def region_in_words(selected: int, found: Region) -> str:
    """How much of the picture leaves the point alone."""
    name = NAMES[selected]
    shares = {kind: share_of(found, kind) for kind in (ALONE, ZERO)}
    if not any(shares.values()):
        return f"Nowhere on this picture would {name} be left alone."
    where = "of all directions" if found.angular else "of the square"
    parts = []
    if shares[ALONE] > (0 if found.angular else BLUR):
        parts.append(f"on {percent(shares[ALONE])} {where} (hatched) {name} has no gradient")
    if shares[ZERO]:
        parts.append(f"on {percent(shares[ZERO])} {where} (shaded) the whole loss is 0")
    said = "; ".join(parts)
    return f"If only {name} moves: {said}."


def share_of(found: Region, kind: int) -> float:
    """The share of directions, or of the square, that is of that kind, or on the plane at least of it."""
    if found.angular:
        return sum(high - low for low, high, own in found.wedges if own == kind) / (2 * math.pi)
    area = {own: sum(area_of(p) for p, k in found.polygons if k == own) for own in (ALONE, ZERO)}
    return (area[kind] - (area[ZERO] if kind == ALONE else 0.0)) / 16


def area_of(polygon: list[tuple[float, float]]) -> float:
    """Of a polygon given in turn."""
    following = [*polygon[1:], *polygon[:1]]
    return abs(sum(a * d - b * c for (a, b), (c, d) in zip(polygon, following, strict=True))) / 2


def percent(share: float) -> str:
    """A share in words."""
    return "less than 1 %" if share < 0.01 else f"{round(100 * share)} %"


def is_index(value: Any, count: int) -> bool:
    """Whether it is a whole number from 0, below count."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < count


def is_number(value: Any) -> bool:
    """Whether it is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
