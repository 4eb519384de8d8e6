"""Where one point could stand and be left alone: found by trying places, a few at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from lab.playground.evaluate import NOTHING, value_and_gradient
from lab.playground.placement import CIRCLE, REACH, Placement
from lab.playground.setup import sees_directions_only

MOVES, ALONE, ZERO = 0, 1, 2  # it has a gradient; it has none; the whole loss is 0
CELLS, COARSE = 20, 8  # of the plane's square each way; softmax kinds hardly ever rest
TURNS = 72
HALVINGS = 5

Point = tuple[float, float]
Polygon = list[Point]


class Region:
    """The places of one point, searched in slices so that no one else waits.

    Attributes:
        wedges: (from, to, kind) in radians, where directions alone decide.
        polygons: (corners, kind) on the plane.
        done: whether all was tried.
    """

    def __init__(self, loss: Any, placement: Placement, index: int, space: str) -> None:
        self.loss, self.placement, self.index = loss, placement, index
        self.angular = space == CIRCLE or sees_directions_only(loss)
        self.wedges: list[tuple[float, float, int]] = []
        self.polygons: list[tuple[Polygon, int]] = []
        self.done = False
        self._search = self._around() if self.angular else self._across()

    def work(self, seconds: float) -> bool:
        """Tries places for that long; whether all was tried."""
        until = time.perf_counter() + seconds
        while not self.done and time.perf_counter() < until:
            self.done = next(self._search, True) is True
        return self.done

    def kind_at(self, point: Point) -> int:
        """What happens to the point there."""
        embeddings, labels = self.placement.moved(self.index, point).tensors()
        try:
            value, gradient = value_and_gradient(self.loss, embeddings, labels)
        except Exception:  # as the evaluation of the points themselves has said
            return MOVES
        if abs(value) <= NOTHING:
            return ZERO
        own = gradient[self.index]
        if self.angular:  # along the ray nothing that is drawn changes
            own = own - (own @ embeddings[self.index]) * embeddings[self.index]
        return ALONE if float(own.abs().max()) <= NOTHING else MOVES

    def _around(self) -> Iterator[None]:
        """All directions: wedges, their ends halved down to a fraction of a degree."""
        angles = [2 * math.pi * (k + 0.5) / TURNS for k in range(TURNS)]
        kinds = []
        for angle in angles:
            kinds.append(self.kind_at(at(angle)))
            yield
        starts = []
        for k, angle in enumerate(angles):
            before = angles[k - 1] - (2 * math.pi if k == 0 else 0)
            if kinds[k - 1] != kinds[k]:
                low, high = before, angle
                for _ in range(HALVINGS):
                    middle = (low + high) / 2
                    same = self.kind_at(at(middle)) == kinds[k - 1]
                    low, high = (middle, high) if same else (low, middle)
                    yield
                starts.append(((low + high) / 2, kinds[k]))
        if not starts and kinds[0] != MOVES:
            self.wedges = [(0.0, 2 * math.pi, kinds[0])]
        for k, (start, kind) in enumerate(starts):
            end = starts[(k + 1) % len(starts)][0] + (2 * math.pi if k == len(starts) - 1 else 0)
            if kind != MOVES:
                self.wedges.append((start, end, kind))

    def _across(self) -> Iterator[None]:
        """The square of the plane: cells cut where the kind changes."""
        cells = COARSE if self.loss.activity_rule == "softmax" else CELLS
        line = [REACH * (2 * k / cells - 1) for k in range(cells + 1)]
        grid: list[list[int]] = []
        for y in line:
            grid.append([])
            for x in line:
                grid[-1].append(self.kind_at((x, y)))
                yield
        for kind in (ALONE, ZERO):
            yield from self._cut(line, grid, kind)

    def _cut(self, line: list[float], grid: list[list[int]], kind: int) -> Iterator[None]:
        """Polygons of at least that kind: whole cells of a row joined, the others cut along their border."""
        crossings: dict[tuple[Point, Point], Point] = {}
        for row in range(len(line) - 1):
            whole: int | None = None
            for column in range(len(line)):
                last = column == len(line) - 1
                corners = [] if last else corners_of(line, grid, row, column)
                inside = [found >= kind for _, found in corners]
                if not last and all(inside):
                    whole = column if whole is None else whole
                    continue
                if whole is not None:
                    x0, x1, y0, y1 = line[whole], line[column], line[row], line[row + 1]
                    self.polygons.append(([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], kind))
                    whole = None
                if any(inside):
                    yield from self._cut_cell(corners, kind, crossings)

    def _cut_cell(
        self, corners: list[tuple[Point, int]], kind: int, crossings: dict[tuple[Point, Point], Point]
    ) -> Iterator[None]:
        """The part of one cell inside: its inner corners and where its sides cross the border."""
        polygon: Polygon = []
        for k, (corner, found) in enumerate(corners):
            following, next_found = corners[(k + 1) % 4]
            if found >= kind:
                polygon.append(corner)
            if (found >= kind) != (next_found >= kind):
                side = (min(corner, following), max(corner, following))
                if side not in crossings:
                    inner, outer = (corner, following) if found >= kind else (following, corner)
                    crossings[side] = border(self.kind_at, inner, outer, kind)
                    yield
                polygon.append(crossings[side])
        self.polygons.append((polygon, kind))


def at(angle: float) -> Point:
    """The point of the unit circle."""
    return math.cos(angle), math.sin(angle)


def corners_of(line: list[float], grid: list[list[int]], row: int, column: int) -> list[tuple[Point, int]]:
    """The corners of a cell with their kinds, in turn."""
    places = ((row, column), (row, column + 1), (row + 1, column + 1), (row + 1, column))
    return [((line[c], line[r]), grid[r][c]) for r, c in places]


def border(kind_at: Callable[[Point], int], inner: Point, outer: Point, kind: int) -> Point:
    """Where the kind is lost between two points, by halving."""
    for _ in range(HALVINGS):
        middle = ((inner[0] + outer[0]) / 2, (inner[1] + outer[1]) / 2)
        inner, outer = (middle, outer) if kind_at(middle) >= kind else (inner, middle)
    return (inner[0] + outer[0]) / 2, (inner[1] + outer[1]) / 2
