"""A plan of a sweep: a base, what is varied, and seeds; its cells are run configs."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import datasets
from lab.config import RunConfig
from lab.links import EVENTS, from_settings
from lab.settings import settings
from lab.titles import valued
from losslib import catalog
from losslib.errors import ParameterError
from losslib.params import Integer, Param

ENTRIES = ("base", "vary", "seeds")
SEED = Param(0, valid=Integer(0, 2**31 - 1), name="seeds")


@dataclass(frozen=True)
class Cell:
    """One run of a sweep.

    Args:
        config: what is trained.
        varied: what this cell has of the varied settings, as (name, text); the same for all seeds.
    """

    config: RunConfig
    varied: tuple[tuple[str, str], ...]

    @property
    def label(self) -> str:
        """The varied settings in words, such as "Contrastive, negative margin 0.5"."""
        parts = [valued(name, text) for name, text in self.varied]
        return ", ".join(parts) or catalog.get(self.config.loss).title


@dataclass(frozen=True)
class Plan:
    """A base, what is varied and the seeds. The cells are all combinations that go together.

    An option of a loss is varied for that loss alone; the other losses of the sweep do not know it.

    Args:
        base: settings as a link spells them.
        vary: setting or `Loss.option`, with the texts it takes in turn.
        seeds: one run each.

    Raises:
        ParameterError: a name or value that is not known, or a combination that does not go together.
    """

    base: tuple[tuple[str, str], ...]
    vary: tuple[tuple[str, tuple[str, ...]], ...]
    seeds: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        if not self.seeds:
            raise ParameterError("sweep: seeds must name at least one seed, got none")
        for seed in self.seeds:
            SEED.check(seed, "sweep")
        if len(set(self.seeds)) < len(self.seeds):
            raise ParameterError(f"sweep: seeds must differ, got {', '.join(map(str, self.seeds))}")
        for name, values in self.vary:
            if not values:
                raise ParameterError(f"sweep: {name} has no values to vary")
            if name in ("seed", "steps", EVENTS):
                hint = 'give "seeds" a list instead' if name == "seed" else "all runs of a sweep share it"
                raise ParameterError(f"sweep: {name} cannot be varied; {hint}")
        for name in self._loss_options():
            owner = name.partition(".")[0]
            if owner not in self.losses:
                known = ", ".join(self.losses)
                raise ParameterError(f"sweep: {name} is varied, but no run has that loss; losses: {known}")

    @classmethod
    def of(
        cls, base: Mapping[str, str], vary: Mapping[str, Sequence[str]], seeds: Sequence[int] = (0,)
    ) -> Plan:
        """A plan from mappings."""
        listed = tuple((name, tuple(dict.fromkeys(values))) for name, values in vary.items())
        return cls(tuple(base.items()), listed, tuple(seeds))

    @property
    def losses(self) -> tuple[str, ...]:
        """The losses of its runs."""
        usual = dict(self.base).get("loss", str(settings()["loss"].default))
        return dict(self.vary).get("loss", (usual,))

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All runs: by loss, then by what is varied, seeds innermost. Equal configs count once."""
        found: dict[RunConfig, Cell] = {}
        for loss in self.losses:
            if loss not in catalog.losses():
                catalog.get(loss)  # raises, naming near misses
            mine = self._varied_for(loss)
            for values in itertools.product(*(v for _, v in mine)):
                varied = tuple(zip((n for n, _ in mine), values, strict=True))
                if "loss" in dict(self.vary):
                    varied = (("loss", loss), *varied)
                for seed in self.seeds:
                    config = self._config(loss, dict(varied), seed)
                    found.setdefault(config, Cell(config, varied))
        return tuple(found.values())

    @property
    def most(self) -> int:
        """How many runs there are at most, without making them: all combinations, equal ones counted each."""
        each = [math.prod(len(values) for _, values in self._varied_for(loss)) for loss in self.losses]
        return sum(each) * len(self.seeds)

    @property
    def steps(self) -> int:
        """Updates of all runs together."""
        return sum(cell.config.steps for cell in self.cells)

    def _loss_options(self) -> list[str]:
        return [name for name, _ in self.vary if name.partition(".")[0] in catalog.losses()]

    def _varied_for(self, loss: str) -> list[tuple[str, tuple[str, ...]]]:
        """What is varied in the runs of a loss, the loss aside."""
        return [(n, v) for n, v in self.vary if n != "loss" and self._concerns(n, loss)]

    def _concerns(self, name: str, loss: str) -> bool:
        owner, dot, _ = name.partition(".")
        return not dot or owner == loss or owner not in catalog.losses()

    def _config(self, loss: str, varied: dict[str, str], seed: int) -> RunConfig:
        wanted = {**dict(self.base), **varied, "loss": loss, "seed": str(seed)}
        data = wanted.get("data", str(settings()["data"].default))
        foreign = {*catalog.losses(), *datasets.catalog()} - {loss, data}
        return from_settings({n: t for n, t in wanted.items() if n.partition(".")[0] not in foreign})


def read_plan(text: str) -> Plan:
    """The plan that a JSON file describes: {"base": {...}, "vary": {...}, "seeds": [...]}.

    The base is a run config as `lab.run --json` writes it, or settings by name, such as {"data": "blobs"}.

    Raises:
        ParameterError: one sentence on what is wrong with it.
    """
    try:
        plain = json.loads(text)
    except json.JSONDecodeError as error:
        raise ParameterError(f"sweep: the config is not JSON ({error})") from None
    if not isinstance(plain, dict):
        raise ParameterError('sweep: the config must be a JSON object with "base", "vary" and "seeds"')
    if unknown := sorted(set(plain) - set(ENTRIES)):
        raise ParameterError(f"sweep: unknown entry {unknown[0]!r}; entries: {', '.join(ENTRIES)}")
    base, vary, seeds = plain.get("base", {}), plain.get("vary", {}), plain.get("seeds", [0])
    for name, value, kind, words in (
        ("base", base, dict, "an object of settings"),
        ("vary", vary, dict, "an object of lists"),
        ("seeds", seeds, list, "a list of whole numbers"),
    ):
        if not isinstance(value, kind):
            raise ParameterError(f"sweep: {name} must be {words}, got {value!r}")
    texts = base_settings(base)
    for name, values in vary.items():
        if not isinstance(values, list):
            raise ParameterError(f"sweep: {name} must have a list of values, got {values!r}")
    varied = {name: [_text(value) for value in values] for name, values in vary.items()}
    plan = Plan.of(texts, varied, seeds)
    _ = plan.cells  # a combination that does not go together is told now
    return plan


def base_settings(base: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a base, as a link spells them. Raises ParameterError."""
    if "version" in base:
        return RunConfig.from_dict(base).to_settings()
    return {name: _text(value) for name, value in base.items()}


def _text(value: Any) -> str:
    """A JSON value as a link spells it."""
    return value if isinstance(value, str) else json.dumps(value)
