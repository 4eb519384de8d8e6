"""Students at work: each trains, turns knobs, goes to other pages and back, leaves and comes again.

    python -m benchmarks.classroom.students http://127.0.0.1:8501 --sessions 30 --seconds 600

One process for all of them; prints what they met and its processor seconds as JSON. `benchmarks.classroom`
starts it beside a server.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import connect

from benchmarks.classroom.session import Session, StuckError, View
from ui.navigation import entries

# Every other student has pictures. As many steps as a run may have: none is at its end during the lesson.
LESSONS = ({"data": "blobs", "steps": "20000"}, {"data": "mnist", "steps": "20000"})
SETUP = {"do": "setup", "losses": [["ContrastiveLoss", {}], ["TripletMarginLoss", {}]], "space": "plane"}
TRAIN = "train"


@dataclass
class Notes:
    """What one student met: seconds of answers by kind; frames, steps and seconds while training."""

    lesson: int
    answers: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    frames: int = 0
    steps: int = 0
    trained: float = 0.0
    sessions: int = 0
    errors: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)


class Student:
    """One student with habits drawn from a seed."""

    def __init__(self, number: int, address: str, until: float, think: tuple[float, float]) -> None:
        self.address, self.until, self.think = address, until, think
        self.random = random.Random(number)
        self.notes = Notes(number % len(LESSONS))
        self.pages = [page_name(entry.path) for entry in entries() if page_name(entry.path) != TRAIN]

    @property
    def time_left(self) -> float:
        """Seconds until the lesson ends."""
        return self.until - time.monotonic()

    async def lesson(self) -> Notes:
        """Until the time is over, session after session."""
        await asyncio.sleep(self.random.uniform(0, self.think[1]))
        while self.time_left > 0:
            session = Session(self.address)
            try:
                await session.open()
                self.notes.sessions += 1
                await self.attend(session)
            except (StuckError, OSError) as error:
                self.notes.stuck.append(str(error))
            except Exception as error:
                self.notes.stuck.append(f"{type(error).__name__}: {error}")
            finally:
                self.notes.errors += session.errors
                with contextlib.suppress(Exception):
                    await session.close()
            await self.pause(1.0)
        return self.notes

    async def attend(self, session: Session) -> None:
        """One session, from opening the link to closing the tab."""
        settings: dict[str, str] | None = {
            **LESSONS[self.notes.lesson],
            "seed": str(self.random.randrange(3)),
        }
        while self.time_left > 0:
            self.notes.answers["page"].append(await session.visit(TRAIN, settings))
            settings = None  # the run is the session's own from now on
            leaves = await self.train(session)
            if leaves:
                return
            await self.look_around(session)

    async def train(self, session: Session) -> bool:
        """At the live view for some rounds; whether the tab is closed then."""
        async with View(self.address, session.token) as view:
            try:
                await view.until("ready", "paused", "running", "finished")
                while self.time_left > 0:
                    if view.state in ("ready", "paused"):
                        await self.control(session.press("Play"))
                        await view.until("running", "finished")
                    await self.pause()
                    chance = self.random.random()
                    if chance < 0.6:
                        await self.knob(session)
                    elif chance < 0.75:
                        await self.control(session.press("Pause"))
                        await view.until("paused", "finished")
                    else:
                        return chance > 0.93
                return True
            finally:
                self.notes.frames += view.frames
                self.notes.steps += view.steps
                self.notes.trained += view.seconds

    async def knob(self, session: Session) -> None:
        """Moves one slider of the page, if it has any."""
        if session.sliders:
            label = self.random.choice(sorted(session.sliders))
            slider = session.sliders[label]
            count = max(1, round((slider.max - slider.min) / slider.step))
            await self.control(session.turn(label, slider.min + self.random.randrange(count) * slider.step))

    async def look_around(self, session: Session) -> None:
        """Another page, and a control there."""
        page = self.random.choice(self.pages)
        self.notes.answers["page"].append(await session.visit(page))
        if page == "playground":
            await self.drag()
        await self.pause()
        if session.sliders:
            label = self.random.choice(sorted(session.sliders))
            slider = session.sliders[label]
            value = slider.min + self.random.randrange(5) / 5 * (slider.max - slider.min)
            self.notes.answers["control elsewhere"].append(await session.turn(label, value))
            await self.pause()

    async def drag(self) -> None:
        """Moves a point of the playground for a second, 20 times."""
        url = f"{self.address.replace('http', 'ws')}/play"
        async with connect(url, origin=self.address) as socket:  # type: ignore[arg-type]
            await socket.send(json.dumps({**SETUP, "normalise": True}))
            for number in range(20):
                points = [[0.9, 0.3, 0], [-0.2, 0.8, 0], [0.7 - number / 20, -0.6, 1]]
                begun = time.perf_counter()
                await socket.send(json.dumps({"do": "place", "id": number, "points": points, "selected": 0}))
                await asyncio.wait_for(socket.recv(), 30)
                self.notes.answers["drag"].append(time.perf_counter() - begun)
                await asyncio.sleep(0.05)

    async def control(self, answer: Any) -> None:
        self.notes.answers["control"].append(await answer)

    async def pause(self, seconds: float = 0.0) -> None:
        """Thinks, but not beyond the end."""
        wanted = seconds or self.random.uniform(*self.think)
        await asyncio.sleep(max(0.0, min(wanted, self.time_left)))


def page_name(path: str) -> str:
    """A page's name in the address; "" is Home."""
    return path.removeprefix("pages/").removesuffix(".py") if path.startswith("pages/") else ""


async def lesson(address: str, sessions: int, seconds: float, think: tuple[float, float]) -> list[Notes]:
    """All students at once."""
    until = time.monotonic() + seconds
    students = [Student(number, address, until, think) for number in range(sessions)]
    return await asyncio.gather(*(student.lesson() for student in students))


def main() -> None:
    """Runs a lesson and prints the notes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("address")
    parser.add_argument("--sessions", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument(
        "--think", type=float, nargs=2, default=(3.0, 7.0), help="seconds between two actions"
    )
    given = parser.parse_args()
    low, high = given.think
    notes = asyncio.run(lesson(given.address, given.sessions, given.seconds, (low, high)))
    print(json.dumps({"notes": [vars(one) for one in notes], "seconds": time.process_time()}))


if __name__ == "__main__":
    main()
