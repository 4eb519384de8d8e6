"""The title of an axis of distances: what is measured, and which way is closer."""

WIDEST = 45  # characters of a line that a chart 400 pixels wide has room for


def axis_title(distance: str, inverted: bool) -> str:
    """The distance in words, over two lines where it is long, and which way is closer under it.

    Args:
        distance: in words.
        inverted: whether larger is closer.
    """
    broken = distance.replace(" of ", "<br>of ", 1) if len(distance) > WIDEST else distance
    return f"{broken}<br>({'larger' if inverted else 'smaller'} is closer)"
