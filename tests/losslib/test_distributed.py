"""Two gloo processes against one: after the mean of DistributedDataParallel the gradients are the same."""

import copy
import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import distributed, multiprocessing, nn
from torch.nn.parallel import DistributedDataParallel

from losslib import distances, losses, pairs
from losslib.distributed import DistributedLossWrapper
from losslib.regularizers import LpRegularizer
from losslib.triplets import joined

LABELS = torch.tensor([0, 1, 0, 2, 1, 0, 2, 1, 0, 2])
CUT = 6  # the second process has four rows
CASES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "contrastive": ("ContrastiveLoss", {}, LABELS),
    "NT-Xent": ("NTXentLoss", {}, LABELS),
    "SupCon": ("SupConLoss", {}, LABELS),
    "triplets": ("TripletMarginLoss", {"distance": distances.CosineSimilarity()}, LABELS),
    "margin": ("MarginLoss", {}, LABELS),
    "learned margin": ("MarginLoss", {"learn_beta": True, "nu": 0.1}, LABELS),
    "not by anchor": ("ThresholdConsistentMarginLoss", {}, LABELS),
    "regularised": ("NTXentLoss", {"embedding_regularizer": LpRegularizer()}, LABELS),
    "no positives in one process": ("ContrastiveLoss", {}, torch.tensor([0, 0, 0, 0, 0, 0, 1, 2, 3, 4])),
    "no positives anywhere": ("SupConLoss", {}, torch.arange(10)),
    "one class in one process": ("TripletMarginLoss", {}, torch.tensor([0, 0, 0, 0, 0, 0, 1, 1, 2, 2])),
    "pairs given as masks": ("ContrastiveLoss", {}, LABELS),
    "pairs given by index": ("NTXentLoss", {}, LABELS),
    "triplets given by index": ("TripletMarginLoss", {}, LABELS),
}


class Whole(nn.Module):
    """A model with its loss, as it goes into DistributedDataParallel."""

    def __init__(self, name: str, options: dict[str, Any], shared: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.model = nn.Linear(5, 4)
        loss = getattr(losses, name)(**options)
        self.loss = DistributedLossWrapper(loss) if shared else loss
        self.double()

    def forward(self, x: torch.Tensor, y: torch.Tensor, given: Any) -> Any:
        return self.loss(self.model(x), y, given)


def given_in(case: str, rows: slice) -> Any:
    """The pairs or triplets of a case among these rows, counted from the first: neighbours against others."""
    if "given" not in case:
        return None
    place = torch.arange(10)
    near, same_process = (place.unsqueeze(1) - place).abs() == 1, (place < CUT).unsqueeze(1) == (place < CUT)
    far = (place.unsqueeze(1) - place).abs() > 2
    masks = pairs.PairMasks(*((mask & same_process)[rows, rows] for mask in (near, far)))
    if "masks" in case:
        return masks
    return joined(masks.indices()) if "triplets" in case else masks.indices()


def inputs() -> torch.Tensor:
    return torch.randn(10, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def found(module: nn.Module, x: torch.Tensor, y: torch.Tensor, given: Any) -> dict[str, torch.Tensor]:
    value = module(x, y, given)
    value.backward()
    grads = {
        name.removeprefix("module.").replace("loss.loss.", "loss."): p.grad.clone()
        for name, p in module.named_parameters()
        if p.grad is not None
    }
    return {"value": value.detach(), **grads}


def work(rank: int, port: int, folder: str) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    part = slice(0, CUT) if rank == 0 else slice(CUT, None)
    results = {}
    for case, (name, options, labels) in CASES.items():
        module = DistributedDataParallel(Whole(name, copy.deepcopy(options), shared=True))
        results[case] = found(module, inputs()[part], labels[part], given_in(case, part))
    torch.save(results, Path(folder) / f"{rank}.pt")
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def shared() -> list[dict[str, dict[str, torch.Tensor]]]:
    """What each of the two processes found, by case."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(work, args=(port, folder), nprocs=2)
        return [torch.load(Path(folder) / f"{rank}.pt") for rank in range(2)]


@pytest.mark.parametrize("case", CASES)
def test_equals_one_process_on_the_whole_batch(case: str, shared: Any) -> None:
    name, options, labels = CASES[case]
    whole = given_in(case, slice(None))
    expected = found(Whole(name, copy.deepcopy(options), shared=False), inputs(), labels, whole)
    for rank in range(2):
        torch.testing.assert_close(shared[rank][case], expected, rtol=1e-9, atol=1e-12)
    moved = any(bool(grad.any()) for key, grad in expected.items() if key != "value")
    assert moved == (case != "no positives anywhere")


def test_without_a_group_it_is_the_loss() -> None:
    loss, x = losses.ContrastiveLoss(), inputs()
    assert DistributedLossWrapper(loss)(x, LABELS).item() == loss(x, LABELS).item()


def test_takes_losses_alone() -> None:
    with pytest.raises(TypeError, match="DistributedLossWrapper: loss must be a loss, got 'SupConLoss'"):
        DistributedLossWrapper("SupConLoss")  # type: ignore[arg-type]
