"""The audit in a process of its own says what the library's audit says, and leaves this process alone."""

import pytest
import torch

from lab.audited import audited
from losslib.check import checks
from losslib.errors import ParameterError


def test_the_report_is_the_library_s_and_no_generator_moves_here():
    before = torch.get_rng_state()
    report = audited("ArcFaceLoss", {"margin": "0.3"})
    assert torch.equal(torch.get_rng_state(), before)
    assert report.loss == "ArcFaceLoss"
    assert {check.name for check in report.checks} == set(checks())
    assert report.passed
    assert {check.status for check in report.checks} == {"passed", "skipped"}


def test_what_cannot_be_built_is_a_sentence():
    said = r"audit of TripletMarginLoss could not be run: .*margin must be"
    with pytest.raises(ParameterError, match=said):
        audited("TripletMarginLoss", {"margin": "nan"})
