"""Distances: exact near 0 and far from the origin, right at any norm, differentiable twice."""

import math

import pytest
import torch
from torch import Tensor

from losslib.distances import CosineSimilarity, Distance, DotProductSimilarity, LpDistance, SNRDistance
from losslib.errors import ParameterError, ShapeError

ALL = [
    LpDistance(),
    LpDistance(power=2),
    LpDistance(power=0.5),
    LpDistance(p=1),
    LpDistance(p=3),
    LpDistance(p=math.inf),
    LpDistance(normalize_embeddings=False),
    CosineSimilarity(),
    DotProductSimilarity(),
    DotProductSimilarity(normalize_embeddings=True),
    SNRDistance(),
    SNRDistance(normalize_embeddings=False),
]
each = pytest.mark.parametrize("distance", ALL, ids=repr)


def rows(count: int, size: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(count, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(
        dtype
    )


def direct(distance: Distance, x: Tensor, y: Tensor) -> Tensor:
    """Plain loops in double precision."""
    a, b = x.double(), y.double()
    out = torch.empty(len(a), len(b), dtype=torch.float64)
    for i, u in enumerate(a):
        for j, v in enumerate(b):
            if distance.normalize_embeddings:
                p = getattr(distance, "p", 2.0)
                u_, v_ = u / u.norm(p), v / v.norm(p)
            else:
                u_, v_ = u, v
            if isinstance(distance, LpDistance):
                out[i, j] = (u_ - v_).norm(distance.p) ** distance.power
            elif isinstance(distance, SNRDistance):
                out[i, j] = (u_ - v_).var() / u_.var()
            else:
                out[i, j] = (u_ * v_).sum()
    return out


@each
def test_the_matrix_equals_plain_loops(distance: Distance) -> None:
    x, y = rows(7, 5), rows(4, 5, seed=1)
    torch.testing.assert_close(distance(x, y), direct(distance, x, y), rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(distance(x), direct(distance, x, x), rtol=1e-12, atol=1e-14)
    single = distance(x.float(), y.float())
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), direct(distance, x.float(), y.float()), rtol=2e-6, atol=2e-6)


@each
def test_paired_rows_are_the_diagonal(distance: Distance) -> None:
    x, y = rows(6, 5), rows(6, 5, seed=1)
    torch.testing.assert_close(distance.pairwise(x, y), direct(distance, x, y).diagonal(), rtol=1e-12, atol=0)


@each
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_pairs_of_one_set_have_the_values_of_their_rows(distance: Distance, dtype: torch.dtype) -> None:
    x = rows(9, 5).to(dtype)
    first, second = torch.tensor([0, 3, 3, 8, 4]), torch.tensor([1, 3, 8, 0, 2])
    found = distance.of_pairs(x, first, second)
    assert found.dtype == (torch.float32 if dtype == torch.float16 else dtype)
    assert torch.equal(found, distance.pairwise(x[first], x[second]))
    with pytest.raises(ShapeError, match=r"must be \(N, D\)"):
        distance.of_pairs(x[0], first, second)


@each
def test_first_and_second_derivatives(distance: Distance) -> None:
    x, y = rows(4, 3).requires_grad_(), rows(3, 3, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(distance, (x, y))
    assert torch.autograd.gradgradcheck(distance, (x, y))
    apart = torch.eye(4).logical_not()
    assert torch.autograd.gradcheck(lambda a: distance(a)[apart], x)
    assert torch.autograd.gradgradcheck(lambda a: distance(a)[apart], x)


@pytest.mark.parametrize("count", [2, 26, 300])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("normalize", [True, False])
def test_equal_rows_are_exactly_zero_apart(count: int, dtype: torch.dtype, normalize: bool) -> None:
    x = rows(count, 128, dtype=dtype)
    x = torch.cat([x, x])
    matrix = LpDistance(normalize_embeddings=normalize)(x)
    assert float(matrix.diagonal().abs().max()) == 0.0
    assert float(matrix.diagonal(count).abs().max()) == 0.0
    assert float(LpDistance(normalize_embeddings=normalize)(x, x.clone()).diagonal(count).max()) == 0.0


@pytest.mark.parametrize("count", [2, 30, 200])
@pytest.mark.parametrize("apart", [1e-5, 1e-7, 1e-9])
def test_near_unit_rows_in_double(count: int, apart: float) -> None:
    x = torch.nn.functional.normalize(rows(count, 16))
    across = rows(1, 16, seed=2)[0]
    across = across - (across @ x[0]) * x[0]
    x[1] = x[0] * math.cos(apart) + across / across.norm() * math.sin(apart)
    expected = 2 * math.sin(apart / 2)
    assert abs(float(LpDistance()(x)[0, 1]) - expected) < 1e-15


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_no_digits_are_lost_far_from_the_origin(offset: float) -> None:
    x = rows(40, 8, dtype=torch.float32) + offset
    expected = torch.cdist(x.double(), x.double(), compute_mode="donot_use_mm_for_euclid_dist")
    matrix = LpDistance(normalize_embeddings=False)(x)
    torch.testing.assert_close(matrix.double(), expected, rtol=2e-7, atol=0)


def test_one_near_row_in_a_reference() -> None:
    x, y = rows(20, 4, dtype=torch.float32), rows(30, 4, seed=1, dtype=torch.float32)
    y[17] = x[3]
    y[17, 0] += 1e-5
    distance = LpDistance(normalize_embeddings=False)
    expected = abs(float(y[17, 0].double() - x[3, 0].double()))
    assert float(distance(x, y)[3, 17]) == pytest.approx(expected, rel=1e-6)


def test_two_far_clusters_keep_their_small_distances() -> None:
    x = rows(40, 3, dtype=torch.float32)
    x[:, 0] = torch.arange(40) % 2 * 2e6 - 1e6  # one huge coordinate beside small ones
    expected = torch.cdist(x.double(), x.double(), compute_mode="donot_use_mm_for_euclid_dist")
    matrix = LpDistance(normalize_embeddings=False)(x)
    torch.testing.assert_close(matrix.double(), expected, rtol=2e-7, atol=0)


def test_the_gradient_far_from_the_origin() -> None:
    x = (rows(6, 3) + 1e6).requires_grad_()
    LpDistance(normalize_embeddings=False)(x).sum().backward()
    apart = x.detach().unsqueeze(1) - x.detach().unsqueeze(0)
    direction = apart / apart.norm(dim=2, keepdim=True).clamp_min(1e-300)
    torch.testing.assert_close(x.grad, 2 * direction.sum(1), rtol=0, atol=1e-13)


def test_gradient_of_near_rows_in_single_precision() -> None:
    x = torch.nn.functional.normalize(rows(30, 16)).float()
    x[1] = x[0] + 1e-4 * rows(1, 16, seed=2)[0].float()

    def gradient(of: Tensor) -> Tensor:
        of = of.clone().requires_grad_()
        LpDistance(normalize_embeddings=False)(of)[0, 1].backward()
        assert of.grad is not None
        return of.grad

    torch.testing.assert_close(gradient(x).double(), gradient(x.double()), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("distance", [d for d in ALL if not d.is_inverted], ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_coincident_points_pass_no_gradient(distance: Distance, dtype: torch.dtype) -> None:
    x = rows(1, 4, dtype=dtype).repeat(3, 1).requires_grad_()
    first = torch.autograd.grad(distance(x).sum(), x, create_graph=True)[0]
    assert float(first.detach().abs().max()) == 0.0
    paired = torch.autograd.grad(distance.pairwise(x, x.detach()).sum(), x)[0]
    assert float(paired.abs().max()) == 0.0
    if first.requires_grad:
        second = torch.autograd.grad(first.sum(), x)[0]
        assert bool(torch.isfinite(second).all())


@pytest.mark.parametrize(
    "distance", [LpDistance(), LpDistance(p=1), LpDistance(p=3), CosineSimilarity()], ids=repr
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_zero_rows_under_normalisation(distance: Distance, dtype: torch.dtype) -> None:
    x = torch.tensor([[0, 0, 0], [0, 0, 0], [1, 2, 2], [0, 3, 4]], dtype=dtype, requires_grad=True)
    matrix = distance(x)
    assert matrix[0, 1].item() == 0.0
    expected = 0.0 if distance.is_inverted else 1.0
    torch.testing.assert_close(matrix[0, 2:].double(), torch.full((2,), expected).double(), rtol=0, atol=2e-7)
    matrix.sum().backward()
    assert x.grad is not None
    assert float(x.grad[:2].abs().max()) == 0.0
    assert bool(torch.isfinite(x.grad).all())


def test_zero_rows_without_normalisation_keep_their_gradient() -> None:
    x = torch.tensor([[0.0, 0.0], [3.0, 4.0]], requires_grad=True)
    LpDistance(normalize_embeddings=False)(x)[0, 1].backward()
    torch.testing.assert_close(x.grad, torch.tensor([[-0.6, -0.8], [0.6, 0.8]]))


@pytest.mark.parametrize(
    "distance", [LpDistance(), LpDistance(p=3), CosineSimilarity(), SNRDistance()], ids=repr
)
@pytest.mark.parametrize(
    ("dtype", "scale"),
    [
        (torch.float32, 1e-36),
        (torch.float32, 1e19),
        (torch.float32, 3e37),
        (torch.float64, 1e-290),
        (torch.float64, 1e290),
    ],
)
def test_norms_of_any_size(distance: Distance, dtype: torch.dtype, scale: float) -> None:
    x = rows(5, 4, dtype=dtype)
    tight = 1e-6 if dtype == torch.float32 else 1e-14
    torch.testing.assert_close(distance(x * scale), distance(x), rtol=tight, atol=tight)


def test_the_gradient_at_a_long_row() -> None:
    x = rows(2, 3, dtype=torch.float32)

    def gradient(scale: float) -> Tensor:
        scaled = (x * scale).requires_grad_()
        CosineSimilarity()(scaled)[0, 1].backward()
        assert scaled.grad is not None
        return scaled.grad * scale

    torch.testing.assert_close(gradient(1e20), gradient(1.0), rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(gradient(1e-20), gradient(1.0), rtol=1e-5, atol=1e-7)


@each
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_types_compute_in_single(distance: Distance, dtype: torch.dtype) -> None:
    x, y = rows(6, 8).to(dtype), rows(5, 8, seed=1).to(dtype)
    matrix = distance(x, y)
    assert matrix.dtype == torch.float32
    torch.testing.assert_close(matrix.double(), direct(distance, x, y), rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize(
    "distance", [LpDistance(normalize_embeddings=False), DotProductSimilarity()], ids=repr
)
def test_half_precision_does_not_overflow(distance: Distance) -> None:
    x = torch.full((2, 4), 60000.0, dtype=torch.float16)
    x[1] = -x[0]
    expected = direct(distance, x, x)
    torch.testing.assert_close(distance(x).double(), expected, rtol=1e-6, atol=0)


@each
def test_autocast_does_not_lower_the_precision(distance: Distance) -> None:
    x = rows(6, 8, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = distance(x)
    assert inside.dtype == torch.float32
    torch.testing.assert_close(inside, distance(x), rtol=0, atol=0)


def test_snr_of_an_anchor_without_signal() -> None:
    x = torch.tensor([[0.1, 0.1, 0.1], [1.0, 2.0, 4.0]], requires_grad=True)
    matrix = SNRDistance(normalize_embeddings=False)(x)
    assert matrix[0].tolist() == [0.0, 0.0]
    assert float(matrix[1, 0].detach()) == pytest.approx(1.0)  # all of the anchor's variance is noise
    matrix.sum().backward()
    assert x.grad is not None
    assert bool(torch.isfinite(x.grad).all())


def test_margin_hides_the_sign() -> None:
    assert LpDistance().margin(0.7, 0.5) == pytest.approx(0.2)
    assert CosineSimilarity().margin(0.7, 0.5) == pytest.approx(-0.2)
    assert [
        d.is_inverted for d in (LpDistance(), SNRDistance(), CosineSimilarity(), DotProductSimilarity())
    ] == [
        False,
        False,
        True,
        True,
    ]


def test_bounds_hold() -> None:
    x = rows(60, 3)
    x[1] = -x[0]
    for distance in ALL:
        low, high = distance.bounds()
        matrix = distance(x)
        assert low - 1e-12 <= float(matrix.min())
        assert float(matrix.max()) <= high + 1e-12
    assert LpDistance().bounds() == (0.0, 2.0)
    assert LpDistance(power=2).bounds() == (0.0, 4.0)
    assert CosineSimilarity().bounds() == (-1.0, 1.0)


def test_titles() -> None:
    assert LpDistance().title == "Euclidean distance of normalised embeddings"
    assert LpDistance(normalize_embeddings=False, power=2).title == "Squared Euclidean distance"
    assert CosineSimilarity().title == "Cosine similarity"


def test_options_and_shapes_are_checked() -> None:
    with pytest.raises(ParameterError, match=r"LpDistance: p must be a number >= 1 or inf, got 0\.5"):
        LpDistance(p=0.5)
    with pytest.raises(ParameterError, match="power must be a number > 0"):
        LpDistance(power=0)
    with pytest.raises(TypeError, match="CosineSimilarity: has no option 'normalize_embeddings'"):
        CosineSimilarity(normalize_embeddings=False)
    with pytest.raises(ShapeError, match=r"\(2, 3\) and \(2, 4\)"):
        LpDistance()(torch.zeros(2, 3), torch.zeros(2, 4))
    with pytest.raises(ShapeError, match="must pair up"):
        CosineSimilarity().pairwise(torch.zeros(2, 3), torch.zeros(3, 3))
    with pytest.raises(ShapeError, match="one dtype"):
        LpDistance()(torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.float64))


@each
def test_empty_sets(distance: Distance) -> None:
    none, some = torch.zeros(0, 3, requires_grad=True), rows(2, 3, dtype=torch.float32)
    assert distance(none).shape == (0, 0)
    assert distance(none, some).shape == (0, 2)
    assert distance(some, none).shape == (2, 0)
    distance(none).sum().backward()
    assert none.grad is not None
