"""A paused moment of a run as Plotly figures: to zoom, to point at, to choose points in, to take home."""

from ui.figures.moment import paused_figures
from ui.figures.norms import norms_and_distances

__all__ = ["norms_and_distances", "paused_figures"]
