import pytest

from lab import glossary


def test_every_term_has_one_sentence_that_ends() -> None:
    for term, sentence in glossary.terms().items():
        assert sentence.endswith("."), term
        assert sentence[0].isupper() or sentence[0].isdigit(), term
        assert len(sentence) < 200, term


def test_terms_are_in_order_so_that_each_stands_once() -> None:
    names = [term.lower() for term in glossary.terms()]
    assert names == sorted(set(names))


def test_a_term_is_found_in_any_letter_case() -> None:
    assert glossary.define("map@r") == glossary.terms()["MAP@R"]


def test_an_unknown_term_names_the_file_to_mend() -> None:
    with pytest.raises(ValueError, match=r"glossary\.toml"):
        glossary.define("perplexity of the moon")
