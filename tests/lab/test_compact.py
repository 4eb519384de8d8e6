"""Frames hold their arrays in less memory than they give, and give them bit for bit."""

import pickle
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lab.compact import HeldMap
from lab.frame import Frame, identical
from lab.grid import Grid, snapped
from lab.recording import Recording
from tests.lab.turning import Finished, Small

MADE = np.random.default_rng(3)


def circle(count: int) -> NDArray[np.float32]:
    turns = MADE.uniform(0, 2 * np.pi, count)
    return snapped(np.stack([np.cos(turns), np.sin(turns)], axis=1))


MAPS = {
    "on the circle": circle(500),
    "in the plane": snapped(MADE.normal(size=(500, 2)).astype(np.float32)),
    "far out": snapped((1e30 * MADE.normal(size=(50, 2))).astype(np.float32)),
    "all in one place": np.full((7, 2), 0.25, np.float32),
    "at the origin": np.zeros((7, 2), np.float32),
    "one point": np.array([[0.5, -3.0]], np.float32),
    "none": np.zeros((0, 2), np.float32),
    "not on the grid": MADE.normal(size=(50, 2)).astype(np.float32),
    "not finite": np.array([[np.nan, 0.0], [np.inf, 1.0]], np.float32),
    "minus zero": np.array([[-0.0, 0.0], [1.0, -0.0]], np.float32),
    "wide": MADE.normal(size=(50, 2)),
}


@pytest.fixture
def frame(small: Small, finished: Finished) -> Frame:
    return finished(small(steps=3)).recording.frames[-1]


@pytest.mark.parametrize("name", MAPS)
def test_a_map_is_given_back_bit_for_bit(frame: Frame, name: str) -> None:
    positions = MAPS[name]
    assert identical(replace(frame, positions=positions).positions, positions)


def test_maps_of_runs_lie_on_their_grid_and_take_a_quarter_or_half() -> None:
    packed = {name: HeldMap().packed(None, positions) for name, positions in MAPS.items()}
    assert isinstance(packed["on the circle"], Grid)
    assert packed["on the circle"].places.nbytes * 4 == MAPS["on the circle"].nbytes
    assert packed["in the plane"].places.nbytes * 2 == MAPS["in the plane"].nbytes
    assert packed["not on the grid"] is MAPS["not on the grid"]


@pytest.mark.parametrize(
    "embeddings",
    [
        None,
        MADE.normal(size=(400, 3)).astype(np.float16),
        MADE.normal(size=(400, 2)).astype(np.float16),  # not those of the map
        np.full((400, 2), 65_504, np.float16),
    ],
    ids=["none", "of three numbers", "of two others", "clipped"],
)
def test_embeddings_are_given_back_bit_for_bit(frame: Frame, embeddings: Any) -> None:
    there = replace(frame, embeddings=embeddings)
    assert identical(there.embeddings, embeddings)
    assert there.embedding_bytes == (0 if embeddings is None else embeddings.nbytes)
    far = replace(there, positions=np.full((400, 2), 1e6, np.float32), embeddings=embeddings)
    assert identical(far.embeddings, embeddings)


@pytest.mark.parametrize("rows", [0, 1, 40, 300])
def test_weights_are_given_back_bit_for_bit(frame: Frame, rows: int) -> None:
    for weights in (MADE.integers(0, 256, (rows, rows)), MADE.integers(0, 2, (rows, rows)) * 255):
        given = weights.astype(np.uint8)
        assert identical(replace(frame.batch, weights=given).weights, given)


def test_a_frame_says_the_same_after_pickling_and_stripping(frame: Frame) -> None:
    assert identical(pickle.loads(pickle.dumps(frame)), frame)
    bare = replace(frame, embeddings=None)
    assert bare.embeddings is None
    assert identical(bare.positions, frame.positions)
    assert identical(replace(bare, embeddings=frame.embeddings), frame)


def test_a_recording_takes_less_than_half_of_what_its_frames_show(small: Small, finished: Finished) -> None:
    config = small(steps=60, batch=128, data_options={"points": 4000})
    frames = finished(config).recording.frames
    shown = sum(frame.nbytes + frame.embedding_bytes for frame in frames)
    tracemalloc.start()
    try:
        recording = Recording(config, np.arange(3), np.zeros(3, int))
        for one in frames:
            recording.add(replace(one, extra=False))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(recording) == len(frames)
    assert taken < shown / 2
