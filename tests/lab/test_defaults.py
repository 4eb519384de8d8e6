"""The default settings learn: real digits, the small CNN, 300 steps."""

from collections.abc import Callable

import pytest

from lab.config import RunConfig
from lab.run import Run

Finished = Callable[[RunConfig], Run]

LOSSES = (
    "ContrastiveLoss",
    "DecoupledContrastiveLoss",
    "MarginLoss",
    "MultiSimilarityLoss",
    "NTXentLoss",
    "SupConLoss",
    "TripletMarginLoss",
)


def recalls(run: Run) -> tuple[float, float]:
    """Held-out recall@1 before and after; chance is 0.10."""
    frames = run.recording.frames
    before, after = frames[0].quality["recall_at_1"], frames[-1].quality["recall_at_1"]
    assert before is not None
    assert after is not None
    return before, after


def check(config: RunConfig, finished: Finished) -> None:
    run = finished(config)
    assert (run.steps_done, run.reason, config.data, config.encoder) == (300, "", "mnist", "cnn")
    assert not set(run.recording.probe.tolist()) & set(run.trainer.train_index.tolist())
    before, after = recalls(run)
    if config.dim == 2:
        assert after - before >= 0.15
    else:
        assert after > 0.85


@pytest.mark.parametrize("dim", [2, 8])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_default_run_learns(finished: Finished, loss: str, dim: int) -> None:
    check(RunConfig(loss=loss, dim=dim), finished)
