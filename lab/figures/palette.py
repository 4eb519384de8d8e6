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
# The same hues for a dark background; blue and black would sink into it.
COLOURS_IN_DARK = (
    "#3A9AD9",
    "#E69F00",
    "#1DB587",
    "#DD8FBB",
    "#F07A2B",
    "#8FD0F5",
    "#F0E442",
    "#FFFFFF",
    "#A6A6A6",
    "#A48BE8",
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
# Three dimensions know eight symbols only, and "x" is drawn as an empty box where its letter is missing.
SYMBOLS_IN_SPACE = (
    "circle",
    "square",
    "diamond",
    "cross",
    "circle-open",
    "square-open",
    "diamond-open",
)
POSITIVE, NEGATIVE, QUALITY = COLOURS[0], COLOURS[4], COLOURS[2]
REFERENCE = "#8A8A8A"  # lines that data is compared with: chance, thresholds, what is expected


def class_style(number: int, dark: bool = False, space: bool = False) -> dict[str, str]:
    """Colour and symbol of class `number`, from 0; they repeat after ten (symbols in space after seven)."""
    colours, symbols = COLOURS_IN_DARK if dark else COLOURS, SYMBOLS_IN_SPACE if space else SYMBOLS
    return {"color": colours[number % len(colours)], "symbol": symbols[number % len(symbols)]}
