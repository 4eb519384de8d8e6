"""Losses against learned proxies: values and gradients, labels, tuples, references, precision, copies."""

import math
from typing import Any

import pytest
import torch
from pytorch_metric_learning import losses as pml
from torch import Tensor

from losslib import catalog, losses
from losslib.check import audit
from losslib.errors import ShapeError
from losslib.proxies import ProxyLoss
from losslib.regularizers import LpRegularizer
from tests.contract.inputs import DEGENERATE, KINDS, Inputs, balanced, rows, triplet_tuple, unbalanced
from tests.contract.registered import EVERY_LOSS, SIZES, build, label_of, sizes, variants
from tests.oracles import oracle

PROXY = [name for name in EVERY_LOSS if issubclass(catalog.get(name), ProxyLoss)]
every = pytest.mark.parametrize("name", PROXY)
LABELLED = ["balanced", "unbalanced", "one_class", "all_different", "one_row", "no_row"]
LABELLED += ["coincident", "zero_rows"]
BATCHES = {kind: {**KINDS, **DEGENERATE}[kind] for kind in LABELLED}


def made(name: str, options: dict[str, Any] | None = None, **parts: Any) -> Any:
    """The loss in double precision with proxies of a fixed seed."""
    loss = build(name, options, **parts)
    with torch.no_grad():
        loss.weight.copy_(rows(len(loss.weight), 500, loss.embedding_size))
    return loss


def expected(loss: Any, options: dict[str, Any], weight: Tensor, given: Inputs, **parts: Any) -> Tensor:
    """The oracle's value, connected to the weight."""
    name = type(loss).__name__
    counts = {"class_counts": SIZES["class_counts"]} if "class_counts" in loss.required else {}
    arguments = {**options, **counts, "weight": weight}
    return oracle(name).value(options=arguments, **parts, **given.arguments())


@pytest.mark.parametrize(
    ("name", "options", "kind"),
    [
        pytest.param(name, options, kind, id=f"{name}-{label_of(options)}-{kind}")
        for name in PROXY
        for options in variants(name)
        for kind in BATCHES
    ],
)
def test_value_and_gradients_are_the_equation_s(name: str, options: dict[str, Any], kind: str) -> None:
    given = BATCHES[kind]()
    loss = made(name, options)
    found, wanted = [], []
    leaf = given.embeddings.clone().requires_grad_()
    value = loss(**given.arguments(leaf))
    found = torch.autograd.grad(value, [leaf, loss.weight])
    weight, other = loss.weight.detach().clone().requires_grad_(), given.embeddings.clone().requires_grad_()
    want = expected(loss, options, weight, Inputs(other, given.labels))
    wanted = torch.autograd.grad(want, [other, weight], allow_unused=True, materialize_grads=True)
    assert value.dtype == torch.float64
    torch.testing.assert_close(value, want, rtol=1e-9, atol=1e-11)
    for got, slope in zip(found, wanted, strict=True):
        scale = float(slope.abs().max()) if slope.numel() else 0.0
        torch.testing.assert_close(got, slope, rtol=1e-7, atol=1e-8 * max(scale, 1e-3))


@pytest.mark.parametrize(
    ("name", "reducer"),
    [
        (name, how)
        for name in PROXY
        if oracle(name).reducer == ("MeanReducer", {})
        for how in ("SumReducer", "AvgNonZeroReducer", "PerAnchorReducer")
    ],
)
def test_each_reducer(name: str, reducer: str) -> None:
    given = unbalanced()
    loss = made(name, reducer=(reducer, {}))
    want = expected(loss, {}, loss.weight.detach(), given, reducer=reducer)
    assert float(loss(**given.arguments()).detach()) == pytest.approx(float(want), rel=1e-9)


@every
def test_terms_are_one_a_row_or_one_a_class(name: str) -> None:
    given = balanced()
    terms = made(name).loss_terms(**given.arguments())
    if name == "P2SGradLoss":
        assert terms["loss"].indices is None
    elif name == "ProxyAnchorLoss":
        assert [terms[side].indices.tolist() for side in terms] == [list(range(6))] * 2
        assert [float(terms[side].divisor) for side in terms] == [3.0, 6.0]  # classes there, all classes
    else:
        assert terms["loss"].indices.tolist() == list(range(9))


