"""Camera, set-up of the window, and pictures without a window.

`client` is a client of `engine/client.py`, with PyBullet's functions and constants.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.physics.engine.window.x11_window import WindowWatch

LARGEST = 4096  # pixels of a picture's side: PyBullet ends the process at larger sizes
YAW_DEG, PITCH_DEG = 50.0, -20.0
BACKGROUND = [0.90, 0.92, 0.95]
WINDOW_NEARER = 0.54  # the window's angle of view is wider than a picture's
ASIDE = 0.12  # shift of the target, as a share of the camera's distance: room for the text
MARGIN = 0.05  # free margin around a path, as a share of half the window


class Place(NamedTuple):
    """Place of the window's camera.

    The angles are in [degrees]; `down` is the share of the distance by which the arm appears lower.
    """

    name: str
    yaw_deg: float
    pitch_deg: float
    down: float = 0.0


PLACES = (
    Place("oblique", YAW_DEG, PITCH_DEG, 0.12),
    Place("from the side", 0.0, 0.0),
    Place("from the front", 90.0, 0.0),
    Place("from above", 0.0, -89.0),
)


def framing(client: Any, body: int, path: Sequence = ()) -> tuple[list[float], float]:
    """Return a target and a distance of the camera, in [m], that show the whole robot in its present state.

    The points of a `path`, (3,) each, base frame, in [m], are shown, too.
    """
    links = range(client.getNumJoints(body))
    points = [client.getLinkState(body, link, computeForwardKinematics=1)[0] for link in links]
    points = [np.zeros(3), *points, *path]
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    return (0.5 * (low + high)).tolist(), max(0.2, 2.0 * float(np.linalg.norm(high - low)))


def furnish_window(client: Any) -> None:
    """Set the window up: no shadows and no previews, and none of PyBullet's keys and mouse functions."""
    for what in (
        client.COV_ENABLE_SHADOWS,
        client.COV_ENABLE_RGB_BUFFER_PREVIEW,
        client.COV_ENABLE_DEPTH_BUFFER_PREVIEW,
        client.COV_ENABLE_SEGMENTATION_MARK_PREVIEW,
        client.COV_ENABLE_MOUSE_PICKING,  # it pulls at links
        client.COV_ENABLE_KEYBOARD_SHORTCUTS,
    ):
        client.configureDebugVisualizer(what, 0)
    client.configureDebugVisualizer(rgbBackground=BACKGROUND)


def look(client: Any, body: int, place: Place, path: Sequence = ()) -> None:
    """Point the camera at a body, and at the points of a `path`, (3,) each, from a place."""
    target, distance = framing(client, body, path)
    distance *= WINDOW_NEARER
    yaw, pitch = np.deg2rad([place.yaw_deg, place.pitch_deg])
    right = np.array([np.cos(yaw), np.sin(yaw), 0.0])
    up = np.array([np.sin(yaw) * np.sin(pitch), -np.cos(yaw) * np.sin(pitch), np.cos(pitch)])
    target = (np.array(target) + distance * (place.down * up - ASIDE * right)).tolist()
    client.resetDebugVisualizerCamera(distance, place.yaw_deg, place.pitch_deg, target)


def step_back(client: Any, body: int, points: np.ndarray, panels: Sequence[int]) -> None:
    """Move the camera back if points (N, 3) are outside the window; its direction stays the same.

    Args:
        client: PyBullet's client of the window.
        body: body that must be in view, too.
        points: points in the base frame, in [m].
        panels: widths of the window's panels at each side and at the bottom, in pixels.
    """
    width, height, view, projection, *_, yaw_deg, pitch_deg, _, _ = client.getDebugVisualizerCamera()
    free = 1.0 - MARGIN - 2.0 * np.array(panels) / (width, height)
    if np.any(np.abs(_on_screen(view, projection, points)) > free):
        look(client, body, Place("as it was", yaw_deg, pitch_deg), points.tolist())


