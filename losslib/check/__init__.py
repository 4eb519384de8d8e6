"""Audit of a loss: the generic checks as a function, and as a command.

    from losslib.check import audit
    report = audit(MyLoss(margin=0.3))
    print(report)           # what was tried, what came, what was expected, why it matters
    assert report.passed

    python -m losslib.check my_package.my_file:MyLoss --set margin=0.3

A check is a function in a file of this package with the decorator `check`; it is found by itself.
"""

from losslib.check.report import Check, Report
from losslib.check.run import audit, checks

__all__ = ["Check", "Report", "audit", "checks"]
