"""Recordings: which steps have frames, what is thinned, and the trip through a file."""

import io
import json
import math
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lab.config import RunConfig
from lab.frame import identical
from lab.grid import quantised, restored, snapped
from lab.recording import CURVES, Recording, is_frame_step
from lab.run import Run
from lab.runfile import differences
from losslib.errors import ParameterError

Small = Callable[..., RunConfig]
Finished = Callable[[RunConfig], Run]


def test_frames_fall_densely_at_first_and_sparsely_later() -> None:
    steps = [step for step in range(3001) if is_frame_step(step)]
    assert steps[:12] == [*range(11), 12]
    gaps = np.diff(steps)
    assert (np.diff(gaps) >= 0).all()  # never denser again
    assert [int(gaps[np.searchsorted(steps, s) - 1]) for s in (10, 40, 100, 200, 3000)] == [1, 2, 5, 10, 20]


def test_positions_on_the_grid_survive_quantisation_exactly() -> None:
    raw = np.random.default_rng(0).normal(size=(500, 2)).astype(np.float32)
    positions = snapped(raw)
    grid = quantised(positions)
    assert grid.places.dtype == np.uint16
    assert not grid.circle
    assert np.array_equal(restored(grid), positions)
    assert np.abs(positions - raw).max() <= (raw.max() - raw.min()) / 4_095 / 2 * 1.001
    assert np.array_equal(snapped(np.full((3, 2), 1.5)), np.full((3, 2), 1.5, np.float32))


def test_positions_on_the_unit_circle_are_angles() -> None:
    raw = np.random.default_rng(1).normal(size=(500, 2)).astype(np.float32)
    raw /= np.hypot(*raw.T)[:, None]
    positions = snapped(raw)
    grid = quantised(positions)
    assert grid.circle
    assert (grid.places[:, 1] == 0).all()
    assert np.array_equal(restored(grid), positions)
    assert np.abs(np.hypot(*positions.T.astype(np.float64)) - 1).max() < 1e-7
    assert np.abs(positions - raw).max() <= np.pi / 16_384 * 1.001  # half of one of 16,384 angles
    assert not quantised(np.array([[1, 0], [0, 0]], np.float32)).circle  # a zero vector has no angle


@pytest.fixture(scope="module")
def run(small: Small, finished: Finished) -> Run:
    return finished(small(dim=3, steps=31))


def test_a_recording_answers_for_any_step(run: Run) -> None:
    recording = run.recording
    assert [frame.step for frame in recording.frames] == [*range(11), *range(12, 31, 2), 31]
    assert recording.at(23).step == 22
    assert recording.at(-5).step == 0
    assert recording.at(10**9).step == 31
    assert recording.latest is recording.frames[-1]
    curves = recording.curves()
    assert set(curves) == {"step", *CURVES}
    assert curves["loss"].tolist() == [frame.loss for frame in recording.frames]
    counted = np.flatnonzero(~np.isnan(curves["map_at_r"]))
    assert curves["step"][counted].tolist() == [0, 10, 30, 31]  # every tenth frame, the first and the last


def test_thinning_keeps_first_newest_and_the_early_ones_and_all_curves(run: Run) -> None:
    whole = run.recording
    frames = whole.frames
    room = 10 * frames[0].nbytes
    thin = Recording(whole.config, whole.probe, whole.labels, frame_bytes=room, embedding_bytes=10**9)
    for frame in frames:
        thin.add(frame)
        assert sum(kept.nbytes for kept in thin.frames) <= room
        assert thin.latest is frame
    steps = [frame.step for frame in thin.frames]
    assert len(steps) == 10
    assert steps[0] == 0
    assert steps[-1] == 31
    assert np.diff(steps)[:4].mean() < np.diff(steps)[-4:].mean()
    assert thin.curves()["loss"].tolist() == whole.curves()["loss"].tolist()


def test_embeddings_leave_before_frames_do(run: Run) -> None:
    whole = run.recording
    first = whole.frames[0].embeddings
    assert first is not None
    thin = Recording(whole.config, whole.probe, whole.labels, embedding_bytes=5 * first.nbytes)
    for frame in whole.frames:
        thin.add(frame)
    held = [frame.step for frame in thin.frames if frame.embeddings is not None]
    assert len(thin.frames) == len(whole.frames)
    assert len(held) == 5
    assert {0, 31} <= set(held)


