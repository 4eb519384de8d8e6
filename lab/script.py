"""A run as a script of plain PyTorch that repeats its losses outside the app, in two spellings."""

from __future__ import annotations

import shlex
from typing import NamedTuple

import datasets
from lab.config import LEARNING_RATE, RunConfig
from lab.loss_documents import DIFFERENCES, called, differs_from_peer, paragraphs, pml_call, value
from lab.pairing import RULES
from lab.peer_values import recorded, sentence
from lab.recording import Recording
from lab.script_parts import encoder, expected, forward, loop, optimizer, positives, sampler
from lab.settings import NO_MINER
from losslib import catalog

CLOSE = 1e-5
TRANSPOSED = (  # losses whose class weights, "W" there, are drawn alike
    "ArcFaceLoss",
    "CosFaceLoss",
    "LargeMarginSoftmaxLoss",
    "NormalizedSoftmaxLoss",
    "SphereFaceLoss",
    "SubCenterArcFaceLoss",
)
PML = "pytorch-metric-learning"
EXACT_DISTANCE = """
class ExactDistance(distances.LpDistance):
    \"\"\"Distances from differences in double precision; by default near points lose digits.\"\"\"

    def maybe_normalize(self, embeddings, dim=1, **kwargs):
        return super().maybe_normalize(embeddings.double(), dim, **kwargs)

    def compute_mat(self, query_emb, ref_emb):
        first, second = query_emb.double(), (query_emb if ref_emb is None else ref_emb).double()
        return torch.cdist(first, second, p=self.p, compute_mode="donot_use_mm_for_euclid_dist").float()

    def pairwise_distance(self, query_emb, ref_emb):
        return torch.linalg.vector_norm(query_emb.double() - ref_emb.double(), ord=self.p, dim=1).float()


"""


SAME_BEGINNING = (*TRANSPOSED, "ProxyAnchorLoss", "ProxyNCALoss")


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
    note = "It repeats the recorded losses to about 1e-8 on the machine that made them, to 1e-5 elsewhere."
    return Script(written(config, recording, imports, lines, "labels"), note)


def pml_script(config: RunConfig, recording: Recording | None = None) -> Script:
    """The same run with the loss of pytorch-metric-learning in its place."""
    if why := refused(config) or without_counterpart(config):
        return Script("", why)
    cls = catalog.get(config.loss)
    packages, made = pml_call(cls, arguments(config), config.loss_values)
    imports = [f"from pytorch_metric_learning import {', '.join(packages)}"]
    exact = "distances.LpDistance(" in made
    lines = [f"loss_func = {made.replace('distances.LpDistance(', 'ExactDistance(')}"]
    lines += same_beginning(config)
    code = written(config, recording, imports, lines, cls.pml.labels, EXACT_DISTANCE if exact else "")
    return Script(code, agreement(config))


def same_beginning(config: RunConfig) -> list[str]:
    """Lines that give what their loss learns the numbers that ours begins with.

    Both draw the same ones for class weights, but theirs hold a class in a column, ours in a row.
    """
    if config.loss not in TRANSPOSED:
        return []
    return [f"loss_func.W.data = loss_func.W.data.reshape(-1, {config.dim}).T.contiguous()"]


def without_counterpart(config: RunConfig) -> str:
    """Why the other library cannot repeat the run, "" if it can. A sentence."""
    spelling = catalog.get(config.loss).pml
    if spelling is None:
        return f"{PML} has no counterpart of {config.loss}."
    gone = [name for name, theirs in spelling.renamed.items() if not theirs]
    changed = [name for name in gone if name in dict(config.loss_options)]
    turned = [event.name for event in config.events if event.name != LEARNING_RATE]
    reasons = (
        (config.pairing == "continuous", f"{PML} has no pairs by a continuous label."),
        (
            config.miner != NO_MINER,
            f"The miners of {PML} choose by other conventions, so there is no script with one.",
        ),
        (
            config.loss == "DynamicSoftMarginLoss",
            f"{PML} cannot train with this loss: its memory stays in the graph, so the second step fails.",
        ),
        (changed, f"{PML} has no counterpart of {' and '.join(changed)}, which is not at its default."),
        (
            turned,
            f"{' and '.join(dict.fromkeys(turned))} was turned while it trained; the script with losslib "
            "repeats that.",
        ),
    )
    return next((words for holds, words in reasons if holds), "")


def agreement(config: RunConfig) -> str:
    """How far the numbers of the two libraries agree."""
    cls = catalog.get(config.loss)
    if "triplets_per_anchor" in dict(config.loss_options):
        return f"{PML} draws other triplets at random, so its losses differ from the first step on."
    if config.loss in SAME_BEGINNING:
        return (
            f"Both libraries begin with the same class weights: the losses of {PML} agree with the recording "
            "to about 1e-5 at first; with a large scale the two runs part slowly."
        )
    if cls.required:
        return (
            f"{PML} starts what its loss learns by its own rule; where that is another than losslib's, its "
            "losses differ from the first step on."
        )
    said = []
    if config.loss == "HistogramLoss":
        said.append(f"{PML} stops with an index error where two normalised embeddings are equal.")
    if differs_from_peer(cls):
        differs = paragraphs(cls)[DIFFERENCES]
        said.append(f"The two libraries do not agree everywhere: losslib {differs[:1].lower()}{differs[1:]}")
        said += filter(None, [sentence(config.loss)])
    close = "its losses agree with the recording to about 1e-5."
    if cls.default_distance().bounds()[0] == 0:
        said.append(
            f"The Euclidean distance of {PML} loses digits between near points, so the script has one of its "
            "own that does not" + (f": {close}" if agrees(config) else ".")
        )
    return " ".join(said) or f"With {PML} {close}"


def agrees(config: RunConfig) -> bool:
    """Whether the two libraries gave one value on embeddings such as the run's, as far as is recorded."""
    values = recorded()[1].get(config.loss)
    return values is None or (values.unit if config.output == "l2" else values.plain).difference <= CLOSE


def refused(config: RunConfig) -> str:
    """Why no script is written, "" if one is."""
    if config.data == "file":
        return "The data are a file of yours, which the script does not have; Save run keeps the numbers."
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
    config: RunConfig,
    recording: Recording | None,
    imports: list[str],
    loss: list[str],
    labels: str,
    classes: str = "",
) -> str:
    """The whole script."""
    steps = config.steps if recording is None or not recording.frames else recording.frames[-1].step
    rule = RULES[config.pairing]
    views = ["from lab.augmentations import two_views"] if rule.views else []
    views += ["from lab.pairing import known_labels"] if config.pairing == "semi" else []
    imports = [
        *imports,
        *(["from losslib.pairs import within_delta"] if config.pairing == "continuous" else []),
    ]
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
        *(classes or "\n").splitlines(),
        f"STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else {steps}",
        f"BATCH = {config.batch}",
        f"EXPECTED = {expected(recording)}  # losses of the recording by step",
        "",
        "torch.set_num_threads(1)",
        f"data = datasets.load({config.data!r}, {config.seed}{options})",
        "inputs = torch.from_numpy(data.inputs[data.train])",
        "labels = torch.from_numpy(data.labels[data.train])",
        *positives(config, len(datasets.load(config.data, config.seed, **config.data_values).class_names)),
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
