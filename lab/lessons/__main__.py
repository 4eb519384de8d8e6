"""`python -m lab.lessons --check --seeds 100` says which answer is right seed by seed; `--make` records."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from lab.config import RunConfig
from lab.lessons import Lesson, lessons
from lab.lessons.mark import right_choice
from lab.lessons.measures import NEED_EMBEDDINGS, measured, shown
from lab.lessons.question import CHOICE
from lab.recording import Recording
from lab.run import Run
from lab.shipped import write
from losslib.errors import ParameterError

FIRST_STEPS = 10
TOLERANCE = 1e-3  # another machine rounds differently


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0, or 1 when a recording is stale or a seed could not be marked."""
    parser = argparse.ArgumentParser(prog="python -m lab.lessons", description=__doc__)
    parser.add_argument("--make", action="store_true", help="train seed 0 and write the recordings")
    parser.add_argument("--check", action="store_true", help="stale recordings, and the answer of each seed")
    parser.add_argument("--seeds", type=int, default=3, help="seeds 0 to this minus 1 (default 3)")
    parser.add_argument("names", nargs="*", help="lessons; all without a name")
    options = parser.parse_args(arguments)
    chosen = [lesson for lesson in lessons() if not options.names or lesson.name in options.names]
    failed = 0
    for lesson in chosen:
        if options.make:
            make(lesson)
            continue
        if why := staleness(lesson):
            failed += 1
            print(f"{lesson.name}: {why}; python -m lab.lessons --make {lesson.name}", file=sys.stderr)
        failed += report(lesson, options.seeds)
    return 1 if failed else 0


def trained(config: RunConfig) -> Recording:
    """One run, trained to its end."""
    run = Run(config)
    for _ in run:
        pass
    run.recording.state, run.recording.reason = "diverged" if run.diverged else "finished", run.reason
    return run.recording


def train(lesson: Lesson, seed: int) -> dict[str, Recording]:
    """Every run of a lesson, trained to its end."""
    return {name: trained(config) for name, config in lesson.configs(seed).items()}


def make(lesson: Lesson) -> None:
    """Write the recordings of its own seed, without embeddings where the map or the curves say it all."""
    needed = {one.get("run", "a") for one in lesson.measures.values() if one["of"] in NEED_EMBEDDINGS}
    for name, recording in train(lesson, 0).items():
        if name not in needed or recording.config.dim == 2:
            recording.frames = [replace(frame, embeddings=None) for frame in recording.frames]
        file = lesson.recording_file(name)
        write(recording, file)
        print(f"{file.name}: {len(recording)} frames, {file.stat().st_size / 1000:.0f} kB, {recording.state}")


def staleness(lesson: Lesson) -> str:
    """Why its shipped recordings are no longer what training gives, or ""."""
    try:
        shipped = lesson.shipped()
    except ParameterError as error:
        return str(error)
    for name, recording in shipped.items():
        config = lesson.configs()[name]
        if recording.config != config:
            return f"the settings of run {name} changed since it was recorded"
        run = Run(config)
        run.start()
        while run.steps_done < FIRST_STEPS and not run.finished:
            run.step()
        now, then = run.recording.curves(), recording.curves()
        for step, new, old in zip(now["step"], now["loss"], then["loss"], strict=False):
            if abs(new - old) > TOLERANCE * max(1.0, abs(old)):
                return f"the loss of run {name} at step {step:.0f} is now {new:g}, recorded is {old:g}"
    return ""


def report(lesson: Lesson, seeds: int) -> int:
    """Print what each seed answers, then how often; returns how many could not be marked."""
    answers: Counter[str] = Counter()
    failed = 0
    for seed in range(seeds):
        values = measured(lesson.measures, train(lesson, seed))
        try:
            answer = values.get("answer", 0.0)
            if lesson.question.kind == CHOICE:
                answers[lesson.question.choices[right_choice(lesson.question, answer)].text] += 1
        except ParameterError as error:
            failed += 1
            print(f"{lesson.name}, seed {seed}: {error}", file=sys.stderr)
            continue
        texts = ", ".join(f"{name} {text}" for name, text in shown(lesson.measures, values).items())
        print(f"{lesson.name}, seed {seed}: {texts}", flush=True)
    for text, count in answers.most_common():
        print(f"{lesson.name}: {count} of {seeds} seeds: {text}")
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
