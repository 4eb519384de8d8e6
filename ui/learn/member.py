"""Which member of a room this browser is, so that a reload is not one more."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

KEY, MEMBER = "learn browser", "learn member"
NAME = re.compile(r"[0-9a-f]{24}")  # what the client draws; anything else is no name

_COMPONENT = st.components.v2.component(
    "losslab_member", js=Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Told:
    """What the browser keeps of a room.

    Args:
        name: a random word, "" where the browser opened the room, or has not answered yet.
        key: what the room is closed with, where this tab opened it.
    """

    name: str = ""
    key: str = ""


def ask(code: str, key: str = "") -> Told:
    """What the browser says of a room; nothing at first, then the script runs again.

    Args:
        code: of the room.
        key: for the tab to keep, where this session has opened the room.
    """
    with st.container(key="focus-member"):  # it takes no room
        found = _COMPONENT(key=KEY, data={"code": code, "key": key}, on_told_change=lambda: None)
    told: dict[str, Any] = dict(found.get("told") or {})
    if told.get("code") != code:
        return Told()
    name = str(told.get("member", ""))
    return Told(name if NAME.fullmatch(name) else "", str(told.get("key", ""))[:64])


def own_name() -> str:
    """A random name of this session: until the browser has told its own, and where it cannot."""
    return str(st.session_state.setdefault(MEMBER, secrets.token_hex(12)))


def take_name(name: str) -> str:
    """From now on this session is that member; returns who it was before."""
    former = own_name()
    st.session_state[MEMBER] = name
    return former
