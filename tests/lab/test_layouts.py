"""t-SNE and UMAP: guards, the warm start, the process they run in."""

import struct
import subprocess
import sys
import types

import numpy as np
import pytest

from lab import layouts
from lab.layout_process import PROCESS, LayoutJob
from lab.layout_worker import progress_in
from lab.layouts import METHODS, aligned, checked_options, compute, missing, principal_start, refusal, sample
from lab.neighbours import Neighbourhoods
from losslib.errors import ParameterError

RNG = np.random.default_rng(2)
CENTRES = 6 * RNG.normal(size=(5, 8))
CLOUD = (CENTRES[np.arange(120) % 5] + RNG.normal(size=(120, 8))).astype(np.float32)


@pytest.fixture(autouse=True, scope="module")
def nothing_left_behind():
    yield
    PROCESS.close()


def over(job: LayoutJob) -> LayoutJob:
    assert job.wait(120)
    return job


def test_procrustes_undoes_a_turn_a_mirror_and_a_shift() -> None:
    flat = RNG.normal(size=(50, 2))
    angle = 0.8
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved = flat @ np.diag([1.0, -1.0]) @ turn + [5.0, -3.0]
    assert np.allclose(aligned(moved, flat), flat)
    noisy = moved + 0.1 * RNG.normal(size=flat.shape)
    found = aligned(noisy, flat)
    before, after = ((a[:, None] - a).reshape(-1, 2) for a in (noisy, found))
    assert np.allclose(np.linalg.norm(before, axis=1), np.linalg.norm(after, axis=1)), "no distance changes"
    angles = np.linspace(0, 2 * np.pi, 60)
    others = [
        (
            (noisy - noisy.mean(0)) @ mirror @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
            + flat.mean(0)
        )
        for a in angles
        for mirror in (np.eye(2), np.diag([1.0, -1.0]))
    ]
    assert ((found - flat) ** 2).sum() <= min(((other - flat) ** 2).sum() for other in others)
    assert aligned(noisy, None) is noisy


def test_tsne_in_its_process_keeps_neighbours_and_tells_its_progress() -> None:
    job = over(LayoutJob("tsne", CLOUD, {"perplexity": 20.0}))
    assert job.reason == ""
    assert job.positions.shape == (120, 2)
    assert 0.9 < job.progress <= 1
    kept = Neighbourhoods(CLOUD, job.positions)
    assert kept.kept()[9] > 3 * kept.chance()[9]
    again = over(LayoutJob("tsne", CLOUD, {"perplexity": 20.0}))
    assert np.array_equal(again.positions, job.positions), "one seed, one layout"
    # the next moment: the same points a little further on
    moved = np.random.default_rng(1).normal(size=CLOUD.shape)  # its own: tests come in any order
    later = CLOUD + 0.2 * moved.astype(np.float32)
    warm = over(LayoutJob("tsne", later, {"perplexity": 20.0}, start=job.positions)).positions
    cold = over(LayoutJob("tsne", later, {"perplexity": 20.0}, seed=1)).positions
    shift = lambda other: np.linalg.norm(other - job.positions, axis=1).mean()  # noqa: E731
    assert shift(warm) < 0.5 * job.positions.std()  # from another start: 1.7 to 2.2 of it
    assert shift(warm) < shift(cold)


@pytest.mark.parametrize("points", [np.ones((50, 4)), np.zeros((200, 2)), np.eye(2)[np.arange(80) % 2]])
@pytest.mark.parametrize("name", METHODS)
def test_constant_data_is_a_sentence(points: np.ndarray, name: str) -> None:
    assert "no neighbourhoods" in refusal(name, points)
    with pytest.raises(ParameterError, match="collapse"):
        compute(name, points, {})


def test_the_process_survives_constant_data_and_answers_the_next_request() -> None:
    said = over(LayoutJob("tsne", np.ones((50, 4), np.float32), {}))
    assert said.positions is None
    assert "All embeddings are equal" in said.reason
    few = np.concatenate([np.ones((40, 3)), np.eye(3), np.zeros((1, 3)), 2 * np.ones((1, 3))])
    assert over(LayoutJob("tsne", few, {})).positions.shape == (45, 2)


