"""Every registered loss audited at the ends and the middle of each option: a long run.

python -m tests.contract.every_audit --seeds 3 [LossName ...]
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from losslib import catalog
from losslib.check import Report, audit
from losslib.errors import ParameterError
from losslib.params import Integer, Param

SIZES = {"num_classes": 3, "embedding_size": 8, "class_counts": (16, 16, 16)}


class Case(NamedTuple):
    """A loss with one option off its default, or none."""

    name: str
    options: dict[str, Any]

    def audit(self, seed: int) -> Report | None:
        """The report; None where the loss refuses the option by itself."""
        needed = {option: SIZES[option] for option in catalog.get(self.name).required}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # margins at an end of their range, on purpose
            try:
                loss = catalog.get(self.name)(**{**needed, **self.options})
            except ParameterError:
                return None
            return audit(loss, seed=seed)


def values_of(param: Param) -> list[Any]:
    """Ends and middle of the range worth exploring, or every choice; not the default."""
    found = list(param.explore or param.valid.examples_in())
    if len(found) == 2 and all(isinstance(one, int | float) and not isinstance(one, bool) for one in found):
        whole = isinstance(param.valid, Integer) or param.kind == "integer"
        middle = (found[0] + found[1]) // 2 if whole else (found[0] + found[1]) / 2
        found.insert(1, middle)
    if param.explore and None in param.valid.examples_in():
        found.append(None)
    return [one for one in found if one != param.default or type(one) is not type(param.default)]


def cases(names: list[str]) -> Iterator[Case]:
    """The defaults of each loss, then one option changed at a time."""
    for name in names:
        yield Case(name, {})
        for option, param in catalog.get(name).params.items():
            for value in values_of(param):
                yield Case(name, {option: value})


def main(arguments: list[str] | None = None) -> int:
    """Prints what fails; status 1 if anything does."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="losses; all when none is named")
    parser.add_argument("--seeds", type=int, default=3, help="batches tried of each case")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    tried = failed = 0
    for case in cases(given.names or sorted(catalog.losses())):
        for seed in range(given.seeds):
            report = case.audit(seed)
            if report is None:
                break
            tried += 1
            failed += not report.passed
            for check in report.failed:
                print(f"{case.name} {case.options} seed {seed}: {check.name}: {check.got}", flush=True)
    print(f"{tried:,} audits, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