@every
def test_the_audit_passes(name: str) -> None:
    report = audit(catalog.get(name)(**sizes(name, embedding_size=6)))
    assert report.failed == (), str(report)
    assert sum(check.status == "passed" for check in report.checks) >= 24


@every
@pytest.mark.parametrize("labels", [[1, 2, 3, 6], [0, -1, 2, 2]])
def test_labels_that_are_no_class(name: str, labels: list[int]) -> None:
    with pytest.raises(ShapeError, match=rf"{name}: labels must lie in 0\.\.5 .*from -?\d to \d"):
        made(name)(rows(4, 501), torch.tensor(labels))


@every
def test_what_does_not_fit_is_refused(name: str) -> None:
    x, labels = rows(4, 502), torch.tensor([0, 1, 1, 0])
    loss = made(name)
    with pytest.raises(ValueError, match=f"{name}: takes no ref_emb, because"):
        loss(x, labels, ref_emb=x, ref_labels=labels)
    if not loss.tuples_refused:
        with pytest.raises(ShapeError, match=f"{name}: labels are needed"):
            loss(x, None, (labels, labels, labels))
    with pytest.raises(TypeError, match=f"{name}: labels must be whole numbers"):
        loss(x, labels.double())
    with pytest.raises(ShapeError, match=f"{name}: embeddings must have 4 columns.*got 3"):
        loss(x[:, :3], labels)
    with pytest.raises(TypeError, match=f"{name}: weight_init_func"):
        catalog.get(name)(**sizes(name), weight_init_func=3)


@every
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_another_dtype_is_refused_and_never_recast(name: str, dtype: torch.dtype) -> None:
    loss = catalog.get(name)(**sizes(name))
    x, labels = rows(6, 503).to(dtype), torch.tensor([0, 1, 2, 0, 1, 2])
    with pytest.raises(ValueError, match=rf"{name}: weight must match the embeddings.*loss\.to"):
        loss(x, labels)
    with pytest.raises(ValueError, match=f"{name}: weight must match"):
        loss.get_logits(x)
    assert loss.weight.dtype == torch.float32
    loss.to(dtype)
    value = loss(x, labels)
    assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    value.backward()
    assert loss.weight.grad.dtype == dtype
    assert bool(loss.weight.grad.any())


@every
def test_the_weight_is_in_the_state_with_its_rows(name: str) -> None:
    loss = made(name)
    assert loss.state_dict()["weight"].shape == (6 * loss.rows_per_class, 4)
    fresh = catalog.get(name)(**sizes(name)).double()
    given = balanced()
    fresh.load_state_dict(loss.state_dict())
    assert float(fresh(**given.arguments()).detach()) == float(loss(**given.arguments()).detach())


@every
def test_the_weight_starts_as_asked_and_is_regularised(name: str) -> None:
    loss = catalog.get(name)(
        **sizes(name),
        weight_init_func=torch.nn.init.ones_,
        weight_regularizer=LpRegularizer(),
        weight_reg_weight=0.25,
    ).double()
    assert loss.weight.detach().unique().tolist() == [1.0]
    given = balanced()
    plain = expected(loss, {}, loss.weight.detach(), given)
    # every row of the weight is (1, 1, 1, 1), of length 2
    assert float(loss(**given.arguments()).detach()) == pytest.approx(float(plain) + 0.25 * 2, rel=1e-9)
    assert loss.loss_terms(**given.arguments())["weight_reg_loss"].indices is None


