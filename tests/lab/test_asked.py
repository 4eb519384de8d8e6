"""Questions about the last step: who stands where, which forces, and in what words."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from lab.asked import LISTED, Question, answer
from lab.config import RunConfig
from lab.plane import Plane
from lab.run import Run

Small = Callable[..., RunConfig]


def stepped(config: RunConfig, steps: int = 2) -> Run:
    run = Run(config)
    run.start()
    for _ in range(steps):
        run.step(look=True)
    return run


def test_the_batch_is_told_where_it_stood_with_its_forces_and_its_way(small: Small) -> None:
    run = stepped(small(), 1)
    before = stepped(small(), 0)
    told = answer(run, Question("batch"))
    assert (told["step"], told["rows"]) == (1, 32)
    assert before.last is not None
    rows = before.last.rows
    assert told["samples"] == run.data.train[rows.numpy()].tolist()
    leaf = before.trainer.embed_batch(rows)[0].detach().requires_grad_()
    before.trainer.loss(leaf, before.last.labels).backward()
    assert leaf.grad is not None
    assert np.allclose(told["xy"], leaf.detach().numpy(), atol=1e-5)
    assert np.allclose(told["arrows"], -leaf.grad.numpy(), atol=1e-6)
    after = run.trainer.embed_batch(rows)[0].detach()
    assert np.allclose(np.array(told["xy"]) + told["moved"], after.numpy(), atol=1e-5)


def test_a_row_of_the_batch_has_its_own_forces(small: Small) -> None:
    run = stepped(small())
    batch = answer(run, Question("batch"))
    told = answer(run, Question("why", "batch", 4))
    assert told["sample"] == batch["samples"][4]
    assert told["how"] == "batch"
    assert told["arrow"] == batch["arrows"][4]
    assert told["xy"] == batch["xy"][4]
    assert (
        told["sentence"]
        == f"Sample {told['sample']} was in the batch of step 2: the forces before that update."
    )
    shares = [partner["share"] for partner in told["partners"]]
    assert shares == sorted(shares, reverse=True)
    assert len(shares) == min(LISTED, told["count"])
    assert sum(shares) + told["others"]["share"] == pytest.approx(1)
    assert told["pulls"]["count"] + told["pushes"]["count"] == told["count"]
    forces = np.array([partner["force"] for partner in told["partners"]]).sum(0) + told["others"]["arrow"]
    assert np.allclose(forces, told["total"], atol=1e-5)
    moved = told["moved"]
    cosine = (
        np.dot(moved["arrow"], told["arrow"]) / np.linalg.norm(moved["arrow"]) / np.linalg.norm(told["arrow"])
    )
    assert moved["along"] == pytest.approx(cosine, abs=1e-4)


def test_a_margin_changed_since_does_not_change_what_was(small: Small) -> None:
    run = stepped(small(), 1)
    told = answer(run, Question("why", "batch", 0))
    run.change("neg_margin", 0.1)
    assert run.marks[-1].value == 0.1
    assert answer(run, Question("why", "batch", 0)) == told


def test_proxies_are_those_before_the_update(small: Small) -> None:
    run = stepped(small(loss="ProxyAnchorLoss", lr=0.05), 0)
    first = answer(run, Question("why", "batch", 0))["partners"]
    run.step()
    assert answer(run, Question("why", "batch", 0))["partners"] == first, "step 1 saw the first batch"
    assert {partner["of_class"] for partner in first} == {0, 1, 2, 3}


def test_a_held_out_point_takes_the_place_of_its_nearest_class_mate(small: Small) -> None:
    run = stepped(small())
    point = 5
    sample = int(run.probe.index[point])
    told = answer(run, Question("why", "map", point))
    assert run.last is not None
    assert f"Sample {sample} is held out: no step trains on it" in told["sentence"]
    here = run.trainer.embed(torch.tensor([sample]))[0]
    mates = (run.last.labels == int(run.data.labels[sample])).nonzero()[:, 0]
    row = int(mates[(run.last.embeddings[mates] - here).norm(dim=1).argmin()])
    assert f"(sample {int(run.data.train[run.last.rows[row]])})" in told["sentence"]
    leaf = run.last.embeddings.clone()
    leaf[row] = here
    leaf.requires_grad_()
    run.trainer.loss(leaf, run.last.labels).backward()
    assert leaf.grad is not None
    assert np.allclose(told["total"], -leaf.grad[row].numpy(), atol=1e-6)
    assert "moved" not in told


def test_without_a_class_mate_it_is_one_more_sample_or_has_no_place(small: Small) -> None:
    for settings, words in (
        ({}, "as one more sample, because that batch has none of its class"),
        ({"loss": "TripletMarginLoss", "miner": "BatchHardMiner"}, "no sample of its class"),
    ):
        run = stepped(small(batch=4, per_class=2, **settings))
        assert run.last is not None
        missing = set(range(4)) - set(run.last.labels.tolist())
        point = int(np.flatnonzero(np.isin(run.data.labels[run.probe.index], list(missing)))[0])
        told = answer(run, Question("why", "map", point))
        assert words in (told.get("sentence") or told["reason"])
        assert bool(told["partners"]) == (not settings)


def test_free_points_of_the_batch_are_the_map_s_own(small: Small) -> None:
    run = stepped(small(encoder="free"))
    assert run.last is not None
    rows = run.last.rows.tolist()
    told = answer(run, Question("why", "map", rows[3]))
    assert told["how"] == "batch"
    assert told["total"] == answer(run, Question("why", "batch", rows.index(rows[3])))["total"]
    other = next(k for k in range(len(run.probe.index)) if k not in rows)
    assert (
        "was not in the batch of step 2, so no pair pulled it"
        in answer(run, Question("why", "map", other))["sentence"]
    )


@pytest.mark.parametrize(("of", "point"), [("map", 10_000), ("batch", 32)])
def test_a_point_that_is_not_there_has_no_forces(small: Small, of: str, point: int) -> None:
    told = answer(stepped(small()), Question("why", of, point))
    assert (told["reason"], told["partners"]) == ("There is no such point.", [])


def test_while_a_step_is_under_way_its_batch_is_told_as_far_as_it_is(small: Small) -> None:
    run = stepped(small())
    former = answer(run, Question("batch"))
    known: list[dict[str, Any]] = []
    for _ in range(5):
        run.phase()
        known.append(answer(run, Question("batch")))
    assert {told["step"] for told in known} == {3}
    assert known[0]["samples"] != former["samples"]
    assert [told["xy"] is not None for told in known] == [False, True, True, True, True]
    assert [told["arrows"] is not None for told in known] == [False, False, False, False, True]
    assert not any(told["moved"] for told in known)
    assert answer(run, Question("why", "batch", 0))["step"] == 3


def test_before_its_loss_was_computed_a_batch_has_no_forces(small: Small) -> None:
    run = stepped(small())
    run.phase()
    assert "has not seen this batch yet" in answer(run, Question("why", "batch", 0))["reason"]
    assert answer(run, Question("why", "map", 0))["step"] == 2


def test_the_plane_of_wide_embeddings_is_the_map_s(small: Small) -> None:
    run = stepped(small(dim=8))
    points = run.trainer.embed(torch.from_numpy(run.probe.index.copy()))
    plane = Plane(run)
    assert np.allclose(plane.points(points), run.recording.frames[-1].positions, atol=1e-3)
    arrows = plane.arrows(points[:5] - points[5:10])
    assert torch.allclose(arrows, plane.points(points[:5]) - plane.points(points[5:10]), atol=1e-6)


def test_a_loss_without_pairs_gives_the_sum_and_the_reason(small: Small) -> None:
    told = answer(stepped(small(loss="GE2ELoss")), Question("why", "batch", 0))
    assert "does not come apart" in told["reason"]
    assert told["partners"] == []
    assert told["size"] > 0
