"""Who comes back to a page finds what they left; a link is taken as it is, without what was left."""

import pytest

from tests.ui.opening import opened_at, said


def gone_to(at, page, **query):
    """Another page, by the sidebar's link or by one with a query."""
    at.switch_page("home.py" if page == "home" else f"pages/{page}.py")
    at.query_params.clear()
    for key, value in query.items():
        at.query_params[key] = value
    at.run()
    assert not at.exception
    return at


@pytest.mark.parametrize(
    ("page", "query", "value"),
    [
        ("anatomy", {"anatomy.loss": "CircleLoss", "anatomy.angle": "40"}, 40.0),
        ("check", {"check.loss": "TripletMarginLoss", "check.TripletMarginLoss.margin": "0.5"}, 0.5),
        ("compare", {"compare.a": "CircleLoss", "compare.seed": "7"}, 7),
        ("playground", {"playground.losses": "CircleLoss", "playground.space": "circle"}, "circle"),
        ("reference", {"reference.loss": "CircleLoss", "reference.search": "pair"}, "pair"),
        ("sweep", {"sweep.losses": "CircleLoss", "sweep.seed": "7"}, 7),
    ],
)
def test_controls_are_as_they_were_left_and_at_their_defaults_where_a_link_leaves_them_out(
    page, query, value
):
    first, last = query
    at = gone_to(opened_at(page, query), "home")
    at = gone_to(at, page)
    assert at.get_by_key(last).value == value
    assert at.query_params[first] in (query[first], [query[first]]), "in the address, from where it is shared"
    at = gone_to(gone_to(at, "home"), page, **{first: query[first]})
    assert at.get_by_key(last).value != value
    assert not at.warning or "The link asks" not in said(at)


def test_a_lesson_and_what_is_done_are_as_they_were_left():
    query = {"learn.lesson": "hard_semihard_easy", "learn.done": "margin_and_dead_zone"}
    at = gone_to(gone_to(opened_at("learn", query), "train"), "learn")
    assert at.main.header[0].value == "5. Hard, semi-hard, easy"
    assert at.query_params["learn.done"] in ("margin_and_dead_zone", ["margin_and_dead_zone"])
    assert not at.warning


def test_what_streamlit_leaves_of_the_former_page_in_the_address_is_not_blamed_on_the_link():
    board = {"playground.points": "1~0~1_0~1~1_-1~0~2", "playground.rate": "1"}
    at = gone_to(opened_at("playground", board), "train", **board)
    assert "The link asks" not in said(at)
    at = gone_to(opened_at("playground", board), "reference", **board)
    assert "The link asks" not in said(at)


def test_what_was_left_of_the_loss_s_controls_stays_while_the_other_half_of_the_page_is_shown():
    at = opened_at("check", {"check.loss": "TripletMarginLoss", "check.TripletMarginLoss.margin": "0.5"})
    at.get_by_key("check.view").set_value("Check my embeddings").run()
    assert at.get_by_key("check.distances").value == "ContrastiveLoss"
    at.get_by_key("check.view").set_value("Audit a loss").run()
    assert (at.get_by_key("check.loss").value, at.get_by_key("check.TripletMarginLoss.margin").value) == (
        "TripletMarginLoss",
        0.5,
    )


def test_several_losses_in_one_text_are_as_good_as_one_text_each():
    at = opened_at("playground", {"playground.losses": "CircleLoss,NTXentLoss"})
    assert at.get_by_key("playground.losses").value == ["CircleLoss", "NTXentLoss"]
