"""The playground without a page: links, pulls, steps, margins as geometry, regions, words."""

import json
import math

import pytest
import torch

from lab.playground.answers import answer, region_answer, regions
from lab.playground.evaluate import evaluate, step
from lab.playground.geometry import rings
from lab.playground.placement import Placement, checked, read_text, settled
from lab.playground.presets import STARTS
from lab.playground.region import ALONE, MOVES, ZERO, Region
from lab.playground.setup import Chosen, built, closeness, offered, options_of, read_setup, why_not
from losslib import catalog
from losslib.errors import ParameterError

# A and B of one class half a unit apart, C of another 0.3 from A on the other side.
LINE = Placement(((0.0, 0.0), (0.5, 0.0), (-0.3, 0.0)), (0, 0, 1))


def loss(name, normalise=False, **options):
    return built(Chosen(name, tuple(sorted(options.items()))), normalise)


def setup(*losses, space="plane", normalise=False):
    chosen = [[one, {}] if isinstance(one, str) else list(one) for one in losses]
    return read_setup({"losses": chosen, "space": space, "normalise": normalise})


def rows(placement):
    return [[x, y, c] for (x, y), c in zip(placement.points, placement.classes, strict=True)]


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


def place(points, **more):
    return {"do": "place", "id": 1, "selected": 0, "points": points, **more}


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


# Margins as geometry


def test_a_margin_of_distances_is_a_circle_around_the_anchor():
    [ring] = rings(loss("ContrastiveLoss", neg_margin=0.8), LINE, 0, "plane")
    assert (ring.kind, ring.size, ring.side) == ("circle", 0.8, "negative")
    both = rings(loss("ContrastiveLoss", pos_margin=0.2), LINE, 0, "plane")
    assert [(one.size, one.side) for one in both] == [(0.2, "positive"), (1.0, "negative")]


def test_on_directions_it_is_an_angle():
    [chord] = rings(loss("ContrastiveLoss", True), LINE, 0, "plane")
    assert (chord.kind, chord.size) == ("arc", pytest.approx(math.radians(60)))  # a chord of 1
    [cosine] = rings(loss("CosineEmbeddingLoss", margin=0.5), LINE, 0, "circle")
    assert (cosine.kind, cosine.size) == ("arc", pytest.approx(math.radians(60)))


def test_a_triplet_margin_lies_beyond_the_farthest_positive():
    near, far = rings(loss("TripletMarginLoss", margin=0.25), LINE, 0, "plane")
    assert (near.size, near.side) == (0.5, "positive")
    assert (far.size, far.side) == (0.75, "negative")
    assert rings(loss("TripletMarginLoss"), LINE, 2, "plane") == ()  # C has no positive
    turned = settled(Placement(((1.0, 0.0), (0.5, 0.75**0.5), (0.0, -1.0)), (0, 0, 1)), "circle")
    near, far = rings(loss("TripletLoss", margin=0.5), turned, 0, "circle")
    assert near.size == pytest.approx(math.radians(60))
    assert far.size == pytest.approx(math.radians(90))  # cosine 0.5 - 0.5


def test_thresholds_without_a_place_are_said():
    [told] = answer(setup("SupConLoss"), place(rows(LINE)))["losses"]
    assert told["rings"] == []
    assert "temperature and no margin" in told["words"]


# Regions


def searched(one, placement, index, space="plane"):
    region = Region(one, placement, index, space)
    while not region.work(1.0):
        pass
    return region


def covers(region, point, least):
    return any(kind >= least and inside(point, polygon) for polygon, kind in region.polygons)


def inside(point, polygon):
    signs = set()
    for (ax, ay), (bx, by) in zip(polygon, [*polygon[1:], *polygon[:1]], strict=True):
        signs.add((bx - ax) * (point[1] - ay) - (by - ay) * (point[0] - ax) > 0)
    return len(signs) == 1


def test_the_zero_loss_region_of_a_triplet_is_where_the_equation_says():
    # C moves. Both anchors have the positive at 0.5: zero loss where C is at least 0.7 from A and from B.
    region = searched(loss("TripletMarginLoss"), LINE, 2)
    assert not region.angular
    for k in range(21):
        for j in range(21):
            point = (-1.93 + 0.193 * k, -1.93 + 0.193 * j)
            away = min(math.dist(point, (0, 0)), math.dist(point, (0.5, 0)))
            if abs(away - 0.7) > 0.03:
                assert covers(region, point, ZERO) == (away > 0.7), point


