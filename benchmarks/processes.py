"""Processor time and memory of the processes of this machine, from /proc (Linux)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")


class Process(NamedTuple):
    """One process: its parent, and its processor time so far in seconds."""

    parent: int
    seconds: float


def processes() -> dict[int, Process]:
    """Every process by its number."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text(encoding="utf-8")
        except OSError:
            continue
        fields = text[text.rindex(")") + 2 :].split()
        found[int(folder.name)] = Process(int(fields[1]), (int(fields[11]) + int(fields[12])) / TICKS)
    return found


def seconds_of(root: int, known: dict[int, Process]) -> float:
    """Processor time of a process and all that it started, in seconds."""
    return sum(known[number].seconds for number in family_of(root, known) if number in known)


def family_of(root: int, known: dict[int, Process]) -> set[int]:
    """A process and all that it started, by number."""
    family, added = {root}, True
    while added:
        more = {number for number, process in known.items() if process.parent in family} - family
        added = bool(more)
        family |= more
    return family


def machine_seconds() -> float:
    """Processor time that all cores together spent at work, in seconds."""
    fields = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0].split()[1:]
    user, nice, system, _idle, _wait, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / TICKS


def started_with(argument: str) -> int:
    """The oldest process that has this text among its arguments; raises LookupError when there is none."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(argument.encode() in word for word in words):
            found.append(int(folder.name))
    if not found:
        raise LookupError(f"no process was started with {argument}")
    return min(found)


def memory_of(root: int, known: dict[int, Process]) -> int:
    """Resident memory of a process and all of known that it started, in bytes.

    Pages of files are those of the process that maps most of them: what one starts maps the same libraries,
    and the machine holds them once.
    """
    family = family_of(root, known)
    own = sum(kilobytes_of(number, "RssAnon:") + kilobytes_of(number, "RssShmem:") for number in family)
    return 1024 * (own + max(kilobytes_of(number, "RssFile:") for number in family))


def kilobytes_of(process: int, field: str) -> int:
    """A field of a process's status, such as "VmRSS:", in kilobytes; 0 where there is none."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(field)), 0)
