"""Aligning maps, and who moved most, on points whose answer is known."""

import base64
import io

import numpy as np
import pytest

from lab.compare.alignment import aligned, on_circle, radius
from lab.compare.moved import displacement, moved
from lab.compare.thumbnail import image_address
from lab.config import RunConfig

RNG = np.random.default_rng(3)
POINTS = RNG.normal(size=(50, 2)) * [2.0, 0.5]
ASIDE = np.array([1.0, 0.0])
ANGLE = 0.7
TURN = np.array([[np.cos(ANGLE), -np.sin(ANGLE)], [np.sin(ANGLE), np.cos(ANGLE)]])
MIRROR = np.array([[-1.0, 0.0], [0.0, 1.0]])


def test_a_turned_mirrored_moved_and_scaled_map_is_laid_on_its_original():
    other = 3.0 * POINTS @ TURN @ MIRROR + [5.0, -2.0]
    assert np.allclose(aligned(POINTS, other, turn_only=False), POINTS, atol=1e-12)


def test_turning_only_neither_moves_nor_scales():
    other = 3.0 * POINTS @ TURN
    laid = aligned(POINTS, other, turn_only=True)
    assert np.allclose(laid, 3.0 * POINTS, atol=1e-12)
    shifted = aligned(POINTS, POINTS + ASIDE, turn_only=True)
    assert np.allclose(np.linalg.norm(shifted, axis=1), np.linalg.norm(POINTS + ASIDE, axis=1))


@pytest.mark.parametrize("turn_only", [True, False])
def test_equal_maps_stay_equal_to_the_last_bit(turn_only):
    laid = aligned(POINTS.astype(np.float32), POINTS.astype(np.float32), turn_only)
    assert (laid == POINTS.astype(np.float32)).all()
    assert displacement(POINTS.astype(np.float32), laid).max() == 0.0


def test_no_turn_of_a_grid_of_angles_does_better():
    other = RNG.normal(size=(50, 2))
    laid = aligned(POINTS, other, turn_only=True)
    tried = []
    for angle in np.linspace(0, 2 * np.pi, 721):
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        tried += [((POINTS - other @ m) ** 2).sum() for m in (turn, turn @ MIRROR)]
    assert ((POINTS - laid) ** 2).sum() <= min(tried) + 1e-9


@pytest.mark.parametrize("points", [np.zeros((4, 2)), np.zeros((1, 2)), np.zeros((0, 2))])
def test_collapsed_single_and_no_points_stay_finite(points):
    laid = aligned(np.ones_like(points), points, turn_only=False)
    assert laid.shape == points.shape
    assert np.isfinite(laid).all()


def test_the_circle_is_what_two_normalised_coordinates_make():
    assert on_circle(RunConfig())
    assert not on_circle(RunConfig(dim=3))
    assert not on_circle(RunConfig(output="none"))


def test_who_moved_most_comes_first_with_neighbours_of_both_maps():
    # A square of side 2 about 0 has root mean square radius sqrt(2).
    first = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    second = first.copy()
    second[0] = [-1.0, -0.9]  # the class 0 point goes to the class 1 corner: (-2, -1.9)
    second[1] = [-1.0, 1.5]
    labels, samples = np.array([0, 0, 1, 1]), np.array([10, 11, 12, 13])
    assert radius(first) == pytest.approx(2**0.5)
    found = moved(first, second, labels, samples, most=2)
    assert [(one.place, one.sample, one.label) for one in found] == [(0, 10, 0), (1, 11, 0)]
    assert found[0].distance == pytest.approx((4 + 1.9**2) ** 0.5 / 2**0.5)
    assert found[1].distance == pytest.approx(0.5 / 2**0.5)
    assert found[0].neighbour_second == 1
    assert found[0].neighbour_first == 0  # of two corners at equal distance the first


def test_a_thumbnail_is_a_png_of_the_same_pixels():
    from PIL import Image

    picture = RNG.integers(0, 256, size=(5, 7), dtype=np.uint8)
    head, _, content = image_address(picture).partition(",")
    assert head == "data:image/png;base64"
    with Image.open(io.BytesIO(base64.b64decode(content))) as image:
        assert np.array_equal(np.asarray(image), picture)
