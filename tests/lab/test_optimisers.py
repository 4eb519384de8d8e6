"""Bare optimisers against torch's own, number by number, and that they import no compiler."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from lab.optimisers import uncompiled

ROOT = Path(__file__).resolve().parents[2]
KINDS: dict[Any, dict[str, Any]] = {
    torch.optim.SGD: {"lr": 0.1, "momentum": 0.9},
    torch.optim.Adam: {"lr": 0.01},
    torch.optim.AdamW: {"lr": 0.01},
}


def trained(kind: Any, steps: int, options: dict[str, Any]) -> nn.Linear:
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = kind(model.parameters(), fused=True, **options)
    for step in range(steps):
        if step == steps // 2:  # what a checkpoint does
            held = optimizer.state_dict()
            optimizer = kind(model.parameters(), fused=True, **options)
            optimizer.load_state_dict(held)
        optimizer.zero_grad(set_to_none=True)
        model(torch.randn(8, 4)).square().sum().backward()
        optimizer.step()
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_weights_to_the_last_bit(kind: Any) -> None:
    bare, plain = (trained(one, 6, KINDS[kind]) for one in (uncompiled(kind), kind))
    assert torch.equal(bare.weight, plain.weight)
    assert torch.equal(bare.bias, plain.bias)
    assert not torch.equal(bare.weight, trained(kind, 5, KINDS[kind]).weight)


def test_a_step_keeps_no_graph() -> None:
    weight = torch.ones(3, requires_grad=True)
    optimizer = uncompiled(torch.optim.SGD)([weight], lr=0.5, momentum=0.9)
    weight.square().sum().backward()
    optimizer.step()
    assert weight.tolist() == [0.0, 0.0, 0.0]
    assert weight.is_leaf
    assert torch.is_grad_enabled()


def test_a_run_and_the_figures_of_a_loss_need_no_compiler() -> None:
    code = (
        "import sys, torch\n"
        "from lab.anatomy.vectorised import values_and_gradients\n"
        "from lab.config import RunConfig\n"
        "from lab.run import Run\n"
        "run = Run(RunConfig(data='blobs', steps=2, batch=16, per_class=2, data_options={'points': 60}))\n"
        "assert len(list(run)) == 3\n"
        "values, slopes = values_and_gradients(lambda: None, lambda _, x: x.square().sum(), torch.eye(2))\n"
        "assert values.tolist() == [1, 1] and slopes.tolist() == [[2, 0], [0, 2]]\n"
        "print([name for name in ('torch._dynamo', 'sympy') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