LOGITS = {  # name: what one logit is, of a row x and the row of the weight w of its class
    "ProxyNCALoss": lambda x, w: ((x / x.norm() - w / w.norm()) ** 2).sum(),
    "ProxyAnchorLoss": lambda x, w: (x @ w) / (x.norm() * w.norm()),
    "NormalizedSoftmaxLoss": lambda x, w: (x @ w) / (x.norm() * w.norm()) / 0.05,
    "ArcFaceLoss": lambda x, w: 64 * (x @ w) / (x.norm() * w.norm()),
    "DynamicArcFaceLoss": lambda x, w: 64 * (x @ w) / (x.norm() * w.norm()),
    "CosFaceLoss": lambda x, w: 64 * (x @ w) / (x.norm() * w.norm()),
    "LargeMarginSoftmaxLoss": lambda x, w: x @ w,
    "SphereFaceLoss": lambda x, w: (x @ w) / w.norm(),
    "P2SGradLoss": lambda x, w: (x @ w) / (x.norm() * w.norm()),
    "CenterLoss": lambda x, w: ((x - w) ** 2).sum(),
}


@pytest.mark.parametrize("name", list(LOGITS))
def test_the_logits_have_no_margin(name: str) -> None:
    loss, x = made(name), rows(5, 504)
    want = torch.tensor([[LOGITS[name](row, w) for w in loss.weight.detach()] for row in x])
    torch.testing.assert_close(loss.get_logits(x).detach(), want.double(), rtol=1e-9, atol=1e-12)


def test_the_logits_of_several_rows_a_class() -> None:
    x = rows(5, 505)
    nearest = made("SubCenterArcFaceLoss")
    unit = torch.nn.functional.normalize
    cosines = unit(x) @ unit(nearest.weight.detach()).t()
    want = 64 * cosines.view(5, 6, 3).amax(2)
    torch.testing.assert_close(nearest.get_logits(x).detach(), want)
    soft = made("SoftTripleLoss")
    cosines = (unit(x) @ unit(soft.weight.detach()).t()).view(5, 6, 10)
    shares = torch.exp(10 * cosines) / torch.exp(10 * cosines).sum(2, keepdim=True)
    torch.testing.assert_close(soft.get_logits(x).detach(), (shares * cosines).sum(2))


