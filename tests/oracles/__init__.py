"""Brute-force oracles: what each loss must be, written from its equation as plain loops in float64.

Nothing here comes from losslib. Each oracle returns differentiable torch scalars, so the gradient is
checked as well as the value. `oracle("ContrastiveLoss")` finds one; a file of this package that defines
more is found by itself.
"""

import importlib
import pkgutil

from tests.oracles.core import REGISTRY, Oracle

__all__ = ["Oracle", "oracle", "oracles"]


def oracles() -> dict[str, Oracle]:
    """All oracles by the loss's class name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(sorted(REGISTRY.items()))


def oracle(name: str) -> Oracle:
    """The oracle of one loss class. Raises KeyError with the names there are."""
    found = oracles()
    if name not in found:
        raise KeyError(f"no oracle for {name}; there are {', '.join(found)}")
    return found[name]