def test_a_process_that_dies_is_a_sentence_and_the_next_one_works() -> None:
    dying = (sys.executable, "-c", "import os; os.read(0, 1); os._exit(9)")
    said = over(LayoutJob("tsne", CLOUD, {}, command=dying))
    assert said.reason == "t-SNE ended without a result on these embeddings; the run is not affected."
    assert over(LayoutJob("tsne", CLOUD[:30], {})).positions is not None


def test_a_stopped_layout_ends_and_lets_the_next_one_in() -> None:
    sleeping = (sys.executable, "-c", "import time; time.sleep(600)")
    first = LayoutJob("tsne", CLOUD, {}, command=sleeping)
    second = LayoutJob("tsne", CLOUD[:30], {})
    assert not second.wait(0.3)
    assert second.waiting
    first.stop()
    assert over(first).reason == "t-SNE was stopped."
    assert over(second).positions.shape == (30, 2)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts.importlib.util, "find_spec", lambda name: None)
    assert missing("umap").endswith("pip install umap-learn")
    with pytest.raises(ParameterError, match="umap-learn"):
        compute("umap", CLOUD, {})


def test_umap_is_called_with_the_options_and_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {}

    class Umap:
        def __init__(self, **options):
            given.update(options)

        def fit_transform(self, points):
            return points[:, :2] + 1

    monkeypatch.setitem(sys.modules, "umap", types.SimpleNamespace(UMAP=Umap, __spec__=object()))
    assert compute("umap", CLOUD[:20], {"min_dist": 0.5}) == pytest.approx(CLOUD[:20, :2] + 1)
    assert (given["n_neighbors"], given["min_dist"], given["init"]) == (15, 0.5, "spectral")
    start = RNG.normal(size=(20, 2)).astype(np.float32)
    compute("umap", CLOUD[:20], {"n_neighbors": 100}, start)
    assert given["n_neighbors"] == 19
    assert np.array_equal(given["init"], start)


@pytest.mark.skipif(bool(missing("umap")), reason="umap-learn is not installed")
def test_umap_in_its_process_keeps_neighbours() -> None:
    job = over(LayoutJob("umap", CLOUD, {}))
    assert job.reason == ""
    kept = Neighbourhoods(CLOUD, job.positions)
    assert kept.kept()[9] > 3 * kept.chance()[9]


def test_options_are_checked_and_held_to_the_number_of_points() -> None:
    assert checked_options("tsne", {}, 31) == {"perplexity": 10.0}
    assert checked_options("tsne", {"perplexity": 50}, 1000) == {"perplexity": 50}
    with pytest.raises(ParameterError, match="perplexity"):
        checked_options("tsne", {"perplexity": 0.5}, 1000)
    with pytest.raises(ParameterError, match="no option 'margin'"):
        checked_options("tsne", {"margin": 1}, 1000)
    assert "at least 5 points, there are 4" in refusal("tsne", CLOUD[:4])
    assert "finite" in refusal("tsne", np.full((9, 2), np.inf))


def test_samples_are_nested_and_the_same_every_time() -> None:
    small, large = sample(2000, 250), sample(2000)
    assert len(large) == 1000
    assert set(small) < set(large)
    assert (np.diff(large) > 0).all()
    assert sample(7).tolist() == list(range(7))


def test_the_first_start_is_the_principal_plane() -> None:
    start = principal_start(CLOUD)
    centred = CLOUD - CLOUD.mean(axis=0)
    scores = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    for axis in range(2):
        assert abs(np.corrcoef(start[:, axis], scores[:, axis])[0, 1]) > 0.999
    assert start[:, 0].std() == pytest.approx(1e-4, rel=1e-3)
    assert len(np.unique(principal_start(np.ones((9, 1))), axis=0)) == 9, "points that coincide part"


@pytest.mark.parametrize(
    ("line", "share"),
    [
        ("[t-SNE] Iteration 250: error = 45.2, gradient norm = 0.04", 250 / 750),
        ("\tcompleted  50  /  500 epochs", 0.1),
        ("[t-SNE] Indexed 1000 samples in 0.002s...", None),
    ],
)
def test_progress_is_read_off_the_log(line: str, share: float | None) -> None:
    assert progress_in(line, 750) == share


def test_the_worker_ends_with_its_input_and_answers_rubbish_with_a_sentence() -> None:
    request = struct.pack("<Q", 7) + b"rubbish"
    done = subprocess.run(
        [sys.executable, "-m", "lab.layout_worker"],
        input=request,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith(b"e")
    assert b"could not be computed" in done.stdout
