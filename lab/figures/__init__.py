"""Figures of what stands still, as Plotly figures: one function a file, data in, figure out.

Plotly is imported inside the functions, so that nothing loads it before a figure is wanted.
"""
