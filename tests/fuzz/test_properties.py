"""Every property on a few inputs, always the same ones; `python -m tests.fuzz` tries many more."""

import pytest

from tests.fuzz.__main__ import main
from tests.fuzz.holds import Draws, Property, properties, run
from tests.fuzz.portions import PORTION, portions

EACH = 200


@pytest.mark.parametrize("name", [*properties()])
def test_it_holds(name: str) -> None:
    found, calls = run(properties()[name], EACH)
    assert found is None
    assert calls >= EACH / 2


def test_a_property_that_does_not_hold_is_found() -> None:
    from hypothesis import strategies as st

    def small(size: int, draws: Draws) -> None:
        for draw in draws:
            assert draw.random() < 0.9, size

    found, _ = run(Property(small, {"size": st.integers(5)}, 1.0), 300)
    assert found is not None
    assert found.startswith("AssertionError: 5\n")  # the least structure


def test_a_long_run_is_cut_into_portions_of_all_properties() -> None:
    names = [*properties()]
    cut = portions(names, 240_000, 7)
    counts = {name: sum(one.inputs for one in cut if one.name == name) for name in names}
    assert abs(sum(counts.values()) - 240_000) < len(names)
    assert [one.name for one in cut[: len(names)]] == names
    assert len({one.seed for one in cut}) == len(cut)
    assert max(one.inputs for one in cut) == PORTION


def test_the_command_counts_its_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    name = "a_reducer_is_its_own_sentence"
    assert main(["--inputs", "50", "--only", name]) == 0
    assert f"{name}: 50 inputs" in capsys.readouterr().out
