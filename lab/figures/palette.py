"""Colours and marker symbols of classes: colour is never the only difference."""

from __future__ import annotations

# Okabe and Ito's colours, neighbours far apart, plus two; the app's theme uses the same ones.
COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#D55E00",
    "#56B4E9",
    "#B8A400",
    "#000000",
    "#8A8A8A",
    "#5B3FA6",
)
SYMBOLS = (
    "circle",
    "square",
    "triangle-up",
    "cross",
    "diamond",
    "circle-open",
    "triangle-down",
    "star",
    "x",
    "hexagon",
)
POSITIVE, NEGATIVE, QUALITY = COLOURS[0], COLOURS[4], COLOURS[2]


def class_style(number: int) -> dict[str, str]:
    """Colour and symbol of class `number`, counted from 0; they repeat after ten."""
    return {"color": COLOURS[number % len(COLOURS)], "symbol": SYMBOLS[number % len(SYMBOLS)]}
