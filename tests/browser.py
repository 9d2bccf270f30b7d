"""A headless Chromium for the tests of pages, driven through a pair of pipes (no further package).

``--remote-debugging-pipe``: commands go to file descriptor 3 of the browser and answers come from
its descriptor 4, as JSON texts that end with a zero byte.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Where to look for a browser; Debian's package is called chromium.
NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable() -> str | None:
    """Return the path of a browser; None if there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page of a browser."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._buffer = b""
        self._number = 0
        self._events: list[dict[str, Any]] = []
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        found = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its answer; events that come first are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._commands, data) :]
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            self._events.append(answer)

    def _next(self, seconds: float = 60) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise TimeoutError("the browser does not answer")
            more = os.read(self._answers, 1 << 16)
            if not more:
                raise EOFError("the browser has ended")
            self._buffer += more
        text, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(text)
        return found

    def open(
        self, page: Path, *, width: int = 360, height: int = 800, dark: bool = False
    ) -> list[dict[str, Any]]:
        """Show a page; return the events until it is loaded, its requests among them."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._events.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self._events):
            self._events.append(self._next())
        self.evaluate("document.fonts.ready.then(() => 1)")
        return list(self._events)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, *, whole: bool = True) -> bytes:
        """Return the page as a PNG."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])

    def pdf(self) -> bytes:
        """Return the page as it is printed on A4."""
        answer = self.call(
            "Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=False
        )
        return base64.b64decode(answer["data"])


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start a browser, and end it.

    Parameters
    ----------
    profile : Path
        A directory for its files.
    """
    found = executable()
    assert found is not None
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    command = [
        found,
        "--headless=new",
        "--no-sandbox",  # which root may not have
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--remote-debugging-pipe",
        f"--user-data-dir={profile}",
        "about:blank",
    ]
    # A process between us puts the pipes where the browser looks for them.
    script = (
        "import os, sys; a, b = (os.dup(os.dup(int(fd))) for fd in sys.argv[1:3]); "
        "os.dup2(a, 3); os.dup2(b, 4); os.execv(sys.argv[3], sys.argv[3:])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(theirs_in), str(theirs_out), *command],
        pass_fds=(theirs_in, theirs_out),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Browser(ours_out, ours_in)
    finally:
        os.close(ours_out)
        os.close(ours_in)
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
