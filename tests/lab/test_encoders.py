"""Encoders and output normalisations."""

import pytest
import torch

from lab.encoders import ENCODERS, build_encoder
from losslib.errors import ParameterError

SHAPES = {"points": (5,), "images": (1, 28, 28)}


@pytest.mark.parametrize("name", list(ENCODERS))
@pytest.mark.parametrize("output", ["none", "l2", "layernorm", "batchnorm"])
def test_every_encoder_gives_embeddings_of_the_size_asked_for(name: str, output: str) -> None:
    for kind in ENCODERS[name].kinds:
        encoder = build_encoder(name, SHAPES[kind], 8, 40, output)
        inputs = torch.arange(6) if name == "free" else torch.rand(6, *SHAPES[kind])
        embeddings = encoder(inputs)
        assert embeddings.shape == (6, 8)
        embeddings.square().sum().backward()
        gradients = [p.grad for p in encoder.parameters()]
        assert gradients
        assert all(g is not None for g in gradients)


def test_outputs_are_normalised_as_their_name_says() -> None:
    inputs = torch.randn(64, 5)
    torch.manual_seed(0)
    outputs = {o: build_encoder("mlp", (5,), 4, 1, o)(inputs) for o in ("l2", "layernorm", "batchnorm")}
    assert torch.allclose(outputs["l2"].norm(dim=1), torch.ones(64), atol=1e-6)
    assert torch.allclose(outputs["layernorm"].mean(dim=1), torch.zeros(64), atol=1e-5)
    assert torch.allclose(outputs["layernorm"].var(dim=1, correction=0), torch.ones(64), atol=0.05)
    assert torch.allclose(outputs["batchnorm"].mean(dim=0), torch.zeros(4), atol=1e-5)


def test_batch_norm_of_the_probe_does_not_depend_on_the_other_points() -> None:
    encoder = build_encoder("linear", (5,), 3, 1, "batchnorm")
    for _ in range(20):
        encoder(torch.randn(64, 5))
    inputs = torch.randn(10, 5)
    encoder.eval()
    assert torch.allclose(encoder(inputs)[:3], encoder(inputs[:3]), atol=1e-6)


def test_free_points_have_one_embedding_each_and_no_other_moves() -> None:
    encoder = build_encoder("free", (7,), 2, 9, "none")
    encoder(torch.tensor([3, 5])).sum().backward()
    gradient = next(encoder.parameters()).grad
    assert gradient is not None
    assert torch.nonzero(gradient.abs().sum(dim=1)).flatten().tolist() == [3, 5]


@pytest.mark.parametrize("size", [8, 27, 28])
def test_the_cnn_takes_images_of_any_size(size: int) -> None:
    assert build_encoder("cnn", (1, size, size), 2, 1)(torch.rand(3, 1, size, size)).shape == (3, 2)


def test_the_cnn_refuses_points() -> None:
    with pytest.raises(ParameterError, match="the CNN needs images"):
        build_encoder("cnn", (5,), 2, 1)
