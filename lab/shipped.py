"""What is shipped as recorded: how it is written, and its command: `--make` trains it anew, `--check` says
whether it is stale."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from lab.recording import Recording


def write(recording: Recording, path: Path) -> None:
    """A run file packed by deflate: a seventh larger than by LZMA, and unpacked ten times as fast.

    It is opened while somebody waits for the first picture of a page.
    """
    recording.save(path)
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez_compressed(path, allow_pickle=False, **arrays)


def command(
    module: str,
    make: Callable[[], None],
    staleness: Callable[[], str],
    arguments: Sequence[str] | None = None,
) -> int:
    """Exit status 0, or 1 when what is shipped is stale.

    Args:
        module: whose command it is.
        make: trains it and writes the files.
        staleness: why the files are no longer what training gives, or "".
        arguments: of the command line; None for those of this process.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=__doc__)
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--make", action="store_true", help="train it and write the files")
    chosen.add_argument("--check", action="store_true", help="say whether the files are stale, as without it")
    if parser.parse_args(arguments).make:
        make()
        return 0
    why = staleness()
    if why:
        print(f"{why}; python -m {module} --make", file=sys.stderr)
    return 1 if why else 0
