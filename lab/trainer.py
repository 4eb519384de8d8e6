"""Encoder, loss, optimiser and batches of one run: everything that a step changes."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from datasets import Dataset
from lab.augmentations import two_views
from lab.batches import BatchSampler
from lab.config import LEARNING_RATE, RunConfig, build_miner
from lab.encoders import build_encoder
from lab.optimisers import uncompiled
from lab.pairing import TWO_VIEWS, Paired, Pairing
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


def pairing_of(config: RunConfig, data: Dataset, labels: Tensor) -> Pairing:
    """The config's rule on the training points, whose labels (N,) lie on the device."""
    values = None
    if config.pairing == "continuous":
        assert data.continuous is not None
        values = torch.from_numpy(data.continuous[data.train]).to(labels.device)
    return Pairing(
        config.pairing,
        labels,
        len(data.class_names),
        values,
        config.delta,
        config.label_fraction,
        config.seed,
    )


def build_optimizer(config: RunConfig, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
    """The config's optimiser over encoder and loss parameters."""
    # fused: all parameters in one call, which saves a tenth of a step of the small CNN
    options: dict[str, Any] = {"lr": config.lr, "fused": True}
    if config.optimizer == "sgd":
        return uncompiled(torch.optim.SGD)(parameters, momentum=MOMENTUM, **options)
    kind = torch.optim.Adam if config.optimizer == "adam" else torch.optim.AdamW
    return uncompiled(kind)(parameters, **options)


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
        per_class = config.per_class if config.pairing == "label" else 0  # other rules must not use labels
        self.sampler = BatchSampler(labels, config.batch, per_class, generator)
        self.labels = labels.to(device)
        self.inputs = shared_tensor(data.inputs, device)
        self.kind = data.kind
        self.pairing = pairing_of(config, data, self.labels)
        self.miner = build_miner(config.miner, config.miner_values)
        shape = data.inputs.shape[1:]
        encoder = build_encoder(config.encoder, shape, config.dim, len(data.train), config.output)
        self.encoder = encoder.to(device)
        self.loss: Any = build_loss(config, labels, len(data.class_names)).to(device)
        self.takes_halves = TWO_VIEWS in catalog.get(config.loss).needs
        self.parameters = [*self.encoder.parameters(), *self.loss.parameters()]
        self._config = config

    @cached_property
    def optimizer(self) -> torch.optim.Optimizer:
        """Built for the first update; no first frame needs it."""
        return build_optimizer(self._config, self.parameters)

    def draw(self) -> Tensor:
        """Rows of the next batch among the training points, (B,), on the CPU."""
        return self.sampler.draw()

    def embed_batch(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings (R, D) in training mode, and labels (R,).

        R is B, or 2 B where the rule of pairing asks for two views: all first ones, then all second ones.
        """
        self.encoder.train()
        index = self.train_index[rows].to(self.device)
        if self.pairing.rule.views:
            # drawn from the seed and the batch alone, so that every loss sees the same views
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(self._views_seed(rows))
                views = two_views(self.inputs[index], self.kind)
            return self.encoder(views), self.labels[rows.to(self.device)].repeat(2)
        rows = rows.to(self.device)
        return self.encoder(rows if self.free else self.inputs[index]), self.labels[rows]

    def _views_seed(self, rows: Tensor) -> int:
        """A number that another batch (B,), another order or another seed changes."""
        places = torch.arange(1, len(rows) + 1)
        return int(((rows + 1) * places * 2_654_435_761).sum() + self._config.seed * 1_000_003) % 2**31

    def pair(self, rows: Tensor, embeddings: Tensor, labels: Tensor) -> Paired:
        """What the loss is called with for a batch's rows (B,), embeddings and labels (R, ...); mines."""
        rows = rows.repeat(2) if self.pairing.rule.views else rows
        device_rows = rows.to(self.device)
        said = self.pairing.pairs(device_rows)
        groups = said if isinstance(said, Tensor) else None
        inputs: dict[str, Any] = {"indices_tuple": said} if groups is None else {"labels": groups}
        if self.miner is not None:
            inputs["indices_tuple"] = self.miner(embeddings.detach(), said)
        if self.takes_halves:
            inputs = {}
        values = None if self.pairing.values is None else self.pairing.values[device_rows]
        return Paired(labels, self.train_index[rows], inputs, groups, values, self.pairing.delta)

    def value(self, embeddings: Tensor, inputs: dict[str, Any]) -> Tensor:
        """The loss, 0-d, of embeddings (R, D) and the inputs that `pair` gave."""
        result: Tensor
        if self.takes_halves:
            first, second = embeddings.chunk(2)
            result = self.loss(first, ref_emb=second)
        else:
            result = self.loss(embeddings, **inputs)
        return result

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
        if self.free:
            inputs = torch.arange(len(index), device=self.device)
        else:
            inputs = self.inputs.index_select(0, index.to(self.device))  # half the time of self.inputs[index]
        embeddings: Tensor = self.encoder(inputs)
        return embeddings

    @torch.no_grad()
    def embed_inputs(self, inputs: Tensor) -> Tensor:
        """Embeddings (N, D) of inputs that are no points of the data set, in evaluation mode."""
        self.encoder.eval()
        embeddings: Tensor = self.encoder(inputs.to(self.device))
        return embeddings

    def change(self, name: str, value: Any) -> None:
        """Set a loss option or the learning rate from now on."""
        if name == LEARNING_RATE:
            for group in self.optimizer.param_groups:
                group["lr"] = value
        else:
            setattr(self.loss, name, value)
