"""Every registered loss passes the audit, at its defaults and with each switch thrown."""

from typing import Any

import pytest
import torch

from losslib.check import audit
from losslib.params import Boolean, Choice, Either
from tests.contract.every_audit import Case, cases
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


EVERY_CASE = list(cases(list(catalog.losses())))


@pytest.mark.parametrize("case", EVERY_CASE[7::60], ids=lambda case: f"{case.name}-{label_of(case.options)}")
def test_a_registered_loss_passes_with_an_option_at_an_end_of_its_range(case: Case) -> None:
    report = case.audit(seed=1)
    assert report is None or report.failed == (), str(report)


@pytest.mark.parametrize(
    ("name", "options", "seed", "check", "status"),
    [
        ("AngularLoss", {"alpha": 60.0}, 0, "autocast", "passed"),  # its backward pass overflows float16
        ("BarlowTwinsLoss", {}, 1, "half precision", "passed"),  # both sides get the same second view
        ("ContrastiveLoss", {"neg_margin": 0.0}, 0, "negative pairs", "skipped"),
        ("ContrastiveLoss", {}, 0, "negative pairs", "passed"),
        ("CosineEmbeddingLoss", {"margin": 0.9}, 0, "negative pairs", "skipped"),
        ("HistogramLoss", {"num_bins": 200}, 1, "negative pairs", "passed"),  # falls between the points
        ("IntraPairVarianceLoss", {"pos_eps": 0.0}, 0, "positive pairs", "skipped"),
        ("ManifoldLoss", {}, 2, "double backward", "passed"),  # a hinge opens within the step
    ],
)
def test_extreme_options_and_other_batches(
    name: str, options: dict[str, Any], seed: int, check: str, status: str
) -> None:
    torch.manual_seed(0)
    found = audit(build(name, options), seed=seed, only=[check])[check]
    assert found.status == status, found


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("RankedListLoss", {"imbalance": 0.0}, "one side without weight"),
        ("ThresholdConsistentMarginLoss", {"lambda_minus": 0.0}, "negatives have a weight of 0"),
    ],
)
def test_a_side_without_weight_says_why_its_hinge_is_not_checked(
    name: str, options: dict[str, Any], said: str
) -> None:
    report = audit(build(name, options), only=["closed hinge", "pair weights"])
    assert said in report["closed hinge"].got
    assert report.passed
    assert audit(build(name), only=["closed hinge"])["closed hinge"].status == "passed"
