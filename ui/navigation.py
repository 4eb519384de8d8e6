"""The sidebar's links. A page is found by its file; title, group and order stand in it as plain constants."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class PageEntry:
    """One page as its file declares it: TITLE, GROUP, ORDER and SUMMARY."""

    path: str
    title: str
    group: str
    order: int
    summary: str


@cache
def entries() -> tuple[PageEntry, ...]:
    """Home first, then every file of `pages/`, by order."""
    found = [read_entry(file) for file in (ROOT / "pages").glob("*.py")]
    return (read_entry(ROOT / "home.py"), *sorted(found, key=lambda entry: (entry.order, entry.title)))


def read_entry(file: Path) -> PageEntry:
    """The declarations of a page, read without running it."""
    constants: dict[str, Any] = {
        target.id: node.value.value
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return PageEntry(
        path=file.relative_to(ROOT).as_posix(),
        title=str(constants.get("TITLE", file.stem.capitalize())),
        group=str(constants.get("GROUP", "")),
        order=int(constants.get("ORDER", 100)),
        summary=str(constants.get("SUMMARY", "")),
    )


def draw_navigation() -> None:
    """The grouped links, the same on every page."""
    with st.sidebar:
        group = ""
        for entry in entries():
            if entry.group not in (group, entry.title):
                st.caption(entry.group)
            group = entry.group
            st.page_link(entry.path, label=entry.title)
