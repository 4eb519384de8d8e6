"""Runs that begin alike share the first look, and nothing of what they record changes by it."""

import gc
from typing import Any

import pytest

import datasets
from lab import first_look
from lab.frame import identical
from lab.probe import Probe, Snapshot
from lab.run import Run
from tests.lab.turning import Finished, Small


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The probes that were looked at, one entry a look; nothing is known before."""
    monkeypatch.setattr(first_look, "_KEPT", type(first_look._KEPT)())
    made: list[int] = []
    real = Probe.look

    def counted(self: Probe, *args: Any) -> Snapshot | None:
        made.append(id(self))
        return real(self, *args)

    monkeypatch.setattr(Probe, "look", counted)
    return made


def test_the_second_of_two_equal_runs_takes_over_the_first_look_and_records_the_same(
    small: Small, finished: Finished, looks: list[int]
) -> None:
    for settings in ({}, {"dim": 5, "output": "none"}, {"pairing": "views"}):
        config = small(steps=30, **settings)
        looks.clear()
        first = finished(config)
        alone = len(looks)
        second = finished(config.replace(steps=31))  # more steps, the same beginning
        assert len(looks) == 2 * alone  # one frame more at its end, one look less at its beginning
        assert identical(second.recording.frames[0].positions, first.recording.frames[0].positions)
        first_look._KEPT.clear()
        again = finished(config.replace(steps=31))
        assert second.recording.equals(again.recording)


@pytest.mark.parametrize(
    "other", [{"seed": 1}, {"dim": 3}, {"output": "none"}, {"loss": "TripletMarginLoss"}]
)
def test_runs_that_differ_share_nothing(small: Small, looks: list[int], other: dict[str, Any]) -> None:
    first, second = Run(small()), Run(small(**other))
    first.start()
    second.start()
    assert len(looks) == 2
    here, there = first.recording.frames[0], second.recording.frames[0]
    assert not identical(here.positions, there.positions) or here.loss != there.loss


def test_other_contents_under_the_same_name_are_looked_at_anew(small: Small, looks: list[int]) -> None:
    config = small()
    Run(config).start()
    datasets._LOADED.clear()
    run = Run(config)
    gc.collect()
    run.start()
    assert len(looks) == 2


def test_no_more_are_kept_than_there_is_room_for(
    small: Small, looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    Run(small()).start()
    size = first_look.size_of(next(iter(first_look._KEPT.values()))[1])
    monkeypatch.setattr(first_look, "ROOM", 2 * size + size // 2)
    for seed in range(1, 4):
        Run(small(seed=seed)).start()
    assert len(first_look._KEPT) == 2
    Run(small(seed=3)).start()
    assert len(looks) == 4, "the last one is still there"
    Run(small()).start()
    assert len(looks) == 5, "the first one is not"
    monkeypatch.setattr(first_look, "ROOM", size - 1)
    Run(small(seed=5)).start()
    assert len(first_look._KEPT) == 2, "what is larger than the room is not kept"
