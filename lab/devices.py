"""Where a run is computed."""

from __future__ import annotations

import torch

from lab.config import RunConfig
from losslib.errors import ParameterError

# Below this many samples a step, a GPU waits for its launches longer than one CPU thread computes.
_GPU_BATCH = 1024


def one_thread() -> None:
    """Page and command line compute on one torch thread: equal configs then give equal bits."""
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)


def resolve_device(config: RunConfig) -> torch.device:
    """The device of a run. Raises ParameterError when cuda is asked for and there is none."""
    available = torch.cuda.is_available()
    if config.device == "cuda" and not available:
        raise ParameterError("run: device is cuda, but no CUDA device is available here; use auto or cpu")
    wanted = config.device == "cuda" or (config.device == "auto" and config.batch >= _GPU_BATCH)
    return torch.device("cuda" if wanted and available else "cpu")
