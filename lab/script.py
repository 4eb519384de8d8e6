"""A run as a script of plain PyTorch that repeats its losses outside the app, in two spellings."""

from __future__ import annotations

import shlex
from typing import Any, NamedTuple

import torch

import datasets
from lab.config import LEARNING_RATE, RunConfig
from lab.encoders import FreePoints, build_encoder
from lab.loss_documents import DIFFERENCES, called, paragraphs, pml_call, value
from lab.pairing import TWO_VIEWS
from lab.recording import Recording
from lab.settings import NO_MINER
from lab.trainer import MOMENTUM
from losslib import catalog

EXPECTED = 24  # recorded losses that a script compares itself with
CLOSE = 1e-5
PML = "pytorch-metric-learning"


class Script(NamedTuple):
    """A script, and what is to be said of it; code "" where there is none."""

    code: str
    note: str


def command(config: RunConfig) -> str:
    """The command line that trains the same."""
    words = ["python", "-m", "lab.run"]
    for name, text in config.to_settings().items():
        words += ["--set", f"{name}={text}"] if "." in name else [f"--{name.replace('_', '-')}", text]
    return shlex.join([*words, "--json", "out.json"])


def losslib_script(config: RunConfig, recording: Recording | None = None) -> Script:
    """The run with losslib.

    Args:
        config: of the run.
        recording: its losses are written into the script, which compares its own with them.
    """
    if why := refused(config):
        return Script("", why)
    cls = catalog.get(config.loss)
    made = called("losses", cls.__name__, [f"{name}={text}" for name, text in arguments(config).items()])
    imports = ["from losslib import losses" + (", miners" if config.miner != NO_MINER else "")]
    lines = [f"loss_func = {made}"]
    if config.miner != NO_MINER:
        params = catalog.miners()[config.miner].params
        options = [f"{name}={value(params[name], given)}" for name, given in config.miner_values.items()]
        lines.append(f"miner = {called('miners', config.miner, options)}")
    note = "It equals the recording bit for bit on the machine that made it, and to about 1e-5 elsewhere."
    return Script(written(config, recording, imports, lines, "labels"), note)


def pml_script(config: RunConfig, recording: Recording | None = None) -> Script:
    """The same run with the loss of pytorch-metric-learning in its place."""
    cls = catalog.get(config.loss)
    if cls.pml is None:
        return Script("", f"{PML} has no counterpart of {config.loss}.")
    if why := refused(config):
        return Script("", why)
    if config.miner != NO_MINER:
        return Script("", f"The miners of {PML} choose by other conventions, so there is no script with one.")
    gone = [name for name, theirs in cls.pml.renamed.items() if not theirs]
    if changed := [name for name in gone if name in dict(config.loss_options)]:
        return Script(
            "", f"{PML} has no counterpart of {' and '.join(changed)}, which is not at its default."
        )
    if turned := [event.name for event in config.events if event.name != LEARNING_RATE]:
        return Script("", f"{turned[0]} was turned while it trained; the script with losslib repeats that.")
    packages, made = pml_call(cls, arguments(config), config.loss_values)
    imports = [f"from pytorch_metric_learning import {', '.join(packages)}"]
    code = written(config, recording, imports, [f"loss_func = {made}"], cls.pml.labels)
    return Script(code, agreement(config))


def agreement(config: RunConfig) -> str:
    """How far the numbers of the two libraries agree."""
    cls = catalog.get(config.loss)
    if "triplets_per_anchor" in dict(config.loss_options):
        return f"{PML} draws other triplets at random, so its losses differ from the first step on."
    if cls.required:
        return (
            f"{PML} starts what its loss learns by its own rule; where that is another than losslib's, its "
            "losses differ from the first step on."
        )
    said = []
    if PML in (differs := paragraphs(cls).get(DIFFERENCES, "")):
        said.append(f"The two libraries do not agree everywhere: {differs[:1].lower()}{differs[1:]}")
    if cls.default_distance().bounds()[0] == 0:
        said.append(
            f"The Euclidean distance of {PML} loses digits between near points: the first losses agree with "
            "the recording to about 1e-5, then the two runs part slowly."
        )
    return " ".join(said) or f"The losses of {PML} agree with the recording to about 1e-5."


def refused(config: RunConfig) -> str:
    """Why no script is written, "" if one is."""
    if config.data == "file":
        return "The data are a file of yours, which the script does not have; Save run keeps the numbers."
    if config.pairing not in ("label", "views"):
        return f"With pairing={config.pairing} there is no script yet; the command line repeats the run."
    return ""


def arguments(config: RunConfig) -> dict[str, str]:
    """Every argument of the loss as Python code."""
    cls = catalog.get(config.loss)
    classes = len(datasets.load(config.data, config.seed, **config.data_values).class_names)
    sizes = {
        "num_classes": str(classes),
        "embedding_size": str(config.dim),
        "class_counts": f"torch.bincount(labels, minlength={classes}).clamp_min(1)",
    }
    values = config.loss_values
    return {name: sizes[name] for name in cls.required} | {
        name: value(param, values[name]) for name, param in cls.params.items()
    }


def written(
    config: RunConfig, recording: Recording | None, imports: list[str], loss: list[str], labels: str
) -> str:
    """The whole script."""
    steps = config.steps if recording is None or not recording.frames else recording.frames[-1].step
    views = ["from lab.augmentations import two_views"] if config.pairing == "views" else []
    options = "".join(f", {name}={given!r}" for name, given in config.data_values.items())
    parts = [
        f'"""{config.loss} on {config.data}: repeats a run of Loss Lab. Run it in the folder of Loss Lab."""',
        "",
        "import sys",
        "",
        "import torch",
        "from torch import nn",
        "",
        "import datasets",
        *views,
        *imports,
        "",
        f"STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else {steps}",
        f"BATCH = {config.batch}",
        f"EXPECTED = {expected(recording)}  # losses of the recording by step",
        "",
        "torch.set_num_threads(1)",
        f"data = datasets.load({config.data!r}, {config.seed}{options})",
        "inputs = torch.from_numpy(data.inputs[data.train])",
        "labels = torch.from_numpy(data.labels[data.train])",
        "",
        *sampler(config),
        "",
        f"torch.manual_seed({config.seed})  # initial weights, and whatever the loss draws",
        *encoder(config),
        *loss,
        "parameters = [*encoder.parameters(), *loss_func.parameters()]",
        f"optimizer = {optimizer(config)}",
        "",
        *forward(config, labels),
        "",
        *loop(config),
    ]
    return "\n".join(parts) + "\n"


def expected(recording: Recording | None) -> str:
    """The first recorded losses."""
    frames = [] if recording is None else [frame for frame in recording.frames if not frame.extra][:EXPECTED]
    return "{" + ", ".join(f"{frame.step}: {frame.loss:.9g}" for frame in frames) + "}"


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
    layers = []
    for module in built:
        layers += list(module) if type(module).__name__ == "Sequential" else [module]
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
    if config.pairing == "views":
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
    groups = "rows.repeat(2)" if config.pairing == "views" else "labels[rows]"
    given = groups if labels == "labels" else f"{labels}={groups}"
    if TWO_VIEWS in catalog.get(config.loss).needs:
        lines += ["    first, second = embeddings.chunk(2)", "    return loss_func(first, ref_emb=second)"]
    elif config.miner != NO_MINER:
        lines += [
            f"    mined = miner(embeddings.detach(), {groups})",
            f"    return loss_func(embeddings, {groups}, indices_tuple=mined)",
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
