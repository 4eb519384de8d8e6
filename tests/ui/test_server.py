"""The server's life: whoever stops it at once, while it still warms up, sees no traceback."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.lab.turning import until
from ui import server

ROOT = Path(__file__).resolve().parents[2]
AT_ONCE = """
import asyncio, threading
from ui import server
from ui.server import lifespan
server.LAST_PART = 120.0  # an import takes long on a crowded machine
async def live():
    async with lifespan(None):
        await asyncio.sleep({seconds})
asyncio.run(live())
assert not any(thread.name == "warm-up" for thread in threading.enumerate())
print("ended")
"""


def test_a_server_that_ends_while_it_warms_up_ends_without_a_word():
    for seconds in (0, 0.6):
        command = [sys.executable, "-c", AT_ONCE.format(seconds=seconds)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


def test_a_page_that_runs_is_answering_and_one_that_has_ended_is_not():
    def script():
        import streamlit as st

        from ui.server import answering

        st.text(f"answering: {answering()}")

    shown = AppTest.from_function(script, default_timeout=30).run()
    assert shown.text[0].value == "answering: True"
    until(lambda: not server.answering())


def test_an_answer_of_a_socket_is_waited_for_while_it_is_worked_out(monkeypatch: pytest.MonkeyPatch):
    until(lambda: not server.answering())
    with server.answer():
        assert server.answering()
    assert not server.answering()
    now = server.time.monotonic()
    with server.answer():
        monkeypatch.setattr(server.time, "monotonic", lambda: now + 2 * server.SOON)
        assert not server.answering()


def test_who_works_for_long_is_waited_for_no_more(monkeypatch: pytest.MonkeyPatch):
    ended, now = threading.Event(), 100.0
    monkeypatch.setattr(server.time, "monotonic", lambda: now)
    page = threading.Thread(target=ended.wait, args=(60,), name=server.SCRIPT, daemon=True)
    page.start()
    try:
        assert server.answering()
        now += server.SOON / 2
        assert server.answering()
        now += server.SOON
        assert not server.answering()
    finally:
        ended.set()
        page.join()
