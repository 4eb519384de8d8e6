"""A long run of every property."""

from __future__ import annotations

import argparse
import sys
import time
import warnings

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.holds import Property, properties


def main(arguments: list[str] | None = None) -> int:
    """Tries so many inputs; status 1 with the counterexample of each property that does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000, help="over all properties together")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs")
    parser.add_argument("--only", choices=[*properties()], help="one property")
    options = parser.parse_args(arguments)
    chosen = {n: p for n, p in properties().items() if options.only in (None, n)}
    total = sum(one.weight for one in chosen.values())
    failed, tried = 0, 0
    for name, one in chosen.items():
        count = max(1, round(options.inputs * one.weight / total))
        begun = time.perf_counter()
        found, calls = run(one, count, options.seed)
        tried += calls
        failed += found is not None
        print(
            f"{name}: {calls:,} inputs in {time.perf_counter() - begun:.0f} s, {found or 'holds'}", flush=True
        )
    print(f"{tried:,} inputs, {failed} properties that do not hold")
    return int(failed > 0)


def run(one: Property, count: int, start: int = 0) -> tuple[str | None, int]:
    """The counterexample found or None, and how many inputs were tried."""
    calls = 0

    def counted(**values: object) -> None:
        nonlocal calls
        calls += 1
        one.function(**values)

    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    rules = settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=quiet,
        print_blob=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            seed(start)(rules(given(**one.given)(counted)))()
        except Exception as error:  # whatever it is, it is the finding
            return f"{type(error).__name__}: {error}", calls
    return None, calls


if __name__ == "__main__":
    sys.exit(main())
