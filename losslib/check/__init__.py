"""Audit of a loss: the generic checks as a function, and as `python -m losslib.check`."""

from losslib.check.report import Check, Report
from losslib.check.run import audit, checks

__all__ = ["Check", "Report", "audit", "checks"]
