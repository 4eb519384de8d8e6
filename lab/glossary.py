"""What the field's terms mean, one sentence each, read from `glossary.toml` beside this file."""

import tomllib
from functools import cache
from pathlib import Path

from losslib.errors import ParameterError


@cache
def terms() -> dict[str, str]:
    """All terms with their sentences, in alphabetical order."""
    return tomllib.loads(Path(__file__).with_name("glossary.toml").read_text(encoding="utf-8"))


@cache
def _lower_case() -> dict[str, str]:
    return {term.lower(): sentence for term, sentence in terms().items()}


def define(term: str) -> str:
    """The sentence for one term, in any letter case.

    Raises:
        ParameterError: the term is not in the glossary.
    """
    try:
        return _lower_case()[term.lower()]
    except KeyError:
        raise ParameterError(f"glossary: no entry for {term!r}; add it to lab/glossary.toml") from None
