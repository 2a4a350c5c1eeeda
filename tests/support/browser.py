"""A browser without a window, driven over the DevTools protocol: what a page does and asks for."""

import base64
import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PROGRAM = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
"""The browser's path, `None` where there is none."""

OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--enable-unsafe-swiftshader",
    "--use-angle=swiftshader", "--hide-scrollbars", "--remote-debugging-port=0",
)  # fmt: skip
PATIENCE = 60.0  # s: for a start, an answer, or a thing to happen


@contextmanager
def browser(folder):
    """A started browser whose own files are in `folder`; gives a function that opens an address."""
    from websockets.sync.client import connect

    command = [PROGRAM, *OPTIONS, f"--user-data-dir={folder}", "about:blank"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        port, path = _soon(lambda: _port_file(folder), "the browser's port")
        with connect(f"ws://127.0.0.1:{port}{path}", max_size=None, proxy=None) as socket:
            yield lambda url, width=1200, height=900: Page(socket, url, width, height)
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # a script may stand before the browser, which draws on
        process.wait(PATIENCE)


def _port_file(folder):
    file = Path(folder, "DevToolsActivePort")
    lines = file.read_text().split() if file.exists() else []
    return lines if len(lines) == 2 else None


def _soon(ask, what):
    """The first answer that is not nothing."""
    end = time.monotonic() + PATIENCE
    while not (answer := ask()):
        assert time.monotonic() < end, f"{what} did not come in {PATIENCE:.0f} s"
        time.sleep(0.05)
    return answer


class Page:
    """An open page.

    Attributes:
        events: everything that the page, its frames and its workers told so far, as the protocol has it.
    """

    def __init__(self, socket, url, width, height):
        self.socket, self.events, self.count, self.session = socket, [], 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.call("Page.navigate", url=url)

    def call(self, method, session=None, **parameters):
        """The answer of the page; events on the way are kept."""
        number = self._send(method, session or self.session, parameters)
        while True:
            said = json.loads(self.socket.recv(timeout=PATIENCE))
            if said.get("id") == number:
                assert "error" not in said, f"{method}: {said['error']}"
                return said["result"]
            self._happened(said)

    def _send(self, method, session, parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        self.socket.send(json.dumps(message | ({"sessionId": session} if session else {})))
        return self.count

    def _happened(self, said):
        if "method" not in said:
            return  # the answer to what was only sent
        self.events.append(said)
        if said["method"] == "Target.attachedToTarget" and said.get("sessionId") == self.session:
            child = said["params"]["sessionId"]  # a frame or a worker: listen to it before it runs
            for method in ("Runtime.enable", "Network.enable", "Runtime.runIfWaitingForDebugger"):
                self._send(method, child, {})

    def evaluate(self, expression):
        """The value of an expression of JavaScript, which may be a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, expression):
        """Wait until an expression of JavaScript is true, and return its value."""
        return _soon(lambda: self.evaluate(expression), expression)

    def screenshot(self):
        """What is seen, as PNG; a part that is out of sight might not be drawn again afterwards."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def requests(self):
        """Addresses of everything that was asked for, by any frame or worker, but for data in it."""
        asked = [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]
        asked += [
            event["params"]["url"] for event in self.events if event["method"] == "Network.webSocketCreated"
        ]
        return [url for url in asked if not url.startswith(("data:", "blob:", "about:"))]

    def complaints(self):
        """Errors and warnings of the console, of the browser about the page, and exceptions."""
        found = []
        for event in self.events:
            about = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(about["exceptionDetails"])
            elif event["method"] == "Runtime.consoleAPICalled" and about["type"] in ("error", "assert"):
                found.append(about["args"])
            elif event["method"] == "Log.entryAdded" and about["entry"]["level"] == "error":
                found.append(about["entry"])
        return found

    def close(self):
        """Close it."""
        session, self.session = self.session, None
        self.call("Target.closeTarget", targetId=self.target)
        self.session = session
