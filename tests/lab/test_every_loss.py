"""Every loss of the library trains in the engine, its own parameters with it, or says why it cannot."""

from collections.abc import Callable

import pytest
import torch

from lab.config import RunConfig
from lab.run import Run
from losslib import catalog
from losslib.errors import ParameterError
from losslib.params import Boolean

Small = Callable[..., RunConfig]

RUNNABLE = [name for name, cls in catalog.losses().items() if "two views" not in cls.needs]
LEARNS = {"MarginLoss": {"learn_beta": True, "nu": 0.1}}  # an option asks for the parameter
CASES = [(name, options) for name in RUNNABLE for options in ({}, LEARNS.get(name)) if options is not None]


@pytest.mark.parametrize(("name", "options"), CASES)
def test_two_steps_move_the_embeddings_and_the_loss_s_own_parameters(
    small: Small, name: str, options: dict[str, object]
) -> None:
    run = Run(small(loss=name, loss_options=options, dim=4, steps=2, lr=0.01))
    first = run.start()
    before = {key: p.detach().clone() for key, p in run.trainer.loss.named_parameters()}
    last = [run.step() for _ in range(2)][-1]
    assert not run.diverged, run.reason
    assert first is not None
    assert last is not None
    assert abs(last.positions - first.positions).max() > 1e-4
    after = dict(run.trainer.loss.named_parameters())
    assert set(after) == set(before)
    for key, parameter in after.items():
        assert parameter.requires_grad
        assert not torch.equal(parameter.detach(), before[key]), f"{name}: {key} did not move"


@pytest.mark.parametrize("name", RUNNABLE)
def test_the_sizes_a_loss_needs_come_from_the_data(small: Small, name: str) -> None:
    run = Run(small(loss=name, dim=3))  # blobs of 4 classes
    needs, loss = catalog.get(name).needs, run.trainer.loss
    expected = {"num_classes": 4, "embedding_size": 3}
    for need in needs:
        if need == "class_counts":
            labels = run.data.labels[run.data.train]
            assert loss.class_counts == tuple(int((labels == c).sum()) for c in range(4))
        else:
            assert getattr(loss, need) == expected[need]


@pytest.mark.parametrize("name", [name for name in catalog.losses() if name not in RUNNABLE])
def test_a_loss_of_two_views_says_why_it_does_not_run(small: Small, name: str) -> None:
    with pytest.raises(ParameterError, match=f"run: {name} needs two views of each sample.*choose another"):
        small(loss=name)


def test_a_parameter_of_every_loss_that_has_one_is_tried() -> None:
    tried = {name for name, options in CASES if options or catalog.get(name).needs}
    switches = {
        name
        for name in RUNNABLE
        for option, param in catalog.get(name).params.items()
        if option.startswith("learn") and isinstance(param.valid, Boolean)
    }
    assert switches <= tried
