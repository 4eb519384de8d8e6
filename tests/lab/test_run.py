"""Runs: equal configs give equal recordings, whatever else happens in the process."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from lab.config import Event, RunConfig
from lab.run import Run
from losslib import catalog
from losslib.errors import ParameterError

Small = Callable[..., RunConfig]
Finished = Callable[[RunConfig], Run]

VARIANTS = [
    {},
    {"encoder": "free", "per_class": 0, "optimizer": "sgd", "lr": 0.1},
    {"encoder": "linear", "dim": 5, "output": "batchnorm", "optimizer": "adamw"},
    {"dim": 4, "output": "none", "loss": "NTXentLoss"},
    # this loss draws triplets from torch's global generator
    {"loss": "MarginLoss", "loss_options": {"triplets_per_anchor": 3, "learn_beta": True, "nu": 0.1}},
]


@pytest.mark.parametrize("fields", VARIANTS)
def test_equal_configs_give_equal_recordings(small: Small, finished: Finished, fields: dict) -> None:
    config = small(**fields)
    first = finished(config).recording
    torch.manual_seed(123)  # what the process does in between plays no part
    torch.rand(7)
    np.random.default_rng().random()
    assert finished(config).recording.equals(first)
    assert not finished(config.replace(seed=1)).recording.equals(first)
    assert [frame.step for frame in first.frames] == [*range(11), 12]


def test_interleaved_runs_equal_each_alone(small: Small, finished: Finished) -> None:
    configs = [small(**fields) for fields in VARIANTS]
    alone = [finished(config).recording for config in configs]
    runs = [Run(config) for config in reversed(configs)][::-1]
    while not all(run.finished for run in runs):
        for run in runs:
            run.step()
    for run, recording in zip(runs, alone, strict=True):
        assert run.recording.equals(recording)


def test_a_run_leaves_the_processs_random_numbers_alone(small: Small) -> None:
    config = small(loss="MarginLoss", loss_options={"triplets_per_anchor": 2})
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    run = Run(config)
    run.start()
    run.step()
    assert torch.equal(torch.rand(3), expected)


def test_a_longer_run_begins_with_the_frames_of_a_shorter_one(small: Small, finished: Finished) -> None:
    short, long = finished(small(steps=10)).recording, finished(small(steps=14)).recording
    assert [f.loss for f in long.frames[:11]] == [f.loss for f in short.frames]
    for a, b in zip(short.frames[:-1], long.frames, strict=False):
        assert np.array_equal(a.positions, b.positions)


@pytest.mark.parametrize("end", [12, 23, 31])
def test_an_extended_run_equals_one_that_was_long_from_the_start(
    small: Small, finished: Finished, end: int
) -> None:
    whole = finished(small(steps=40, dim=4, output="none", loss="NTXentLoss")).recording
    run = finished(small(steps=end, dim=4, output="none", loss="NTXentLoss"))
    run.extend(40)
    for _ in run:
        pass
    assert run.recording.equals(whole)
    assert run.recording.config == whole.config


def test_looking_by_hand_between_frames_changes_nothing(small: Small, finished: Finished) -> None:
    config = small(steps=40, dim=4, output="none", loss="NTXentLoss")
    run = Run(config)
    run.start()
    while not run.finished:
        frame = run.step(look=True)
        assert frame is not None
        assert frame.extra == (frame.step > 10 and frame.step % 2 == 1)
    assert len(run.recording.frames) == 41
    assert run.recording.equals(finished(config).recording)


def test_a_change_while_it_trains_replays_from_its_event(small: Small, finished: Finished) -> None:
    config = small(steps=16)
    run = Run(config)
    for step in range(16):
        if step == 5:
            assert run.change("neg_margin", 0.3) == Event(6, "neg_margin", 0.3)
            run.change("lr", 0.1)
        if step == 9:
            run.change("neg_margin", 0.7)
            run.change("neg_margin", 0.4)  # two at one step: the later one counts
        run.step()
    assert run.config.events == (
        Event(6, "neg_margin", 0.3),
        Event(6, "lr", 0.1),
        Event(10, "neg_margin", 0.4),
    )
    replayed = finished(RunConfig.from_json(run.config.to_json())).recording
    assert replayed.equals(run.recording)
    frames = run.recording.frames
    margins = [next(m.value for m in f.marks if m.side == "negative") for f in frames]
    assert margins == [1.0] * 6 + [0.3] * 4 + [0.4] * 4  # steps 0-5, 6-9, and 10, 12, 14, 16
    assert [f.learning_rate for f in frames] == [0.003] * 6 + [0.1] * 8
    untouched = finished(config).recording
    assert [f.loss for f in frames[:6]] == [f.loss for f in untouched.frames[:6]]
    assert frames[6].loss != untouched.frames[6].loss


def test_a_change_that_is_not_allowed_leaves_the_run_as_it_was(small: Small) -> None:
    run = Run(small())
    with pytest.raises(ParameterError, match="neg_margin must be a finite number"):
        run.change("neg_margin", math.nan)
    with pytest.raises(ParameterError, match="'squared' cannot change while it trains"):
        run.change("squared", True)
    assert run.config.events == ()


def test_frame_zero_shows_the_first_batch_before_any_update(small: Small) -> None:
    run = Run(small())
    weights = [p.detach().clone() for p in run.trainer.encoder.parameters()]
    frame = run.start()
    assert frame is not None
    assert all(torch.equal(a, b) for a, b in zip(weights, run.trainer.encoder.parameters(), strict=True))
    rows = frame.batch.index
    embeddings = run.trainer.encoder(torch.from_numpy(run.data.inputs[rows]))
    loss = run.trainer.loss(embeddings, torch.from_numpy(run.data.labels[rows]))
    assert frame.loss == pytest.approx(loss.item(), rel=1e-5)
    first = run.step()
    assert first is not None
    assert first.loss == frame.loss  # the batch of step 1 is that of frame 0, before the update
    assert not np.array_equal(first.positions, frame.positions)


def test_the_probe_is_held_out_and_free_points_are_measured_on_themselves(small: Small) -> None:
    run = Run(small())
    assert np.array_equal(run.probe.index, run.data.held_out)
    assert not set(run.recording.probe.tolist()) & set(run.data.train.tolist())
    free = Run(small(encoder="free"))
    assert np.array_equal(free.probe.index, free.data.train)
    frame = free.start()
    assert frame is not None
    points = free.trainer.embed(torch.arange(len(free.data.train)))
    # on the unit circle a map has 16,384 places
    assert np.allclose(frame.positions, points.numpy(), rtol=0, atol=math.pi / 16_384 + 1e-6)


def test_the_learned_beta_is_trained_with_the_encoder(small: Small) -> None:
    options = {"learn_beta": True, "nu": 0.01, "num_classes": 4}
    run = Run(small(loss="MarginLoss", loss_options=options, lr=0.05))
    before = run.trainer.loss.beta.detach().clone()
    run.step()
    run.step()
    assert (run.trainer.loss.beta.detach() - before).abs().min() > 1e-3
    fixed = Run(small(loss="MarginLoss", lr=0.05))
    fixed.step()
    assert fixed.trainer.loss.beta.item() == pytest.approx(1.2)


@pytest.mark.parametrize("loss", ["ContrastiveLoss", "NTXentLoss", "MultiSimilarityLoss"])
def test_divergence_stops_with_a_reason_and_keeps_the_last_good_frame(small: Small, loss: str) -> None:
    run = Run(small(loss=loss, output="none", lr=1e20, optimizer="sgd", steps=200))
    for _ in run:
        pass
    assert run.diverged
    assert run.finished
    assert run.steps_done < 200
    assert f"at step {run.steps_done + 1}" in run.reason or f"at step {run.steps_done}" in run.reason
    assert "lower the learning rate (it was 1e+20) or normalise the output" in run.reason
    latest = run.recording.latest
    assert latest is not None
    assert np.isfinite(latest.positions).all()
    assert math.isfinite(latest.loss)
    assert run.step() is None  # nothing happens any more


@pytest.mark.parametrize(
    ("loss", "name", "value", "became"),
    [
        ("ContrastiveLoss", "neg_margin", 1e38, "infinite"),
        ("NTXentLoss", "temperature", 1e-300, "NaN"),
    ],
)
def test_before_any_update_the_options_are_named_and_not_the_learning_rate(
    small: Small, loss: str, name: str, value: float, became: str
) -> None:
    run = Run(small(loss=loss, loss_options={name: value}))
    assert run.start() is None
    assert run.diverged
    assert run.reason == (
        f"The loss became {became} at step 0, before any update: "
        f"change the options of the loss ({name}={value:g})."
    )
    assert run.recording.reason == run.reason


def test_an_option_turned_shortly_before_is_named_and_not_only_the_learning_rate(small: Small) -> None:
    run = Run(small(steps=60))
    for _ in range(12):
        run.step()
    run.change("neg_margin", 1e38)
    while not run.finished:
        run.step()
    assert run.reason == (
        f"The loss became infinite at step {run.steps_done + 1}: neg_margin was set to 1e+38 at step 13; "
        "set it back (it was 1) or lower the learning rate."
    )


def test_embeddings_that_are_not_finite_before_any_update_point_to_the_data(small: Small) -> None:
    run = Run(small(loss_options={"neg_margin": 0.5}))
    with torch.no_grad():
        next(run.trainer.encoder.parameters()).fill_(math.nan)
    run.start()
    assert run.reason == (
        "The embeddings are not finite numbers at step 0, before any update: look at the values of the data."
    )


def test_every_number_of_a_frame_is_recomputed_by_hand(small: Small, finished: Finished) -> None:
    run = finished(small(steps=6))
    frame = run.recording.frames[-1]
    points = frame.positions.astype(np.float64)
    labels = run.data.labels[run.probe.index]
    gaps = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(gaps, np.inf)
    recall = (labels[gaps.argmin(axis=1)] == labels).mean()
    assert frame.quality["recall_at_1"] == pytest.approx(recall, abs=0.02)  # map positions are rounded
    batch = frame.batch.labels
    assert (np.diff(batch) >= 0).all()  # ordered by class
    assert np.array_equal(run.data.labels[frame.batch.index], batch)
    term = {t.name: t for t in frame.terms}
    same = (batch[:, None] == batch[None]).sum() - len(batch)
    assert term["pos_loss"].count == same
    assert term["neg_loss"].count == len(batch) ** 2 - len(batch) - same
    active = term["pos_loss"].active + term["neg_loss"].active
    assert frame.active_share == pytest.approx(active / (len(batch) * (len(batch) - 1)))
    mean = sum(t.total / t.active for t in frame.terms if t.active)
    assert frame.loss == pytest.approx(mean, rel=1e-4)


def test_the_heaviest_pairs_and_the_heat_map_agree_with_autograd(small: Small) -> None:
    run = Run(small(loss="NTXentLoss"))
    frame = run.start()
    assert frame is not None
    embeddings = run.trainer.embed_batch(run._next_rows)[0].detach()  # type: ignore[arg-type]
    labels = run.trainer.labels[run._next_rows]  # type: ignore[index]
    index = run.trainer.train_index[run._next_rows]  # type: ignore[index]
    weights = run.trainer.loss.pair_weights(embeddings, labels).weights.double().numpy()
    both = weights + weights.T
    total = np.abs(np.triu(both, 1)).sum()
    place = {int(i): row for row, i in enumerate(index.tolist())}
    shares = [pair.share for pair in frame.batch.top]
    assert shares == sorted(shares, reverse=True)
    for pair in frame.batch.top:
        i, j = place[pair.anchor], place[pair.other]
        assert pair.weight == pytest.approx(both[i, j], rel=1e-3)
        assert pair.share == pytest.approx(abs(both[i, j]) / total, rel=1e-3)
        assert pair.positive == bool(labels[i] == labels[j])
    largest = np.unravel_index(np.abs(weights).argmax(), weights.shape)
    order = [place[int(i)] for i in frame.batch.index]
    row, column = order.index(int(largest[0])), order.index(int(largest[1]))
    assert frame.batch.weights[row, column] == 255


@pytest.mark.parametrize(
    "loss", [name for name, loss in catalog.losses().items() if "two views" not in loss.needs]
)
def test_every_loss_of_the_library_trains(small: Small, finished: Finished, loss: str) -> None:
    run = finished(small(loss=loss, steps=3))
    assert not run.diverged
    assert [frame.step for frame in run.recording.frames] == [0, 1, 2, 3]
    assert all(math.isfinite(frame.loss) for frame in run.recording.frames)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"batch": 201}, "batch must be at most the 200 training points there are, got 201"),
        pytest.param(
            {"device": "cuda"},
            "no CUDA device is available here",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here"),
        ),
    ],
)
def test_what_cannot_be_done_is_said_before_training(small: Small, fields: dict, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        Run(small(**fields))


@pytest.mark.gpu
def test_the_gpu_trains_as_well_as_the_cpu(small: Small, finished: Finished) -> None:
    config = small(steps=60)
    ends = [finished(config.replace(device=d)).recording.latest for d in ("cpu", "cuda")]
    scores = [end.quality["recall_at_1"] for end in ends if end is not None]
    assert abs(scores[0] - scores[1]) < 0.1  # type: ignore[operator]


def test_distances_beyond_single_precision_end_in_divergence_and_not_in_an_error(small: Small) -> None:
    config = small(loss="CenterLoss", lr=1e15, optimizer="sgd", output="none", encoder="linear", steps=4)
    run = Run(config)
    for _ in run:
        pass
    assert run.diverged
    assert "lower the learning rate" in run.reason


@pytest.mark.parametrize(
    ("boundaries", "pairing", "said"),
    [
        (3, "label", "num_classes of MarginLoss must be at least 4, the number of classes, got 3"),
        (4, "views", "pairing=views gives none; leave it at none"),
    ],
)
def test_boundaries_that_do_not_fit_the_classes_are_refused_in_a_sentence(
    small: Small, boundaries: int, pairing: str, said: str
) -> None:
    with pytest.raises(ParameterError, match=said):
        Run(small(loss="MarginLoss", loss_options={"num_classes": boundaries}, pairing=pairing))
    run = Run(small(loss="MarginLoss", loss_options={"num_classes": 5}, steps=2))
    for _ in run:
        pass
    assert run.trainer.loss.beta.shape == (5,)
