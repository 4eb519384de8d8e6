"""Does the mark of every lesson agree with an answer that is worked out another way? Over many seeds.

    python -m benchmarks.lessons --seeds 100 --jobs 2

The answer here is read off the trained encoder itself in float64: all held-out pairs instead of the recorded
sample, plain loops over anchors, weights from their formula, gradient norms and active pairs counted anew.
The mark is `lab.lessons.mark` on the recordings. They agree when every possible prediction is called right or
wrong the same way (a number: within its tolerance of this answer, but for one point at the edges; a sketch:
the truth itself right, and all in its rarest bar wrong).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lab.config import RunConfig
from lab.lessons import Lesson, lessons
from lab.lessons.mark import mark
from lab.lessons.question import CHOICE, NUMBER
from lab.phases import OneStep
from lab.recording import Recording
from lab.run import Run

Runs = dict[str, "Watched"]
Answer = Any  # a number, or the shares of a sketch
EDGE = 1.0  # a number this near to the end of its tolerance may be called either way


class Watched:
    """A run that is trained to its end, with what its steps themselves say."""

    def __init__(self, config: RunConfig) -> None:
        self.run = Run(config)
        self.gradients: dict[int, float] = {}
        self.active: dict[int, OneStep] = {}
        self.run.start()
        while not self.run.finished:
            self.run.step()
            one = self.run.last
            assert one is not None
            gradients = [p.grad for p in one.trainer.encoder.parameters()]
            squares = [float((g.double() ** 2).sum()) for g in gradients if g is not None]
            self.gradients[self.run.steps_done] = sum(squares) ** 0.5
            self.active[self.run.steps_done] = one

    def points(self) -> NDArray[np.float64]:
        """Embeddings of the held-out probe, float64."""
        index = torch.from_numpy(self.run.probe.index.copy())
        return np.asarray(self.run.trainer.embed(index).double().numpy())

    def labels(self) -> NDArray[np.int64]:
        return self.run.data.truth[self.run.probe.index]

    @property
    def recording(self) -> Recording:
        return self.run.recording


def nearest(points: NDArray[np.float64], by: str) -> NDArray[np.int64]:
    """Number of each row's nearest other row by Euclidean distance or by cosine."""
    found = []
    for place, point in enumerate(points):
        if by == "euclidean":
            far = np.sqrt(((points - point) ** 2).sum(axis=1))
        else:
            far = -(points @ point) / (np.linalg.norm(points, axis=1) * np.linalg.norm(point))
        far[place] = np.inf
        found.append(int(far.argmin()))
    return np.array(found)


def distances(watched: Watched, side: str) -> NDArray[np.float64]:
    """Distances of all positive or negative held-out pairs, of embeddings divided by their length."""
    points, labels = watched.points(), watched.labels()
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    first, second = np.triu_indices(len(points), 1)
    wanted = (labels[first] == labels[second]) == (side == "positive")
    return np.asarray(np.linalg.norm(points[first[wanted]] - points[second[wanted]], axis=1))


def recall(watched: Watched) -> float:
    return float((watched.labels()[nearest(watched.points(), "euclidean")] == watched.labels()).mean())


def active_by_hand(one: OneStep, margin: float) -> float:
    """Share of the ordered pairs of a batch with a gradient under contrastive loss, positive margin 0."""
    points = one.embeddings.double().numpy()
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    labels, counted, active = one.labels.numpy(), 0, 0
    for i in range(len(points)):
        for j in range(len(points)):
            if i != j:
                far = float(np.linalg.norm(points[i] - points[j]))
                counted += 1
                active += far > 1e-7 if labels[i] == labels[j] else far < margin
    return active / counted


def euclidean_or_cosine(runs: Runs) -> float:
    points = runs["a"].points()
    return float((nearest(points, "euclidean") == nearest(points, "cosine")).mean())


def margin_and_dead_zone(runs: Runs) -> float:
    steps = runs["a"].active
    before = [active_by_hand(steps[step], 0.2) for step in (42, 44, 46, 48)]
    after = [active_by_hand(steps[step], 1.0) for step in (50, 52, 54, 56, 58)]
    return float(np.mean(after) - np.mean(before))


def positives_only(runs: Runs) -> Answer:
    counts, _ = np.histogram(distances(runs["a"], "negative"), bins=np.linspace(0, 2, 6))
    return np.asarray(counts / counts.sum())


def temperature(runs: Runs) -> float:
    """From the formula: exp(s / tau) over its largest, counted where it exceeds 0.01."""
    points, labels, shares = runs["a"].points(), runs["a"].labels(), []
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    for i in range(len(points)):
        weights = np.array(
            [np.exp(points[i] @ points[j] / 0.02) for j in np.flatnonzero(labels != labels[i])]
        )
        shares.append(float((weights / weights.max() > 0.01).mean()))
    return float(np.mean(shares))


