"""The Reference page: each loss opens whole, the index finds it, and a wrong link is told."""

import pytest

from lab.config import RunConfig
from lab.playground.setup import offered
from losslib import catalog, losses
from tests.ui.opening import opened_at, said
from ui.reference import matching, train_settings


def opened(**query):
    return opened_at("reference", {key.replace("_", ".", 1): value for key, value in query.items()})


def test_every_loss_opens_whole():
    at = opened()
    for name, cls in catalog.losses().items():
        at = at.get_by_key("reference.loss").set_value(name).run()
        assert not at.exception, name
        assert not at.error, name
        assert not at.warning, name
        assert at.latex[0].value.strip("$\n ").replace(r"\allowbreak{}", "") == cls.equation, name
        text = said(at)
        assert cls.paper.url in text
        assert all(f"`{option}`" in text for option in (*cls.required, *cls.params)), name
        assert "At the edges" in [one.value for one in at.subheader]
        figures = at.get("plotly_chart")
        assert len(figures) == 1 or "There is no curve of one pair" in text, name


def test_each_loss_leads_to_the_other_pages_with_what_it_needs():
    for name, query in (
        ("ContrastiveLoss", "loss=ContrastiveLoss"),
        ("ProxyNCALoss", "loss=ProxyNCALoss"),
        ("VICRegLoss", "loss=VICRegLoss&pairing=views"),
    ):
        at = opened(reference_loss=name)
        links = {link.proto.page: link.proto for link in at.main.get("page_link")}
        anatomy, train = links["anatomy"], links["train"]
        assert links["check"].query_string == f"check.loss={name}"
        assert ("playground" in links) == (name in offered())
        assert (anatomy.page, anatomy.query_string) == ("anatomy", f"anatomy.loss={name}")
        assert (train.page, train.query_string) == ("train", query)
        RunConfig.from_settings(dict(pair.split("=") for pair in query.split("&")))


def test_a_loss_that_no_run_can_train_is_told():
    class Unlisted(losses.ContrastiveLoss):
        pass

    said = train_settings(Unlisted)
    assert said.startswith("The Train page has no run for it: ")
    assert "no loss is called 'Unlisted'" in said


@pytest.mark.parametrize(
    ("words", "family", "found"),
    [
        ("NTXENT", "all", ["NTXentLoss"]),
        ("facenet swap", "all", ["TripletMarginLoss"]),
        ("facenet swap", "proxy", []),
        ("no such thing", "all", []),
    ],
)
def test_search_needs_all_words_and_the_family(words, family, found):
    assert [cls.__name__ for cls in matching(words, family)] == found


def test_the_index_shows_what_fits_and_a_click_shows_the_loss():
    at = opened(reference_search="temperature", reference_family="softmax", reference_loss="CircleLoss")
    shown = {button.key.removeprefix("show ") for button in at.button}
    assert {"NTXentLoss", "SupConLoss"} <= shown
    assert shown == {cls.__name__ for cls in matching("temperature", "softmax")}
    assert "CircleLoss" not in shown
    at = at.button(key="show SupConLoss").click().run()
    assert at.get_by_key("reference.loss").value == "SupConLoss"
    assert "SupCon" in [one.value for one in at.header]
    assert not at.warning
    assert at.get_by_key("reference.search").value == "temperature"


def test_nothing_found_says_what_helps():
    at = opened(reference_search="zzz")
    assert "Use fewer" in at.info[0].value
    assert not at.button


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"reference_loss": "NTXent"}, "NTXentLoss"),
        ({"reference_family": "pairs"}, "families: all, pair"),
        ({"reference_margin": "1"}, "The page has no setting 'reference.margin'"),
        ({"margin": "1"}, "The page has no setting 'margin'"),
    ],
)
def test_a_wrong_link_is_told_and_the_default_shown(query, words):
    at = opened(**query)
    assert not at.exception
    assert words in at.warning[0].value
    assert at.get_by_key("reference.loss").value == "ContrastiveLoss"
    assert at.get_by_key("reference.family").value == "all"
    assert set(at.query_params) <= {"reference.loss", "reference.family"}
    assert at.run().warning
    assert not at.get_by_key("reference.search").set_value("margin").run().warning


def test_who_comes_back_finds_the_loss_they_left():
    at = opened(reference_loss="MarginLoss")
    at.switch_page("home.py")
    at = at.run()
    at.switch_page("pages/reference.py")
    at = at.run()
    assert at.get_by_key("reference.loss").value == "MarginLoss"
