"""`irb-twin egm serve` and a client that answers it, in one process."""

import threading
from contextlib import suppress

import numpy as np

from scenarios.shell.command_line import main
from twin.base.errors import EgmError

QUICK = ("--max-speed-deviation", "90", "--ramp-time", "0.02", "--cond-time", "0.1", "--position-gain", "20")


class Guiding:
    """Client in a thread that answers with the initial joint angles plus a change, or by a given function.

    Attributes:
        answered: event that is set after ten answers.
    """

    def __init__(self, client, change_deg=0.0, answer=None):
        self.client, self.change, self.answer = client, np.radians(change_deg), answer or self._send_joints
        self.answered = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._target, self._over = None, False

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over = True
        self._thread.join()

    def _send_joints(self, message):
        self._target = message.q + self.change if self._target is None else self._target
        self.client.send_joints(self._target)

    def _serve(self):
        count = 0
        while not self._over:
            with suppress(EgmError):  # no message arrived
                self.answer(self.client.receive(timeout=0.02))
                count += 1
            if count == 10:
                self.answered.set()


def serve(client, *words):
    """Run the command for a client."""
    return main(["egm", "serve", "--to", f"127.0.0.1:{client.port}", *QUICK, *map(str, words)])
