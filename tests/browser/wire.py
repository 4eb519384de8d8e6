"""What lies between browser and server: a wire that can be cut, and sessions without a browser."""

import re
import socket
import threading
from contextlib import ExitStack, suppress

from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.sync.client import connect


class Wire:
    """A TCP relay to a server. While it is cut, open connections end and new ones are refused."""

    def __init__(self, server):
        self.target = ("127.0.0.1", server.port)
        self.whole = threading.Event()
        self.whole.set()
        self.ends = set()
        self.entrance = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.entrance.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        self.whole.clear()
        for end in list(self.ends):
            hang_up(end)

    def mend(self):
        self.whole.set()

    def close(self):
        self.cut()
        hang_up(self.entrance)

    def _accept(self):
        while True:
            try:
                near, _ = self.entrance.accept()
            except OSError:
                return
            if not self.whole.is_set():
                near.close()
                continue
            far = socket.create_connection(self.target)
            self.ends |= {near, far}
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._relay, args=(source, sink), daemon=True).start()

    def _relay(self, source, sink):
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            hang_up(end)
            self.ends.discard(end)


def hang_up(end):
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


class Visitor:
    """A session of the Train page without a browser, by Streamlit's own protocol."""

    def __init__(self, server, query):
        address = server.url.replace("http", "ws") + "/_stcore/stream"
        self.stack = ExitStack()
        self.socket = self.stack.enter_context(
            connect(address, subprotocols=["streamlit"], max_queue=None, max_size=None)
        )
        message = BackMsg()
        message.rerun_script.query_string = query
        message.rerun_script.page_name = "train"
        self.socket.send(message.SerializeToString())

    def token(self):
        """Of the run that the page opened for it."""
        while True:
            data = self.socket.recv(timeout=30)
            if found := re.search(rb"/live/([\w-]{22})", data if isinstance(data, bytes) else b""):
                return found[1].decode()

    def leave(self):
        self.stack.close()
