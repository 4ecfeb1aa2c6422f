"""Headless Chromium, controlled over two pipes: no other package, no port, no network.

It uses the DevTools protocol: JSON messages, each terminated by a NUL character.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",  # root has no sandbox; all pages are our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-first-run",
    "--hide-scrollbars",
    "--font-render-hinting=none",
)


def find_chromium() -> tuple[str | None, str]:
    """Path of the browser, or None and the reason."""
    if sys.platform == "win32":
        return None, "Chromium is driven over inherited pipes, which Windows does not have"
    given = os.environ.get("CHROMIUM")
    if given is not None:
        found = shutil.which(given)
        return found, "" if found else f"CHROMIUM is {given!r}, which cannot be run"
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return found, "" if found else "no Chromium on PATH; set CHROMIUM to one, or install it"


# Moves two file descriptors to where the browser expects them, and executes the browser.
BEGIN = """
import os, sys
hears, writes, *command = sys.argv[1:]
os.dup2(int(hears), 3)
os.dup2(int(writes), 4)
os.execv(command[0], command)
"""


class Chromium:
    """``with Chromium() as browser: page = browser.open(path)``."""

    def __init__(self, seconds: float = 60) -> None:
        self._seconds = seconds

    def __enter__(self) -> Chromium:
        program, why = find_chromium()
        if program is None:
            raise FileNotFoundError(why)
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        command = [program, *FLAGS, f"--user-data-dir={self._home.name}", "about:blank"]
        self._start(command)
        self._rest, self._number = b"", 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.complaints: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        found = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")
        return self

    def _start(self, command: list[str]) -> None:
        import fcntl  # Windows has none

        (hears, tells), (reads, writes) = os.pipe(), os.pipe()
        # The browser reads from descriptor 3 and writes to 4, so ours must have other numbers.
        theirs = [fcntl.fcntl(file, fcntl.F_DUPFD, 10) for file in (hears, writes)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", BEGIN, *map(str, theirs), *command],
            pass_fds=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for file in (hears, writes, *theirs):
            os.close(file)
        self._out, self._in = os.fdopen(tells, "wb"), os.fdopen(reads, "rb")

    def __exit__(self, *exception: object) -> None:
        for file in (self._out, self._in):
            file.close()
        try:
            self._process.wait(5)  # it exits when the pipe is closed
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._home.cleanup()

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        self._out.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], self._seconds)
            if not ready:
                raise TimeoutError(f"Chromium has said nothing for {self._seconds} s")
            more = os.read(self._in.fileno(), 1 << 20)
            if not more:
                raise RuntimeError("Chromium has ended")
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        self._note(answer)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        """Record requests of pages, and errors in them."""
        details = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(details["request"]["url"])
        elif event.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(details["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded" and details["entry"]["level"] == "error":
            self.complaints.append(json.dumps(details["entry"]))

    def open(self, path: Path) -> None:
        """Open a page and wait until it is ready."""
        self.requests, self.complaints = [], []
        self.ask("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("document.documentElement?.dataset.ready !== undefined")

    def wait_for(self, condition: str) -> None:
        """Wait until an expression in the page is true."""
        self.run(
            f"""new Promise((done) => {{
                const look = () => {condition} ? done() : setTimeout(look, 10);
                look();
            }})"""
        )

    def run(self, script: str) -> Any:
        """Value of an expression in the page, which may be a promise."""
        answer = self.ask(
            "Runtime.evaluate",
            expression=script,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
            timeout=1000 * self._seconds,
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key where the focus is."""
        codes = {"ArrowDown": 40, "ArrowUp": 38, "ArrowRight": 39, "Enter": 13, "End": 35, "Tab": 9}
        for kind in ("rawKeyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=codes[key])

    def resize(self, width: int, height: int, scale: float = 1) -> None:
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )

    def prefer(self, scheme: str) -> None:
        """Prefer "light" or "dark" colours."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", features=features)

    def picture(self, clip: Sequence[float] | None = None) -> bytes:
        """A screenshot as PNG, or a part of the whole page, (left, top, width, height)."""
        options: dict[str, Any] = {"format": "png", "captureBeyondViewport": clip is not None}
        if clip is not None:
            options["clip"] = dict(zip(("x", "y", "width", "height"), clip, strict=True), scale=1)
        return base64.b64decode(self.ask("Page.captureScreenshot", **options)["data"])
