"""`python -m lab.compare --make` trains the shipped comparison anew; `--check` says whether it is stale."""

from __future__ import annotations

import argparse
import sys

from lab.compare.example import make, staleness


def main() -> int:
    """Exit status 0, or 1 when the shipped files are stale."""
    parser = argparse.ArgumentParser(prog="python -m lab.compare", description=__doc__)
    parser.add_argument("--make", action="store_true", help="train it and write the files")
    parser.add_argument("--check", action="store_true", help="say whether the files are stale")
    if parser.parse_args().make:
        make()
        return 0
    why = staleness()
    if why:
        print(f"{why}; python -m lab.compare --make", file=sys.stderr)
    return 1 if why else 0


if __name__ == "__main__":
    raise SystemExit(main())
