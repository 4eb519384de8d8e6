"""A real server on a free port and a real Chromium, both ended by their own process."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium():
    given = os.environ.get("LOSSLAB_CHROMIUM")
    return given or next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """`python -m streamlit run app.py` on its own port."""

    def __init__(self, log, *options, port=None, **variables):
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = log
        command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={self.port}", *options]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
        with log.open("w") as out:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out, env=environment)

    def wait(self, path=""):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert self.process.poll() is None, f"the server ended: {self.log.read_text()}"
            try:
                with urllib.request.urlopen(f"{self.url}{path}/_stcore/health", timeout=2) as answer:
                    if answer.status == 200:
                        return self
            except OSError:
                time.sleep(0.1)
        raise AssertionError(f"the server did not come up: {self.log.read_text()}")

    def health(self):
        with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:
            return json.load(answer)

    def wait_for(self, condition, what, seconds=40):
        """Until the health report fulfils the condition."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if condition(self.health()):
                return
            time.sleep(0.05)
        raise AssertionError(f"waited {seconds} s for {what}; {self.health()}")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=15)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    path = find_chromium()
    if path is None:
        reason = "no Chromium or Chrome on this machine"
        if os.environ.get("LOSSLAB_REQUIRE_BROWSER") == "1":
            pytest.fail(f"{reason}, and LOSSLAB_REQUIRE_BROWSER=1 asks for one")
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield lambda **options: playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"), executable_path=path, args=list(ARGUMENTS), **options
        )


@pytest.fixture(scope="session")
def server(chromium, tmp_path_factory):
    started = Server(tmp_path_factory.mktemp("server") / "log.txt")
    yield started.wait()
    started.stop()


@pytest.fixture(scope="session")
def impatient(chromium, tmp_path_factory):
    """A server that pauses and drops soon, so that tests need not wait; it also has a loss that breaks."""
    started = Server(
        tmp_path_factory.mktemp("impatient") / "log.txt",
        LOSSLAB_PAUSE_AFTER="1.5",
        LOSSLAB_DROP_AFTER="4",
        LOSSLAB_LOSSES="tests.browser.fragile_loss",
    )
    started.wait().wait_for(lambda report: report["status"] == "ok", "the warm-up")
    yield started
    started.stop()


@pytest.fixture(scope="session")
def context(chromium):
    made = chromium(viewport={"width": 1280, "height": 900})
    yield made
    made.close()


def note(page, kind, text):
    # Failed requests are told by `note_failure`, with their address.
    if "Failed to load resource" not in text:
        page.said.append((kind, text))


def note_failure(page, response):
    # On a deep link Streamlit itself looks for its base path under the page's name first.
    if response.status >= 400 and "/_stcore/" not in response.url:
        page.said.append(("error", f"{response.status} {response.url}"))


def state(page):
    """What a person would see of a tab: address, what the console said and the first words."""
    from playwright.sync_api import Error

    try:
        words = " | ".join(page.locator("body").inner_text(timeout=5000).split("\n"))
    except Error as error:
        words = str(error)
    return f"{page.url}\nconsole: {page.said[-5:]}\n{words[:2500]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows its tabs as they stood."""
    report = yield
    tab = getattr(item, "funcargs", {}).get("tab")
    if call.when == "call" and call.excinfo is not None and tab is not None:
        open_pages = [page for page in tab.opened if not page.is_closed()]
        if hasattr(report.longrepr, "addsection"):  # which a try that is repeated shows, too
            report.longrepr.addsection("tabs at the failure", "\n\n".join(map(state, open_pages)))
    return report


@pytest.fixture
def tab(context, server):
    """Opens addresses in fresh tabs; afterwards no tab may show a traceback or have logged an error."""
    opened = []

    def open_tab(address="", at=server):
        page = context.new_page()
        page.said = []
        page.on("console", lambda message: note(page, message.type, message.text))
        page.on("pageerror", lambda error: note(page, "error", str(error)))
        page.on("response", lambda response: note_failure(page, response))
        page.set_default_timeout(30_000)
        page.goto(at.url + address)
        opened.append(page)
        return page

    open_tab.opened = opened
    yield open_tab
    errors = [said for page in opened for said in page.said if said[0] == "error"]
    opened = [page for page in opened if not page.is_closed()]
    texts = [page.locator("body").inner_text() for page in opened]
    for page in opened:
        page.close()
    assert errors == []
    assert not any("Traceback" in text for text in texts)
