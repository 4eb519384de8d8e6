"""What a memory keeps: after errors, copies and reloads, and in which precision."""

import copy
import io
import pickle
from typing import Any

import pytest
import torch

from losslib.errors import ShapeError
from losslib.losses import (
    ContrastiveLoss,
    CrossBatchMemory,
    MultipleLosses,
    NTXentLoss,
    SupConLoss,
)
from tests.losslib.remembering import batches


class TestTransaction:
    def test_nothing_is_remembered_when_the_loss_fails(self) -> None:
        def fails(*_: Any) -> None:
            raise RuntimeError("no")

        memory = CrossBatchMemory(ContrastiveLoss(), 4, 8)
        (x, y), (u, v) = batches(7, [3, 3])
        memory(x, y)
        before = copy.deepcopy(memory.state_dict())
        memory.miner = fails
        with pytest.raises(RuntimeError):
            memory(u, v)
        with pytest.raises(ShapeError):
            memory(u, v[:2])
        for name, value in memory.state_dict().items():
            assert torch.equal(value, before[name])
        memory.miner = None
        untroubled = CrossBatchMemory(ContrastiveLoss(), 4, 8)
        untroubled(x, y)
        torch.testing.assert_close(memory(u, v), untroubled(u, v))

    def test_memories_inside_other_losses_change_all_together_or_not_at_all(self) -> None:
        def fails(*_: Any) -> None:
            raise RuntimeError("no")

        first, second = (CrossBatchMemory(loss, 4, 8) for loss in (ContrastiveLoss(), NTXentLoss()))
        both = MultipleLosses({"first": MultipleLosses([first]), "second": second})
        (x, y), (u, v) = batches(7, [3, 3])
        both(x, y)
        before = copy.deepcopy(both.state_dict())
        second.miner = fails
        with pytest.raises(RuntimeError):
            both(u, v)
        assert (first.fill, second.fill) == (3, 3)
        for name, value in both.state_dict().items():
            assert torch.equal(value, before[name]), name
        second.miner = None
        alone = CrossBatchMemory(ContrastiveLoss(), 4, 8)
        alone(x, y)
        both(u, v)
        alone(u, v)
        assert torch.equal(first.embedding_memory, alone.embedding_memory)
        assert (first.position, first.fill) == (6, 6)

    def test_terms_alone_are_not_remembered(self) -> None:
        memory = CrossBatchMemory(ContrastiveLoss(), 4, 8)
        memory.loss_terms(*batches(7)[0])
        assert memory.fill == 0

    def test_random_state_and_gradients_of_inputs_do_not_matter(self) -> None:
        memory = CrossBatchMemory(ContrastiveLoss(), 4, 8)
        x, y = batches(8)[0]
        memory(x.requires_grad_(), y)
        assert not memory.embedding_memory.requires_grad
        x.detach().zero_()
        assert bool(memory.embedding_memory[:3].any())


class TestKeeping:
    def continued(self, memory: Any) -> list[float]:
        return [float(memory(x, y)) for x, y in batches(10)]

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_position_and_fill_survive(self, dtype: torch.dtype) -> None:
        memory = CrossBatchMemory(SupConLoss(), 4, 7)
        for x, y in batches(9):
            memory(x.to(dtype), y)
        fresh = CrossBatchMemory(SupConLoss(), 4, 7)
        file = io.BytesIO()
        torch.save(memory.state_dict(), file)
        file.seek(0)
        fresh.load_state_dict(torch.load(file, weights_only=True))
        copies = [fresh, copy.deepcopy(memory), pickle.loads(pickle.dumps(memory))]
        given = [(x.to(dtype), y) for x, y in batches(10)]
        expected = [float(memory(x, y)) for x, y in given]
        for made in copies:
            assert [float(made(x, y)) for x, y in given] == expected

    def test_a_part_of_a_larger_model(self) -> None:
        model = torch.nn.Sequential(CrossBatchMemory(ContrastiveLoss(), 4, 7))
        model[0](*batches()[0])
        fresh = torch.nn.Sequential(CrossBatchMemory(ContrastiveLoss(), 4, 7))
        fresh.load_state_dict(model.state_dict())
        assert (fresh[0].position, fresh[0].fill) == (3, 3)

    def test_reset(self) -> None:
        memory = CrossBatchMemory(ContrastiveLoss(), 4, 7)
        first = self.continued(memory)
        memory.reset()
        assert memory.fill == 0
        assert self.continued(memory) == first


class TestPrecision:
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_half(self, dtype: torch.dtype) -> None:
        memory, wide = (CrossBatchMemory(NTXentLoss(temperature=0.5), 4, 7) for _ in range(2))
        for x, y in batches(11):
            low = x.to(dtype).requires_grad_()
            value = memory(low, y)
            assert value.dtype == torch.float32
            torch.testing.assert_close(value, wide(low.detach().float(), y))
            value.backward()

    def test_autocast(self) -> None:
        memory, wide = (CrossBatchMemory(ContrastiveLoss(), 4, 7) for _ in range(2))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for x, y in batches(12):
                low = torch.nn.functional.linear(x.float(), torch.eye(4))
                torch.testing.assert_close(memory(low, y), wide(low.float(), y))

    def test_another_dtype_than_the_memorys_is_refused(self) -> None:
        memory = CrossBatchMemory(ContrastiveLoss(), 4, 7)
        x, y = batches()[0]
        memory(x.float(), y)
        with pytest.raises(ValueError, match=r"embeddings must be torch.float32 .* got torch.float64"):
            memory(x, y)
        memory.to(torch.float64)
        memory(x, y)
        with pytest.raises(TypeError, match="labels must be of one kind"):
            memory(x, y.double())

    def test_labels_of_any_kind(self) -> None:
        x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
        big = torch.tensor([2**53, 2**53 + 1, 2**53])
        terms = CrossBatchMemory(ContrastiveLoss(), 2, 8).loss_terms(x, big)
        assert [i.tolist() for i in terms["pos_loss"].indices] == [[0, 2], [2, 0]]
        memory = CrossBatchMemory(ContrastiveLoss(), 2, 8)
        memory(x, torch.tensor([1, 2, 1], dtype=torch.int16))
        terms = memory.loss_terms(x[:1], torch.tensor([2**40 + 1]))
        assert len(terms["pos_loss"].losses) == 0
        memory = CrossBatchMemory(ContrastiveLoss(), 2, 8)
        memory(x, torch.tensor([0.5, 1.5, 0.5]))
        assert memory.label_memory[:3].tolist() == [0.5, 1.5, 0.5]
