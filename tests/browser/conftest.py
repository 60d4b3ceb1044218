"""A Quotaward process over a folder of manifests, and a real Chromium to look at it with."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.controlplane.launch import QUOTAWARD
from tests.controlplane.processes import Process, free_port
from tests.missing import missing
from tests.unit.app.given import Json

_CHROMIUM = os.environ.get("QUOTAWARD_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


class Served:
    """Serves a folder; it can be stopped and started again."""

    def __init__(self, folder: Path, log: Path, controllers: str = "none"):
        self.folder = folder
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        where = ["--manifests", folder, "--listen", f"127.0.0.1:{port}"]
        command = [QUOTAWARD, "serve", *where, "--controllers", controllers]
        self.process = Process(command, log)

    def start(self) -> None:
        self.process.start()
        self.process.wait_until_ready(lambda: self._answers("/readyz"))

    def filter(self, pod: Json) -> list[str]:
        """Ask about a pod as kube-scheduler does: if it is admitted it holds a grant, and the node is left."""
        answer = httpx.post(f"{self.url}/extender/filter", json={"Pod": pod, "NodeNames": ["n1"]}).raise_for_status()
        return answer.json()["NodeNames"] or []

    def _answers(self, path: str) -> bool:
        try:
            return httpx.get(self.url + path).is_success
        except httpx.TransportError:
            return False


@pytest.fixture(scope="module")
def browser() -> Iterator:
    """A Chromium without a window. Stopped with the module: while it runs, no other event loop can in this thread."""
    try:
        from playwright import sync_api as playwright  # noqa: PLC0415 - so that without it the other tests run
    except ImportError:
        missing("there is no playwright")
    if _CHROMIUM is None:
        missing("there is no Chromium: install it, or name it in QUOTAWARD_CHROMIUM")
    with playwright.sync_playwright() as running:
        sandbox = [] if os.geteuid() else ["--no-sandbox"]  # Chromium has none for root
        with running.chromium.launch(executable_path=_CHROMIUM, args=sandbox) as launched:
            yield launched


@pytest.fixture
def open_page(browser) -> Iterator[Callable]:
    """Opens pages, each in a browser of its own; fails if one of them reports an error or loads something foreign."""
    contexts, problems = [], []

    def opened(url: str, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        page.on("console", lambda message: message.type == "error" and problems.append(message.text))
        page.on("request", lambda request: request.url.startswith(url[:20]) or problems.append(request.url))
        page.goto(url)
        return page

    opened.expected = set()  # words in what the browser may complain of
    yield opened
    for context in contexts:
        context.close()
    assert [problem for problem in problems if not any(word in problem for word in opened.expected)] == []


@pytest.fixture(scope="module")
def serve(tmp_path_factory) -> Iterator[Callable]:
    """Serves folders that are filled by a function, until the module has ended."""
    running = []

    def served(fill: Callable, *arguments, controllers: str = "none") -> Served:
        directory = tmp_path_factory.mktemp(fill.__name__)
        folder = directory / "manifests"
        folder.mkdir()
        fill(folder, *arguments)
        each = Served(folder, directory / "quotaward.log", controllers)
        running.append(each)
        each.start()
        return each

    yield served
    for each in running:
        each.process.stop()
