"""The playground without a page: links, pulls, steps, margins as geometry, regions, words."""

import math

import pytest
import torch

from lab.playground.answers import answer
from lab.playground.evaluate import evaluate, step
from lab.playground.placement import Placement, checked, read_text, settled
from lab.playground.presets import STARTS
from lab.playground.setup import closeness, offered, options_of, read_setup, why_not
from losslib import catalog
from losslib.errors import ParameterError
from tests.lab.placed import LINE, loss, place, rows, setup

# Links


def test_a_link_brings_back_the_points():
    text = "0.5~-1.25~1_-2~2~8_0~0.333~1"
    found, refusals = read_text(text)
    assert refusals == ()
    assert found == Placement(((0.5, -1.25), (-2.0, 2.0), (0.0, 0.333)), (0, 7, 0))
    assert found.to_text() == text


def test_a_link_keeps_three_decimals_and_no_minus_zero():
    assert Placement(((1 / 3, -0.0001), (10.0 / 7, 1e-9), (0.1, 1)), (0, 0, 1)).to_text() == (
        "0.333~0~1_1.429~0~1_0.1~1~2"
    )


@pytest.mark.parametrize(
    "part", ["", "1", "1~2", "a~0~1", "nan~0~1", "0~inf~1", "2.1~0~1", "0~-3~1", "0~0~0", "0~0~9", "0~0~1.5"]
)
def test_a_bad_point_is_left_out_and_said(part):
    found, refusals = read_text(f"0~0~1_{part}_1~0~1_0~1~2")
    assert found == Placement(((0.0, 0.0), (1.0, 0.0), (0.0, 1.0)), (0, 0, 1))
    assert len(refusals) == 1
    assert refusals[0].startswith(f"point 2 reads {part!r}; expected x~y~class")


def test_too_few_and_too_many_points_of_a_link():
    found, refusals = read_text("0~0~1_1~1~1")
    assert found is None
    assert refusals == ("fewer than 3 points remain, so the triplet is shown",)
    found, refusals = read_text("_".join(["0.5~0~1"] * 11))
    assert len(found.points) == 8
    assert refusals == ("there are 11 points; the first 8 are kept",)


def test_every_start_fits_and_is_told_apart_by_its_text():
    texts = {start.placement.to_text() for start in STARTS}
    assert len(texts) == len(STARTS)
    for start in STARTS:
        assert read_text(start.placement.to_text()) == (start.placement, ())
        assert checked(rows(start.placement)) == start.placement


def test_on_the_circle_points_keep_their_direction_and_the_centre_goes_right():
    found = settled(Placement(((3.0, 4.0), (0.0, -0.5), (0.0, 0.0)), (0, 0, 1)), "circle")
    assert found.points == ((0.6, 0.8), (0.0, -1.0), (1.0, 0.0))


# Which losses


def test_every_loss_is_offered_or_says_in_a_sentence_why_not():
    for name, cls in catalog.losses().items():
        reason = why_not(cls)
        assert (name in offered()) == (not reason)
        assert not reason or (reason[0].isupper() and reason.endswith("."))
    assert "proxies" in why_not(catalog.get("ArcFaceLoss"))
    assert "two views" in why_not(catalog.get("VICRegLoss"))
    assert not {"ProxyNCALoss", "ManifoldLoss", "SigLIPLoss"} & set(offered())


def test_options_that_draw_or_are_settled_have_no_control():
    assert list(options_of(catalog.get("TripletMarginLoss"))) == ["margin", "swap", "smooth_loss"]
    assert list(options_of(catalog.get("MarginLoss"))) == ["margin", "nu", "beta"]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({}, "expected a space"),
        ({"space": "ball", "normalise": True, "losses": [["ContrastiveLoss", {}]]}, "expected a space"),
        ({"space": "plane", "normalise": 1, "losses": [["ContrastiveLoss", {}]]}, "normalise"),
        ({"space": "plane", "normalise": True, "losses": []}, "one to 4 losses"),
        ({"space": "plane", "normalise": True, "losses": [["ContrastiveLoss", {}]] * 5}, "one to 4 losses"),
        ({"space": "plane", "normalise": True, "losses": ["ContrastiveLoss"]}, "[name, options]"),
        ({"space": "plane", "normalise": True, "losses": [["ArcFaceLoss", {}]]}, "offers"),
        ({"space": "plane", "normalise": True, "losses": [["Nothing", {}]]}, "no loss is called"),
        (
            {"space": "plane", "normalise": True, "losses": [["TripletLoss", {"margin": "x"}]]},
            "margin must be",
        ),
        ({"space": "plane", "normalise": True, "losses": [["TripletLoss", {"margin": 1}]]}, "as texts"),
        ({"space": "plane", "normalise": True, "losses": [["TripletLoss", {"gap": "1"}]]}, "no option 'gap'"),
    ],
)
def test_a_setup_is_checked(message, words):
    with pytest.raises(ParameterError) as refused:
        read_setup(message)
    assert words in str(refused.value)