def hard_semihard_easy(runs: Runs) -> float:
    trained = recall(runs["a"])
    fresh = Run(runs["a"].run.config)  # not yet trained
    points = fresh.trainer.embed(torch.from_numpy(fresh.probe.index.copy())).double().numpy()
    labels = fresh.data.truth[fresh.probe.index]
    return trained - float((labels[nearest(points, "euclidean")] == labels).mean())


def dcl_small_batches(runs: Runs) -> float:
    half = range(50, 101)
    with_positive, without = (np.mean([runs[name].gradients[step] for step in half]) for name in "ab")
    return float(without / with_positive)


def beta(runs: Runs) -> float:
    return 100 * float((distances(runs["a"], "negative") > 1.4).mean())


def one_threshold(runs: Runs) -> float:
    cosine = 1 - distances(runs["a"], "positive") ** 2 / 2
    return float((cosine > 0.9).mean())


def labels_or_views(runs: Runs) -> float:
    return recall(runs["a"])


def normalised_or_not(runs: Runs) -> float:
    fresh = Run(runs["a"].run.config)
    first = fresh.trainer.embed(torch.from_numpy(fresh.probe.index.copy())).double().norm(dim=1).mean()
    return float(np.linalg.norm(runs["a"].points(), axis=1).mean() / float(first))


ANSWERS: dict[str, Callable[[Runs], Answer]] = {
    function.__name__: function
    for function in (
        euclidean_or_cosine,
        margin_and_dead_zone,
        positives_only,
        temperature,
        hard_semihard_easy,
        dcl_small_batches,
        beta,
        one_threshold,
        labels_or_views,
        normalised_or_not,
    )
}


def agrees(lesson: Lesson, answer: Answer, recordings: Mapping[str, Recording]) -> tuple[bool, str]:
    """Whether marks and answer agree, and the answer in words."""
    question = lesson.question
    if question.kind == CHOICE:
        right = next(i for i, one in enumerate(question.choices) if one.low <= answer < one.high)
        called = [mark(lesson, i, recordings).right for i in range(len(question.choices))]
        return called == [i == right for i in range(len(called))], question.choices[right].text
    if question.kind == NUMBER:
        fine = True
        for given in np.arange(question.low, question.high + 1e-9, question.step):
            off = abs(given - answer)
            if abs(off - question.tolerance) > EDGE:
                fine &= mark(lesson, float(given), recordings).right == (off <= question.tolerance)
        return bool(fine), f"{answer:.0f} {question.unit}"
    rarest = tuple(float(place == answer.argmin()) for place in range(len(answer)))
    fine = mark(lesson, tuple(map(float, answer)), recordings).right
    fine &= not mark(lesson, rarest, recordings).right
    return bool(fine), f"{100 * answer[0]:.0f} % in the first bar"


def one_seed(task: tuple[str, int]) -> tuple[str, int, bool, str, float]:
    name, seed = task
    lesson = next(one for one in lessons() if one.name == name)
    runs = {run: Watched(config) for run, config in lesson.configs(seed).items()}
    answer = ANSWERS[name](runs)
    fine, words = agrees(lesson, answer, {run: one.recording for run, one in runs.items()})
    return name, seed, fine, words, float(np.ravel(answer)[0])


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0, or 1 when a mark disagrees."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lessons", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    names = [one.name for one in lessons() if not options.names or one.name in options.names]
    begun, wrong = time.monotonic(), 0
    seeds = range(options.first, options.first + options.seeds)
    answers: dict[str, Counter[str]] = {name: Counter() for name in names}
    values: dict[str, list[float]] = {name: [] for name in names}
    # seed by seed, so that an early end still says something of every lesson
    with ProcessPoolExecutor(options.jobs) as pool:
        for name, seed, fine, words, value in pool.map(one_seed, [(n, s) for s in seeds for n in names]):
            answers[name][words] += 1
            values[name].append(value)
            wrong += not fine
            print(
                f"{name}, seed {seed}: {'agrees' if fine else 'DISAGREES'}, {words} ({value:.4g})", flush=True
            )
    print(f"\n{len(seeds)} seeds, {wrong} disagreements, {time.monotonic() - begun:.0f} s")
    for name in names:
        said = ", ".join(f"{count} x {words}" for words, count in answers[name].most_common(4))
        print(f"{name:22} {min(values[name]):9.3g} to {max(values[name]):9.3g}   {said}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
