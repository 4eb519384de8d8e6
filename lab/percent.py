"""A share as every page writes it."""

from collections.abc import Iterable


def percent(share: float, digits: int = 1) -> str:
    """The share in percent: 0.125 is "12.5 %"."""
    return f"{100 * share:.{digits}f} %"


def percents(shares: Iterable[float]) -> list[str]:
    """Shares in percent, as the `hovertext` of a trace: formats of Plotly leave the space out."""
    return [percent(share) for share in shares]
