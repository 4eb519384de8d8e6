"""The playground's margins as geometry, regions where a point is left alone, and messages."""

import json
import math

import pytest

from lab.playground.answers import answer, region_answer, regions
from lab.playground.geometry import rings
from lab.playground.placement import Placement, settled
from lab.playground.presets import STARTS
from lab.playground.region import ALONE, MOVES, ZERO, Region
from losslib.errors import ParameterError
from tests.lab.placed import LINE, loss, place, rows, setup

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
