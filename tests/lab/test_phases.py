"""A step in six phases: the same step, told truly, and questions about it that change nothing."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from lab.asked import Question, answer
from lab.captions import phase_note
from lab.config import RunConfig
from lab.phases import PHASES, embedded_again
from lab.run import Run
from lab.short import short

Small = Callable[..., RunConfig]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"loss": "TripletMarginLoss", "loss_options": {"triplets_per_anchor": 2}, "dim": 3},
    {"loss": "ProxyAnchorLoss", "output": "batchnorm", "optimizer": "sgd"},
    {"loss": "NTXentLoss", "pairing": "views"},
    {"miner": "BatchHardMiner", "loss": "TripletMarginLoss", "encoder": "free"},
]
NAMES = ["default", "random triplets", "proxies", "views", "mined free points"]


def state(run: Run) -> list[torch.Tensor]:
    tensors = [*run.trainer.encoder.state_dict().values(), *run.trainer.loss.state_dict().values()]
    return [tensor.clone() for tensor in tensors]


def equal(first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def one_step(run: Run) -> list[str]:
    """Phase by phase, asked about after each of them."""
    names = []
    for _ in PHASES:
        one = run.phase()
        assert one is not None
        names.append(one.phase)
        phase_note(run, one)
        for question in (Question("batch"), Question("why", "map", 3), Question("why", "batch", 1)):
            answer(run, question)
    return names


@pytest.mark.parametrize("settings", SETTINGS, ids=NAMES)
def test_a_run_stepped_by_phases_equals_one_stepped_by_steps(small: Small, settings: dict[str, Any]) -> None:
    config = small(**settings, steps=4)
    by_phases, by_steps = Run(config), Run(config)
    for step in range(4):
        if step == 2:  # a step that was begun is finished by the next whole one
            by_phases.phase()
            by_phases.phase()
            by_phases.step(look=True)
        else:
            assert one_step(by_phases) == list(PHASES)
        by_steps.step(look=True)
        assert by_phases.steps_done == by_steps.steps_done == step + 1
        assert equal(state(by_phases), state(by_steps))
    assert by_phases.recording.equals(by_steps.recording)
    assert by_phases.finished
    assert by_phases.phase() is None


def test_each_phase_does_its_part_and_no_other(small: Small) -> None:
    run = Run(small())
    run.start()
    before = state(run)
    seen = {}
    for name in PHASES:
        one = run.phase()
        assert one is not None
        seen[name] = (
            equal(state(run), before),
            run.steps_done,
            [p.grad is not None for p in run.trainer.parameters],
        )
        assert one.done == PHASES.index(name) + 1
    assert [seen[name][0] for name in PHASES] == [True] * 5 + [False], "only the update moves the encoder"
    assert [seen[name][1] for name in PHASES] == [0] * 5 + [1]
    assert not any(seen["loss"][2])
    assert all(seen["gradient"][2])
    assert run.under_way is None


def caption(run: Run, name: str) -> str:
    while True:
        one = run.phase()
        assert one is not None
        note = phase_note(run, one)
        assert (note["name"], note["number"]) == (one.phase, PHASES.index(one.phase) + 1)
        if one.phase == name:
            return str(note["caption"])


def test_the_captions_tell_the_numbers_of_this_very_step(small: Small) -> None:
    run = Run(small(batch=32, per_class=8, lr=0.01))
    for _ in range(3):
        run.step(look=True)
    # 32 rows of 4 classes, 8 each: 32 * 7 ordered positive and 32 * 24 negative pairs
    assert caption(run, "sample") == "32 samples drawn from 4 classes, 8 a class."
    assert "32 embeddings of 2 numbers from the mlp encoder; all of norm 1" in caption(run, "embed")
    pairs = caption(run, "pair")
    assert pairs.startswith("224 positive and 768 negative pairs, each counted from both its ends; ")
    one = run.under_way
    assert one is not None
    weights = run.trainer.loss.pair_weights(one.embeddings.detach(), one.labels).weights
    assert f"{int((weights != 0).sum()):,} are active" in pairs
    loss = caption(run, "loss")
    assert loss.startswith(
        f"Loss {short(float(one.value.detach()))} ({short(run.recording.frames[-1].loss)} at step 3)."
    )
    gradient = caption(run, "gradient")
    norms = torch.stack([p.grad.norm() for p in run.trainer.encoder.parameters()])  # type: ignore[union-attr]
    assert f"Gradient of norm {short(float(norms.norm()))} over" in gradient
    before = one.embeddings.detach().clone()
    update = caption(run, "update")
    moved = (run.trainer.embed_batch(one.rows)[0].detach() - before).norm(dim=1)
    assert f"by {short(float(moved.mean()))} on average, {short(float(moved.max()))} at most" in update
    assert "Adam at learning rate 0.01 moves" in update


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"loss": "ProxyAnchorLoss"}, "Each of 32 embeddings meets 4 proxies."),
        ({"loss": "GE2ELoss"}, "compares all 32 embeddings at once"),
        (
            {"miner": "BatchHardMiner", "loss": "TripletMarginLoss"},
            r"The miner keeps 32 triplets\. 32 positive",
        ),
        ({"pairing": "views", "loss": "NTXentLoss"}, "64 positive and 3,968 negative pairs"),
    ],
)
def test_pairs_are_told_as_the_loss_has_them(small: Small, settings: dict[str, Any], words: str) -> None:
    assert re.search(words, caption(Run(small(**settings)), "pair"))


def test_a_loss_that_is_not_finite_ends_the_run_in_its_phase(small: Small) -> None:
    run = Run(small(loss_options={"squared": True}))
    run.step()
    run.change("neg_margin", 1e30)  # its square is infinite in single precision
    captions = []
    while (one := run.phase()) is not None:
        captions.append(phase_note(run, one)["caption"])
    assert len(captions) == PHASES.index("loss") + 1
    assert captions[-1] == "The loss is inf: the run stops here."
    assert run.diverged
    assert run.under_way is None
    assert "loss became infinite at step 2" in run.reason


def test_embedding_again_uses_the_same_augmentation_and_leaves_batch_statistics(small: Small) -> None:
    run = Run(small(pairing="views", loss="NTXentLoss", output="batchnorm"))
    run.start()
    assert run.last is not None
    before = state(run)
    again = embedded_again(run.last)
    assert torch.equal(again, run.last.embeddings), "nothing was trained yet"
    assert equal(state(run), before)
