"""A share as every page writes it."""


def percent(share: float, digits: int = 1) -> str:
    """The share in percent: 0.125 is "12.5 %"."""
    return f"{100 * share:.{digits}f} %"
