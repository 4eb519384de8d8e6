"""The engine: what a run is, how it trains, what it records. No streamlit here."""

from __future__ import annotations

import gc


def warm_up() -> None:
    """Import what the first run would otherwise wait for, then freeze it out of garbage collection.

    `torch.optim` alone loads 0.8 s of machinery at its first step. Call it once, in a background thread
    or before the first visitor; later calls cost nothing.
    """
    import torch

    import datasets
    from losslib import catalog

    torch.set_num_threads(1)
    catalog.losses()
    datasets.load("mnist")
    weight = torch.zeros(1, requires_grad=True)
    weight.sum().backward()
    torch.optim.Adam([weight]).step()
    gc.collect()
    gc.freeze()
