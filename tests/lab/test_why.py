"""The forces on a point: checked against automatic differentiation of the whole loss, and by hand."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from lab.why import forces_on
from losslib import catalog
from losslib.distances import LpDistance, SNRDistance
from losslib.pairs import within_delta
from losslib.proxies import ProxyLoss

CLASSES, SIZE, ROWS = 4, 5, 24
NOT_PAIRS = {name for name, cls in catalog.losses().items() if "two views" in cls.needs} | {
    "GE2ELoss",
    "ManifoldLoss",
}
NORMS_COUNT = {"LargeMarginSoftmaxLoss", "SphereFaceLoss"}  # logits are the norm times a cosine
NAMES = sorted(set(catalog.losses()) - NOT_PAIRS - NORMS_COUNT)


def built(name: str, **parts: Any) -> Any:
    cls = catalog.get(name)
    sizes: dict[str, Any] = {"num_classes": CLASSES, "embedding_size": SIZE, "class_counts": [6] * CLASSES}
    return cls(**{key: sizes[key] for key in cls.required}, **parts).double()


def batch(unit: bool, seed: int = 0, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(ROWS, SIZE, dtype=torch.float64, generator=generator)
    embeddings = embeddings / embeddings.norm(dim=1, keepdim=True) if unit else embeddings
    return embeddings.to(dtype), torch.arange(ROWS) % CLASSES


def by_autograd(loss: Any, embeddings: Tensor, **inputs: Any) -> Tensor:
    leaf = embeddings.clone().requires_grad_()
    torch.manual_seed(3)
    loss(leaf, **inputs).backward()
    assert leaf.grad is not None
    return leaf.grad


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_the_listed_forces_add_up_to_minus_the_gradient(name: str, unit: bool) -> None:
    embeddings, labels = batch(unit)
    torch.manual_seed(1)
    loss = built(name)
    before = {key: value.clone() for key, value in loss.state_dict().items()}
    torch.manual_seed(3)
    found = [forces_on(loss, row, embeddings, labels=labels) for row in (0, 7, 23)]
    assert all(torch.equal(value, before[key]) for key, value in loss.state_dict().items()), "it was changed"
    gradient = by_autograd(loss, embeddings, labels=labels)
    for row, forces in zip((0, 7, 23), found, strict=True):
        assert len(forces.partners) >= CLASSES
        assert (forces.forces.sum(0) + gradient[row]).norm() <= 1e-5 * max(gradient[row].norm(), 1e-9)
        assert float(forces.shares.sum()) == pytest.approx(1.0 if len(forces.ranked) else 0.0)


@pytest.mark.parametrize("name", ["ContrastiveLoss", "NTXentLoss", "TripletMarginLoss", "ProxyAnchorLoss"])
def test_in_single_precision_they_add_up_within_1e_5_too(name: str) -> None:
    embeddings, labels = batch(True, dtype=torch.float32)
    loss = built(name).float()
    gradient = by_autograd(loss, embeddings, labels=labels)
    for row in (0, 11):
        forces = forces_on(loss, row, embeddings, labels=labels)
        assert (forces.forces.sum(0) + gradient[row]).norm() <= 1e-5


@pytest.mark.parametrize(
    "distance",
    [
        LpDistance(),
        LpDistance(normalize_embeddings=False, p=1.0),
        LpDistance(power=2),
        LpDistance(normalize_embeddings=False, p=3.0),
        SNRDistance(),
    ],
)
@pytest.mark.parametrize(
    "name", ["ContrastiveLoss", "MarginLoss", "GeneralizedLiftedStructureLoss", "NTXentLoss"]
)
def test_any_distance_will_do_also_one_that_is_not_symmetric(name: str, distance: Any) -> None:
    embeddings, labels = batch(False)
    loss = built(name, distance=distance)
    gradient = by_autograd(loss, embeddings, labels=labels)
    forces = forces_on(loss, 2, embeddings, labels=labels)
    assert (forces.forces.sum(0) + gradient[2]).norm() <= 1e-5 * gradient[2].norm()


def test_references_of_their_own_pull_as_the_other_end_alone() -> None:
    embeddings, labels = batch(True)
    references, their = batch(True, seed=1)
    loss = built("SupConLoss")
    inputs = {"labels": labels, "ref_emb": references, "ref_labels": their}
    gradient = by_autograd(loss, embeddings, **inputs)
    forces = forces_on(loss, 5, embeddings, **inputs)
    assert len(forces.partners) == ROWS, "none is left out: no reference is the point itself"
    assert not forces.back.any()
    assert (forces.forces.sum(0) + gradient[5]).norm() <= 1e-5 * gradient[5].norm()


def test_pairs_given_as_indices_or_masks_are_the_partners() -> None:
    embeddings, _ = batch(True)
    masks = within_delta(torch.linspace(0, 1, ROWS), 0.1)
    loss = built("ContrastiveLoss")
    for given in (masks, masks.indices()):
        gradient = by_autograd(loss, embeddings, indices_tuple=given)
        forces = forces_on(loss, 0, embeddings, indices_tuple=given)
        assert (forces.forces.sum(0) + gradient[0]).norm() <= 1e-5 * gradient[0].norm()
        near = forces.partners[forces.positive].tolist()
        assert near == [1, 2]  # 0.1 of the range is 2.3 rows


def test_triplets_drawn_at_random_are_the_same_ones_for_list_and_gradient() -> None:
    embeddings, labels = batch(True)
    loss = built("TripletMarginLoss", triplets_per_anchor=2)
    for seed in range(5):
        torch.manual_seed(seed)
        forces = forces_on(loss, 1, embeddings, labels=labels)
        assert forces.rest.norm() <= 1e-5 * forces.gradient.norm().clamp_min(1e-9)


def test_contrastive_by_hand() -> None:
    # Anchor (1, 0), positive (0, 1), negatives (0.8, 0.6) near and (-1, 0) beyond the margin of 1.
    # 2 positive entries with d = sqrt(2), hinge weight 1 / 2 each; both ends: 2 * 1/2 = 1.
    # Within the margin: row 2 with row 0 (d = sqrt(0.4)) and row 1 (d = sqrt(0.8)), 4 entries of 1/4.
    embeddings = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6], [-1.0, 0.0]], dtype=torch.float64)
    labels = torch.tensor([0, 0, 1, 2])
    loss = catalog.get("ContrastiveLoss")(distance=LpDistance(normalize_embeddings=False)).double()
    forces = forces_on(loss, 0, embeddings, labels=labels)
    assert forces.partners.tolist() == [1, 2, 3]
    assert forces.values.tolist() == pytest.approx([math.sqrt(2), math.sqrt(0.4), 2.0])
    assert forces.weights.tolist() == pytest.approx([0.5, -0.25, 0.0])
    assert forces.back.tolist() == pytest.approx([0.5, -0.25, 0.0])
    assert forces.positive.tolist() == [True, False, False]
    assert forces.closer.tolist() == [True, False, False]
    s, t = math.sqrt(0.5), math.sqrt(0.4)
    # towards (0, 1) with size 1; away from (0.8, 0.6) with size 1/2; nothing from beyond the margin
    assert torch.allclose(forces.forces, torch.tensor([[-s, s], [0.1 / t, -0.3 / t], [0.0, 0.0]]).double())
    assert forces.shares.tolist() == pytest.approx([2 / 3, 1 / 3, 0.0])
    assert forces.ranked.tolist() == [0, 1]


def test_a_similarity_pulls_where_its_weight_is_negative() -> None:
    embeddings, labels = batch(True)
    forces = forces_on(built("NTXentLoss"), 0, embeddings, labels=labels)
    pull = forces.weights + forces.back
    assert torch.equal(forces.closer, pull < 0)
    assert bool(forces.closer[forces.positive].all())
    assert not bool(forces.closer[~forces.positive].any())


def test_the_proxies_of_a_loss_are_its_partners() -> None:
    embeddings, labels = batch(True)
    torch.manual_seed(0)
    loss = built("NormalizedSoftmaxLoss")
    forces = forces_on(loss, 1, embeddings, labels=labels)
    assert forces.partners.tolist() == list(range(CLASSES))
    assert forces.positive.tolist() == [False, True, False, False]
    # cross-entropy of cosines over the temperature: dL/ds = (p - y) / (tau B)
    cosines = torch.nn.functional.cosine_similarity(embeddings[1:2], loss.weight.detach())
    expected = (cosines / loss.temperature).softmax(0)
    expected[1] -= 1
    assert torch.allclose(forces.weights, expected / loss.temperature / ROWS)
    assert "forward" not in loss.distance.__dict__


@pytest.mark.parametrize("name", sorted(NORMS_COUNT))
def test_what_comes_from_no_distance_is_told_as_the_rest(name: str) -> None:
    embeddings, labels = batch(False)
    torch.manual_seed(0)
    loss = built(name)
    assert isinstance(loss, ProxyLoss)
    forces = forces_on(loss, 0, embeddings, labels=labels)
    radial = embeddings[0] / embeddings[0].norm()
    along = forces.rest - torch.dot(forces.rest, radial) * radial
    assert forces.rest.norm() > 1e-3
    assert along.norm() < 1e-9, "the logits depend on the norm, so the rest points along the embedding"


@pytest.mark.parametrize("name", sorted(NOT_PAIRS))
def test_a_loss_without_pairs_says_so_and_gives_the_sum(name: str) -> None:
    embeddings, labels = batch(True)
    inputs = (
        {"labels": labels} if "two views" not in catalog.get(name).needs else {"ref_emb": batch(True, 1)[0]}
    )
    torch.manual_seed(3)
    loss = built(name)
    torch.manual_seed(3)
    forces = forces_on(loss, 0, embeddings, **inputs)
    assert len(forces.partners) == 0
    assert "does not come apart" in forces.reason
    assert torch.allclose(forces.gradient, by_autograd(loss, embeddings, **inputs)[0])
