"""A long run of every property, in portions, on several processes."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.fuzz.holds import properties
from tests.fuzz.portions import of, portions


def main(arguments: list[str] | None = None) -> int:
    """Tries so many inputs; status 1 with the counterexamples of each property that does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000, help="over all properties together")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs")
    parser.add_argument("--only", choices=[*properties()], help="one property")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each on one thread")
    options = parser.parse_args(arguments)
    names = [name for name in properties() if options.only in (None, name)]
    work = portions(names, options.inputs, options.seed)
    begun = time.perf_counter()
    tried: Counter[str] = Counter()
    failed: set[str] = set()
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        for portion, found, calls in pool.map(of, work) if options.jobs > 1 else map(of, work):
            tried[portion.name] += calls
            if found is not None:
                failed.add(portion.name)
                print(f"{portion.name} does not hold (seed {portion.seed}): {found}", flush=True)
            if len(work) > len(names):
                took = time.perf_counter() - begun
                print(
                    f"{tried.total():,} inputs in {took:.0f} s; {portion.name}: {tried[portion.name]:,}",
                    flush=True,
                )
    for name in names:
        print(f"{name}: {tried[name]:,} inputs, {'does not hold' if name in failed else 'holds'}")
    print(f"{tried.total():,} inputs, {len(failed)} properties that do not hold")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
