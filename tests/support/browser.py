"""Headless browser, controlled over the DevTools protocol, that records the events of a page."""

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
"""Path of the browser, or `None` if none is installed."""

OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--enable-unsafe-swiftshader",
    "--use-angle=swiftshader", "--hide-scrollbars", "--remote-debugging-port=0",
)  # fmt: skip
TIMEOUT = 60.0  # s: for the start of the browser, an answer, or an event


@contextmanager
def browser(folder):
    """Start a browser with its profile in `folder`; yield a function that opens an address as a `Page`."""
    from websockets.sync.client import connect

    command = [PROGRAM, *OPTIONS, f"--user-data-dir={folder}", "about:blank"]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, start_new_session=True, **silent)
    try:
        port, path = _poll(lambda: _port_file(folder), "the browser's port")
        with connect(f"ws://127.0.0.1:{port}{path}", max_size=None, proxy=None) as socket:
            yield lambda url, width=1200, height=900: Page(socket, url, width, height)
    finally:
        os.killpg(process.pid, signal.SIGTERM)  # the program may be a script that starts the browser
        process.wait(TIMEOUT)


def _port_file(folder):
    file = Path(folder, "DevToolsActivePort")
    lines = file.read_text().split() if file.exists() else []
    return lines if len(lines) == 2 else None


def _poll(ask, what):
    """Call `ask` until its result is true, and return that result."""
    end = time.monotonic() + TIMEOUT
    while not (answer := ask()):
        assert time.monotonic() < end, f"{what} did not come in {TIMEOUT:.0f} s"
        time.sleep(0.05)
    return answer


class Page:
    """An open page.

    Attributes:
        events: events of the page, its frames and its workers so far, as DevTools messages.
    """

    def __init__(self, socket, url, width, height):
        self.socket, self.events, self.count, self.session = socket, [], 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Page.navigate", url=url)

    def call(self, method, session=None, **parameters):
        """Call a DevTools method and return its result; store the events that arrive meanwhile."""
        number = self._send(method, session or self.session, parameters)
        while True:
            message = json.loads(self.socket.recv(timeout=TIMEOUT))
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
            self._handle_event(message)

    def _send(self, method, session, parameters):
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        self.socket.send(json.dumps(message | ({"sessionId": session} if session else {})))
        return self.count

    def _handle_event(self, event):
        if "method" not in event:
            return  # the answer to a message of `_send` that nothing waits for
        self.events.append(event)
        if event["method"] == "Target.attachedToTarget" and event.get("sessionId"):
            child = event["params"]["sessionId"]  # a frame or a worker of any page: listen before it runs
            for method in ("Runtime.enable", "Network.enable", "Runtime.runIfWaitingForDebugger"):
                self._send(method, child, {})

    def evaluate(self, expression):
        """Return the value of a JavaScript expression, which may be a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, expression):
        """Wait until a JavaScript expression is true, and return its value; the page comes before others."""
        self.call("Page.bringToFront")
        self.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))"
        )
        return _poll(lambda: self.evaluate(expression), expression)

    def click(self, find):
        """Click in the middle of an element, given as a JavaScript expression, as a mouse does."""
        self.wait_for(f"!!({find})")
        place = (
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect();"
            f" return [b.x + b.width / 2, b.y + b.height / 2] }})({find})"
        )
        box = None
        while box != (box := self.evaluate(place)):  # until nothing above it changes its height any more
            time.sleep(0.1)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            at = {"x": box[0], "y": box[1], "button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", type=kind, **at)

    def screenshot(self):
        """Return the visible part of the page as PNG data.

        Capturing more than that could leave the hidden parts undrawn afterwards.
        """
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def requests(self):
        """Return the addresses of all requests of any frame or worker, except inline data."""
        sent = ("Network.requestWillBeSent", "Network.webSocketCreated")
        about = [event["params"] for event in self.events if event["method"] in sent]
        addresses = [one["request"]["url"] if "request" in one else one["url"] for one in about]
        return [url for url in addresses if not url.startswith(("data:", "blob:", "about:"))]

    def complaints(self):
        """Return the errors of the console and the browser, and the exceptions of the page."""
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
        """Close the page."""
        session, self.session = self.session, None
        self.call("Target.closeTarget", targetId=self.target)
        self.session = session