def test_which_way_is_closer_and_what_a_loss_sees_of_the_plane():
    def said(name, space, normalise):
        return closeness(loss(name, normalise), setup(name, space=space, normalise=normalise))

    assert said("ContrastiveLoss", "plane", False) == (
        "Euclidean distance: smaller is closer. It sees the plane as it is, lengths included."
    )
    assert "directions only" in said("ContrastiveLoss", "plane", True)
    cosine = said("TripletLoss", "plane", False)
    assert cosine.startswith("Cosine similarity: larger is closer. It sees directions only")
    assert cosine.endswith("Normalising belongs to it.")
    assert said("NPairsLoss", "plane", False).startswith("Dot product: larger is closer. It sees the plane")
    assert said("TripletLoss", "circle", True) == "Cosine similarity: larger is closer."


# Values, arrows, pairs


def test_the_pulls_of_a_contrastive_loss_by_hand():
    found = evaluate(loss("ContrastiveLoss"), LINE, "plane")
    # positive 0.5 both ways; negatives 1 - 0.3 and 1 - 0.8, both ways
    assert found.value == pytest.approx(0.5 + (0.7 + 0.2) / 2)
    assert [(p.first, p.second, p.positive, p.attracts) for p in found.pulls] == [
        (0, 1, True, True),
        (0, 2, False, False),
        (1, 2, False, False),
    ]
    # both directions together: 2 of 2 positive terms, 2 of 4 negative ones for each negative pair
    assert [p.weight for p in found.pulls] == pytest.approx([1.0, -0.5, -0.5])
    assert [p.value for p in found.pulls] == pytest.approx([0.5, 0.3, 0.8])
    # A: 1 toward B, 0.5 away from C, both to the right; B: 1 to the left, 0.5 to the right; C: 1 to the left
    assert torch.tensor(found.arrows) == pytest.approx(torch.tensor([[1.5, 0.0], [-0.5, 0.0], [-1.0, 0.0]]))


def test_a_similarity_pulls_with_a_negative_weight():
    found = evaluate(loss("TripletLoss"), STARTS[1].placement, "plane")
    first, second = found.pulls[0], found.pulls[1]
    assert {(first.positive, first.attracts), (second.positive, second.attracts)} == {
        (True, True),
        (False, False),
    }
    assert all((pull.weight < 0) == pull.attracts for pull in found.pulls)


def test_no_positive_pair_is_said():
    [told] = answer(setup("ContrastiveLoss"), place([[0, 0, 0], [1.5, 0, 1], [0, 1.5, 2]]))["losses"]
    assert told["value"] == 0
    assert told["pulls"] == []
    assert "No pair is active: nothing moves, there is no positive pair" in told["words"]


def test_a_loss_without_pair_weights_says_so_and_has_arrows():
    [told] = answer(setup("GE2ELoss"), place(rows(STARTS[7].placement)))["losses"]
    assert told["pulls"] is None
    assert "no pair weights" in told["words"]
    assert max(abs(part) for arrow in told["arrows"] for part in arrow) > 1e-3


def test_a_loss_that_fails_leaves_the_others_their_answers():
    class Broken:
        def __call__(self, *_):
            raise RuntimeError("secret")

    found = evaluate(Broken(), LINE, "plane")
    assert found.value is None
    assert "secret" not in found.reason


# Steps


def test_a_step_goes_against_the_gradient_by_the_rate():
    moved = step(loss("ContrastiveLoss"), LINE, "plane", 0.1)
    assert [x for x, _ in moved.points] == pytest.approx([0.15, 0.45, -0.4])
    assert [y for _, y in moved.points] == [0, 0, 0]


def test_a_step_on_the_circle_stays_on_it_and_follows_its_tangent():
    start = settled(Placement(((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)), (0, 0, 1)), "circle")
    # The chord of A and B is root 2, its gradient by A (1, -1) / root 2, of which -1 / root 2 is tangent.
    # The negatives, root 2 and 2 apart, are beyond the margin 1.
    moved = step(loss("ContrastiveLoss", True), start, "circle", 0.2)
    shift = 0.2 / math.sqrt(2)
    length = math.hypot(1, shift)
    assert moved.points[0] == pytest.approx((1 / length, shift / length))
    assert moved.points[2] == pytest.approx((-1.0, 0.0))
    assert [math.hypot(*point) for point in moved.points] == pytest.approx([1, 1, 1])


def test_steps_stay_inside_the_square():
    placement = Placement(((1.9, 0.0), (-1.9, 0.0), (0.0, 1.9), (0.0, -1.9)), (0, 1, 0, 1))
    moved = step(loss("NPairsLoss"), placement, "plane", 10.0)
    assert all(abs(part) <= 2 for point in moved.points for part in point)
    assert max(abs(part) for point in moved.points for part in point) == 2


def test_steps_reach_zero_loss_for_a_triplet():
    placement = STARTS[1].placement
    for _ in range(200):
        placement = step(loss("TripletMarginLoss"), placement, "plane", 0.05)
    assert evaluate(loss("TripletMarginLoss"), placement, "plane").value == 0
    (ax, ay), (px, py), (nx, ny) = placement.points
    assert math.hypot(nx - ax, ny - ay) >= math.hypot(px - ax, py - ay) + 0.2 - 1e-9
