"""Recordings: which steps have frames, what is thinned, and the trip through a file."""

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from lab.config import RunConfig
from lab.frame import identical, quantised, restored, snapped
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
    grid, low, high = quantised(positions)
    assert grid.dtype == np.uint16
    assert np.array_equal(restored(grid, low, high), positions)
    assert np.abs(positions - raw).max() <= (raw.max() - raw.min()) / 65_535
    assert np.array_equal(snapped(np.full((3, 2), 1.5)), np.full((3, 2), 1.5, np.float32))


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


def test_positions_are_stored_as_moves_and_flat_embeddings_as_what_they_are_beyond_them():
    from lab.frame import moved, moves
    from lab.runfile import beyond, embedded

    rng = np.random.default_rng(0)
    grids = rng.integers(0, 65_536, (5, 7, 2)).astype(np.uint16)
    assert moves(grids).dtype == np.uint8
    assert moves(grids)[:, 1, 0, 0].tolist() == [
        *divmod((int(grids[1, 0, 0]) - int(grids[0, 0, 0])) % 65_536, 256)
    ]
    assert np.array_equal(moved(moves(grids)), grids)
    positions = rng.normal(size=(50, 2)).astype(np.float32)
    embeddings = (positions * (1 + 1e-4)).astype(np.float16)
    embeddings[0] = (np.inf, -0.0)
    kept = beyond(positions, embeddings)
    assert kept.dtype == np.uint16
    assert embedded(positions, kept).tobytes() == embeddings.tobytes()
    wide = rng.normal(size=(50, 8)).astype(np.float16)
    assert embedded(positions, beyond(positions, wide)) is wide
    assert embedded(positions, None) is None