@pytest.mark.parametrize(
    "name", ["ArcFaceLoss", "SubCenterArcFaceLoss", "DynamicArcFaceLoss", "SphereFaceLoss"]
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_row_on_its_proxy_or_opposite_has_a_finite_gradient(name: str, sign: float) -> None:
    loss = made(name)
    x = (sign * loss.weight.detach()[:: loss.rows_per_class]).clone().requires_grad_()
    value = loss(x, torch.arange(6))
    value.backward()
    for gradient in (x.grad, loss.weight.grad):
        assert bool(torch.isfinite(gradient).all())
        assert float(gradient.abs().max()) < 1e3


@pytest.mark.parametrize("name", ["ArcFaceLoss", "CosFaceLoss", "SphereFaceLoss", "P2SGradLoss"])
def test_a_margin_of_angles_needs_a_cosine(name: str) -> None:
    from losslib.distances import DotProductSimilarity, LpDistance

    for distance in (LpDistance(), DotProductSimilarity()):
        with pytest.raises(TypeError, match=f"{name}: distance must be CosineSimilarity"):
            catalog.get(name)(**sizes(name), distance=distance)
    same = catalog.get(name)(**sizes(name), distance=DotProductSimilarity(normalize_embeddings=True))
    assert same.distance.normalize_embeddings


def test_margins_by_class_size() -> None:
    loss = made("DynamicArcFaceLoss", {"lambda0": 0.5, "a": 0.8, "b": 0.1})
    cosine = torch.full((6, 1), 0.3, dtype=torch.float64)
    want = [math.cos(math.acos(0.3) + 0.8 / math.sqrt(n) + 0.1) for n in SIZES["class_counts"]]
    got = loss.with_margin(cosine, torch.arange(6))
    assert got.flatten().tolist() == pytest.approx(want, rel=1e-12)
    assert losses.DynamicArcFaceLoss(torch.tensor([3, 9]), 4).class_counts == (3, 9)


PML_WEIGHT = {"ProxyNCALoss": "proxies", "ProxyAnchorLoss": "proxies", "SoftTripleLoss": "fc"}
SAME = {"ArcFaceLoss": {"margin": math.degrees(0.5)}, "SubCenterArcFaceLoss": {"margin": math.degrees(0.5)}}


def pml_loss(name: str, weight: Tensor) -> Any:
    """Theirs with our weight."""
    theirs = getattr(pml, name)(num_classes=6, embedding_size=4, **SAME.get(name, {})).double()
    attribute = PML_WEIGHT.get(name, "W")
    turned = attribute in ("W", "fc")
    setattr(theirs, attribute, torch.nn.Parameter((weight.t() if turned else weight).contiguous().clone()))
    return theirs


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Using a non-tuple:UserWarning")
@pytest.mark.parametrize("kind", ["balanced", "unbalanced", "triplet_tuple", "pair_tuple"])
@pytest.mark.parametrize(
    "name", [n for n in PROXY if hasattr(pml, n) and n not in ("P2SGradLoss", "ProxyAnchorLoss")]
)
def test_the_library_equals_pml_also_where_a_tuple_weighs_rows(name: str, kind: str) -> None:
    given = KINDS[kind]()
    loss = made(name)
    theirs = pml_loss(name, loss.weight.detach())
    arguments = [given.embeddings, given.labels, given.indices_tuple]
    want, got = theirs(*arguments).detach(), loss(*arguments).detach()
    assert float(want) == pytest.approx(float(got), rel=1e-7)
    logits = theirs.get_logits(given.embeddings)
    torch.testing.assert_close(loss.get_logits(given.embeddings), logits, rtol=1e-7, atol=1e-9)


def test_a_tuple_multiplies_the_exponentials_of_proxy_anchor() -> None:
    given = triplet_tuple()
    loss = made("ProxyAnchorLoss")
    listed = torch.cat(given.indices_tuple).tolist()
    times = [listed.count(i) / max(listed.count(j) for j in range(9)) for i in range(9)]
    unit = torch.nn.functional.normalize
    cosines = (unit(given.embeddings) @ unit(loss.weight.detach()).t()).tolist()
    near, far, labels = 0.0, 0.0, given.labels.tolist()
    for c in range(6):
        own = [times[i] * math.exp(-32 * (cosines[i][c] - 0.1)) for i in range(9) if labels[i] == c]
        other = [times[i] * math.exp(32 * (cosines[i][c] + 0.1)) for i in range(9) if labels[i] != c]
        near += math.log(1 + sum(own)) / 3
        far += math.log(1 + sum(other)) / 6
    assert float(loss(**given.arguments()).detach()) == pytest.approx(near + far, rel=1e-9)


def test_an_empty_tuple_weighs_every_row_0() -> None:
    nothing = torch.zeros(0, dtype=torch.int64)
    given = balanced()
    value = made("ArcFaceLoss")(given.embeddings.requires_grad_(), given.labels, (nothing, nothing, nothing))
    value.backward()
    assert float(value.detach()) == 0.0
    assert not bool(given.embeddings.grad.any())


def test_p2sgrad_refuses_tuples_and_reducers() -> None:
    from losslib.reducers import MeanReducer

    given = triplet_tuple()
    with pytest.raises(ValueError, match="P2SGradLoss: takes no indices_tuple, because"):
        made("P2SGradLoss")(**given.arguments())
    with pytest.raises(TypeError, match=r"P2SGradLoss.*reducer"):
        losses.P2SGradLoss(3, 4, reducer=MeanReducer())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@every
def test_one_graph_compiles_without_a_break(name: str) -> None:
    torch.compiler.reset()
    loss, x, labels = made(name), rows(6, 506), torch.tensor([0, 1, 2, 3, 4, 0])
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    found = []
    for call in (compiled, loss):
        leaf = x.clone().requires_grad_()
        value = call(leaf, labels)
        found.append((float(value.detach()), *torch.autograd.grad(value, [leaf, loss.weight])))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-9)
    torch.testing.assert_close(found[0][1:], found[1][1:], rtol=1e-7, atol=1e-9)
