"""`python -m lab.compare --make` trains the shipped comparison anew; `--check` says whether it is stale."""

from lab.compare.example import make, staleness
from lab.shipped import command

if __name__ == "__main__":
    raise SystemExit(command("lab.compare", make, staleness))
