"""Which samples a run's maps, histograms and quality are of."""

from __future__ import annotations

from lab.config import RunConfig


def measured_on(config: RunConfig) -> str:
    """Held-out or training: free points have no encoder that could embed others."""
    return "training" if config.encoder == "free" else "held-out"
