"""Results made by hand, for tests that need no training."""

import numpy as np

from lab.config import RunConfig
from lab.recording import CURVES
from lab.sweep.plan import Cell
from lab.sweep.results import CellResult, failed


def made(
    setting: str, seed: int, recall: float, map_at_r: float, state: str = "finished"
) -> tuple[Cell, CellResult]:
    """A cell whose recall@1 and MAP@R end at these numbers, after 0 at the beginning."""
    from dataclasses import replace

    config = RunConfig(data="blobs", seed=seed, steps=10)
    curves = {name: np.zeros(2) for name in CURVES}
    curves |= {"step": np.array([0.0, 10.0]), "recall_at_1": np.array([0.0, recall])}
    curves["map_at_r"] = np.array([0.0, map_at_r])
    result = replace(failed(config, ""), state=state, curves=curves)
    return Cell(config, (("lr", setting),)), result
