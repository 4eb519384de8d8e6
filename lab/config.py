"""`RunConfig` says everything about a run; equal configs give equal recordings on one machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import datasets
from lab.pairing import RULES, refusal
from lab.settings import NO_MINER, default_encoder, encoders_for, settings
from losslib import catalog
from losslib.errors import ParameterError
from losslib.params import Integer, Param

VERSION = 2
READ_VERSIONS = (1, 2)  # 1 knew pairing by label only
LEARNING_RATE = "lr"
Options = tuple[tuple[str, Any], ...]


class ConflictError(ParameterError):
    """Settings that do not go together; `setting` is the one that gives way in a link."""

    def __init__(self, sentence: str, setting: str) -> None:
        super().__init__(sentence)
        self.setting = setting


class Event(NamedTuple):
    """A change while it trains: from step `step` on, the loss option or the learning rate has this value."""

    step: int
    name: str
    value: Any


@dataclass(frozen=True)
class RunConfig:
    """A run, completely: frozen, hashable, and the same after a trip through JSON or a link.

    Args:
        data: name of a data set.
        data_options: its options; a mapping is accepted, only values that differ from the default are kept.
        pairing: which samples are positives: "label" (same label), "continuous" (continuous label within
            `delta`), "views" (two augmented views of one sample), "semi" (views, and equal known labels).
        encoder: "free", "linear", "mlp", "cnn"; "auto" is replaced by the one for the kind of data.
        dim: embedding size, from 2 to 512.
        output: output normalisation: "none", "l2", "layernorm", "batchnorm".
        loss: class name of a loss.
        loss_options: its options; as `data_options`.
        batch: samples a step.
        per_class: samples each class in a batch brings at least; 0 draws uniformly.
        optimizer: "sgd", "adam", "adamw".
        lr: learning rate.
        steps: number of updates.
        seed: where all random numbers start.
        device: "auto", "cpu", "cuda".
        events: changes while it trains, kept in order of step.
        delta: with pairing "continuous", by how much the labels of positives differ at most.
        label_fraction: with pairing "semi", the share of training samples whose label is known.
        miner: class name of a miner, or "none".
        miner_options: its options; as `data_options`.

    Raises:
        ParameterError: a value outside its domain, or values that do not go together.
    """

    data: str = "mnist"
    data_options: Any = ()
    pairing: str = "label"
    encoder: str = "auto"
    dim: int = 2
    output: str = "l2"
    loss: str = "ContrastiveLoss"
    loss_options: Any = ()
    batch: int = 128
    per_class: int = 8
    optimizer: str = "adam"
    lr: float = 0.003
    steps: int = 300
    seed: int = 0
    device: str = "auto"
    events: tuple[Event, ...] = ()
    delta: float = 0.05
    label_fraction: float = 0.1
    miner: str = NO_MINER
    miner_options: Any = ()

    def __post_init__(self) -> None:
        spec, loss = datasets.get(self.data), catalog.get(self.loss)
        for name, param in settings().items():
            object.__setattr__(self, name, param.check(getattr(self, name), "run"))
        check_pairing(self.pairing, spec)
        check_trainable(self.loss, self.pairing, self.miner)
        encoder = default_encoder(spec.kind) if self.encoder == "auto" else self.encoder
        check_encoder(encoder, spec, self.pairing)
        if self.pairing == "label" and self.per_class > self.batch:
            raise ConflictError(
                f"run: per_class must be at most the batch size {self.batch}, got {self.per_class}",
                "per_class",
            )
        object.__setattr__(self, "encoder", encoder)
        options = canonical(self.miner_options, miner_params(self.miner), self.miner)
        object.__setattr__(self, "miner_options", options)
        build_miner(self.miner, self.miner_values)  # refuses options that do not go together
        object.__setattr__(self, "data_options", canonical(self.data_options, spec.options, self.data))
        object.__setattr__(self, "loss_options", canonical(self.loss_options, loss.params, self.loss))
        object.__setattr__(self, "events", _ordered(self.events, loss.params, self.loss))

    @property
    def data_values(self) -> dict[str, Any]:
        """All options of the data set, defaults included."""
        return _values(datasets.get(self.data).options, self.data_options)

    @property
    def loss_values(self) -> dict[str, Any]:
        """All options of the loss as the run starts, defaults included."""
        return _values(catalog.get(self.loss).params, self.loss_options)

    @property
    def miner_values(self) -> dict[str, Any]:
        """All options of the miner, defaults included; empty without one."""
        return _values(miner_params(self.miner), self.miner_options)

    def replace(self, **changes: Any) -> RunConfig:
        """A config with some fields changed; a new data set, loss or miner drops the old one's options."""
        if changes.get("data", self.data) != self.data:
            changes = {"data_options": (), "encoder": "auto", **changes}
            if self.pairing not in pairings_for(datasets.get(changes["data"])):
                changes = {"pairing": "label", **changes}
        if changes.get("miner", self.miner) != self.miner:
            changes = {"miner_options": (), **changes}
        if changes.get("loss", self.loss) != self.loss:
            changes = {"loss_options": (), "events": (), **changes}
        return replace(self, **changes)

    def with_event(self, event: Event) -> RunConfig:
        """A config with one more change; it takes the place of one of the same name at the same step.

        A change to the value that is in force until then is none, and is left out.
        """
        kept = tuple(e for e in self.events if (e.step, e.name) != (event.step, event.name))
        before = in_force(replace(self, events=tuple(e for e in kept if e.step < event.step)))
        changes = before.get(event.name) != event.value
        return replace(self, events=(*kept, event) if changes else kept)

    def to_settings(self, full: bool = False) -> dict[str, str]:
        """Settings as texts, as a link and the command line spell them; only those off their default."""
        from lab.links import to_settings

        return to_settings(self, full)

    @classmethod
    def from_settings(cls, mapping: Mapping[str, str], strict: bool = True) -> RunConfig:
        """The config that the texts stand for.

        Raises:
            ParameterError: an unknown name or a value outside its domain, unless strict is False: then what
                is wrong falls back to its default.
        """
        from lab.links import from_settings, read_settings

        return from_settings(mapping) if strict else read_settings(mapping)[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, all options written out."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        plain["data_options"] = self.data_values
        for kind, values in (("loss", self.loss_values), ("miner", self.miner_values)):
            plain[f"{kind}_options"] = {name: _infinite(value, float, str) for name, value in values.items()}
        plain["events"] = [_infinite(list(event), float, str) for event in self.events]
        return {"version": VERSION, **plain}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> RunConfig:
        """The config that `to_dict` wrote. Raises ParameterError for anything else."""
        known = {field.name for field in fields(cls)}
        values = dict(plain)
        for kind in ("loss_options", "miner_options"):  # a text of a data set may be anything
            if isinstance(given := values.get(kind), dict):
                values[kind] = {name: _infinite(value, str, float) for name, value in given.items()}
        version = values.pop("version", None)
        if version not in READ_VERSIONS or isinstance(version, bool):
            known_versions = " or ".join(map(str, READ_VERSIONS))
            raise ParameterError(f"run config: version {known_versions} is read here, got {version!r}")
        if unknown := sorted(set(values) - known):
            raise ParameterError(f"run config: unknown entry {unknown[0]!r}")
        try:
            values["events"] = tuple(
                Event(*_infinite(event, str, float)) for event in values.get("events", ())
            )
        except TypeError:
            raise ParameterError("run config: events must be lists of step, name and value") from None
        return cls(**values)

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> RunConfig:
        """The config that `to_json` wrote. Raises ParameterError for anything else."""
        try:
            plain = json.loads(text)
        except json.JSONDecodeError as error:
            raise ParameterError(f"run config: not JSON ({error})") from None
        if not isinstance(plain, dict):
            raise ParameterError("run config: expected a JSON object")
        return cls.from_dict(plain)


def _infinite(value: Any, kind: type, into: type) -> Any:
    """Infinite numbers, alone or in a list, as text, or back: JSON has no infinity. All else as it is."""
    if isinstance(value, (list, tuple)):
        return type(value)([_infinite(one, kind, into) for one in value])
    return into(value) if isinstance(value, kind) and str(value) in ("inf", "-inf") else value


def canonical(options: Any, declared: Mapping[str, Param], owner: str) -> Options:
    """Checked options off their default, sorted by name. Raises ParameterError."""
    given = dict(options)
    for name in given:
        if name not in declared:
            known = ", ".join(declared) or "none"
            raise ParameterError(f"{owner}: has no option {name!r}; options: {known}")
    checked = {name: declared[name].check(value, owner) for name, value in sorted(given.items())}
    return tuple((name, value) for name, value in checked.items() if value != declared[name].default)


def pairings_for(spec: datasets.DatasetSpec) -> tuple[str, ...]:
    """Rules of pairing that a data set allows."""
    return tuple(name for name in RULES if name != "continuous" or spec.continuous)


def check_pairing(pairing: str, spec: datasets.DatasetSpec) -> None:
    """Raises ConflictError if the data set has not what the rule needs."""
    if pairing not in pairings_for(spec):
        having = [name for name, other in datasets.catalog().items() if other.continuous]
        raise ConflictError(
            f"run: pairing=continuous needs a continuous label, and {spec.name} has none; choose "
            f"data={' or '.join(having)}, or pairing {' or '.join(pairings_for(spec))}",
            "pairing",
        )


def check_encoder(encoder: str, spec: datasets.DatasetSpec, pairing: str) -> None:
    """Raises ConflictError if the encoder cannot embed the data, or views of them."""
    choices = " or ".join(encoders_for(spec.kind, pairing))
    if encoder not in encoders_for(spec.kind):
        raise ConflictError(
            f"run: the CNN needs images, and {spec.name} has none; choose {choices}", "encoder"
        )
    if encoder not in encoders_for(spec.kind, pairing):
        raise ConflictError(
            f"run: free points have no input to augment, and pairing={pairing} needs two views of each "
            f"sample; choose {choices}",
            "encoder",
        )


def check_trainable(loss: str, pairing: str = "label", miner: str = NO_MINER) -> None:
    """Raises ConflictError if a loss cannot be trained under a rule of pairing, or with a miner."""
    if why := refusal(loss, pairing, NO_MINER):
        raise ConflictError(f"run: {why}", "loss")
    if why := refusal(loss, pairing, miner):
        raise ConflictError(f"run: {why}", "miner")


def trainable_losses(pairing: str = "label") -> tuple[str, ...]:
    """Names of the losses that a run can train under a rule of pairing, in the order of the catalog."""
    return tuple(name for name in catalog.losses() if not refusal(name, pairing))


def miner_params(miner: str) -> dict[str, Param]:
    """Options of a miner by name; empty for "none"."""
    found: dict[str, Param] = {} if miner == NO_MINER else catalog.miners()[miner].params
    return found


def build_miner(miner: str, options: Mapping[str, Any]) -> Any:
    """The miner, None for "none". Raises ParameterError for options that do not go together."""
    return None if miner == NO_MINER else catalog.miners()[miner](**options)


def live_options(loss: str) -> dict[str, Param]:
    """Options of a loss that may change while it trains: its numbers. The others shape what is learned."""
    return {n: p for n, p in catalog.get(loss).params.items() if p.kind == "float" and not p.fixed}


def check_event(event: Event, loss: str) -> Event:
    """The event with its value checked. Raises ParameterError."""
    _STEP.check(event.step, "event")
    if event.name == LEARNING_RATE:
        return event._replace(value=settings()[LEARNING_RATE].check(event.value, "run"))
    changeable = live_options(loss)
    if event.name not in changeable:
        known = ", ".join([LEARNING_RATE, *changeable])
        raise ParameterError(f"{loss}: {event.name!r} cannot change while it trains; what can: {known}")
    return event._replace(value=changeable[event.name].check(event.value, loss))


_STEP = Param(1, valid=Integer(1, None), name="step")


def _ordered(events: Any, declared: Mapping[str, Param], loss: str) -> tuple[Event, ...]:
    checked = [check_event(Event(*event), loss) for event in events]
    return tuple(sorted(checked, key=lambda event: event.step))


def _values(declared: Mapping[str, Param], options: Options) -> dict[str, Any]:
    return {**{name: param.default for name, param in declared.items()}, **dict(options)}


def in_force(config: RunConfig) -> dict[str, Any]:
    """The learning rate and every loss option after all events."""
    values = {LEARNING_RATE: config.lr, **config.loss_values}
    return {**values, **{event.name: event.value for event in config.events}}


def folded(config: RunConfig) -> RunConfig:
    """The config whose run starts with the values that the events led to, and has no events."""
    values = in_force(config)
    rate = values.pop(LEARNING_RATE)
    return replace(config, lr=rate, loss_options=values, events=())
