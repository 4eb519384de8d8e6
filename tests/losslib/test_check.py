"""The audit passes right losses and catches each wrong one by the check meant for it."""

from typing import ClassVar

import pytest
import torch

from losslib.check import Report, audit, checks
from losslib.errors import ParameterError
from tests.losslib import plain_losses as plain

WRONG = [
    (plain.WrongSign, "positive pairs"),
    (plain.WrongSign, "negative pairs"),
    (plain.DetachedFactor, "finite differences"),
    (plain.MissingDetach, "finite differences"),
    (plain.GraphKeptFromStepToStep, "repeated backward"),
    (plain.TensorOfAGraphKept, "copies"),
    (plain.EpsilonInTheLogarithm, "hard pairs"),
    (plain.MeanOverAllPairs, "reduction"),
    (plain.SelfPairsKept, "self pairs"),
    (plain.LabelsBroadcast, "labels"),
    (plain.TemperatureTwice, "temperature"),
    (plain.HingeOnTheWrongSide, "closed hinge"),
    (plain.HalfAccumulated, "half precision"),
    (plain.ThroughFloat32, "float64"),
    (plain.AutocastInside, "autocast"),
    (plain.ReferenceIgnored, "reference set"),
    (plain.PositivesInTheDenominator, "collapse"),
    (plain.NotDeterministic, "determinism"),
    (plain.SecretRandomNumbers, "random state"),
    (plain.TuplesIgnored, "index tuples"),
    (plain.IndicesUnchecked, "index values"),
    (plain.HalfAReference, "reference without labels"),
    (plain.OneTensorATriplet, "memory growth"),
    (plain.EpsilonInTheNorm, "zero rows"),
    (plain.RootOfZero, "identical points"),
    (plain.MeanOfNothing, "nothing to do"),
    (plain.ConstantAdded, "no pairs"),
    (plain.NotShifted, "huge values"),
    (plain.LabelsAsFloats, "label names"),
    (plain.OrderMatters, "batch order"),
    (plain.OneAxisFavoured, "rotation"),
    (plain.NotNormalised, "scale"),
    (plain.StateForgotten, "state_dict"),
    (plain.WeightSign, "pair weights"),
    (plain.NoGradientForItsParameter, "parameters"),
    (plain.NoSecondDerivative, "double backward"),
    (plain.ClassesUnchecked, "class indices"),
]


@pytest.mark.parametrize("loss", [plain.Contrastive, plain.NTXent])
def test_a_right_loss_passes_every_check(loss: type) -> None:
    report = audit(loss())
    assert report.failed == (), str(report)
    assert sum(check.status == "passed" for check in report.checks) >= 28


@pytest.mark.parametrize(("loss", "meant"), WRONG, ids=[f"{loss.__name__}-{meant}" for loss, meant in WRONG])
def test_a_wrong_loss_is_caught_by_the_check_meant_for_it(loss: type, meant: str) -> None:
    found = audit(loss(), only=[meant])[meant]
    assert found.status == "failed", found
    assert all((found.tried, found.got, found.expected, found.why))


def test_every_check_has_a_wrong_loss_that_only_it_could_excuse() -> None:
    assert set(checks()) - {meant for _, meant in WRONG} == {"device"}  # needs a GPU


def test_a_loss_may_say_what_it_does_not_claim() -> None:
    class Honest(plain.OrderMatters):
        not_claimed: ClassVar = {"batch order": "its rows form a sequence"}

    found = audit(Honest(), only=["batch order"])["batch order"]
    assert found.status == "skipped"
    assert "its rows form a sequence" in found.got


def test_skipped_checks_do_not_run_and_unknown_ones_are_refused() -> None:
    assert audit(plain.OrderMatters(), only=["batch order"], skip=["batch order"]).checks == ()
    with pytest.raises(ParameterError, match="no check named 'speed'"):
        audit(plain.NTXent(), only=["speed"])


def test_a_loss_that_cannot_be_called_raises_its_own_error() -> None:
    class Broken(torch.nn.Module):
        def forward(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("weights missing")

    with pytest.raises(RuntimeError, match="weights missing"):
        audit(Broken())


def test_a_loss_that_returns_no_number_is_told_so() -> None:
    class PerRow(torch.nn.Module):
        def forward(self, embeddings: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            return embeddings.sum(dim=1)

    with pytest.raises(TypeError, match=r"one number.*got shape \(12,\)"):
        audit(PerRow())


def test_the_report_holds_what_the_command_line_writes() -> None:
    report: Report = audit(plain.SelfPairsKept(), only=["self pairs", "rotation"])
    written = report.to_dict()
    assert written["passed"] is False
    assert [set(entry) for entry in written["checks"]] == 2 * [
        {"name", "status", "tried", "got", "expected", "why"}
    ]
    assert str(report).endswith("SelfPairsKept: FAILED (1 passed, 1 failed, 0 skipped)")


def test_an_audit_leaves_the_loss_and_the_generators_alone() -> None:
    loss = plain.StateForgotten()
    state = torch.get_rng_state()
    audit(loss)
    assert loss.steps == 0
    assert torch.equal(torch.get_rng_state(), state)
