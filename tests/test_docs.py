"""What docs/DEPLOY.md says of limits is what the code has."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from lab.limits import Limits
from lab.sweep.limits import SweepLimits
from lab.uploads import UploadLimits

DEPLOY = Path(__file__).parents[1] / "docs" / "DEPLOY.md"
INNER = {"LOSSLAB_QUANTUM", "LOSSLAB_SLICE_STEPS"}  # of the scheduler, for measurements


def told() -> dict[str, str]:
    """Each variable of the table and its default, as they are written."""
    found = {}
    for line in DEPLOY.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `LOSSLAB_"):
            names, defaults, _ = line.strip("| ").split(" | ")
            found |= dict(
                zip(re.findall(r"LOSSLAB_\w+", names), re.split(r", (?=\w)", defaults), strict=True)
            )
    return found


@pytest.mark.parametrize(
    ("limits", "prefix"),
    [(Limits, "LOSSLAB_"), (UploadLimits, "LOSSLAB_UPLOAD_"), (SweepLimits, "LOSSLAB_SWEEP_")],
)
def test_every_limit_is_in_the_table_with_its_default(limits: type, prefix: str) -> None:
    written = told()
    for field in fields(limits):
        name = f"{prefix}{field.name.upper()}"
        if name not in INNER:
            assert float(written[name].replace(",", "")) == field.default, name
