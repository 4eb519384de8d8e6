"""The Playground page: what the board is given, the link, what is refused, and the way without a socket."""

import json

import pytest

from lab.playground.presets import STARTS
from lab.playground.setup import offered, options_of
from losslib import catalog
from tests.ui.opening import component, opened_at
from ui.playground.panel import FALLBACK, answer_to

TRIPLET = STARTS[0].placement.to_text()


def opened(**query):
    named = {f"playground.{key.replace('__', '.')}": value for key, value in query.items()}
    return opened_at("playground", named)


def board(at):
    """What the component is given."""
    [data] = json.loads(component(at).json)
    return data


def test_it_opens_with_two_losses_and_a_triplet():
    at = opened()
    assert not at.exception
    assert not at.error
    assert not at.warning
    given = board(at)
    assert given["names"] == ["ContrastiveLoss", "TripletMarginLoss"]
    assert given["points"] == TRIPLET
    assert given["path"] == "/play"
    assert given["setup"]["space"] == "plane"
    assert given["setup"]["losses"][0] == [
        "ContrastiveLoss",
        {"pos_margin": "0", "neg_margin": "1", "squared": "false"},
    ]
    assert all("smaller is closer" in said for said in given["closeness"])


def test_the_link_is_the_state():
    at = opened(
        losses=["TripletLoss", "MarginLoss"],
        space="circle",
        normalise="true",
        points="1~0~1_0~1~1_-1~0~2_0~-1~3",
        rate="0.03",
        follow="MarginLoss",
        selected="C",
        TripletLoss__margin="0.15",
    )
    assert not at.warning
    given = board(at)
    assert given["names"] == ["TripletLoss", "MarginLoss"]
    assert given["setup"]["space"] == "circle"
    assert given["setup"]["normalise"] is True
    assert given["setup"]["losses"][0] == ["TripletLoss", {"margin": "0.15"}]
    assert given["points"] == "1~0~1_0~1~1_-1~0~2_0~-1~3"
    assert (given["rate"], given["follow"], given["selected"]) == ("0.03", "MarginLoss", "C")


@pytest.mark.parametrize(
    ("query", "words", "kept"),
    [
        ({"losses": ["Nothing", "TripletLoss"]}, "No loss is called 'Nothing'", ["TripletLoss"]),
        ({"losses": ["ArcFaceLoss", "TripletLoss"]}, "learned proxies", ["TripletLoss"]),
        ({"losses": ["VICRegLoss"]}, "two views", ["ContrastiveLoss", "TripletMarginLoss"]),
        ({"losses": list(offered())[:6]}, "first 4 are kept", list(offered())[:4]),
    ],
)
def test_refused_losses_are_said_and_the_others_kept(query, words, kept):
    at = opened(**query)
    assert not at.exception
    assert words in at.warning[0].value
    assert board(at)["names"] == kept


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"space": "ball"}, "must be one of plane, circle, got 'ball'"),
        ({"normalise": "perhaps"}, "must be one of true, false"),
        ({"rate": "7"}, "must be one of 0.001"),
        ({"selected": "Z"}, "must be one of A, B"),
        ({"follow": "Nothing"}, "must be one of AngularLoss"),
        ({"ContrastiveLoss__neg_margin": "wide"}, "neg_margin must be"),
        ({"ContrastiveLoss__gap": "1"}, "playground.ContrastiveLoss.gap is no setting of this page"),
        ({"seed": "1"}, "playground.seed is no setting of this page"),
        ({"points": "0~0~1_1~x~1_1~0~1_0~1~2"}, "Point 2 reads '1\\~x\\~1'"),
        ({"points": "nothing"}, "so the triplet is shown"),
    ],
)
def test_refused_parts_of_a_link_are_said(query, words):
    at = opened(**query)
    assert not at.exception
    assert words in at.warning[0].value
    given = board(at)
    assert given["setup"]["space"] == "plane"
    assert (given["rate"], given["selected"], given["follow"]) == ("0.1", "A", "")
    assert given["setup"]["losses"][0][1]["neg_margin"] == "1"
    if "points" in query:
        assert given["points"] == ("0~0~1_1~0~1_0~1~2" if "~" in query["points"] else TRIPLET)


def test_what_was_refused_is_said_until_something_changes():
    at = opened(rate="7")
    assert at.run().warning
    assert not at.get_by_key("playground.normalise").set_value(True).run().warning
    at = opened_at("playground", {"colour": "red"})
    assert "Colour is no setting of this page" in at.warning[0].value
    assert "colour" not in at.query_params


def test_every_loss_can_be_chosen_with_a_control_for_each_option():
    at = opened()
    names = list(offered())
    for k in range(0, len(names), 4):
        at = at.get_by_key("playground.losses").set_value(names[k : k + 4]).run()
        assert not at.exception, names[k : k + 4]
        assert not at.error, names[k : k + 4]
        given = board(at)
        assert given["names"] == names[k : k + 4]
        for name, texts in given["setup"]["losses"]:
            assert list(texts) == list(options_of(catalog.get(name)))


def test_an_option_reaches_the_board():
    at = opened(losses=["ContrastiveLoss"])
    at = at.get_by_key("playground.ContrastiveLoss.neg_margin").set_value(0.5).run()
    assert board(at)["setup"]["losses"][0][1]["neg_margin"] == "0.5"


def test_options_that_do_not_go_together_are_said():
    at = opened(losses=["DynamicSoftMarginLoss"])
    assert not at.error
    assert board(at)["names"] == ["DynamicSoftMarginLoss"]


def test_the_losses_left_out_are_named_with_the_reason():
    at = opened()
    text = " ".join(one.value for one in at.expander[0].markdown)
    for name in catalog.losses():
        assert (f"`{name}`" in text) == (name not in offered()), name


def test_without_a_socket_the_script_answers():
    at = opened()
    at.session_state[FALLBACK] = True
    given = board(at.run())
    assert "path" not in given
    assert given["answer"] is None
    question = {"do": "place", "id": 3, "selected": 0, "points": [[0, 0, 0], [0.5, 0, 0], [-0.3, 0, 1]]}
    found = answer_to(given["setup"], question)
    assert found["id"] == 3
    assert found["losses"][0]["value"] == pytest.approx(0.5 + (0.7 + 0.2) / 2)
    assert answer_to(given["setup"], {"do": "place"}) is None
    assert answer_to({"losses": []}, question) is None
