"""The calls that the documents of the losses show, as they show them."""

import torch

from losslib import distances, losses, reducers
from losslib.types import TripletIndices


def test_contrastive() -> None:
    loss_func = losses.ContrastiveLoss(pos_margin=1, neg_margin=0, distance=distances.CosineSimilarity())
    embeddings = torch.randn(32, 128, requires_grad=True)
    labels = torch.randint(0, 8, (32,))
    loss = loss_func(embeddings, labels)
    loss.backward()
    assert 0 < loss.item() < 2
    assert embeddings.grad is not None
    assert embeddings.grad.any()


def test_decoupled_in_two_views() -> None:
    loss_func = losses.SelfSupervisedLoss(losses.DecoupledContrastiveLoss(sigma=0.5))
    embeddings = torch.randn(32, 128, requires_grad=True)
    ref_emb = torch.randn(32, 128, requires_grad=True)
    loss = loss_func(embeddings, ref_emb)
    loss.backward()
    assert embeddings.grad is not None
    assert ref_emb.grad is not None
    assert ref_emb.grad.any()


def test_margin_with_learned_betas() -> None:
    loss_func = losses.MarginLoss(nu=0.1, learn_beta=True, num_classes=10)
    optimizer = torch.optim.SGD(loss_func.parameters(), lr=0.01)
    embeddings = torch.randn(32, 128, requires_grad=True)
    labels = torch.randint(0, 10, (32,))
    loss = loss_func(embeddings, labels)
    loss.backward()
    optimizer.step()
    present = labels.unique()
    assert loss_func.beta.shape == (10,)
    assert bool((loss_func.beta[present] != 1.2).any())


def test_threshold_consistent_beside_a_metric_loss() -> None:
    loss_func = losses.MultipleLosses(
        {"metric": losses.MultiSimilarityLoss(), "tcm": losses.ThresholdConsistentMarginLoss()}
    )
    embeddings = torch.randn(32, 128, requires_grad=True)
    labels = torch.randint(0, 8, (32,))
    loss = loss_func(embeddings, labels)
    loss.backward()
    assert embeddings.grad is not None
    assert embeddings.grad.any()


def test_the_documented_defaults() -> None:
    defaults = {
        losses.ContrastiveLoss: {"pos_margin": 0.0, "neg_margin": 1.0},
        losses.MarginLoss: {
            "margin": 0.2,
            "nu": 0,
            "triplets_per_anchor": "all",
            "learn_beta": False,
            "num_classes": None,
        },
        losses.DecoupledContrastiveLoss: {"temperature": 0.1, "sigma": None},
        losses.ThresholdConsistentMarginLoss: {
            "lambda_plus": 1.0,
            "lambda_minus": 1.0,
            "margin_plus": 0.9,
            "margin_minus": 0.5,
        },
        losses.CosineEmbeddingLoss: {"margin": 0.0},
        losses.TripletLoss: {"margin": 0.35},
        losses.TripletMarginLoss: {"margin": 0.2, "swap": False, "smooth_loss": False},
        losses.NTXentLoss: {"temperature": 0.07},
        losses.SupConLoss: {"temperature": 0.1},
        losses.MultiSimilarityLoss: {"alpha": 2, "beta": 50, "base": 0.5},
    }
    for cls, expected in defaults.items():
        made = cls()
        assert {name: getattr(made, name) for name in expected} == expected


def test_the_documented_distances_and_reducers() -> None:
    lp, cosine = distances.LpDistance, distances.CosineSimilarity
    expected = {
        losses.ContrastiveLoss: (lp, reducers.AvgNonZeroReducer),
        losses.MarginLoss: (lp, reducers.DivisorReducer),
        losses.DecoupledContrastiveLoss: (cosine, reducers.MeanReducer),
        losses.ThresholdConsistentMarginLoss: (cosine, type(None)),
        losses.CosineEmbeddingLoss: (cosine, reducers.MeanReducer),
        losses.TripletLoss: (cosine, reducers.MeanReducer),
        losses.TripletMarginLoss: (lp, reducers.AvgNonZeroReducer),
        losses.NTXentLoss: (cosine, reducers.MeanReducer),
        losses.SupConLoss: (cosine, reducers.AvgNonZeroReducer),
        losses.MultiSimilarityLoss: (cosine, reducers.MeanReducer),
    }
    for cls, (distance, reducer) in expected.items():
        assert type(cls.default_distance()) is distance
        assert type(cls.default_reducer()) is reducer


def test_terms_read_both_ways() -> None:
    terms = losses.MarginLoss().loss_terms(torch.randn(6, 4), torch.arange(6) % 2)
    assert isinstance(terms["loss"]["indices"], TripletIndices)
    assert terms["loss"]["losses"].tolist() == terms["loss"].losses.tolist()
    assert terms["loss"]["divisor"].ndim == 0
    contrastive = losses.ContrastiveLoss().loss_terms(torch.randn(6, 4), torch.arange(6) % 2)
    anchors, positives = contrastive["pos_loss"].indices
    assert len(anchors) == len(positives) == len(contrastive["pos_loss"].losses) == 12
    assert contrastive["pos_loss"].divisor is None
