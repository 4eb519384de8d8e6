"""Every registered loss passes the audit, at its defaults and with each switch thrown."""

from typing import Any

import pytest

from losslib.check import audit
from losslib.params import Boolean, Choice, Either
from tests.contract.registered import NAMES, build, catalog, label_of
from tests.oracles import oracle

SWITCHES = (Boolean, Choice, Either)  # options that change what is computed, not just how much


def switched(name: str) -> list[dict[str, Any]]:
    """The defaults, every switch at its other values, and the combinations worth trying."""
    found: list[dict[str, Any]] = [{}]
    for option, param in catalog.get(name).params.items():
        if isinstance(param.valid, SWITCHES):
            values = param.explore if param.explore is not None else param.valid.examples_in()
            found += [{option: value} for value in values if value != param.default]
    return [*found, *oracle(name).more]


CASES = [
    pytest.param(name, options, id=f"{name}-{label_of(options)}")
    for name in NAMES
    for options in switched(name)
]


@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_registered_loss_passes_the_audit(name: str, options: dict[str, Any]) -> None:
    report = audit(catalog.get(name)(**options))
    assert report.failed == (), str(report)


DISTANCES = ("LpDistance", "CosineSimilarity", "DotProductSimilarity", "SNRDistance")


@pytest.mark.parametrize(
    ("name", "distance"), [(name, kind) for name in NAMES for kind in DISTANCES if oracle(name).allows(kind)]
)
def test_a_registered_loss_passes_the_audit_with_any_distance(name: str, distance: str) -> None:
    # what a distance does to margins made for another is the caller's affair: shapes, values, gradients only
    report = audit(
        build(name, {}, (distance, {})),
        skip=["positive pairs", "negative pairs", "hard pairs", "temperature", "pair weights", "collapse"],
    )
    assert report.failed == (), str(report)


@pytest.mark.parametrize("name", NAMES)
def test_most_checks_apply(name: str) -> None:
    report = audit(catalog.get(name)())
    passed = sum(check.status == "passed" for check in report.checks)
    assert passed >= 27, str(report)
