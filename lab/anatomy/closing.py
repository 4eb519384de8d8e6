"""Closing in on the places of a curve where something begins or ends: all of them at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

PARTS, ROUNDS = 16, 3  # a four-thousandth of a step of the grid

Floats = NDArray[np.float64]
Look = Callable[[Floats], Floats]
Choose = Callable[[Floats], NDArray[np.intp]]


class Closed(NamedTuple):
    """What closing in gave.

    Attributes:
        tried: everything that was looked at, (3, T): distance, loss, gradient.
        low: found at the nearer end of each last step, (3, E).
        high: found at the farther end, (3, E).
    """

    tried: Floats
    low: Floats
    high: Floats


def closed_in(look: Look, grid: Floats, found: Floats, edges: NDArray[np.intp], choose: Choose) -> Closed:
    """Divides some steps of a grid again and again.

    Args:
        look: distance, loss and gradient (3, G) at angles (G,).
        grid: angles (G,).
        found: what was looked at there, (3, G).
        edges: the steps that are divided, (E,), by the place of their nearer end.
        choose: from values (3, PARTS + 1, E) along divided steps, the part that is divided next, (E,).
    """
    near, far = grid[edges], grid[edges + 1]
    low, high = found[:, edges], found[:, edges + 1]
    columns, tried = np.arange(len(edges)), [np.zeros((3, 0))]
    for _ in range(ROUNDS if len(edges) else 0):
        angles = np.linspace(near, far, PARTS + 1)
        inner = look(angles[1:-1].ravel())
        tried.append(inner)
        steps = np.concatenate([low[:, None], inner.reshape(3, PARTS - 1, -1), high[:, None]], 1)
        place = choose(steps)
        near, far = angles[place, columns], angles[place + 1, columns]
        low, high = steps[:, place, columns], steps[:, place + 1, columns]
    return Closed(np.concatenate(tried, 1), low, high)
