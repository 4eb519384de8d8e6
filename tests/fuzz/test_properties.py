"""Every property on a few inputs, always the same ones; `python -m tests.fuzz` tries many more."""

import pytest

from tests.fuzz.__main__ import main, run
from tests.fuzz.holds import Property, properties

EACH = 60


@pytest.mark.parametrize("name", [*properties()])
def test_it_holds(name: str) -> None:
    found, calls = run(properties()[name], EACH)
    assert found is None
    assert calls >= EACH / 2


def test_a_property_that_does_not_hold_is_found() -> None:
    from hypothesis import strategies as st

    def small(number: int) -> None:
        assert number < 1000

    found, _ = run(Property(small, {"number": st.integers()}, 1.0), 300)
    assert found is not None
    assert found.startswith("AssertionError")


def test_the_command_counts_its_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    name = "a_reducer_is_its_own_sentence"
    assert main(["--inputs", "50", "--only", name]) == 0
    assert f"{name}: 50 inputs" in capsys.readouterr().out
