"""Strangers: links, states and files without measure, tabs that come and go; the others notice nothing."""

import asyncio
import http.client
import socket
from contextlib import suppress

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect

from benchmarks.classroom.session import Session, View
from benchmarks.processes import memory_of, processes
from tests.alone import alone

pytestmark = pytest.mark.browser
MIB = 2**20


@pytest.fixture
def honest(impatient):
    """Afterwards somebody else trains as ever."""
    yield impatient
    assert impatient.process.poll() is None

    async def somebody():
        session = Session(impatient.url)
        await session.open()
        await session.visit("train", {"data": "blobs", "steps": "30"})
        async with View(impatient.url, session.token) as view:
            await view.until("ready")
            await session.press("Play")
            await view.until("finished")
        await session.close()
        return view.step, session.errors

    assert alone(somebody()) == (30, [])


@pytest.fixture(scope="module", autouse=True)
def nothing_left(impatient):
    yield
    impatient.wait_for(lambda report: report["runs"] == report["viewers"] == 0, "no run and no viewer left")


def stream(server):
    return connect(
        server.url.replace("http", "ws") + "/_stcore/stream", subprotocols=["streamlit"], max_size=None
    )


def rerun(query="", page="train", widget=""):
    message = BackMsg()
    message.rerun_script.page_name, message.rerun_script.query_string = page, query
    if widget:
        state = message.rerun_script.widget_states.widgets.add()
        state.id, state.string_value = "stranger", widget
    return message.SerializeToString()


def closed_with(client):
    with pytest.raises(ConnectionClosed) as closed:
        drain(client)
    return closed.value.rcvd.code


def drain(client):
    while True:
        client.recv(timeout=30)


def request(server, method, path, headers=None):
    """The status of an answer; None where the server hung up instead."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.request(method, path, headers=headers or {})
        return connection.getresponse().status
    except (http.client.HTTPException, ConnectionError):
        return None
    finally:
        connection.close()


def test_links_states_and_messages_without_measure(honest):
    assert request(honest, "GET", "/train?" + "a" * 1_000_000) in (None, 400, 414, 431)
    with stream(honest) as client:
        client.send(rerun("&".join(f"k{n}={'x' * 90}" for n in range(5000))))
        client.send(rerun("events=" + ",".join(f"{n}:lr=0.1" for n in range(20_000))))
        client.send(rerun("loss=" + "%F0%9F%98%80" * 30_000))
        client.send(rerun(page="../../etc/passwd"))
        client.send(rerun(widget="x" * 26 * MIB))
        assert closed_with(client) == 1009
    with stream(honest) as client:
        client.send(b"\xff" * 100)
        assert closed_with(client) == 1002
    for path in ("/live/" + "x" * 5000, "/live/..%2f..%2f", "/live/" + "0" * 22):
        with suppress(InvalidHandshake), connect(honest.url.replace("http", "ws") + path) as client:
            assert closed_with(client) in (4404, 1008)


def test_who_comes_and_goes_without_end_leaves_nothing(honest):
    for number in range(60):
        with stream(honest) as client:
            client.send(rerun(f"data=blobs&seed={number}"))
    half = [socket.create_connection(("127.0.0.1", honest.port)) for _ in range(100)]
    for end in half:
        end.sendall(b"GET /_stcore/stream HTTP/1.1\r\nHost: x\r\n")  # and never goes on
    assert honest.health()["status"] == "ok"
    for end in half:
        end.close()


def test_a_tab_that_never_reads_costs_nothing(honest):
    async def deaf_tab():
        session = Session(honest.url)
        await session.open()
        await session.visit("train", {"data": "blobs", "steps": "20000"})
        async with View(honest.url, session.token) as view:
            await view.until("ready")
            await session.press("Play")
            await view.until("running")
            await asyncio.sleep(2)
        before = memory_of(honest.process.pid, processes())
        deaf = socket.create_connection(("127.0.0.1", honest.port))
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lines = [f"GET /live/{session.token} HTTP/1.1", f"Host: 127.0.0.1:{honest.port}"]
        lines += [f"Origin: {honest.url}", "Upgrade: websocket", "Connection: Upgrade"]
        lines += ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "", ""]
        deaf.sendall("\r\n".join(lines).encode())
        await asyncio.sleep(4)
        grown = memory_of(honest.process.pid, processes()) - before
        deaf.close()
        await session.close()
        return grown

    assert alone(deaf_tab()) < 20 * MIB, "its recording has 9 MB at most, and one packet waits"


def test_files_beyond_the_limits_are_refused(honest):
    with stream(honest) as client:
        client.send(rerun(page=""))
        session = session_of(client)
        cookie, token = cross_site_token(honest)

        def upload(name, size, told=None):
            path = f"/_stcore/upload_file/{session}/{name}"
            headers = {"Cookie": cookie, "X-Xsrftoken": token}
            return send_file(honest, path, headers, size, told)

        assert upload("a", 1000) == 204
        assert upload("b", 10, told=257 * MIB) == 413, "one file too large"
        statuses = [upload(f"file{number}", 1000) for number in range(20)]
        assert statuses == [204] * 15 + [429] * 5, "16 files with the first one"
        assert request(honest, "PUT", f"/_stcore/upload_file/{session}/a") == 403, "without the token"
        assert upload("a", 2000) == 204, "a file may be replaced"
    path = "/_stcore/upload_file/nobody/x"
    assert send_file(honest, path, {"Cookie": cookie, "X-Xsrftoken": token}, 1000) == 400


def session_of(client):
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

    while True:
        message = ForwardMsg.FromString(client.recv(timeout=30))
        if message.WhichOneof("type") == "new_session":
            return message.new_session.initialize.session_id


def cross_site_token(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", "/_stcore/health")
    cookie = connection.getresponse().getheader("Set-Cookie").partition(";")[0]
    connection.close()
    return cookie, cookie.partition("=")[2]


def send_file(server, path, headers, size, told=None):
    """The status of an upload of so many bytes, with another length in its head if one is told."""
    body = (
        b'--x\r\nContent-Disposition: form-data; name="f"; filename="f.csv"\r\n\r\n'
        + b"1" * size
        + b"\r\n--x--\r\n"
    )
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.putrequest("PUT", path)
        head = {"Content-Type": "multipart/form-data; boundary=x", "Content-Length": str(told or len(body))}
        for name, value in (head | headers).items():
            connection.putheader(name, value)
        connection.endheaders(b"" if told else body)
        return connection.getresponse().status
    finally:
        connection.close()
