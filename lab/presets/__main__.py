"""`python -m lab.presets --make` trains presets and writes their recordings; `--check` names stale ones."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from lab.presets import Preset, presets
from lab.recording import Recording
from lab.run import Run
from lab.shipped import write
from losslib.errors import ParameterError

FRAMES = 30
FIRST_STEPS = 10
# Another machine rounds differently, and a point or two then finds another neighbour.
TOLERANCE = {"loss": 1e-3, "recall_at_1": 1e-2}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0, or 1 when a recording is stale."""
    parser = argparse.ArgumentParser(prog="python -m lab.presets", description=__doc__)
    parser.add_argument("--make", action="store_true", help="train the presets and write their recordings")
    parser.add_argument("--check", action="store_true", help="say which recordings no longer match")
    parser.add_argument("names", nargs="*", help="presets; all without a name")
    options = parser.parse_args(arguments)
    chosen = [preset for preset in presets() if not options.names or preset.name in options.names]
    stale = 0
    for preset in chosen:
        if options.make:
            made = record(preset)
            write(made, preset.recording_file)
            size = preset.recording_file.stat().st_size / 1000
            print(f"{preset.name}: {len(made)} frames, {size:.0f} kB, {made.state}")
        elif why := staleness(preset):
            stale += 1
            print(f"{preset.name}: {why}; python -m lab.presets --make {preset.name}", file=sys.stderr)
    return 1 if stale else 0


def record(preset: Preset) -> Recording:
    """Train the preset to its end and keep `FRAMES` frames, close early and far apart late, without the
    embeddings, which at size 2 are the map; the curves keep every frame's numbers."""
    run = Run(preset.config())
    for _ in run:
        pass
    full = run.recording
    largest = max(frame.nbytes for frame in full.frames)
    kept = Recording(
        full.config,
        full.probe,
        full.labels,
        full.class_names,
        frame_bytes=FRAMES * largest,
        embedding_bytes=0,
    )
    for frame in full.frames:
        kept.add(replace(frame, embeddings=None))
    kept.state = "diverged" if run.diverged else "finished"
    kept.reason, kept.provenance, kept.chance = full.reason, full.provenance, full.chance
    return kept


def staleness(preset: Preset) -> str:
    """Why the shipped recording is no longer what training its settings gives, or ""."""
    try:
        shipped = preset.recording()
    except ParameterError as error:
        return str(error)
    if shipped.config != preset.config():
        return "its settings changed since it was recorded"
    run = Run(preset.config())
    run.start()
    while run.steps_done < FIRST_STEPS and not run.finished:
        run.step()
    now, then = run.recording.curves(), shipped.curves()
    for name, tolerance in TOLERANCE.items():
        for step, new, old in zip(now["step"], now[name], then[name], strict=False):
            if abs(new - old) > tolerance * max(1.0, abs(old)):
                return f"{name} at step {step:.0f} is now {new:g}, recorded is {old:g}"
    return ""


if __name__ == "__main__":
    raise SystemExit(main())
