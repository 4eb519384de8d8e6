"""Coroutines in tests, also while Playwright's loop is at work in the main thread."""

import asyncio
from concurrent.futures import ThreadPoolExecutor


def alone(coroutine):
    """Its value, from a loop in a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
