"""Map positions: what PCA keeps, and that they do not jump."""

import torch

from lab.projections import project


def rotation(angle: float) -> torch.Tensor:
    a = torch.tensor(angle)
    return torch.stack([torch.stack([a.cos(), -a.sin()]), torch.stack([a.sin(), a.cos()])])


def test_two_coordinates_are_taken_as_they_are() -> None:
    x = torch.randn(20, 2)
    assert torch.equal(project(x), x)


def test_a_plane_in_space_keeps_all_distances() -> None:
    plane = torch.randn(50, 2, generator=torch.Generator().manual_seed(1)).double() * torch.tensor([3.0, 1.0])
    frame, _ = torch.linalg.qr(torch.randn(9, 2, generator=torch.Generator().manual_seed(2)).double())
    positions = project(plane @ frame.T + 5.0)
    assert torch.allclose(torch.cdist(positions, positions), torch.cdist(plane, plane), atol=1e-6)


def test_the_kept_plane_has_the_largest_variance() -> None:
    scales = torch.tensor([0.1, 5.0, 0.2, 3.0, 0.3])
    x = torch.randn(4000, 5, generator=torch.Generator().manual_seed(0)) * scales
    positions = project(x)
    assert torch.allclose(positions.std(dim=0), torch.tensor([5.0, 3.0]), rtol=0.05)


def test_positions_follow_the_previous_frame_through_any_turn_of_the_space() -> None:
    x = torch.randn(200, 6, generator=torch.Generator().manual_seed(0)) * torch.tensor([2, 2, 1, 1, 1, 1.0])
    first = project(x)
    flip = torch.diag(torch.tensor([-1.0, 1.0, -1.0, 1.0, 1.0, -1.0]))
    assert torch.allclose(project(x @ flip, first), first, atol=1e-4)
    turned = first @ rotation(0.7)
    assert torch.allclose(project(x, turned), turned, atol=1e-3)
    moved = project(x + 0.01 * torch.randn(200, 6, generator=torch.Generator().manual_seed(3)), first)
    assert (moved - first).norm(dim=1).max() < 0.2


def test_degenerate_embeddings_stay_finite() -> None:
    for x in (torch.ones(10, 4), torch.randn(1, 4), torch.zeros(0, 4), torch.randn(5, 1)):
        positions = project(x) if len(x) else project(x.reshape(0, 2))
        assert positions.shape == (len(x), 2)
        assert positions.isfinite().all()
    assert project(torch.ones(10, 4), torch.randn(10, 2)).isfinite().all()
