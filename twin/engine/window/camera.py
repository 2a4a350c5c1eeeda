"""What the robot looks like: the camera, the window's furniture, pictures without a window.

`client` is PyBullet's, as `twin/engine/client.py` makes it; it carries PyBullet's functions and
constants.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.engine.window.x11_window import WindowWatch

LARGEST = 4096  # pixels of a picture's side: PyBullet ends the process over sizes that it cannot take
YAW_DEG, PITCH_DEG = 50.0, -20.0
BACKGROUND = [0.90, 0.92, 0.95]
WINDOW_NEARER = 0.54  # its angle of view is wider than a picture's
ASIDE = 0.12  # of the camera's distance: beside the text
MARGIN = 0.05  # of half the window, which a path leaves free at its edges


class Place(NamedTuple):
    """Where the window's camera may be.

    The angles are in [degrees]; the arm stands lower in the window by a part `down` of the distance.
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
    """A point to look at and a distance to look from, in [m], that show the whole robot as it stands.

    So they do the points of a `path`, (3,) each, base frame, in [m].
    """
    links = range(client.getNumJoints(body))
    points = [client.getLinkState(body, link, computeForwardKinematics=1)[0] for link in links]
    points = [np.zeros(3), *points, *path]
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    return (0.5 * (low + high)).tolist(), max(0.2, 2.0 * float(np.linalg.norm(high - low)))


def furnish_window(client: Any) -> None:
    """Set the window up: no shadows, no previews, no keys and no hand of PyBullet's own."""
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
    """Look at a body, and at the points of a `path`, (3,) each, from a place."""
    target, distance = framing(client, body, path)
    distance *= WINDOW_NEARER
    yaw, pitch = np.deg2rad([place.yaw_deg, place.pitch_deg])
    right = np.array([np.cos(yaw), np.sin(yaw), 0.0])
    up = np.array([np.sin(yaw) * np.sin(pitch), -np.cos(yaw) * np.sin(pitch), np.cos(pitch)])
    target = (np.array(target) + distance * (place.down * up - ASIDE * right)).tolist()
    client.resetDebugVisualizerCamera(distance, place.yaw_deg, place.pitch_deg, target)


def step_back(client: Any, body: int, points: np.ndarray, panels: Sequence[int]) -> None:
    """Step back if points (N, 3) are beyond the window; the camera keeps its direction.

    Args:
        client: PyBullet's, of the window.
        body: what is to be in view, too.
        points: base frame, in [m].
        panels: what the window's own panels take of it, from each side and from below, in pixels.
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
    """The view and projection matrices of a camera, each as OpenGL's 16 numbers, column by column.

    Args:
        client: PyBullet's.
        body: its number of the body.
        width: in pixels.
        height: in pixels.
        yaw_deg: where the camera is, around the vertical, in [degrees].
        pitch_deg: negative looks down, in [degrees].
        distance: of the camera from the target, in [m]; by default the whole robot is in view.
        target: (3,) what the camera looks at, base frame, in [m]; the robot's middle by default.

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
    """Draw a body without a window, as the camera of `matrices` sees it: (height, width, 3) uint8."""
    image = client.getCameraImage(
        width,
        height,
        *matrices(client, body, width, height, **camera),
        lightDirection=(1, -2, 4),
        renderer=client.ER_TINY_RENDERER,
    )
    return np.array(image[2], dtype=np.uint8).reshape(height, width, 4)[..., :3]


def pixels(client: Any, body: int, points: ArrayLike, width: int, height: int, **camera: Any) -> np.ndarray:
    """Where points (..., 3) appear in `picture` of the same camera: (..., 2) column and row, from 0."""
    view, projection = matrices(client, body, width, height, **camera)
    x, y = np.moveaxis(_on_screen(view, projection, points), -1, 0)
    # The renderer samples a pixel at its lower left corner.
    return np.stack([(x + 1) * width / 2, (1 - y) * height / 2 - 1], axis=-1)


def _on_screen(view: Sequence[float], projection: Sequence[float], points: ArrayLike) -> np.ndarray:
    """Where points (..., 3) appear: (..., 2) from -1 at the left and the bottom to 1; matrices of OpenGL."""
    homogeneous = np.insert(np.asarray(points, dtype=np.float64), 3, 1.0, axis=-1)
    clip = homogeneous @ np.reshape(view, (4, 4)) @ np.reshape(projection, (4, 4))
    return clip[..., :2] / clip[..., 3:]


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
