"""What a server allows a sweep; each limit may be set by a variable such as LOSSLAB_SWEEP_CELLS=200."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from lab.config import RunConfig
from lab.limits import LimitError, Limits, estimated_bytes
from losslib.params import Integer, Param


@dataclass(frozen=True)
class SweepLimits:
    """What one sweep or comparison may ask of a server, and how many it keeps.

    Attributes:
        cells: runs a sweep.
        steps: updates of all runs of a sweep together.
        jobs: sweeps that wait or run at once.
        kept: sweeps whose results are kept; the one that was looked at longest ago goes first.
    """

    cells: int = 60
    steps: int = 40_000
    jobs: int = 12
    kept: int = 24

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> SweepLimits:
        """The defaults, with each limit that a variable sets. Raises ParameterError for a bad number."""
        found = {}
        for field in fields(cls):
            name = f"LOSSLAB_SWEEP_{field.name.upper()}"
            if name in environment:
                param = Param(field.default, valid=Integer(1, None), name=name)
                found[field.name] = param.parse(environment[name], name)
        return cls(**found)

    def check_count(self, runs: int) -> None:
        """Raises LimitError, one sentence, when there are more runs than is allowed."""
        if runs > self.cells:
            raise LimitError(
                f"this server allows at most {self.cells} runs a sweep, this one has {runs}; "
                "take fewer values, losses or seeds"
            )

    def check(self, configs: Sequence[RunConfig], each: Limits) -> None:
        """Raises LimitError, one sentence, when the runs ask for more than is allowed.

        Args:
            configs: all runs.
            each: what a single run may have.
        """
        self.check_count(len(configs))
        steps = sum(config.steps for config in configs)
        if steps > self.steps:
            raise LimitError(
                f"this server allows at most {self.steps} steps a sweep, this one has {steps} "
                f"({len(configs)} runs); take fewer steps or runs"
            )
        for config in configs:
            points = config.data_values.get("points", 0)
            for name, value, most in (("batch", config.batch, each.batch), ("points", points, each.points)):
                if value > most:
                    raise LimitError(f"this server allows at most {most} for {name}, got {value}")
            if estimated_bytes(config) > each.memory:
                raise LimitError("a run needs more memory than this server allows; choose a smaller batch")
