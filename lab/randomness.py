"""Torch's global generators belong to one run at a time: swapped in for a slice of work, out after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


class RandomState:
    """The random state of one run, seeded at the start.

    Losses and weight initialisation draw from torch's global generator. Each run therefore brings its own
    state and leaves the process's state as it was, so that interleaved runs equal each alone.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._state = torch.Generator().manual_seed(seed).get_state()
        self._cuda_state = torch.Generator(device).manual_seed(seed).get_state() if self._cuda else None

    @property
    def state(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Where the random numbers stand, outside of `swapped_in`."""
        return self._state, self._cuda_state

    @state.setter
    def state(self, state: tuple[torch.Tensor, torch.Tensor | None]) -> None:
        self._state, self._cuda_state = state

    @contextmanager
    def swapped_in(self) -> Iterator[None]:
        """The block draws from this run's state; the process's own is put back afterwards."""
        outside = torch.get_rng_state()
        torch.set_rng_state(self._state)
        if self._cuda_state is not None:
            outside_cuda = torch.cuda.get_rng_state()
            torch.cuda.set_rng_state(self._cuda_state)
        try:
            yield
        finally:
            self._state = torch.get_rng_state()
            torch.set_rng_state(outside)
            if self._cuda_state is not None:
                self._cuda_state = torch.cuda.get_rng_state()
                torch.cuda.set_rng_state(outside_cuda)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Whatever the block draws, training goes on as if it had not: looking at a step changes nothing."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=devices):
        yield
