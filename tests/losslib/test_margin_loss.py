"""MarginLoss: beta as parameter or buffer, its penalty, and the divisor."""

import copy
import pickle

import pytest
import torch
from torch import Tensor

from losslib.distances import CosineSimilarity, LpDistance
from losslib.errors import ParameterError
from losslib.losses import MarginLoss
from losslib.reducers import DoNothingReducer, MeanReducer, MultipleReducers

PLAIN = LpDistance(normalize_embeddings=False)
LINE = torch.tensor([[0.0], [1.1], [1.3], [5.0]])
LABELS = torch.tensor([0, 0, 1, 2])


def by_triplets(x: Tensor, y: Tensor, beta: list[float], nu: float = 0.0) -> tuple[float, float]:
    """Loss and penalty by plain loops, un-normalised distances, margin 0.2."""
    total, penalty, terms, triplets = 0.0, 0.0, 0, 0
    for a in range(len(x)):
        for p in range(len(x)):
            for n in range(len(x)):
                if p != a and y[p] == y[a] and y[n] != y[a]:
                    own = beta[int(y[a])] if len(beta) > 1 else beta[0]
                    near = max(0.0, float((x[a] - x[p]).norm()) - own + 0.2)
                    far = max(0.0, own - float((x[a] - x[n]).norm()) + 0.2)
                    total, penalty = total + near + far, penalty + nu * own
                    terms, triplets = terms + (near > 0) + (far > 0), triplets + 1
    return (total / terms, penalty / terms) if terms else (0.0, 0.0)


def test_by_hand() -> None:
    # anchor 0: positive 1.1 -> 0.1; negatives 1.3 -> 0.1 and 5 -> 0; the positive counts twice
    # anchor 1.1: positive 1.1 -> 0.1 twice; negatives 0.2 -> 1.2 and 3.9 -> 0
    loss = MarginLoss(distance=PLAIN)
    assert loss(LINE, LABELS).item() == pytest.approx((0.1 + 0.1 + 0.1 + 0.1 + 0.1 + 1.2) / 6)
    assert by_triplets(LINE, LABELS, [1.2])[0] == pytest.approx(1.7 / 6)
    terms = loss.loss_terms(LINE, LABELS)
    assert list(terms) == ["loss"]
    assert int(terms["loss"].divisor) == 6
    assert terms["loss"].losses.tolist() == pytest.approx([0.2, 0.1, 1.3, 0.1])
    assert [i.tolist() for i in terms["loss"].indices] == [[0, 0, 1, 1], [1, 1, 0, 0], [2, 3, 2, 3]]


@pytest.mark.parametrize("count", [1, 3])
def test_a_beta_for_each_class(count: int) -> None:
    y = torch.zeros(8, dtype=torch.int64) if count == 1 else torch.arange(8) % 3
    x = torch.randn(8, 3)
    beta = [1.2, 0.7, 1.9][:count]
    loss = MarginLoss(nu=0.3, learn_beta=True, num_classes=count, distance=PLAIN)
    with torch.no_grad():
        loss.beta.copy_(torch.tensor(beta))
    assert loss.beta.shape == (count,)
    expected, penalty = by_triplets(x, y, beta, nu=0.3)
    assert loss(x, y).item() == pytest.approx(expected + penalty, rel=1e-5)
    term = loss.loss_terms(x, y)["beta_reg_loss"]
    triplets = loss.loss_terms(x, y)["loss"].indices
    assert term.indices.tolist() == triplets.anchors.tolist()
    assert term.losses.tolist() == pytest.approx([0.3 * beta[int(y[a])] for a in triplets.anchors])
    assert int(term.divisor) == int(loss.loss_terms(x, y)["loss"].divisor)


