"""A small placement on a line, and the losses and messages that look at it."""

from lab.playground.placement import Placement
from lab.playground.setup import Chosen, built, read_setup

# A and B of one class half a unit apart, C of another 0.3 from A on the other side.
LINE = Placement(((0.0, 0.0), (0.5, 0.0), (-0.3, 0.0)), (0, 0, 1))


def loss(name, normalise=False, **options):
    return built(Chosen(name, tuple(sorted(options.items()))), normalise)


def setup(*losses, space="plane", normalise=False):
    chosen = [[one, {}] if isinstance(one, str) else list(one) for one in losses]
    return read_setup({"losses": chosen, "space": space, "normalise": normalise})


def rows(placement):
    return [[x, y, c] for (x, y), c in zip(placement.points, placement.classes, strict=True)]


def place(points, **more):
    return {"do": "place", "id": 1, "selected": 0, "points": points, **more}
