"""The server's life: whoever stops it at once, while it still warms up, sees no traceback."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
AT_ONCE = """
import asyncio, threading
from ui.server import lifespan
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