def test_a_file_gives_back_every_bit(run: Run, tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "run.npz"
    recording = run.recording
    recording.save(path)
    again = Recording.load(path)
    assert again.equals(recording)
    assert again.config == recording.config
    assert np.array_equal(again.probe, recording.probe)
    assert np.array_equal(again.labels, recording.labels)
    assert again.class_names == recording.class_names
    assert again.notes == ()
    assert all(
        m.value == n.value for m, n in zip(again.frames[0].marks, recording.frames[0].marks, strict=True)
    )
    with zipfile.ZipFile(path) as archive:
        assert all(name.endswith(".npy") for name in archive.namelist())
    np.load(path, allow_pickle=False)["header"]  # readable without pickle


def test_a_file_made_elsewhere_says_what_differs(run: Run) -> None:
    made = {"losslib": "0.0.9", "torch": "2.6.0", "threads": 1, "device": "cuda"}
    here = {"losslib": "0.0.9", "torch": "2.13.0", "threads": 1, "device": "cpu"}
    assert differences(made, here) == (
        "Made with torch 2.6.0, here it is 2.13.0: training it again may differ in the last digits.",
        "Made with device cuda, here it is cpu: training it again may differ in the last digits.",
    )
    stream = io.BytesIO()
    run.recording.provenance, own = {**run.recording.provenance, "torch": "1.0"}, run.recording.provenance
    run.recording.save(stream)
    run.recording.provenance = own
    stream.seek(0)
    assert "Made with torch 1.0" in Recording.load(stream).notes[0]


@pytest.mark.parametrize("kind", ["text", "empty zip", "other npz", "format", "truncated", "missing"])
def test_what_is_no_run_file_is_refused_in_one_sentence(kind: str, run: Run, tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "file.npz"
    if kind == "text":
        path.write_text("step,loss\n1,2\n")
    elif kind == "empty zip":
        zipfile.ZipFile(path, "w").close()
    elif kind == "other npz":
        np.savez(path, a=np.zeros(3))
    elif kind == "format":
        np.savez(path, header=np.frombuffer(json.dumps({"format": 99}).encode(), dtype=np.uint8))
    elif kind == "truncated":
        run.recording.save(path)
        path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(ParameterError, match=r"^run file: ") as caught:
        Recording.load(path)
    assert "\n" not in str(caught.value)


def test_a_file_with_a_pickle_inside_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "file.npz"
    np.savez(path, allow_pickle=True, header=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ParameterError, match="not a run file"):
        Recording.load(path)


def test_identical_sees_a_single_bit(run: Run) -> None:
    frame = run.recording.frames[3]
    positions = frame.positions.copy()
    positions[0, 0] = np.nextafter(positions[0, 0], np.float32(9))
    assert identical(frame, replace(frame))
    assert not identical(frame, replace(frame, positions=positions))
    assert not identical(frame, replace(frame, quality={**frame.quality, "alignment": 0.5}))
    assert identical(replace(frame, loss=float("nan")), replace(frame, loss=float("nan")))


def test_maps_of_both_kinds_are_stored_as_what_changed_and_come_back():
    from lab.grid import last_unpacked, packed, unpacked

    rng = np.random.default_rng(0)
    angles = np.array([0.0, 3.1, -3.1, 1.0])[:, None] + np.cumsum(rng.normal(size=(4, 6)), axis=0)
    circle = [snapped(np.stack([np.cos(a), np.sin(a)], axis=1).astype(np.float32)) for a in angles]
    flat = [snapped(rng.normal(size=(6, 2)).astype(np.float32)) for _ in range(3)]
    maps = [*circle, *flat, circle[0]]
    arrays = packed(maps)
    assert arrays["paths"].shape == (2, 6, 2, 8)
    assert arrays["circle"].tolist() == [True] * 4 + [False] * 3 + [True]
    assert all(np.array_equal(one, other) for one, other in zip(unpacked(arrays), maps, strict=True))
    for last in range(1, len(maps) + 1):
        assert np.array_equal(last_unpacked(packed(maps[:last])), maps[last - 1])
    still = packed([circle[0], circle[0]])
    assert not still["paths"][..., 1].any(), "no change is 0"


def test_flat_embeddings_are_stored_as_what_they_are_beyond_the_map():
    from lab.runfile import beyond, embedded

    rng = np.random.default_rng(0)
    positions = rng.normal(size=(50, 2)).astype(np.float32)
    embeddings = (positions * (1 + 1e-4)).astype(np.float16)
    embeddings[0] = (np.inf, -0.0)
    kept = beyond(positions, embeddings)
    assert kept.dtype == np.uint16
    assert embedded(positions, kept).tobytes() == embeddings.tobytes()
    wide = rng.normal(size=(50, 8)).astype(np.float16)
    assert embedded(positions, beyond(positions, wide)) is wide
    assert embedded(positions, None) is None


def test_floats_are_taken_out_of_the_header_and_put_back():
    from lab.floats import put_back, taken_out

    value = [{"a": 1.5, "b": [1, 2.0, None], "c": "x"}, {"a": float("-inf"), "b": [3, 4.25, True], "c": []}]
    rest, planes = taken_out(value)
    assert rest[0] == {"a": {}, "b": [1, {}, None], "c": "x"}
    assert planes.shape == (8, 4)
    assert put_back(rest, planes) == value
    assert put_back(*taken_out([float("nan")]))[0] != put_back(*taken_out([float("nan")]))[0]
    with pytest.raises(ValueError, match="floats are missing"):
        put_back(rest, planes[:, :3])


@pytest.mark.parametrize("number", [1, 2])
def test_files_of_former_formats_open(number: int) -> None:
    file = Path(__file__).parent / "files" / f"run_format_{number}.npz"
    recording = Recording.load(file)
    assert [frame.step for frame in recording.frames] == list(range(12))
    last = recording.frames[-1]
    assert last.loss == 0.33839842677116394
    assert last.positions[:2].tolist() == [
        [-0.5435909628868103, -0.271340012550354],
        [-0.6371215581893921, 0.17151664197444916],
    ]
    assert last.embeddings[:2].tolist() == [
        [-0.54345703125, -0.271240234375],
        [-0.63720703125, 0.1715087890625],
    ]
    assert last.batch.top[0][:3] == (44, 41, True)
    assert math.isnan(recording.curves()["map_at_r"][1])


@pytest.mark.parametrize(
    ("changes", "most"),
    [({}, 53_000), ({"output": "none"}, 65_000), ({"loss": "NTXentLoss", "dim": 8, "batch": 128}, 172_000)],
)
def test_a_file_of_500_points_is_small(
    changes: dict[str, object], most: int, small: Small, finished: Finished
) -> None:
    """30 frames early in a run, where points move most; 300 are a few hundred kB then.

    The last has its room for wide embeddings and pair weights (140 kB) filled, which more frames share.
    """
    config = small(data_options={"points": 1000, "classes": 10}, steps=60, **{"batch": 64, **changes})
    recording = finished(config).recording
    stream = io.BytesIO()
    recording.save(stream)
    assert (len(recording.probe), len(recording.frames)) == (500, 30)
    assert len(stream.getvalue()) < most


def test_a_file_keeps_only_as_many_wide_embeddings_and_weights_as_have_room(run: Run) -> None:
    from lab.runfile import without_embeddings, without_weights

    frames = run.recording.frames
    one = frames[0].embeddings
    assert one is not None
    lighter = without_embeddings(frames, 4 * one.nbytes)
    held = [frame.step for frame in lighter if frame.embeddings is not None]
    assert len(held) == 4
    assert {0, 31} <= set(held)
    weighed = [frame.step for frame in without_weights(frames, 0) if frame.batch.weights.any()]
    assert weighed == [0, 31]
    assert [frame.step for frame in without_weights(frames, 10**6) if frame.batch.weights.any()] == [
        frame.step for frame in frames if frame.batch.weights.any()
    ]
