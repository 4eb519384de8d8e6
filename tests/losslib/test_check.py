"""The audit passes right losses and catches each wrong one by the check meant for it."""

from typing import ClassVar

import pytest
import torch

from losslib.check import Report, audit, checks
from losslib.distances import LpDistance
from losslib.errors import ParameterError
from losslib.losses import ContrastiveLoss
from tests.losslib import plain_losses as plain
from tests.losslib import wrong_losses as wrong

WRONG = [
    (wrong.WrongSign, "positive pairs"),
    (wrong.WrongSign, "negative pairs"),
    (wrong.DetachedFactor, "finite differences"),
    (wrong.MissingDetach, "finite differences"),
    (wrong.GraphKeptFromStepToStep, "repeated backward"),
    (wrong.TensorOfAGraphKept, "copies"),
    (wrong.EpsilonInTheLogarithm, "hard pairs"),
    (wrong.MeanOverAllPairs, "reduction"),
    (wrong.SelfPairsKept, "self pairs"),
    (wrong.LabelsBroadcast, "labels"),
    (wrong.TemperatureTwice, "temperature"),
    (wrong.HingeOnTheWrongSide, "closed hinge"),
    (wrong.HalfAccumulated, "half precision"),
    (wrong.ThroughFloat32, "float64"),
    (wrong.AutocastInside, "autocast"),
    (wrong.ReferenceIgnored, "reference set"),
    (wrong.PositivesInTheDenominator, "collapse"),
    (wrong.NotDeterministic, "determinism"),
    (wrong.SecretRandomNumbers, "random state"),
    (wrong.TuplesIgnored, "index tuples"),
    (wrong.IndicesUnchecked, "index values"),
    (wrong.HalfAReference, "reference without labels"),
    (wrong.OneTensorATriplet, "memory growth"),
    (wrong.EpsilonInTheNorm, "zero rows"),
    (wrong.RootOfZero, "identical points"),
    (wrong.MeanOfNothing, "nothing to do"),
    (wrong.ConstantAdded, "no pairs"),
    (wrong.NotShifted, "huge values"),
    (wrong.LabelsAsFloats, "label names"),
    (wrong.OrderMatters, "batch order"),
    (wrong.OneAxisFavoured, "rotation"),
    (wrong.NotNormalised, "scale"),
    (wrong.StateForgotten, "state_dict"),
    (wrong.WeightSign, "pair weights"),
    (wrong.NoGradientForItsParameter, "parameters"),
    (wrong.NoSecondDerivative, "double backward"),
    (wrong.ClassesUnchecked, "class indices"),
    (wrong.WritesIntoItsLabels, "inputs untouched"),
    (wrong.NeedsAGraph, "no gradient"),
    (wrong.HoleInTheMiddle, "positive pairs"),
    (wrong.HoleInTheMiddle, "negative pairs"),
    (wrong.HoleBeyondTheMargin, "hard pairs"),
    (wrong.NotANumberAtThreeClasses, "collapse"),
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
    class Honest(wrong.OrderMatters):
        not_claimed: ClassVar = {"batch order": "its rows form a sequence"}

    found = audit(Honest(), only=["batch order"])["batch order"]
    assert found.status == "skipped"
    assert "its rows form a sequence" in found.got


def test_skipped_checks_do_not_run_and_unknown_ones_are_refused() -> None:
    assert audit(wrong.OrderMatters(), only=["batch order"], skip=["batch order"]).checks == ()
    with pytest.raises(ParameterError, match="no check named 'speed'"):
        audit(plain.NTXent(), only=["speed"])


def test_a_parameter_that_is_held_fixed_need_not_learn() -> None:
    class Fixed(plain.NTXent):
        def __init__(self) -> None:
            super().__init__()
            self.bias = torch.nn.Parameter(torch.ones(()), requires_grad=False)

    report = audit(Fixed(), only=["finite differences", "parameters"])
    assert [check.status for check in report.checks] == ["passed", "skipped"]


class ReferenceDetached(ContrastiveLoss):
    def forward(self, embeddings, labels=None, indices_tuple=None, ref_emb=None, ref_labels=None):  # type: ignore[no-untyped-def]
        ref_emb = None if ref_emb is None else ref_emb.detach()
        return super().forward(embeddings, labels, indices_tuple, ref_emb, ref_labels)


@pytest.mark.parametrize(("normalised", "status"), [(True, "skipped"), (False, "failed")])
def test_at_size_1_a_normalised_embedding_is_a_sign_and_has_no_gradient(
    normalised: bool, status: str
) -> None:
    distance = LpDistance(normalize_embeddings=normalised)
    right = audit(ContrastiveLoss(distance=distance), embedding_size=1)
    assert right.passed
    wrong_one = ReferenceDetached(distance=distance)
    [found] = audit(wrong_one, embedding_size=1, only=["reference set"]).checks
    assert found.status == status
    assert ("normalised, an embedding is 1 or -1" in found.got) == normalised
    assert audit(wrong_one, only=["reference set"]).checks[0].status == "failed"


@pytest.mark.parametrize("given", [{"embedding_size": 0}, {"num_classes": -1}])
def test_sizes_below_1_are_refused(given: dict[str, int]) -> None:
    [(name, value)] = given.items()
    with pytest.raises(ParameterError, match=f"{name} must be a whole number of 1 or more, got {value}"):
        audit(plain.NTXent(), **given)


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
    report: Report = audit(wrong.SelfPairsKept(), only=["self pairs", "rotation"])
    written = report.to_dict()
    assert written["passed"] is False
    assert [set(entry) for entry in written["checks"]] == 2 * [
        {"name", "status", "tried", "got", "expected", "why"}
    ]
    assert str(report).endswith("SelfPairsKept: FAILED (1 passed, 1 failed, 0 skipped)")


def test_an_audit_leaves_the_loss_and_the_generators_alone() -> None:
    loss = wrong.StateForgotten()
    state = torch.get_rng_state()
    audit(loss)
    assert loss.steps == 0
    assert torch.equal(torch.get_rng_state(), state)
