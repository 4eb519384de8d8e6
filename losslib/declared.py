"""The base of everything with declared options: losses, distances, reducers, regularizers. No torch here."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from losslib.params import Param, declared

_CHANGES = [0]


def changes() -> int:
    """How often an attribute of anything declared was set: what rests on options holds while it stays."""
    return _CHANGES[0]


class Declared:
    """Takes declared options by position or keyword, and refuses the ones it does not have.

    `required` holds the arguments without a default, which come first, and `params` the options, both in the
    order of declaration; `parts` names further keyword-only arguments (such as `distance`) that the class
    takes itself.
    """

    required: ClassVar[dict[str, Param]] = {}
    params: ClassVar[dict[str, Param]] = {}
    parts: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.required, cls.params = declared(cls, required=True), declared(cls)
        if "__init__" not in cls.__dict__:
            _give_signature(cls)

    def __setattr__(self, name: str, value: Any) -> None:
        # before a module can take a tensor for one of its own: an option checks whatever it is given
        _CHANGES[0] += 1
        param = self.params.get(name) or self.required.get(name)
        if param is None or param.is_held(value):
            super().__setattr__(name, value)
        else:
            param.__set__(self, value)

    def _take_options(self, values: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """Set the declared options; return the given parts. Raises TypeError for an unknown option."""
        owner, names = type(self).__name__, [*self.required, *self.params]
        if len(values) > len(names):
            raise TypeError(f"{owner}: takes at most {len(names)} positional options, got {len(values)}")
        given = dict(zip(names, values, strict=False))
        for name, value in options.items():
            if name in given:
                raise TypeError(f"{owner}: option {name} was given twice")
            if name not in names and name not in self.parts:
                raise TypeError(unknown_option(owner, name, [*names, *self.parts]))
            given[name] = value
        if missing := [name for name in self.required if name not in given]:
            raise TypeError(f"{owner}: must be given {' and '.join(missing)}")
        for name in self.required:
            setattr(self, name, given[name])
        for name, param in self.params.items():
            setattr(self, name, given.get(name, param.default))
        return {name: value for name, value in given.items() if name in self.parts}

    def _options_text(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.params)


def unknown_option(owner: str, name: str, known: list[str]) -> str:
    """The sentence that refuses an option, with the nearest known one."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    hint = f"did you mean {near[0]}?" if near else f"its options are {', '.join(known) or 'none'}"
    return f"{owner}: has no option {name!r}; {hint}"


def _give_signature(cls: type[Declared]) -> None:
    """Give the class an `__init__` whose signature shows its options, for editors and `help`."""
    kind = inspect.Parameter
    first = [kind(name, kind.POSITIONAL_OR_KEYWORD) for name in cls.required]
    positional = [kind(n, kind.POSITIONAL_OR_KEYWORD, default=p.default) for n, p in cls.params.items()]
    keyword = [kind(name, kind.KEYWORD_ONLY, default=None) for name in cls.parts]

    def construct(self: Declared, *values: Any, **options: Any) -> None:
        super(cls, self).__init__(*values, **options)

    own = kind("self", kind.POSITIONAL_OR_KEYWORD)
    construct.__signature__ = inspect.Signature([own, *first, *positional, *keyword])  # type: ignore[attr-defined]
    construct.__name__ = "__init__"
    construct.__qualname__ = f"{cls.__qualname__}.__init__"
    construct.__module__ = cls.__module__
    cls.__init__ = construct  # type: ignore[assignment, method-assign]
