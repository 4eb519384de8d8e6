"""Batches for a cross-batch memory, and the memory kept as a plain list."""

import torch
from torch import Tensor

from tests.oracles import oracle

SIZES = [3, 3, 3, 1, 2, 3, 7, 1]


def batches(seed: int = 0, sizes: list[int] = SIZES) -> list[tuple[Tensor, Tensor]]:
    source = torch.Generator().manual_seed(seed)
    return [
        (
            torch.randn(size, 4, generator=source, dtype=torch.float64),
            torch.randint(0, 3, (size,), generator=source),
        )
        for size in sizes
    ]


class Ring:
    """Rows in the places they were written to, the oldest replaced first."""

    def __init__(self, size: int) -> None:
        self.size, self.rows, self.next = size, [], 0

    def write(self, x: Tensor, y: Tensor, step: int) -> None:
        for i in range(len(x)):
            row = (x[i], int(y[i]), (step, i))
            if len(self.rows) < self.size:
                self.rows.append(row)
            else:
                self.rows[self.next] = row
            self.next = (self.next + 1) % self.size

    def pairs(self, y: Tensor, step: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        every = [(i, j) for i in range(len(y)) for j in range(len(self.rows))]
        positive = [(i, j) for i, j in every if int(y[i]) == self.rows[j][1] and self.rows[j][2] != (step, i)]
        return positive, [(i, j) for i, j in every if int(y[i]) != self.rows[j][1]]


def expected_values(name: str, size: int, given: list[tuple[Tensor, Tensor]]) -> list[Tensor]:
    ring, values = Ring(size), []
    for step, (x, y) in enumerate(given):
        ring.write(x, y, step)
        positive, negative = ring.pairs(y, step)
        indices = [torch.tensor([ij[k] for ij in pairs]) for pairs in (positive, negative) for k in (0, 1)]
        references = torch.stack([row[0] for row in ring.rows])
        values.append(oracle(name).value(x, None, tuple(i.long() for i in indices), references))
    return values
