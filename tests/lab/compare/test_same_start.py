"""What makes a comparison fair: the loss decides neither initial weights nor batches nor views."""

import pytest
import torch

from lab.config import RunConfig, trainable_losses
from lab.run import Run

SMALL = {"data": "blobs", "data_options": {"points": 200}, "batch": 32, "per_class": 4, "steps": 20}
# Losses that draw random numbers for parameters of their own, or while they are computed.
WITH_PARAMETERS = ("ProxyAnchorLoss", "SoftTripleLoss", "MarginLoss", "ManifoldLoss", "ArcFaceLoss")


def start(loss: str, **changes: object) -> tuple[dict[str, torch.Tensor], list[torch.Tensor]]:
    """Initial weights, and the rows of the first batches that training draws while it goes on."""
    run = Run(RunConfig(**{**SMALL, "loss": loss, **changes}))  # type: ignore[arg-type]
    weights = {name: value.clone() for name, value in run.trainer.encoder.state_dict().items()}
    drawn, draw = [], run.trainer.draw
    run.trainer.draw = lambda: (drawn.append(rows := draw()), rows)[1]  # type: ignore[method-assign]
    for _ in range(3):
        run.step()
    assert len(drawn) >= 2
    return weights, drawn


@pytest.fixture(scope="module")
def reference():
    return start("ContrastiveLoss")


@pytest.mark.parametrize("loss", trainable_losses())
def test_every_loss_starts_from_the_same_weights_and_sees_the_same_batches(loss, reference):
    weights, batches = start(loss)
    assert weights.keys() == reference[0].keys()
    assert all(torch.equal(weights[name], value) for name, value in reference[0].items())
    assert len(batches) == len(reference[1])
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(batches, reference[1], strict=True))


@pytest.mark.parametrize("encoder", ["free", "linear"])
@pytest.mark.parametrize("loss", WITH_PARAMETERS)
def test_parameters_of_the_loss_move_nothing_whatever_the_encoder(loss, encoder):
    options = {"loss_options": {"learn_beta": True}} if loss == "MarginLoss" else {}
    weights, batches = start(loss, encoder=encoder, **options)
    others, theirs = start("NTXentLoss", encoder=encoder)
    assert all(torch.equal(weights[name], value) for name, value in others.items())
    assert all(torch.equal(a, b) for a, b in zip(batches, theirs, strict=True))


def test_another_seed_changes_weights_and_batches(reference):
    weights, batches = start("ContrastiveLoss", seed=1)
    assert not all(torch.equal(weights[name], value) for name, value in reference[0].items())
    assert not torch.equal(batches[0], reference[1][0])


def views_of(loss: str, **changes: object) -> list[torch.Tensor]:
    """What the encoder is given at the first steps."""
    run = Run(RunConfig(**{**SMALL, "pairing": "views", "loss": loss, **changes}))  # type: ignore[arg-type]
    seen: list[torch.Tensor] = []
    run.trainer.encoder.register_forward_pre_hook(
        lambda module, inputs: seen.append(inputs[0].clone()) if module.training else None
    )
    for _ in range(3):
        run.step()
    return seen


@pytest.mark.parametrize(("loss", "pairing"), [("VICRegLoss", "views"), ("InstanceLoss", "semi")])
def test_augmented_views_are_the_same_for_every_loss(loss, pairing):
    mine, theirs = views_of("NTXentLoss"), views_of(loss, pairing=pairing)
    assert len(mine) == len(theirs) >= 3
    assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))
    assert not torch.equal(mine[1], mine[2])
    first, second = mine[0].chunk(2)
    assert not torch.equal(first, second)
    assert not torch.equal(mine[0], views_of("NTXentLoss", seed=1)[0])


def test_a_loss_that_draws_random_numbers_shifts_no_view():
    def drawing_views():
        run = Run(RunConfig(**{**SMALL, "pairing": "views", "loss": "NTXentLoss"}))
        seen = []
        run.trainer.encoder.register_forward_pre_hook(
            lambda module, inputs: seen.append(inputs[0].clone()) if module.training else None
        )
        run.trainer.loss.register_forward_pre_hook(lambda *_: (torch.rand(5), None)[1])
        for _ in range(3):
            run.step()
        return seen

    assert all(torch.equal(a, b) for a, b in zip(views_of("NTXentLoss"), drawing_views(), strict=True))
