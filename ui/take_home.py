"""What leaves the Train page: the run as a file, its curves as a table, and scripts that repeat it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ui import recordings

if TYPE_CHECKING:
    from lab.scheduler import LiveRun


def everything(run: LiveRun) -> None:
    """What the popover shows."""
    recordings.run_file(run)
