"""Losses against learned proxies on the axes, where the values can be worked out by hand."""

import math
from typing import Any

import pytest
import torch

from losslib import catalog, losses
from tests.contract.registered import sizes

BY_HAND = [  # on the axes: one row on its own proxy, at right angles to the other
    ("ArcFaceLoss", {"scale": 1.0}, math.log1p(math.exp(-math.cos(0.5)))),
    ("SubCenterArcFaceLoss", {"scale": 1.0, "sub_centers": 1}, math.log1p(math.exp(-math.cos(0.5)))),
    ("DynamicArcFaceLoss", {"scale": 1.0}, math.log1p(math.exp(-math.cos(0.3)))),  # of a class of 16
    ("CosFaceLoss", {"scale": 1.0}, math.log1p(math.exp(-0.65))),
    ("NormalizedSoftmaxLoss", {"temperature": 1.0}, math.log1p(math.exp(-1))),
    ("ProxyNCALoss", {}, math.log1p(math.exp(-2))),
    ("SoftTripleLoss", {"centers_per_class": 1, "la": 1.0, "margin": 0.0}, math.log1p(math.exp(-1))),
    ("LargeMarginSoftmaxLoss", {"margin": 2}, math.log1p(math.exp(-1))),
    ("SphereFaceLoss", {"margin": 2}, math.log1p(math.exp(-1))),
    ("P2SGradLoss", {}, 0.0),
    ("CenterLoss", {}, 0.0),
    # the pull of cosine 1, the push of cosine 0 on the other proxy, halved
    ("ProxyAnchorLoss", {"alpha": 2.0}, math.log1p(math.exp(-1.8)) + math.log1p(math.exp(0.2)) / 2),
]


@pytest.mark.parametrize(("name", "options", "want"), BY_HAND)
def test_one_row_on_its_proxy_by_hand(name: str, options: dict[str, Any], want: float) -> None:
    arguments = sizes(name, num_classes=2, embedding_size=2, class_counts=(16, 5))
    loss = catalog.get(name)(**arguments, **options).double()
    with torch.no_grad():
        loss.weight.copy_(torch.eye(2))
    value = loss(torch.tensor([[1.0, 0.0]], dtype=torch.float64), torch.tensor([0]))
    assert float(value.detach()) == pytest.approx(want, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize(("margin", "degrees", "want"), [(2, 60, -0.5), (2, 120, -1.5), (4, 60, -1.5)])
def test_a_multiplied_angle_falls_all_the_way(margin: int, degrees: float, want: float) -> None:
    # cos 120; -cos 240 - 2; -cos 240 - 2
    loss = losses.SphereFaceLoss(2, 2, margin=margin)
    cosine = torch.tensor([[math.cos(math.radians(degrees))]], dtype=torch.float64)
    assert float(loss.with_margin(cosine, torch.tensor([0]))) == pytest.approx(want, rel=1e-9)
