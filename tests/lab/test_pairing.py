"""Which pairs of a batch are positive under each rule, against plain loops; and that each rule trains."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from lab.config import RunConfig, trainable_losses
from lab.pairing import RULES, Paired, known_labels, refusal, why_no_tuples
from lab.run import Run
from losslib import catalog
from losslib.errors import ParameterError
from losslib.losses import ContrastiveLoss
from losslib.pairs import PairMasks
from losslib.types import PairIndices

Finished = Callable[[RunConfig], Run]

ROLL = {"data": "swiss_roll", "data_options": {"points": 400}, "batch": 24, "steps": 3}
DIGITS = {"data": "digits", "batch": 24, "steps": 3}


def first_batch(config: RunConfig) -> tuple[Run, Paired, Tensor]:
    """The run, what the loss of its first batch is called with, and its embeddings."""
    run = Run(config)
    run.start()
    assert run.last is not None
    return run, run.last.paired, run.last.embeddings


def pairs_of(run: Run, paired: Paired, embeddings: Tensor) -> tuple[set, set]:
    """The positive and the negative pairs that the loss itself sees, as places in the batch."""
    weights = run.trainer.loss.pair_weights(embeddings, **paired.inputs)
    return tuple(
        {(int(i), int(j)) for i, j in mask.nonzero()} for mask in (weights.positive, weights.negative)
    )


def by_loop(rows: int, together: Callable[[int, int], bool]) -> tuple[set, set]:
    every = [(i, j) for i in range(rows) for j in range(rows) if i != j]
    positive = {pair for pair in every if together(*pair)}
    return positive, set(every) - positive


def test_the_rules_say_themselves_in_a_sentence() -> None:
    for name, rule in RULES.items():
        assert rule.positives.endswith("."), name
        assert rule.quality.endswith("."), name


def test_label_pairs_those_of_one_class() -> None:
    run, paired, x = first_batch(RunConfig(**DIGITS))
    y = run.data.labels[paired.index]
    assert pairs_of(run, paired, x) == by_loop(24, lambda i, j: y[i] == y[j])


@pytest.mark.parametrize("delta", [0.0, 0.05, 0.4])
def test_continuous_pairs_those_within_delta(delta: float) -> None:
    run, paired, x = first_batch(RunConfig(**ROLL, pairing="continuous", delta=delta))
    assert run.data.continuous is not None
    t = run.data.continuous[paired.index].astype(float)
    expected = by_loop(24, lambda i, j: abs(t[i] - t[j]) <= delta)
    assert pairs_of(run, paired, x) == expected
    assert bool(expected[0]) == (delta > 0)


def test_views_pairs_the_two_of_one_sample_and_asks_no_label() -> None:
    run, paired, x = first_batch(RunConfig(**DIGITS, pairing="views"))
    index = paired.index.tolist()
    assert len(x) == 48
    assert index[:24] == index[24:]
    assert len(set(index)) == 24
    assert pairs_of(run, paired, x) == by_loop(48, lambda i, j: index[i] == index[j])
    assert not torch.equal(x[:24], x[24:]), "the two views differ"


@pytest.mark.parametrize("fraction", [0.0, 0.3, 1.0])
def test_semi_pairs_views_and_known_labels(fraction: float) -> None:
    config = RunConfig(**{**DIGITS, "batch": 40}, pairing="semi", label_fraction=fraction)
    run, paired, x = first_batch(config)
    train = torch.from_numpy(run.data.labels[run.data.train])
    told = dict(zip(run.data.train.tolist(), known_labels(train, fraction, 0).tolist(), strict=True))
    index, y = paired.index.tolist(), run.data.labels

    def together(i: int, j: int) -> bool:
        a, b = index[i], index[j]
        return a == b or (told[a] and told[b] and y[a] == y[b])

    expected = by_loop(80, together)
    assert pairs_of(run, paired, x) == expected
    assert len(expected[0]) > 80 or fraction == 0.0


@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 1.0])
def test_known_labels_are_that_share_of_each_class_and_the_same_for_a_seed(fraction: float) -> None:
    labels = torch.randint(0, 5, (400,), generator=torch.Generator().manual_seed(0))
    known = known_labels(labels, fraction, 7)
    for c in range(5):
        members = labels == c
        assert int(known[members].sum()) == round(fraction * int(members.sum()))
    assert torch.equal(known, known_labels(labels, fraction, 7))
    if 0 < fraction < 1:
        assert not torch.equal(known, known_labels(labels, fraction, 8))


def test_only_pairing_by_label_draws_by_class() -> None:
    for pairing in ("views", "semi", "continuous"):
        config = RunConfig(**ROLL, pairing=pairing, per_class=12)
        run = Run(config)
        assert run.trainer.sampler.groups == 0
    assert Run(RunConfig(**ROLL, per_class=12)).trainer.sampler.groups == 2


@pytest.mark.parametrize("pairing", ["label", "continuous", "views", "semi"])
def test_a_frame_says_which_pairs_of_its_batch_are_positive(pairing: str) -> None:
    config = RunConfig(**ROLL, pairing=pairing, label_fraction=0.5, delta=0.1)
    run, paired, x = first_batch(config)
    view = run.recording.frames[0].batch
    positive, _ = pairs_of(run, paired, x)
    index = paired.index.tolist()
    # the frame's rows stand in another order: compare as pairs of samples, each as often as it occurs
    expected = sorted((index[i], index[j]) for i, j in positive)
    rows, columns = np.nonzero(view.positive)
    assert sorted(zip(view.index[rows].tolist(), view.index[columns].tolist(), strict=True)) == expected
    assert (view.labels == run.data.labels[view.index]).all()
    assert (np.diff(view.labels) >= 0).all()
    assert not view.positive.diagonal().any()
    for pair in view.top:
        i, j = (np.flatnonzero(view.index == end) for end in (pair.anchor, pair.other))
        assert view.positive[np.ix_(i, j)].any() == pair.positive


def test_the_weights_of_a_frame_are_those_of_the_call_in_its_order() -> None:
    run, paired, x = first_batch(RunConfig(**ROLL, pairing="continuous", loss="NTXentLoss", dim=3))
    weights = run.trainer.loss.pair_weights(x, **paired.inputs).weights.abs()
    assert run.data.continuous is not None
    order = np.argsort(run.data.continuous[paired.index], kind="stable")
    expected = (weights / weights.max() * 255).round().numpy()[np.ix_(order, order)]
    assert np.abs(run.recording.frames[0].batch.weights - expected).max() <= 1
    assert run.recording.frames[0].active_share == pytest.approx(
        float(run.trainer.loss.pair_weights(x, **paired.inputs).active_share)
    )


def test_index_tuples_move_with_the_rows() -> None:
    x, labels = torch.randn(6, 3), torch.tensor([1, 0, 1, 0, 2, 2])
    tuples = PairIndices(*(torch.tensor(rows) for rows in ([0, 1], [2, 3], [0, 5, 5], [4, 1, 0])))
    paired = Paired(labels, torch.arange(6), {"labels": labels, "indices_tuple": tuples}, labels)
    moved, order = paired.ordered()
    before, after = ContrastiveLoss()(x, **paired.inputs), ContrastiveLoss()(x[order], **moved.inputs)
    torch.testing.assert_close(before, after)
    assert moved.labels.tolist() == [0, 0, 1, 1, 2, 2]
    masks = PairMasks(torch.rand(6, 6) < 0.3, torch.rand(6, 6) < 0.5)
    paired = replace(paired, inputs={"indices_tuple": masks})
    moved, order = paired.ordered()
    torch.testing.assert_close(
        ContrastiveLoss()(x, indices_tuple=masks), ContrastiveLoss()(x[order], **moved.inputs)
    )


QUICK = {**DIGITS, "batch": 64, "steps": 40, "encoder": "mlp"}
BLOBS = {"data": "blobs", "data_options": {"points": 400}, "batch": 64, "steps": 40}
MINED = {"loss": "TripletMarginLoss", "miner": "TripletMarginMiner"}
GAINS = [
    (RunConfig(**{**ROLL, "batch": 96, "steps": 40}, pairing="continuous"), 0.3),
    (RunConfig(**QUICK, pairing="views", loss="NTXentLoss", dim=8), 0.1),
    (RunConfig(**QUICK, pairing="semi", loss="SupConLoss", dim=8), 0.1),
    (RunConfig(**BLOBS, pairing="views", loss="VICRegLoss"), 0.2),
    (RunConfig(**QUICK, **MINED, miner_options={"type_of_triplets": "semihard"}), 0.15),
]


@pytest.mark.parametrize(("config", "gain"), GAINS)
def test_every_rule_improves_what_it_never_saw(config: RunConfig, gain: float, finished: Finished) -> None:
    run = finished(config)
    first, last = run.recording.frames[0].quality, run.recording.frames[-1].quality
    assert run.reason == ""
    assert not set(run.recording.probe.tolist()) & set(run.data.train.tolist())
    assert last["recall_at_1"] - first["recall_at_1"] >= gain
    assert last["map_at_r"] > first["map_at_r"]


@pytest.mark.parametrize("miner", list(catalog.miners()))
def test_every_miner_trains_under_every_rule(miner: str) -> None:
    for pairing in RULES:
        run = Run(RunConfig(**ROLL, pairing=pairing, miner=miner, loss="ContrastiveLoss"))
        for _ in run:
            pass
        assert run.steps_done == 3, f"{pairing}: {run.reason}"
        assert run.last is not None
        mined = run.last.inputs["indices_tuple"]
        view = run.recording.frames[-1].batch
        # what was mined is part of the rule: no weight lies elsewhere
        weighed = view.weights > 0
        assert len(mined[0]) == 0 or weighed.any() or run.recording.frames[-1].loss == 0
        assert not weighed.diagonal().any()


def test_the_active_share_is_that_of_the_mined_pairs() -> None:
    config = RunConfig(**DIGITS, miner="BatchHardMiner", loss="TripletMarginLoss")
    run, paired, x = first_batch(config)
    triplets = paired.inputs["indices_tuple"]
    weights = run.trainer.loss.pair_weights(x, **paired.inputs)
    listed = {(int(a), int(o)) for a, p, n in zip(*triplets, strict=True) for o in (p, n)}
    assert int((weights.positive | weights.negative).sum()) == len(listed) <= 48
    active = sum(float(weights.weights[pair]) != 0 for pair in listed)
    assert run.recording.frames[0].active_share == pytest.approx(active / len(listed))


TWO_VIEW = [name for name, cls in catalog.losses().items() if "two views" in cls.needs]


@pytest.mark.parametrize("name", TWO_VIEW)
def test_losses_of_two_views_train_under_views_alone(name: str) -> None:
    run = Run(RunConfig(**DIGITS, pairing="views", loss=name, dim=4))
    start = run.start()
    embeddings = run.last.embeddings if run.last else torch.empty(0)
    assert start is not None
    expected = float(run.trainer.loss(embeddings[:24], ref_emb=embeddings[24:]).detach())
    assert start.loss == pytest.approx(expected)
    total = sum(term.total for term in start.terms)
    assert np.isfinite(total)
    for _ in run:
        pass
    assert (run.steps_done, run.reason) == (3, "")
    for pairing in ("label", "semi"):
        with pytest.raises(ParameterError, match=f"run: {name} needs two views .*or pairing=views"):
            RunConfig(**DIGITS, pairing=pairing, loss=name)
    with pytest.raises(ParameterError, match="takes no pairs or triplets of a miner, because row i of both"):
        RunConfig(**DIGITS, pairing="views", loss=name, miner="BatchHardMiner")


@pytest.mark.parametrize("pairing", list(RULES))
def test_losses_are_offered_exactly_if_they_train(pairing: str) -> None:
    offered = trainable_losses(pairing)
    assert {"ContrastiveLoss", "TripletMarginLoss", "NTXentLoss", "SupConLoss"} <= set(offered)
    assert ("ArcFaceLoss" in offered) == (pairing == "label")
    assert ("VICRegLoss" in offered) == (pairing == "views")
    assert ("GE2ELoss" in offered) == (pairing != "continuous")
    for name in catalog.losses():
        if name not in offered:
            with pytest.raises(ParameterError, match=f"run: {name} .*choose another loss"):
                RunConfig(**ROLL, pairing=pairing, loss=name)
        elif pairing != "label":
            run = Run(RunConfig(**{**ROLL, "steps": 1}, pairing=pairing, loss=name, dim=4))
            for _ in run:
                pass
            assert (run.steps_done, run.reason) == (1, ""), name


def test_a_loss_without_tuples_says_why_in_its_own_words() -> None:
    assert why_no_tuples("ContrastiveLoss") == ""
    assert why_no_tuples("ArcFaceLoss") == ""
    assert why_no_tuples("GE2ELoss") == "its centroids are those of classes"
    assert refusal("GE2ELoss", "label", "BatchHardMiner") == (
        "GE2ELoss takes no pairs or triplets of a miner, because its centroids are those of classes; "
        "choose miner=none"
    )


def test_equal_configs_draw_equal_views_and_mine_equal_pairs() -> None:
    config = RunConfig(
        **{**DIGITS, "steps": 8}, pairing="views", loss="NTXentLoss", miner="DistanceWeightedMiner"
    )
    recordings = []
    for _ in range(2):
        run = Run(config)
        for _ in run:
            pass
        recordings.append(run.recording)
    assert recordings[0].equals(recordings[1])