def test_the_gradient_of_beta() -> None:
    x, y = torch.randn(9, 3, dtype=torch.float64), torch.arange(9) % 3
    loss = MarginLoss(nu=0.1, learn_beta=True, num_classes=3).double()

    def value(beta: Tensor) -> Tensor:
        return torch.func.functional_call(loss, {"beta": beta}, (x, y))

    beta = torch.tensor([1.1, 1.3, 0.9], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(value, beta)


def test_by_index_tuple_with_classes() -> None:
    x, y = torch.randn(6, 2), torch.tensor([0, 0, 1, 1, 2, 2])
    given = tuple(torch.tensor(v) for v in ([0, 2, 2], [1, 3, 3], [4, 5, 5]))
    loss = MarginLoss(nu=0.5, learn_beta=True, num_classes=3, distance=PLAIN)
    terms = loss.loss_terms(x, y, given)
    assert terms["beta_reg_loss"].losses.tolist() == pytest.approx([0.6] * 3)
    assert terms["beta_reg_loss"].indices.tolist() == [0, 2, 2]
    near = (x[[0, 2, 2]] - x[[1, 3, 3]]).norm(dim=1) - 1.0
    far = 1.4 - (x[[0, 2, 2]] - x[[4, 5, 5]]).norm(dim=1)
    number = int((near > 0).sum() + (far > 0).sum())
    expected = (near.relu() + far.relu()).sum().item() + 3 * 0.6
    assert loss(x, y, given).item() == pytest.approx(expected / max(number, 1) if number else 0.0)


class TestPenalty:
    satisfied = torch.tensor([[1.0, 0.0], [1.0, 0.01], [-1.0, 0.0], [-1.0, 0.01]])
    y = torch.tensor([0, 0, 1, 1])

    def test_it_stays_when_every_term_is_zero(self) -> None:
        loss = MarginLoss(nu=0.1, learn_beta=True)
        assert loss(self.satisfied, self.y).item() == pytest.approx(0.12)

    def test_per_class_it_is_zero_then(self) -> None:
        assert MarginLoss(nu=0.1, learn_beta=True, num_classes=2)(self.satisfied, self.y).item() == 0.0

    def test_there_is_none_without_learning_nor_without_triplets(self) -> None:
        assert list(MarginLoss(nu=0.1).loss_terms(self.satisfied, self.y)) == ["loss"]
        loss = MarginLoss(nu=0.1, learn_beta=True)
        value = loss(self.satisfied, torch.zeros(4, dtype=torch.int64))
        value.backward()
        assert value.item() == 0.0
        assert loss.beta.grad.item() == 0.0

    def test_without_classes_it_is_already_reduced(self) -> None:
        term = MarginLoss(nu=0.1, learn_beta=True).loss_terms(self.satisfied, self.y)["beta_reg_loss"]
        assert term.indices is None
        loss = MarginLoss(
            nu=0.1,
            learn_beta=True,
            reducer=MultipleReducers({"beta_reg_loss": MeanReducer()}, MarginLoss.default_reducer()),
        )
        assert loss(self.satisfied, self.y).item() == pytest.approx(0.12)


class TestBeta:
    def test_a_parameter_when_learned_and_a_buffer_when_not(self) -> None:
        learned, fixed = MarginLoss(learn_beta=True, num_classes=4), MarginLoss()
        assert isinstance(learned.beta, torch.nn.Parameter)
        assert [tuple(p.shape) for p in learned.parameters()] == [(4,)]
        assert list(fixed.parameters()) == []
        assert fixed.beta.shape == (1,)
        assert list(fixed.state_dict()) == list(MarginLoss(learn_beta=True).state_dict()) == ["beta"]

    def test_setting_a_number_keeps_the_parameter(self) -> None:
        loss = MarginLoss(learn_beta=True)
        held = loss.beta
        loss.beta = 0.75
        assert loss.beta is held
        assert held.item() == 0.75
        with pytest.raises(ParameterError, match="MarginLoss: beta must be a finite number"):
            loss.beta = "wide"
        with pytest.raises(ParameterError, match="learn_beta is fixed at construction"):
            loss.learn_beta = False

    def test_moving_to_double_keeps_the_number_exact(self) -> None:
        assert MarginLoss().double().beta.item() == 1.2
        loss = MarginLoss(learn_beta=True)
        with torch.no_grad():
            loss.beta += 0.1
        trained = loss.beta.item()
        assert loss.double().beta.item() == trained  # touched: moved as it is

    @pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
    def test_a_learned_beta_of_another_dtype_is_refused(self, dtype: torch.dtype) -> None:
        x = torch.randn(6, 2).to(dtype)
        loss = MarginLoss(learn_beta=True)
        with pytest.raises(ValueError, match=r"beta must match the embeddings .* call loss\.to"):
            loss(x, torch.arange(6) % 2)
        assert loss.beta.dtype == torch.float32
        value = loss.to(dtype)(x, torch.arange(6) % 2)
        assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)

    def test_under_autocast_it_may_differ(self) -> None:
        loss = MarginLoss(learn_beta=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            value = loss(torch.randn(6, 2).bfloat16(), torch.arange(6) % 2)
        value.backward()
        assert loss.beta.grad.dtype == torch.float32

    def test_another_device_is_refused(self) -> None:
        with pytest.raises(ValueError, match=r"got torch\.float32 on meta"):
            MarginLoss().to("meta")(torch.randn(4, 2), torch.arange(4) % 2)

    def test_copies_before_and_after_backward(self) -> None:
        x, y = torch.randn(8, 3), torch.arange(8) % 2
        loss = MarginLoss(nu=0.2, learn_beta=True, num_classes=2)
        optimizer = torch.optim.SGD(loss.parameters(), lr=0.1)
        loss(x, y).backward()
        optimizer.step()
        assert loss.beta.tolist() != [pytest.approx(1.2)] * 2
        fresh = MarginLoss(nu=0.2, learn_beta=True, num_classes=2)
        fresh.load_state_dict(loss.state_dict())
        for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), fresh):
            assert other(x, y).item() == loss(x, y).item()
            assert other.beta is not loss.beta


def test_a_similarity_turns_the_boundary() -> None:
    x = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    y = torch.tensor([0, 0, 1])
    loss = MarginLoss(margin=0.1, beta=0.5, distance=CosineSimilarity(), reducer=DoNothingReducer())
    # positives at 0.6: 0.5 - 0.6 + 0.1 = 0; negatives at 0 and 0.8: 0 and 0.8 - 0.5 + 0.1
    assert loss(x, y)["loss"].losses.tolist() == pytest.approx([0.0, 0.4], abs=1e-6)
    assert [mark.value for mark in loss.marks()] == pytest.approx([0.5, 0.6, 0.4])
