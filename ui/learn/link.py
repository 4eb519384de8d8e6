"""The Learn page's part of the link: which part, lesson and failure, what is done, the room, presenting."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from lab.lessons import failures as gallery
from lab.lessons import get, lessons
from lab.lessons.moment import KEYS as MOMENT_KEYS
from lab.lessons.rooms import read_code
from lab.settings import sentence
from losslib.errors import ParameterError
from losslib.params import Integer, Param
from ui import left

PREFIX = "learn."
PART, LESSON, FAILURE = "learn.part", "learn.lesson", "learn.failure"
DONE, SEED, ROOM, PRESENTING = "learn.done", "learn.seed", "learn.room", "present"
LESSONS, FAILURES, MOMENT, MAKE = "lessons", "failures", "moment", "make"
PARTS = {LESSONS: "Lessons", FAILURES: "Failure gallery", MAKE: "Make a lesson link"}
REFUSED = "learn refused"
seed_param = Param(0, valid=Integer(0, 2**31 - 1), name="seed")
ASKED = "The link asks for something that is not possible, so it is left out."


def arrived() -> None:
    """Checks what the link asks for; what is refused goes, and is said."""
    left.find(PREFIX)
    if st.session_state[left.ENTERED]:
        st.session_state[REFUSED] = _refused()
    said = st.session_state.get(REFUSED, [])
    if said:
        st.warning("\n".join([ASKED, *(f"- {sentence(text)}" for text in said)]))


def _refused() -> list[str]:
    said = []
    for key, text in now().items():
        try:
            if key in CHECKS:
                CHECKS[key](text)
            elif key not in MOMENT_KEYS:
                raise ParameterError(f"this page knows no {key!r}")
        except ParameterError as error:
            said.append(str(error))
            del st.query_params[key]
    return said


def _part(text: str) -> str:
    if text not in (*PARTS, MOMENT):
        raise ParameterError(f"the page has the parts {', '.join((*PARTS, MOMENT))}, not {text!r}")
    return text


def _on_or_off(text: str) -> str:
    if text not in ("0", "1"):
        raise ParameterError(f"the link's {PRESENTING} must be 0 or 1, got {text!r}")
    return text


CHECKS: dict[str, Callable[[str], Any]] = {
    PART: _part,
    LESSON: get,
    FAILURE: gallery.get,
    SEED: lambda text: seed_param.parse(text, "learn"),
    DONE: lambda text: [get(name) for name in text.split(".") if name],
    ROOM: read_code,
    PRESENTING: _on_or_off,
}


def read(key: str, default: str = "") -> str:
    """A text of the link."""
    return str(st.query_params.get(key, default))


def write(**texts: str) -> None:
    """Texts into the link; an empty one goes. Names have _ for the dot of their key."""
    keys = {PRESENTING if name == PRESENTING else name.replace("_", ".", 1): t for name, t in texts.items()}
    replace({**now(), **keys})


def shortcut(key: str) -> str | None:
    """Alt and a key for a button while presenting; it stands on the button."""
    return f"alt+{key}" if presenting() else None


def now() -> dict[str, str]:
    """The whole link of the page."""
    return {str(key): str(text) for key, text in st.query_params.to_dict().items()}


def replace(texts: dict[str, str]) -> None:
    """The whole link at once, so that the browser's Back is one step."""
    st.query_params.from_dict({key: text for key, text in texts.items() if text})


def part() -> str:
    """Which part of the page is open."""
    return read(PART, LESSONS)


def seed() -> int:
    """The seed of the lesson's runs."""
    with suppress(ParameterError):
        return int(seed_param.parse(read(SEED, "0"), "learn"))
    return 0


def done() -> list[str]:
    """Names of the lessons that were marked right, in the order of the page."""
    names = set(read(DONE).split("."))
    return [lesson.name for lesson in lessons() if lesson.name in names]


def moment_texts() -> dict[str, str]:
    """What the link says of a moment."""
    return {key: read(key) for key in MOMENT_KEYS if read(key)}


def add_done(name: str) -> None:
    """One more lesson is done: the link remembers it, and nothing else does."""
    found = {*done(), name}
    write(learn_done=".".join(lesson.name for lesson in lessons() if lesson.name in found))


def presenting() -> bool:
    """Whether the page is on a projector: large type, fewer controls."""
    return read(PRESENTING) == "1"


def address_of(texts: dict[str, str]) -> str:
    """The address of this page with these keys and texts."""
    place = (st.context.url or "/learn").partition("?")[0]
    return f"{place}?{urlencode(texts, safe=':,.')}" if texts else place


def go(**texts: str) -> None:
    """Opens another part, lesson or failure of the page; what is done, the room and presenting stay.

    Args:
        texts: keys of the link, whole, with their texts.
    """
    gone = (PART, LESSON, FAILURE, SEED, *MOMENT_KEYS)
    replace({**{key: text for key, text in now().items() if key not in gone}, **texts})
