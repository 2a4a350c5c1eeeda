"""The pictures that PyBullet's window draws: when asked, some twenty a second, and whether it is still there.

Left to itself the window draws all the time, and every line of text that is written to it waits for a whole
picture.  In single steps it draws while it is asked to, and takes everything else at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from twin.window.x11_window import WindowWatch

INTERVAL = 0.05  # s
LEFT_ALONE = 0.7  # s without a picture, after which the window is kept alive from aside
ASIDE_INTERVAL = 0.15  # s
LEAST_PATIENCE, MOST_PATIENCE = 3.0, 10.0  # s for a picture
SLOWEST = 50
"""Times the longest picture so far: one that takes longer was cut off, its window closed meanwhile."""


class Pictures:
    """Has a window draw.

    Attributes:
        due: when the next picture is, by `time.perf_counter`.

    Args:
        client: PyBullet's, of the window.
        watch: over the window.
    """

    def __init__(self, client: Any, watch: WindowWatch) -> None:
        self._client, self._watch, self._gone = client, watch, False
        self._drawing, self._closed = threading.RLock(), threading.Event()
        self._longest, self._patience = 0.0, MOST_PATIENCE
        self._last = self.due = 0.0
        self._aside = threading.Thread(target=self._stay_alive, daemon=True)
        client.configureDebugVisualizer(client.COV_ENABLE_SINGLE_STEP_RENDERING, 1)
        client.setTimeOut(self._patience)

    @property
    def lost(self) -> bool:
        """Whether the window was closed by somebody."""
        return self._gone or self._watch.lost

    def start(self) -> None:
        """Draw for the first time; only then is there a camera."""
        while not self.lost and not self._client.getDebugVisualizerCamera()[3][0]:
            self._draw()
        self._aside.start()

    @contextmanager
    def drawn_after(self) -> Iterator[None]:
        """Draw what is written in here, and set the time of the next picture.

        Pictures take half of the time at most: a slow window has fewer.
        """
        with self._drawing, self.calls():
            began = time.perf_counter()
            yield
            self._draw()
            self._last = time.perf_counter()
            self.due = max(began + INTERVAL, 2 * self._last - began)

    @contextmanager
    def calls(self) -> Iterator[None]:
        """Notice in calls to the window whether it is there no more; nothing is raised for that."""
        try:
            yield
        except self._client.error:
            if not self.lost and self._client.isConnected():
                raise
            self._gone = True

    def close(self) -> None:
        """Draw no more."""
        self._closed.set()
        if self._aside.is_alive():
            self._aside.join()

    def _draw(self) -> None:
        """Have a picture made.

        PyBullet holds Python's lock meanwhile.  If the display cuts the drawing thread off in the midst, no
        answer ever comes, and whoever calls PyBullet again waits for ever.
        """
        self._watch.look()
        if self.lost:
            return
        began = time.perf_counter()
        self._client.configureDebugVisualizer(self._client.COV_ENABLE_SINGLE_STEP_RENDERING, 1)
        took = time.perf_counter() - began
        if took >= self._patience:
            self._watch.lose()
        elif took > self._longest:
            self._longest = took
            self._patience = min(max(LEAST_PATIENCE, SLOWEST * took), MOST_PATIENCE)
            self._client.setTimeOut(self._patience)

    def _stay_alive(self) -> None:
        """Make pictures while the program is busy elsewhere, or stands at a breakpoint."""
        while not self._closed.wait(ASIDE_INTERVAL) and not self.lost:
            if time.perf_counter() - self._last > LEFT_ALONE and self._drawing.acquire(blocking=False):
                try:
                    with self.calls():
                        self._draw()
                finally:
                    self._drawing.release()
