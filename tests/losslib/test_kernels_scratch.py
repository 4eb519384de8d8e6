"""The memory that a thread keeps between calls: never part of a result, and no call sees another's."""

import threading

import pytest
import torch
from torch import Tensor

from losslib import losses
from losslib.kernels import plain, scratch

LOSSES = [losses.ContrastiveLoss, losses.SupConLoss, losses.CircleLoss, losses.TripletMarginLoss]


def batch(seed: int, rows: int = 600) -> tuple[Tensor, Tensor]:
    x = torch.randn(rows, 64, generator=torch.Generator().manual_seed(seed))
    return x, torch.arange(rows) % 5


def gradient(loss: torch.nn.Module, seed: int, rows: int = 600) -> tuple[Tensor, Tensor]:
    x, y = batch(seed, rows)
    value = loss(x.requires_grad_(), y)
    value.backward()
    assert x.grad is not None
    return value.detach(), x.grad


@pytest.mark.parametrize("rows", [200, 600])
@pytest.mark.parametrize("cls", LOSSES, ids=lambda cls: cls.__name__)
def test_a_later_call_leaves_the_earlier_result_alone(cls: type, rows: int) -> None:
    first, kept = gradient(cls(), 1, rows)
    before = kept.clone()
    second, _ = gradient(cls(), 2, rows)
    torch.testing.assert_close(kept, before, rtol=0, atol=0)
    assert first != second
    again, same = gradient(cls(), 1, rows)  # in memory full of another batch
    assert again == first
    torch.testing.assert_close(same, before, rtol=0, atol=0)


def test_two_losses_of_one_batch_before_the_backward_pass() -> None:
    x, y = batch(3)
    x.requires_grad_()
    (losses.SupConLoss()(x, y) + losses.ContrastiveLoss()(x, y)).backward()
    apart = gradient(losses.SupConLoss(), 3)[1] + gradient(losses.ContrastiveLoss(), 3)[1]
    torch.testing.assert_close(x.grad, apart)


def test_memory_first_taken_in_inference_mode_serves_training() -> None:
    def both() -> None:
        with torch.inference_mode():
            values.append(losses.SupConLoss()(*batch(4)))
            values.append(losses.SupConLoss()(*batch(4)))
        values.append(gradient(losses.SupConLoss(), 4)[0])

    values: list[Tensor] = []
    thread = threading.Thread(target=both)  # which has no memory yet
    thread.start()
    thread.join()
    assert values[0] == values[1] == values[2]


def test_threads_do_not_share_memory() -> None:
    def work(seed: int) -> None:
        found[seed] = [gradient(losses.SupConLoss(), seed)[1] for _ in range(5)]

    found: dict[int, list[Tensor]] = {}
    threads = [threading.Thread(target=work, args=(seed,)) for seed in (5, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, gradients in found.items():
        x, y = batch(seed)
        with plain():
            losses.SupConLoss()(x.requires_grad_(), y).backward()
        for one in gradients:
            torch.testing.assert_close(one, x.grad, rtol=1e-4, atol=1e-8)


def test_inside_a_lease_memory_is_given_once_and_kept_up_to_the_most() -> None:
    def take_all() -> None:
        with scratch.lease():
            first = scratch.take(1 << 17, dtype=torch.float32)
            with scratch.lease():
                inner = scratch.take(1 << 15, dtype=torch.float64)
            after = scratch.take(1 << 16, dtype=torch.float32)
            large = scratch.take(scratch.MOST, dtype=torch.uint8)
            places.append([t.data_ptr() for t in (first, inner, after, large)])
            sizes.append([t.numel() for t in (first, inner, after, large)])

    places: list[list[int]] = []
    sizes: list[list[int]] = []
    thread = threading.Thread(target=lambda: [take_all() for _ in range(3)])
    thread.start()
    thread.join()
    assert sizes[0] == [1 << 17, 1 << 15, 1 << 16, scratch.MOST]
    first, inner, after, large = places[1]
    assert places[1][:3] == places[2][:3]  # the same memory at every call
    assert inner == after == first + 4 * (1 << 17)  # given back by the inner lease
    assert not first <= large < first + scratch.MOST  # too much to keep
