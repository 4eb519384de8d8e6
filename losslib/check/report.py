"""What an audit found: one entry a check."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Any

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
NO_ERROR = "no error"  # what a check expects whose input raised one


@dataclass(frozen=True)
class Check:
    """One check's result.

    name: what was checked. status: "passed", "failed" or "skipped". tried: the input.
    got, expected: in words and numbers. why: what goes wrong in training where this does not hold.
    """

    name: str
    status: str
    tried: str
    got: str
    expected: str
    why: str

    def __str__(self) -> str:
        line = f"{self.status:7}  {self.name}: {self.tried}"
        if self.status == SKIPPED:
            return f"{self.status:7}  {self.name}: {self.got}"
        if self.status == FAILED:
            line += (
                f"\n         got: {self.got}\n         expected: {self.expected}\n         why: {self.why}"
            )
        return line


@dataclass(frozen=True)
class Report:
    """Results of an audit, in the order in which the checks ran."""

    loss: str
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failed

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.status == FAILED)

    @property
    def causes(self) -> tuple[tuple[Check, ...], ...]:
        """The failed checks, those together that failed by the same error but for numbers in it."""
        found: dict[str, list[Check]] = {}
        for check in self.failed:
            raised = check.expected == NO_ERROR
            found.setdefault(re.sub(r"\d+", "0", check.got) if raised else check.name, []).append(check)
        return tuple(map(tuple, found.values()))

    def __getitem__(self, name: str) -> Check:
        """The result of the check of that name."""
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(f"no check named {name!r}; there are {', '.join(c.name for c in self.checks)}")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as written by the command line's --json."""
        return {"loss": self.loss, "passed": self.passed, "checks": [asdict(check) for check in self.checks]}

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def __str__(self) -> str:
        same = {check.name: others for check, *others in self.causes}
        told = {check.name for others in same.values() for check in others}
        lines = []
        for check in self.checks:
            if check.name in told:
                continue
            lines.append(str(check))
            if same.get(check.name):
                names = ", ".join(other.name for other in same[check.name])
                lines.append(f"         the same in {len(same[check.name])} other checks: {names}")
        count = {status: sum(c.status == status for c in self.checks) for status in (PASSED, FAILED, SKIPPED)}
        verdict = "passed" if self.passed else "FAILED"
        numbers = ", ".join(f"{count[status]} {status}" for status in (PASSED, FAILED, SKIPPED))
        return "\n".join([*lines, f"{self.loss}: {verdict} ({numbers})"])
