"""A config as texts and back: one spelling for the link, the command line and the controls."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import datasets
from lab.config import LEARNING_RATE, ConflictError, Event, RunConfig, check_event, live_options, miner_params
from lab.settings import NO_MINER, default_encoder, settings
from losslib import catalog
from losslib.errors import ParameterError
from losslib.params import Param

EVENTS = "events"


def to_settings(config: RunConfig, full: bool = False) -> dict[str, str]:
    """Settings of a config as texts; without `full` only those off their default."""
    found: dict[str, str] = {}
    for name, param in settings().items():
        value = getattr(config, name)
        usual = default_encoder(datasets.get(config.data).kind) if name == "encoder" else param.default
        if full or value != usual:
            found[name] = param.format(value)
    for owner, declared, values, given in (
        (config.data, datasets.get(config.data).options, config.data_values, dict(config.data_options)),
        (config.loss, catalog.get(config.loss).params, config.loss_values, dict(config.loss_options)),
        (config.miner, miner_params(config.miner), config.miner_values, dict(config.miner_options)),
    ):
        for name, param in declared.items():
            if full or name in given:
                found[f"{owner}.{name}"] = param.format(values[name])
    if config.events:
        found[EVENTS] = ",".join(_event_text(event, config.loss) for event in config.events)
    return found


def from_settings(mapping: Mapping[str, str]) -> RunConfig:
    """The config that the texts stand for. Raises ParameterError at the first thing that is wrong."""
    values, refusals = _read(mapping, strict=True)
    if refusals:
        raise ParameterError(refusals[0])
    return RunConfig(**values)


def read_settings(mapping: Mapping[str, str]) -> tuple[RunConfig, tuple[str, ...]]:
    """The config, and one sentence for each text that was refused and fell back to its default."""
    values, refusals = _read(mapping, strict=False)
    try:
        return RunConfig(**values), tuple(refusals)
    except ConflictError as error:  # read again without what gives way, so that all else in the link counts
        culprit = next((name for name in (error.setting, "batch") if name in mapping), None)
        refusals.append(str(error))
    except ParameterError as error:
        culprit = next((name for name in mapping if name.partition(".")[0] == values.get("miner")), None)
        refusals.append(str(error))
    if culprit is None:
        return RunConfig(), tuple(refusals)
    config, others = read_settings({name: text for name, text in mapping.items() if name != culprit})
    return config, tuple(dict.fromkeys((*refusals, *others)))


def qualified(name: str, data: str, loss: str, miner: str = NO_MINER) -> str:
    """The full spelling of an option: neg_margin -> ContrastiveLoss.neg_margin.

    Raises:
        ParameterError: none of them has an option of that name. The loss comes first, then the data.
    """
    if "." in name or name in settings() or name == EVENTS:
        return name
    owners = {loss: catalog.get(loss).params, data: datasets.get(data).options, miner: miner_params(miner)}
    for owner, declared in owners.items():
        if name in declared:
            return f"{owner}.{name}"
    names = [name for name in owners if name != NO_MINER]
    known = ", ".join(option for declared in owners.values() for option in declared)
    raise ParameterError(f"neither {' nor '.join(names)} has an option {name!r}; options: {known}")


def _read(mapping: Mapping[str, str], strict: bool) -> tuple[dict[str, Any], list[str]]:
    """Fields of a config, and the sentences for what was refused."""
    values: dict[str, Any] = {}
    refusals: list[str] = []

    def attempt(name: str, param: Param, text: str, owner: str, into: dict[str, Any]) -> None:
        try:
            into[name] = param.parse(text, owner)
        except ParameterError as error:
            refusals.append(_closest(name, text) or str(error))

    for name, param in settings().items():
        if name in mapping:
            attempt(name, param, mapping[name], "run", values)
    options: dict[str, dict[str, Any]] = {"data": {}, "loss": {}, "miner": {}}
    chosen = {kind: values.get(kind, settings()[kind].default) for kind in options}
    for key, kind, owner, name, declared in _options(mapping, refusals):
        if owner == chosen[kind]:
            attempt(name, declared[name], mapping[key], owner, options[kind])
        elif strict:
            refusals.append(f"{key} is an option of {owner}, but the {kind} is {chosen[kind]}")
    values |= {f"{kind}_options": found for kind, found in options.items()}
    if EVENTS in mapping:
        values[EVENTS] = tuple(_events(mapping[EVENTS], chosen["loss"], refusals))
    return values, refusals


def _options(
    mapping: Mapping[str, str], refusals: list[str]
) -> Iterator[tuple[str, str, str, str, Mapping[str, Param]]]:
    """Key, kind, owner, option and the owner's declarations, for every key that names an existing option."""
    names = {field.name for field in fields(RunConfig)}
    for key in mapping:
        owner, dot, name = key.partition(".")
        if not dot:
            if key not in names or key.endswith("_options"):
                refusals.append(f"there is no setting {key!r}; settings: {', '.join(settings())}")
            continue
        if owner in datasets.catalog():
            kind, declared = "data", datasets.get(owner).options
        elif owner in catalog.losses():
            kind, declared = "loss", catalog.get(owner).params
        elif owner in catalog.miners():
            kind, declared = "miner", miner_params(owner)
        else:
            refusals.append(f"{key}: no loss, data set or miner is called {owner!r}")
            continue
        if name not in declared:
            refusals.append(f"{owner}: has no option {name!r}; options: {', '.join(declared) or 'none'}")
            continue
        yield key, kind, owner, name, declared


def _closest(name: str, text: str) -> str:
    """For an unknown loss, data set or miner, the sentence that names near misses."""
    try:
        {"loss": catalog.get, "data": datasets.get, "miner": _miner}.get(name, str)(text)
    except ParameterError as error:
        return str(error)
    return ""


def _miner(text: str) -> None:
    near = difflib.get_close_matches(text, (NO_MINER, *catalog.miners()), n=2, cutoff=0.5)
    if near:
        raise ParameterError(f"no miner is called {text!r}; did you mean {' or '.join(near)}?")


def _event_text(event: Event, loss: str) -> str:
    return f"{event.step}:{event.name}={_event_param(event.name, loss).format(event.value)}"


def _event_param(name: str, loss: str) -> Param:
    return settings()[LEARNING_RATE] if name == LEARNING_RATE else live_options(loss)[name]


def _events(text: str, loss: str, refusals: list[str]) -> Iterator[Event]:
    """Events as step:name=value, separated by commas."""
    for part in filter(None, map(str.strip, text.split(","))) if text.strip(" ,") else (text,):
        step, _, change = part.partition(":")
        name, _, value = change.partition("=")
        try:
            yield check_event(Event(int(step), name, float(value)), loss)
        except ParameterError as error:
            refusals.append(str(error))
        except ValueError:
            refusals.append(f"events: expected step:name=value, such as 40:lr=0.001, got {part!r}")
