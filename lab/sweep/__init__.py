"""Sweeps: a grid of runs over options, losses and seeds, in other processes, ranked by held-out quality.

`python -m lab.sweep config.json --out results/` runs one from the command line.
"""
