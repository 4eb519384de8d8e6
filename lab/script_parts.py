"""The parts of an exported script, as lines of plain PyTorch; see `lab.script`."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

import datasets
from lab.config import LEARNING_RATE, RunConfig
from lab.encoders import FreePoints, build_encoder
from lab.pairing import RULES, TWO_VIEWS
from lab.recording import Recording
from lab.settings import NO_MINER
from lab.trainer import MOMENTUM
from losslib import catalog

EXPECTED = 24  # recorded losses that a script compares itself with


def expected(recording: Recording | None) -> str:
    """The first recorded losses."""
    frames = [] if recording is None else [frame for frame in recording.frames if not frame.extra][:EXPECTED]
    return "{" + ", ".join(f"{frame.step}: {frame.loss:.9g}" for frame in frames) + "}"


def positives(config: RunConfig, classes: int) -> list[str]:
    """What besides the labels says which rows are positives; see `lab.pairing`."""
    if config.pairing == "continuous":
        return ["values = torch.from_numpy(data.continuous[data.train])"]
    if config.pairing == "semi":
        return [
            f"known = known_labels(labels, {config.label_fraction!r}, {config.seed})",
            f"groups = torch.where(known, labels, {classes} + torch.arange(len(labels)))",
        ]
    return []


def sampler(config: RunConfig) -> list[str]:
    """What draws a batch; see `lab.batches.BatchSampler`."""
    start = f"generator = torch.Generator().manual_seed({config.seed})"
    if config.pairing != "label" or not config.per_class:
        return [
            start,
            "",
            "",
            "def draw():",
            '    """The rows of one batch, each once."""',
            "    return torch.randperm(len(labels), generator=generator)[:BATCH]",
            "",
        ]
    text = f"""\
{start}
classes, group, sizes = labels.unique(return_inverse=True, return_counts=True)
groups = min(len(classes), max(BATCH // {config.per_class}, 1))  # {config.per_class} or more a class
members = torch.full((len(classes), int(sizes.max())), -1)
order = torch.argsort(group, stable=True)
members[group[order], torch.arange(len(labels)) - (sizes.cumsum(0) - sizes)[group[order]]] = order


def draw():
    \"\"\"The rows of one batch: as many classes as fit, and as many samples of each as fill it.\"\"\"
    chosen = torch.randperm(len(members), generator=generator)[:groups]
    share = torch.full((groups,), BATCH // groups)
    share[: BATCH % groups] += 1
    keys = torch.rand(groups, members.shape[1], generator=generator)
    shuffled = keys.masked_fill_(members[chosen] < 0, -1.0).argsort(dim=1, descending=True)
    row = torch.repeat_interleave(torch.arange(groups), share)
    place = (torch.arange(BATCH) - (share.cumsum(0) - share)[row]) % sizes[chosen][row]
    return members[chosen[row], shuffled[row, place]]
"""
    return [*text.splitlines(), ""]


def encoder(config: RunConfig) -> list[str]:
    """Encoder and output normalisation, layer by layer as the run has them."""
    data = datasets.load(config.data, config.seed, **config.data_values)
    with torch.device("meta"):  # its shapes alone: nothing is drawn from the generator that trains
        built = build_encoder(
            config.encoder, data.inputs.shape[1:], config.dim, len(data.train), config.output
        )
    layers: list[nn.Module] = []
    for module in built:
        layers += list(module) if isinstance(module, nn.Sequential) else [module]
    lines = []
    if config.encoder == "free":
        lines += [
            f"points = nn.Parameter(torch.randn(len(labels), {config.dim}) / {FreePoints.gain:g})",
            "encoder = nn.ParameterList([points])",
        ]
        layers = layers[1:]
    named = [f"    nn.{layer!r}," for layer in layers if type(layer).__name__ not in ("L2Output", "Identity")]
    lines += ["output = nn.Sequential(" if config.encoder == "free" else "encoder = nn.Sequential(", *named]
    return [*lines, ")"]


def optimizer(config: RunConfig) -> str:
    """The optimiser."""
    name = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"}[config.optimizer]
    momentum = f", momentum={MOMENTUM}" if config.optimizer == "sgd" else ""
    return f"torch.optim.{name}(parameters, lr={config.lr!r}{momentum}, fused=True)"


def forward(config: RunConfig, labels: str) -> list[str]:
    """The function of a batch's rows that gives the loss."""
    unit = config.output == "l2"
    embedded = "encoder(seen)"
    if config.encoder == "free":
        embedded = f"output({FreePoints.gain:g} * points[rows])"
    lines = ["def forward(rows):", '    """The loss of a batch."""']
    if RULES[config.pairing].views:
        lines += [
            "    places = torch.arange(1, len(rows) + 1)",
            f"    total = ((rows + 1) * places * 2_654_435_761).sum() + {config.seed} * 1_000_003",
            "    with torch.random.fork_rng(devices=[]):  # the same batch has the same views for every loss",
            "        torch.default_generator.manual_seed(int(total) % 2**31)",
            f"        seen = two_views(inputs[rows], {datasets.get(config.data).kind!r})",
        ]
    elif config.encoder != "free":
        lines.append("    seen = inputs[rows]")
    lines.append(f"    embeddings = {embedded}")
    if unit:
        lines.append("    embeddings = nn.functional.normalize(embeddings, dim=1)")
    groups = {
        "label": "labels[rows]",
        "views": "rows.repeat(2)",
        "semi": "groups[rows.repeat(2)]",
        "continuous": f"within_delta(values[rows], {config.delta!r})",
    }[config.pairing]
    labels = "indices_tuple" if config.pairing == "continuous" else labels
    given = groups if labels == "labels" else f"{labels}={groups}"
    if TWO_VIEWS in catalog.get(config.loss).needs:
        lines += ["    first, second = embeddings.chunk(2)", "    return loss_func(first, ref_emb=second)"]
    elif config.miner != NO_MINER:
        first = f"{groups}, " if labels == "labels" else ""
        lines += [
            f"    mined = miner(embeddings.detach(), {groups})",
            f"    return loss_func(embeddings, {first}indices_tuple=mined)",
        ]
    else:
        lines.append(f"    return loss_func(embeddings, {given})")
    return [*lines, ""]


def loop(config: RunConfig) -> list[str]:
    """Step 0, the updates, and the comparison."""
    turned = [f"    if step == {event.step}:\n        {turn(event)}" for event in config.events]
    return [
        "rows = draw()",
        "losses_by_step = {0: forward(rows).item()}  # the first batch, before any update",
        'print(f"    0 {losses_by_step[0]:.6f}")',
        "for step in range(1, STEPS + 1):",
        *turned,
        "    rows = rows if step == 1 else draw()",
        "    loss = forward(rows)",
        "    optimizer.zero_grad(set_to_none=True)",
        "    loss.backward()",
        "    optimizer.step()",
        "    losses_by_step[step] = loss.item()",
        '    print(f"{step:5d} {losses_by_step[step]:.6f}")',
        "",
        "gaps = [abs(losses_by_step[step] - loss) for step, loss in EXPECTED.items() if step <= STEPS]",
        "if gaps:",
        '    print(f"largest difference from the recording in {len(gaps)} losses: {max(gaps):.1e}")',
    ]


def turn(event: Any) -> str:
    """The line that makes a change of the run."""
    if event.name == LEARNING_RATE:
        return f"optimizer.param_groups[0]['lr'] = {event.value!r}"
    return f"loss_func.{event.name} = {event.value!r}"
