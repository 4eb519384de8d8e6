"""Measured numbers are written one way, by the server and by the browser alike."""

import json
import shutil
import subprocess

import pytest

from lab.short import short
from ui.live.panel import CLIENT

WRITTEN = {
    0.0: "0",
    0.00035: "3.5e-4",
    -3.5e-12: "-3.5e-12",
    0.001: "0.001",
    0.01234: "0.0123",
    1.0: "1",
    1234.5: "1230",
    99_999.0: "100000",
    123_456.0: "1.2e5",
    float("inf"): "inf",
}


def test_three_digits_and_powers_where_they_are_shorter():
    assert {value: short(value) for value in WRITTEN} == WRITTEN


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_the_browser_writes_them_alike():
    values = [value for value in WRITTEN if value != float("inf")]
    code = (CLIENT / "2_theme.js").read_text(encoding="utf-8")
    code += f"\nconsole.log(JSON.stringify({json.dumps(values)}.map(short)));"
    done = subprocess.run(["node", "-"], input=code, capture_output=True, text=True, check=True)
    said = [text.replace("e+", "e") for text in json.loads(done.stdout)]
    assert said == [short(value) for value in values]
