"""Where titles and legends stand: the tool bar lies over a chart's upper edge, on touch screens always."""

from collections.abc import Iterable
from typing import Any

ABOVE = 66  # pixels: the bar, and a line of legend or a title under it
ABOVE_TWO = 86  # and two lines of legend
# a legend at the very bottom, whose lines take their height from the chart, not from the axis' title
BELOW = {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom"}
LINE = 29  # pixels of one of its lines


def lines_of_legend(names: Iterable[str], width: int) -> int:
    """Lines that a legend of so many pixels needs for these names."""
    lines, left = 0, 0
    for name in names:
        entry = 45 + 7 * len(name)  # the symbol with its gaps, and letters of middling width
        if entry > left:
            lines, left = lines + 1, width
        left -= entry
    return lines


def title_under(text: str) -> dict[str, Any]:
    """A chart's title that the bar leaves free, in a margin of `ABOVE`."""
    return {"text": text, "yref": "paper", "y": 1, "yanchor": "bottom", "pad": {"b": 14}}
