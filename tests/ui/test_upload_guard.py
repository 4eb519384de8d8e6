"""Uploads beyond what the server can hold are refused before they are read."""

import asyncio

import pytest

from lab.uploads import UploadLimits
from tests.alone import alone
from ui.upload_guard import UploadGuard

MIB = 2**20
PATH = "/_stcore/upload_file/{}/{}"


class Kept:
    """Stands for Streamlit's store: session to files to bytes."""

    def __init__(self, **sessions):
        self.sessions = sessions

    def bytes(self):
        return sum(sum(files.values()) for files in self.sessions.values())

    def files(self, session):
        return set(self.sessions.get(session, {}))


def asked(guard, path, length=None, method="PUT", receive=None):
    """Status and text of the guard's answer; None where it let the request pass."""
    sent = []

    async def send(message):
        sent.append(message)

    async def nothing():
        return {"type": "http.request", "body": b"", "more_body": False}

    headers = [] if length is None else [(b"content-length", str(length).encode())]
    scope = {"type": "http", "method": method, "path": path, "headers": headers}
    alone(guard(scope, receive or nothing, send))
    return (sent[0]["status"], sent[1]["body"].decode()) if sent else None


def guard_of(passed, kept=None, app=None, **limits):
    async def note(scope, receive, send):
        passed.append(scope["path"])

    return UploadGuard(app or note, UploadLimits(**limits), kept or Kept())


def test_what_fits_passes_and_what_does_not_is_told():
    passed = []
    guard = guard_of(passed, Kept(other={"x": 6 * MIB}), held=10, megabytes=8)
    assert asked(guard, PATH.format("me", "a"), 4 * MIB) is None
    status, sentence = asked(guard, PATH.format("me", "a"), 4 * MIB + 1)
    assert status == 507
    assert "as many files as it can" in sentence
    # Without a length it counts as the largest file: 6 + 8 MiB are more than 10.
    assert asked(guard, PATH.format("me", "a"))[0] == 507
    assert passed == [PATH.format("me", "a")]


def test_one_visitor_has_only_so_many_files_and_may_replace_one():
    passed = []
    guard = guard_of(passed, Kept(me={"a": 1, "b": 1}), files=2)
    status, sentence = asked(guard, PATH.format("me", "c"), 1)
    assert status == 429
    assert "may have 2 files" in sentence
    assert asked(guard, PATH.format("me", "b"), 1) is None
    assert asked(guard, PATH.format("you", "c"), 1) is None


def test_under_a_base_path_and_other_requests():
    passed = []
    guard = guard_of(passed, Kept(me={"a": 1}), files=1)
    assert asked(guard, "/lab" + PATH.format("me", "c"), 1)[0] == 429
    assert asked(guard, PATH.format("me", "c"), method="DELETE") is None
    assert asked(guard, "/train", method="PUT") is None
    assert len(passed) == 2


def test_what_is_under_way_counts_until_it_ends():
    inner = []
    passed = []

    async def app(scope, receive, send):
        passed.append(scope["path"])
        if len(passed) == 1:  # while this one is read, others ask
            for name in "bc":
                sent = []

                async def send_inner(message, sent=sent):
                    sent.append(message)

                other = {**scope, "path": PATH.format("you", name)}
                await guard(other, receive, send_inner)
                inner.append(sent[0]["status"] if sent else None)

    guard = guard_of(passed, app=app, held=10, megabytes=8, at_once=8)
    assert asked(guard, PATH.format("me", "a"), 6 * MIB) is None
    assert inner == [507, 507]
    assert asked(guard, PATH.format("me", "a"), 6 * MIB) is None, "it ended, and nothing was kept"

    passed.clear()
    inner.clear()
    guard.limits = UploadLimits(at_once=1)
    assert asked(guard, PATH.format("me", "a"), 1) is None
    assert inner == [429, 429]
    assert guard.under_way == 0


def test_an_upload_that_stalls_is_broken_off():
    parts = []

    async def app(scope, receive, send):
        parts.append(await receive())
        parts.append(await receive())

    async def stalled():
        if not parts:
            return {"type": "http.request", "body": b"x", "more_body": True}
        return await asyncio.Event().wait()

    guard = UploadGuard(app, UploadLimits(), Kept(), patience=0.1)
    assert asked(guard, PATH.format("me", "a"), 5, receive=stalled) is None
    assert [part["type"] for part in parts] == ["http.request", "http.disconnect"]
    assert guard.under_way == 0


@pytest.mark.parametrize("field", ["held", "files", "at_once"])
def test_the_limits_are_settings_of_the_server(field):
    assert getattr(UploadLimits.from_environment({f"LOSSLAB_UPLOAD_{field.upper()}": "3"}), field) == 3