def matrices(
    client: Any,
    body: int,
    width: int,
    height: int,
    *,
    yaw_deg: float = YAW_DEG,
    pitch_deg: float = PITCH_DEG,
    distance: float | None = None,
    target: Sequence[float] | None = None,
) -> tuple[list[float], list[float]]:
    """Return view and projection matrices of a camera as OpenGL's 16 numbers each, column by column.

    Args:
        client: client of PyBullet.
        body: PyBullet's number of the body.
        width: width of the picture, in pixels.
        height: height of the picture, in pixels.
        yaw_deg: direction of the camera about the vertical, in [degrees].
        pitch_deg: elevation of the view, negative when looking down, in [degrees].
        distance: distance of the camera from the target, in [m]; by default the whole robot is in view.
        target: (3,) point at the centre of the picture, base frame, in [m]; by default the robot's middle.

    Raises:
        ValueError: a size beyond `LARGEST`, or a number that is not finite.
    """
    for what, size in (("width", width), ("height", height)):
        if not (isinstance(size, int | np.integer) and 1 <= size <= LARGEST):
            raise ValueError(f"expected a {what} of 1 to {LARGEST} pixels, got {size!r}")
    numbers = [
        yaw_deg,
        pitch_deg,
        *([] if distance is None else [distance]),
        *([] if target is None else target),
    ]
    if not np.all(np.isfinite(numbers)) or not (target is None or len(target) == 3):
        raise ValueError(f"expected finite angles, distance and target (3,) of a camera, got {numbers}")
    centre, away = framing(client, body)
    view = client.computeViewMatrixFromYawPitchRoll(
        centre if target is None else list(target),
        away if distance is None else distance,
        yaw_deg,
        pitch_deg,
        roll=0,
        upAxisIndex=2,
    )
    return view, client.computeProjectionMatrixFOV(fov=40, aspect=width / height, nearVal=0.02, farVal=100)


def picture(client: Any, body: int, width: int, height: int, **camera: Any) -> np.ndarray:
    """Return a picture (height, width, 3) uint8 of a body with the camera of `matrices`, without a window."""
    image = client.getCameraImage(
        width,
        height,
        *matrices(client, body, width, height, **camera),
        lightDirection=(1, -2, 4),
        renderer=client.ER_TINY_RENDERER,
    )
    return np.array(image[2], dtype=np.uint8).reshape(height, width, 4)[..., :3]


def pixels(client: Any, body: int, points: ArrayLike, width: int, height: int, **camera: Any) -> np.ndarray:
    """Return column and row (..., 2) of points (..., 3) in `picture` with the same camera."""
    view, projection = matrices(client, body, width, height, **camera)
    x, y = np.moveaxis(_on_screen(view, projection, points), -1, 0)
    # The renderer samples a pixel at its lower left corner.
    return np.stack([(x + 1) * width / 2, (1 - y) * height / 2 - 1], axis=-1)


def _on_screen(view: Sequence[float], projection: Sequence[float], points: ArrayLike) -> np.ndarray:
    """Return positions (..., 2) of points (..., 3) on the screen, from -1 at its left and bottom to 1."""
    homogeneous = np.insert(np.asarray(points, dtype=np.float64), 3, 1.0, axis=-1)
    clip = homogeneous @ np.reshape(view, (4, 4)) @ np.reshape(projection, (4, 4))
    return clip[..., :2] / clip[..., 3:]


INTERVAL = 0.05  # s
IDLE = 0.7  # s without a picture, after which another thread keeps the window alive
ASIDE_INTERVAL = 0.15  # s
LEAST_PATIENCE, MOST_PATIENCE = 3.0, 10.0  # s to wait for a picture
SLOWEST = 50
"""Patience relative to the longest picture so far; a longer one was interrupted by closing the window."""


class Pictures:
    """Drawing of the window's pictures.

    Attributes:
        due: time of the next picture on the clock `time.perf_counter`.

    Args:
        client: PyBullet's client of the window.
        watch: watch over the connection of the window.
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
        """Whether the window was closed from outside."""
        return self._gone or self._watch.lost

    def start(self) -> None:
        """Draw the first picture; before it there is no camera."""
        while not self.lost and not self._client.getDebugVisualizerCamera()[3][0]:
            self._draw()
        self._aside.start()

    @contextmanager
    def drawn_after(self) -> Iterator[None]:
        """Draw after the `with` block, and set the time of the next picture.

        Pictures take at most half of the time, so that a slow window has fewer.
        """
        with self._drawing, self.calls():
            began = time.perf_counter()
            yield
            self._draw()
            self._last = time.perf_counter()
            self.due = max(began + INTERVAL, 2 * self._last - began)

    @contextmanager
    def calls(self) -> Iterator[None]:
        """Detect a closed window in the calls of the `with` block, without an exception."""
        try:
            yield
        except self._client.error:
            if not self.lost and self._client.isConnected():
                raise
            self._gone = True

    def close(self) -> None:
        """Stop drawing."""
        self._closed.set()
        if self._aside.is_alive():
            self._aside.join()

    def _draw(self) -> None:
        """Draw a picture.

        PyBullet holds Python's lock meanwhile.  If the display disconnects during the drawing, no answer
        comes, and every later call of PyBullet would wait forever.
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
        """Draw while the program is busy with something else, or stopped at a breakpoint."""
        while not self._closed.wait(ASIDE_INTERVAL) and not self.lost:
            if time.perf_counter() - self._last > IDLE and self._drawing.acquire(blocking=False):
                try:
                    with self.calls():
                        self._draw()
                finally:
                    self._drawing.release()
