"""One copy of the inputs for all runs."""

import gc
import warnings
from weakref import ref

import numpy as np
import torch

import datasets
from lab.config import RunConfig
from lab.run import Run
from lab.shared import KEPT, drawn_once, shared_tensor

CPU = torch.device("cpu")


def test_the_same_array_gives_the_same_tensor_and_another_does_not() -> None:
    array, other = np.arange(6.0), np.arange(6.0)
    assert shared_tensor(array, CPU) is shared_tensor(array, CPU)
    assert shared_tensor(other, CPU) is not shared_tensor(array, CPU)
    assert shared_tensor(array, CPU).tolist() == list(range(6))


def test_on_the_cpu_it_is_the_array_s_own_memory_read_only_or_not() -> None:
    array = np.arange(6, dtype=np.float32)
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tensor = shared_tensor(array, CPU)
    assert tensor.data_ptr() == array.ctypes.data
    assert tensor.tolist() == [0, 1, 2, 3, 4, 5]
    turned = np.arange(6, dtype=np.float32).reshape(2, 3).T
    assert shared_tensor(turned, CPU).tolist() == turned.tolist()


def test_only_a_few_are_kept() -> None:
    arrays = [np.full(2, float(i)) for i in range(KEPT + 3)]
    first = shared_tensor(arrays[0], CPU)
    for array in arrays:
        assert shared_tensor(array, CPU).tolist() == array.tolist()
    assert shared_tensor(arrays[0], CPU) is not first
    assert shared_tensor(arrays[0], CPU).tolist() == [0.0, 0.0]


def test_runs_on_the_same_images_share_them_whatever_their_seed() -> None:
    runs = [Run(RunConfig(data="digits", seed=seed)) for seed in (1, 2)]
    assert runs[0].trainer.inputs is runs[1].trainer.inputs
    rows = torch.tensor([0, 5])
    index = runs[1].trainer.train_index[rows]
    expected = runs[1].trainer.encoder(torch.from_numpy(runs[1].data.inputs[index]))
    embeddings, labels = runs[1].trainer.embed_batch(rows)
    assert torch.equal(embeddings, expected)
    assert labels.tolist() == runs[1].data.labels[index].tolist()


def test_what_is_drawn_of_a_data_set_is_drawn_once_and_goes_with_it() -> None:
    data = datasets.load("digits", 5)
    drawn: list[int] = []

    def draw(number: int) -> np.ndarray:
        drawn.append(number)
        return np.full(3, number)

    first = drawn_once(data, "a", lambda: draw(1))
    assert drawn_once(data, "a", lambda: draw(2)) is first
    assert drawn_once(data, "b", lambda: draw(3)).tolist() == [3, 3, 3]
    assert drawn_once(datasets.load("digits", 6), "a", lambda: draw(4)).tolist() == [4, 4, 4]
    assert drawn == [1, 3, 4]
    for number in range(KEPT):
        drawn_once(data, number, lambda: draw(0))
    assert drawn_once(data, "a", lambda: draw(7)).tolist() == [7, 7, 7], "only a few are kept"
    gone = ref(first)
    del first
    gc.collect()
    assert gone() is None


def test_runs_on_the_same_data_compare_the_same_pairs_and_other_widths_fewer() -> None:
    same = [Run(RunConfig(data="digits", lr=lr)).probe for lr in (0.1, 0.2)]
    assert same[0].pairs[0][0] is same[1].pairs[0][0]
    wide = Run(RunConfig(data="digits", dim=128)).probe
    assert len(wide.pairs[0][0]) < len(same[0].pairs[0][0])
