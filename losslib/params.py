"""Declared parameters: one declaration gives check, message, control and test. No torch here."""

from __future__ import annotations

from typing import Any

from losslib.domains import (
    Boolean,
    Choice,
    Domain,
    Either,
    Integer,
    Interval,
    Optional,
    Text,
    boolean,
    finite,
    non_negative,
    positive,
)
from losslib.errors import ParameterError

__all__ = [
    "Boolean",
    "Choice",
    "Domain",
    "Either",
    "Integer",
    "Interval",
    "Optional",
    "Param",
    "Required",
    "Text",
    "boolean",
    "declared",
    "finite",
    "non_negative",
    "positive",
]


class Param:
    """A declared option: a data descriptor that checks each value it is given.

    Args:
        default: the value used when none is given; it must belong to `valid`.
        valid: the domain that is accepted. Nothing outside it ever reaches the owner.
        explore: the range worth exploring, (lo, hi) or a tuple of choices, for sliders and sweeps.
            It never limits what the library accepts.
        symbol: LaTeX symbol used in the equation.
        meaning: one phrase on what the option is.
        larger: what a larger value does.
        unit: unit of the value, if any.
        step: step of a slider.
        title: the option in words; made from the name when empty.
        name: the attribute's name; taken from the class body when empty.
        fixed: whether the option is settled at construction, because it decides what the object holds.
    """

    def __init__(
        self,
        default: Any,
        valid: Domain,
        explore: tuple[Any, ...] | None = None,
        symbol: str = "",
        meaning: str = "",
        larger: str = "",
        unit: str = "",
        step: float | None = None,
        title: str = "",
        name: str = "",
        fixed: bool = False,
    ) -> None:
        self.valid = valid
        self.explore = explore
        self.symbol = symbol
        self.meaning = meaning
        self.larger = larger
        self.unit = unit
        self.step = step
        self.name = name
        self.fixed = fixed
        self._title = title
        self.default = self.check(default, "default")

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name

    def __get__(self, instance: object | None, owner: type | None = None) -> Any:
        if instance is None:
            return self
        return instance.__dict__.get(self.name, self.default)

    def __set__(self, instance: object, value: Any) -> None:
        # A data descriptor wins over the instance dictionary, so the value can live there under its
        # own name: copies and pickles need nothing special.
        owner = type(instance).__name__
        checked = self.check(value, owner)
        if self.fixed and instance.__dict__.get(self.name, checked) != checked:
            raise ParameterError(
                f"{owner}: {self.name} is fixed at construction, got {value!r}; make a new {owner} instead"
            )
        instance.__dict__[self.name] = checked

    def __repr__(self) -> str:
        return f"Param({self.name}={self.default!r}, {self.describe()})"

    @property
    def title(self) -> str:
        """The option in words, for labels."""
        return self._title or self.name.replace("_", " ").capitalize()

    @property
    def kind(self) -> str:
        """Kind of the domain: float, int, bool, choice, either or optional."""
        return self.valid.kind

    def check(self, value: Any, owner: str) -> Any:
        """The value in the domain's own type. Raises ParameterError when it does not belong."""
        if not self.valid.contains(value):
            raise ParameterError(
                f"{owner}: {self.name} must be {self.valid.describe()}, got {_one_line(value)}"
            )
        return self.valid.convert(value)

    def is_held(self, value: Any) -> bool:
        """Whether the owner, a module, is to hold such a value itself."""
        return False

    def parse(self, text: str, owner: str) -> Any:
        """The checked value that a text from a link or command line stands for. Raises ParameterError."""
        try:
            value = self.valid.parse(text.strip())
        except ValueError:
            value = text
        return self.check(value, owner)

    def format(self, value: Any) -> str:
        """Text that `parse` reads back as the same value."""
        return self.valid.format(value)

    def describe(self) -> str:
        """The domain in words, such as "a number > 0"."""
        return self.valid.describe()


class Required(Param):
    """A declared argument without a default: it comes first, and is settled at construction."""

    def __init__(self, valid: Domain, symbol: str = "", meaning: str = "") -> None:
        super().__init__(valid.examples_in()[0], valid, symbol=symbol, meaning=meaning, fixed=True)


def _one_line(value: Any) -> str:
    """The value as it prints, without the line breaks of tensors and arrays."""
    text = repr(value)
    return " ".join(text.split()) if "\n" in text else text


def declared(cls: type, required: bool = False) -> dict[str, Param]:
    """The parameters a class declares or inherits, in order: those with a default, or those without."""
    found: dict[str, Param] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, Param) and isinstance(value, Required) == required:
                if required:
                    found.pop(name, None)  # an argument declared again takes the later place
                found[name] = value
            elif name in found:
                del found[name]  # a subclass withdrew the option
    return found
