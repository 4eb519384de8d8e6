"""Random shapes, labels, tuples, options and distances against the oracles; a short run of a long one."""

import pytest

from tests.contract.fuzz import random_case
from tests.contract.registered import NAMES
from tests.contract.test_against_oracles import assert_equals_oracle

EACH = 40


@pytest.mark.parametrize("name", NAMES)
def test_random_cases_equal_the_oracle(name: str) -> None:
    for seed in range(EACH):
        given, options, distance = random_case(name, seed)
        try:
            assert_equals_oracle(name, given, options, distance)
        except Exception as error:
            raise AssertionError(f"seed {seed}: options {options}, distance {distance}") from error
