"""Encoder, loss, optimiser and batches of one run: everything that a step changes."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from datasets import Dataset
from lab.batches import BatchSampler
from lab.config import LEARNING_RATE, RunConfig
from lab.encoders import build_encoder
from lab.shared import shared_tensor
from losslib import catalog

MOMENTUM = 0.9


def build_loss(config: RunConfig, labels: Tensor, classes: int) -> nn.Module:
    """The config's loss, given the sizes that it needs and the data decide.

    Args:
        config: names the loss and its options.
        labels: of the training points, (N,).
        classes: number of classes.
    """
    cls = catalog.get(config.loss)
    sizes: dict[str, Any] = {"num_classes": classes, "embedding_size": config.dim}
    if "class_counts" in cls.required:
        sizes["class_counts"] = torch.bincount(labels, minlength=classes).clamp_min(1)
    built: nn.Module = cls(**{name: sizes[name] for name in cls.required}, **dict(config.loss_options))
    return built


def build_optimizer(config: RunConfig, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    """The config's optimiser over encoder and loss parameters."""
    # fused: all parameters in one call, which saves a tenth of a step of the small CNN
    if config.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=config.lr, momentum=MOMENTUM, fused=True)
    kind = torch.optim.Adam if config.optimizer == "adam" else torch.optim.AdamW
    return kind(parameters, lr=config.lr, fused=True)


class Trainer:
    """The moving parts of a run; made inside the run's random state.

    Args:
        config: the run's config.
        data: its data set.
        device: where it is computed.
    """

    def __init__(self, config: RunConfig, data: Dataset, device: torch.device) -> None:
        self.free = config.encoder == "free"
        self.device = device
        self.train_index = torch.from_numpy(data.train.copy())
        labels = torch.from_numpy(data.labels[data.train])
        generator = torch.Generator().manual_seed(config.seed)
        self.sampler = BatchSampler(labels, config.batch, config.per_class, generator)
        self.labels = labels.to(device)
        self.inputs = shared_tensor(data.inputs, device)
        shape = data.inputs.shape[1:]
        encoder = build_encoder(config.encoder, shape, config.dim, len(data.train), config.output)
        self.encoder = encoder.to(device)
        self.loss: Any = build_loss(config, labels, len(data.class_names)).to(device)
        self.parameters = [*self.encoder.parameters(), *self.loss.parameters()]
        self._config = config

    @cached_property
    def optimizer(self) -> torch.optim.Optimizer:
        """Built for the first update: torch imports 0.8 s of machinery for it, which no first frame needs."""
        return build_optimizer(self._config, self.parameters)

    def draw(self) -> Tensor:
        """Rows of the next batch among the training points, (B,), on the CPU."""
        return self.sampler.draw()

    def embed_batch(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings (B, D) in training mode, and labels (B,)."""
        self.encoder.train()
        index = self.train_index[rows].to(self.device)
        rows = rows.to(self.device)
        return self.encoder(rows if self.free else self.inputs[index]), self.labels[rows]

    def backward(self, value: Tensor) -> None:
        """The gradient of the loss value in every parameter."""
        self.optimizer.zero_grad(set_to_none=True)
        value.backward()

    def update(self) -> None:
        """One step of the optimiser along the gradient."""
        self.optimizer.step()

    def gradient_norm(self) -> float:
        """Norm of the encoder's gradient, all parameters together."""
        gradients = [p.grad for p in self.encoder.parameters() if p.grad is not None]
        return float(torch.stack([g.norm() for g in gradients]).norm()) if gradients else 0.0

    @torch.no_grad()
    def embed(self, index: Tensor) -> Tensor:
        """Embeddings of the points with these data set indices (N,), in evaluation mode.

        Batch statistics are then those of training, not of these points. Free points exist for training
        points only, in their order, and the index is that of the first N.
        """
        self.encoder.eval()
        inputs = torch.arange(len(index), device=self.device) if self.free else self.inputs[index]
        embeddings: Tensor = self.encoder(inputs)
        return embeddings

    def change(self, name: str, value: Any) -> None:
        """Set a loss option or the learning rate from now on."""
        if name == LEARNING_RATE:
            for group in self.optimizer.param_groups:
                group["lr"] = value
        else:
            setattr(self.loss, name, value)
