"""What the board is told equals the losses' equations: at 1,000 random placements, over its own socket."""

import random

import pytest
import torch

from lab.playground.setup import offered
from losslib import catalog
from tests.oracles import oracle
from tests.ui.playing import Board
from tests.ui.serving import served
from ui.playground.route import play_routes

PLACEMENTS = 1000
WAYS = (("plane", True), ("plane", False), ("circle", True))
# The brute-force ratio of variances always normalises; the one without is done by hand below.
UNKNOWN = ("SignalToNoiseRatioContrastiveLoss", "plane", False)


@pytest.fixture(scope="module")
def host():
    with served(play_routes()) as address:
        yield address


def on_its_space(points, space):
    x = torch.tensor(points, dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True) if space == "circle" else x


def drawn(dice):
    """Three to eight points of one to four classes, as rows [x, y, class]."""
    [count] = dice.choices(range(3, 9), (5, 4, 2, 1, 1, 1))  # the brute force takes its time over many
    classes = dice.randint(1, 4)
    return [[dice.uniform(-2, 2), dice.uniform(-2, 2), dice.randrange(classes)] for _ in range(count)]


def distance_of(name, normalise):
    """The distance that the equation is to use: its own, or where it has a meaning the one of the plane."""
    kind, options = oracle(name).distance
    plain = (kind, {**options, "normalize_embeddings": False})
    takes = kind != "CosineSimilarity" and oracle(name).allows(plain)
    return (kind, options) if normalise or not takes else plain


def expected(name, x, labels, normalise):
    """Value and gradient by brute force in double precision."""
    x = x.clone().requires_grad_()
    value = oracle(name).value(x, labels, distance=distance_of(name, normalise))
    (gradient,) = torch.autograd.grad(value, x, allow_unused=True, materialize_grads=True)
    return float(value.detach()), gradient


def test_every_offered_loss_has_an_equation_to_be_held_to():
    assert len(offered()) >= 29
    assert all(oracle(name) for name in offered())


def test_values_and_arrows_are_those_of_the_equations_at_1000_random_placements(host):
    groups = [(name, *way) for name in offered() for way in WAYS if (name, *way) != UNKNOWN]
    dice = random.Random(6)
    done = 0
    for k, (name, space, normalise) in enumerate(groups):
        share = PLACEMENTS // len(groups) + (k < PLACEMENTS % len(groups))
        with Board(host, [name], space, normalise) as board:
            for _ in range(share):
                rows = drawn(dice)
                compare(board.answer("place", rows), rows, name, space, normalise)
                done += 1
    assert done == PLACEMENTS


def compare(answer, rows, name, space, normalise):
    x = on_its_space([row[:2] for row in rows], space)
    [found] = answer["losses"]
    value, gradient = expected(name, x, torch.tensor([row[2] for row in rows]), normalise)
    assert found["value"] == pytest.approx(value, rel=1e-9, abs=1e-10), (name, rows)
    if space == "circle":
        gradient = gradient - (gradient * x).sum(1, keepdim=True) * x
    scale = max(float(gradient.abs().max()), 1e-3)
    arrows = torch.tensor(found["arrows"], dtype=torch.float64)
    torch.testing.assert_close(
        arrows, -gradient, rtol=1e-7, atol=1e-7 * scale, msg=lambda m: f"{name} {rows} {m}"
    )


@pytest.mark.parametrize("name", ["ContrastiveLoss", "TripletMarginLoss", "SupConLoss", "MarginLoss"])
@pytest.mark.parametrize(("space", "normalise"), WAYS)
def test_arrows_are_minus_the_slope_of_the_values_told(host, name, space, normalise):
    rows = [[0.9, 0.3, 0], [-0.2, 0.8, 0], [0.7, -0.6, 1], [-0.5, -0.4, 1], [0.1, 1.3, 2]]
    places = on_its_space([row[:2] for row in rows], space).tolist()
    rows = [[*point, row[2]] for point, row in zip(places, rows, strict=True)]
    h = 1e-5
    with Board(host, [name], space, normalise) as board:
        [told] = board.answer("place", rows)["losses"]
        for k, (x, y, c) in enumerate(rows):
            along = [(-y, x)] if space == "circle" else [(1, 0), (0, 1)]  # on the circle only the tangent
            for dx, dy in along:
                sides = []
                for sign in (1, -1):
                    moved = [*rows[:k], [x + sign * h * dx, y + sign * h * dy, c], *rows[k + 1 :]]
                    sides.append(board.answer("place", moved)["losses"][0]["value"])
                slope = (sides[0] - sides[1]) / (2 * h)
                u, v = told["arrows"][k]
                assert u * dx + v * dy == pytest.approx(-slope, rel=1e-5, abs=1e-7)


def test_all_losses_of_a_setup_answer_for_the_same_points_with_their_options(host):
    rows = [[0.5, 0.5, 0], [0.0, 0.5, 0], [0.5, 0.0, 1]]
    losses = [
        ["ContrastiveLoss", {"neg_margin": "2", "pos_margin": "0.25"}],
        ["TripletMarginLoss", {"margin": "0.1"}],
        ["CosineEmbeddingLoss", {"margin": "0.5"}],
    ]
    with Board(host, losses, "plane", False) as board:
        values = [told["value"] for told in board.answer("place", rows)["losses"]]
    half, root = 0.5, 0.5**0.5  # distances: A to B and A to C a half, B to C its root
    # positives, both ways: 0.5 - 0.25. Negatives: 2 - 0.5 and 2 - root. Means of what is not 0.
    assert values[0] == pytest.approx((half - 0.25) + ((2 - half) + (2 - root)) / 2)
    # A with B and C: 0.5 - 0.5 + 0.1; B with A and C: 0.5 - 0.7071 + 0.1 is below 0
    assert values[1] == pytest.approx(0.1)
    cosine = 0.5**0.5  # of 45 degrees between A and B, and A and C; B and C stand at a right angle
    terms = [1 - cosine, 1 - cosine, cosine - 0.5, cosine - 0.5]
    assert values[2] == pytest.approx(sum(terms) / 6)


def test_the_ratio_of_variances_without_normalisation(host):
    # Anchor A: signal 0.5; B: 2; C: 4.5. Noise of A and B 4.5, of A and C 2, of B and C 12.5.
    rows = [[1.0, 0.0, 0], [0.0, 2.0, 0], [2.0, -1.0, 1]]
    with Board(host, [UNKNOWN[0]], "plane", False) as board:
        [told] = board.answer("place", rows)["losses"]
    # Positives 4.5 / 0.5 and 4.5 / 2; of the negatives only 2 / 4.5 is within the margin of 1.
    assert told["value"] == pytest.approx((9 + 2.25) / 2 + (1 - 2 / 4.5))


def test_the_numbers_are_those_of_losslib_itself(host):
    rows = [[0.9, 0.3, 0], [-0.2, 0.8, 0], [0.7, -0.6, 1], [-0.5, -0.4, 1]]
    x, labels = torch.tensor([r[:2] for r in rows], dtype=torch.float64), torch.tensor([0, 0, 1, 1])
    for name in offered():
        loss = catalog.get(name)().double().eval()
        with Board(host, [name]) as board:
            [told] = board.answer("place", rows)["losses"]
        assert told["value"] == pytest.approx(float(loss(x, labels).detach()), rel=1e-12), name
