"""One copy of the inputs for all runs."""

import warnings

import numpy as np
import torch

from lab.config import RunConfig
from lab.run import Run
from lab.shared import KEPT, shared_tensor

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
