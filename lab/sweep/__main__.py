"""`python -m lab.sweep config.json --out results/`."""

from lab.sweep.command import main

if __name__ == "__main__":
    raise SystemExit(main())
