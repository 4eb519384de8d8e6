"""`python -m lab.lessons.failures --seeds 5 --healthy 20` says what the detectors find."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lab.config import RunConfig
from lab.insights import insights
from lab.lessons.__main__ import trained
from lab.lessons.failures import failures
from lab.recording import Recording

# Ordinary runs of many losses, data sets and outputs; none of them is to trip a detector at any frame.
HEALTHY: tuple[dict[str, str], ...] = tuple(
    {"batch": "48", "steps": "80", **settings}
    for settings in (
        {"data": "blobs", "loss": "ContrastiveLoss"},
        {"data": "blobs", "loss": "NTXentLoss"},
        {"data": "blobs", "loss": "SupConLoss", "dim": "8"},
        {"data": "blobs", "loss": "MultiSimilarityLoss"},
        {"data": "blobs", "loss": "NTXentLoss", "output": "none"},
        {"data": "blobs", "loss": "ContrastiveLoss", "output": "none", "dim": "3"},
        {"data": "blobs", "loss": "SupConLoss", "encoder": "free", "lr": "0.03"},
        {"data": "blobs", "loss": "SupConLoss", "per_class": "0"},
        {
            "data": "blobs",
            "loss": "TripletMarginLoss",
            "TripletMarginLoss.margin": "0.5",
            "blobs.spread": "1.5",
        },
        {"data": "blobs", "loss": "MarginLoss"},
        {"data": "blobs", "loss": "NormalizedSoftmaxLoss"},
        {"data": "blobs", "loss": "NTXentLoss", "pairing": "views", "dim": "8"},
        {"data": "moons", "loss": "SupConLoss"},
        {"data": "rings", "loss": "ContrastiveLoss"},
        {"data": "spirals", "loss": "NTXentLoss"},
        {"data": "imbalanced", "loss": "SupConLoss"},
        {"data": "noisy_labels", "loss": "ContrastiveLoss"},
        {"data": "swiss_roll", "loss": "NTXentLoss", "pairing": "continuous"},
        {"data": "digits", "loss": "SupConLoss", "encoder": "mlp", "dim": "8"},
        {"data": "digits", "loss": "ContrastiveLoss", "encoder": "linear"},
    )
)


def healthy(number: int, seed: int = 0) -> RunConfig:
    """One of the ordinary runs, at 600 points where the data set has a choice."""
    settings = dict(HEALTHY[number])
    if settings["data"] != "digits":
        settings[f"{settings['data']}.points"] = "600"
    return RunConfig.from_settings({**settings, "seed": str(seed)})


def troubles(recording: Recording) -> set[str]:
    """Kinds of the findings at the end of a run that something is to be done about."""
    return {found.kind for found in insights(recording) if found.cure is not None}


def troubles_on_the_way(recording: Recording) -> dict[str, int]:
    """Kinds of the findings at any frame, and the first step of each."""
    seen: dict[str, int] = {}
    for frame in recording.frames:
        for found in insights(recording, frame):
            if found.cure is not None:
                seen.setdefault(found.kind, frame.step)
    return seen


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0, or 1 when a detector is silent, another one speaks, or a cure does not help."""
    parser = argparse.ArgumentParser(prog="python -m lab.lessons.failures", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="seeds of each failure (default 5)")
    parser.add_argument("--healthy", type=int, default=len(HEALTHY), help="ordinary runs (default all, 20)")
    parser.add_argument("names", nargs="*", help="failures; all without a name")
    options = parser.parse_args(arguments)
    wrong = 0
    for failure in failures():
        for seed in range(options.seeds if not options.names or failure.name in options.names else 0):
            failed, cured = trained(failure.config(seed)), trained(failure.cured(seed))
            found, left = troubles(failed), troubles(cured)
            good = found == {failure.detector} and failure.detector not in left
            wrong += not good
            recall = [recording.frames[-1].quality["recall_at_1"] or 0.0 for recording in (failed, cured)]
            print(
                f"{failure.name}, seed {seed}: {'as declared' if good else 'WRONG'}; found {sorted(found)}, "
                f"cured {sorted(left)}; recall@1 {recall[0]:.2f}, cured {recall[1]:.2f}",
                flush=True,
            )
    for number in range(options.healthy):
        seen = troubles_on_the_way(trained(healthy(number)))
        wrong += bool(seen)
        print(f"healthy {number} {HEALTHY[number]}: {seen or 'nothing'}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