def test_where_only_the_point_is_left_alone():
    # C moves: contrastive leaves it alone 1 from A and from B, while A and B still attract each other.
    region = searched(loss("ContrastiveLoss"), LINE, 2)
    assert {kind for _, kind in region.polygons} == {ALONE}
    assert covers(region, (0.25, 1.5), ALONE)
    assert not covers(region, (0.25, 0.8), ALONE)
    words = region_answer(1, 0, 2, region)["words"]
    assert words.startswith("If only C moves: on ")
    # outside two circles of radius 1 whose centres are 0.5 apart, whose union has an area of 4.13
    lens = 2 * math.acos(0.25) - 0.25 * math.sqrt(4 - 0.25)
    share = 1 - (2 * math.pi - lens) / 16
    assert f"on {round(100 * share)} % of the square (hatched) C has no gradient" in words


def test_on_the_circle_it_is_a_band_between_angles():
    start = settled(Placement(((1.0, 0.0), (1.0, 0.0), (0.0, 1.0)), (0, 0, 1)), "circle")
    region = searched(loss("CosineEmbeddingLoss", margin=0.5), start, 2, "circle")
    [(low, high, kind)] = region.wedges
    # A and B coincide, so the loss is 0 once C is 60 degrees or more from both
    assert kind == ZERO
    assert low == pytest.approx(math.radians(60), abs=0.003)
    assert high == pytest.approx(math.radians(300), abs=0.003)


def test_a_softmax_kind_never_rests():
    region = searched(loss("SupConLoss"), STARTS[0].placement, 2)
    assert region.wedges == []
    assert region_answer(1, 0, 2, region)["words"] == "Nowhere on this picture would C be left alone."


def test_a_search_takes_the_time_it_is_given_and_no_more():
    region = Region(loss("ContrastiveLoss"), LINE, 2, "plane")
    assert region.work(0.0) is False
    assert region.polygons == []
    assert region.kind_at((0.25, 1.5)) == ALONE
    assert region.kind_at((0.25, 0.8)) == MOVES


# Messages


def test_an_answer_is_plain_json_with_an_entry_a_loss():
    message = place(rows(LINE), selected=2)
    found = answer(setup("ContrastiveLoss", "TripletMarginLoss"), message)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["points"] == [list(point) for point in LINE.points]
    assert found["losses"][0]["pulls"][0] == [0, 1, True, True, 1.0, 1.0, 0.5]
    assert "Around C: negative margin at radius 1." in found["losses"][0]["words"]


def test_a_step_message_moves_the_points_and_judges_them_where_they_are_then():
    asked = {**place(rows(LINE)), "do": "step", "rate": 0.1, "follow": 1}
    found = answer(setup("TripletMarginLoss", "ContrastiveLoss"), asked)
    assert [x for x, _ in found["points"]] == pytest.approx([0.15, 0.45, -0.4])
    # contrastive after it: positive 0.3; negatives 1 - 0.55 and 1 - 0.85
    assert found["losses"][1]["value"] == pytest.approx(0.3 + (0.45 + 0.15) / 2)


@pytest.mark.parametrize(
    "change",
    [
        {"points": None},
        {"points": [[0, 0, 0]] * 2},
        {"points": [[0, 0, 0]] * 9},
        {"points": [[0, 0], [0, 0, 0], [1, 1, 1]]},
        {"points": [[0, 0, 0], [0, 9, 0], [1, 1, 1]]},
        {"points": [[0, 0, 0], [0, float("nan"), 0], [1, 1, 1]]},
        {"points": [[0, 0, 0], [0, 0, 8], [1, 1, 1]]},
        {"points": [[0, 0, 0], [0, 0, True], [1, 1, 1]]},
        {"points": [[0, 0, 0], ["0", 0, 0], [1, 1, 1]]},
        {"selected": 3},
        {"selected": -1},
        {"selected": True},
        {"id": "1"},
        {"id": -1},
        {"do": "step", "rate": 0, "follow": 0},
        {"do": "step", "rate": float("inf"), "follow": 0},
        {"do": "step", "rate": 0.1, "follow": 1},
        {"do": "step", "follow": 0},
    ],
)
def test_a_message_is_checked(change):
    with pytest.raises(ParameterError):
        answer(setup("ContrastiveLoss"), {**place(rows(LINE)), **change})


def test_regions_are_checked_alike():
    with pytest.raises(ParameterError):
        regions(setup("ContrastiveLoss"), place([[0, 0, 0]]))
