"""What the robot looks like: the camera, the window's furniture, pictures without a window.

`client` is PyBullet's, as `twin/engine/simulation.py` makes it; it carries PyBullet's functions and
constants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import real_array

LARGEST = 4096  # pixels of a picture's side: PyBullet ends the process over sizes that it cannot take
YAW_DEG, PITCH_DEG = 50.0, -20.0
WINDOW_NEARER = 0.42  # its angle of view is wider than a picture's
MARGIN = 0.05  # of half the window, which a path leaves free at its edges


def framing(client: Any, body: int, path: Sequence = ()) -> tuple[list[float], float]:
    """A point to look at and a distance to look from, in [m], that show the whole robot as it stands.

    So they do the points of a `path`, (3,) each, base frame, in [m].
    """
    links = range(client.getNumJoints(body))
    points = [client.getLinkState(body, link, computeForwardKinematics=1)[0] for link in links]
    points = [np.zeros(3), *points, *path]
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    return (0.5 * (low + high)).tolist(), max(0.2, 2.0 * float(np.linalg.norm(high - low)))


def furnish_window(client: Any, body: int) -> None:
    """Set the window up: no panels, no shadows, no hand of the user in the physics, the robot in view."""
    for what in (
        client.COV_ENABLE_GUI,
        client.COV_ENABLE_SHADOWS,
        client.COV_ENABLE_RGB_BUFFER_PREVIEW,
        client.COV_ENABLE_DEPTH_BUFFER_PREVIEW,
        client.COV_ENABLE_SEGMENTATION_MARK_PREVIEW,
        client.COV_ENABLE_MOUSE_PICKING,  # it pulls at links
    ):
        client.configureDebugVisualizer(what, 0)
    # The window has one colour a link, by default that of its last shape; most of its shapes say more.
    colors: dict[int, Counter] = {}
    for _, link, *_, color in client.getVisualShapeData(body):
        colors.setdefault(link, Counter())[color] += 1
    for link, counted in colors.items():
        client.changeVisualShape(body, link, rgbaColor=counted.most_common(1)[0][0])
    target, distance = framing(client, body)
    client.resetDebugVisualizerCamera(WINDOW_NEARER * distance, YAW_DEG, PITCH_DEG, target)


def path_points(points: ArrayLike) -> np.ndarray:
    """The points of a path, checked to be (N, 3)."""
    path = real_array(points, "points")
    if path.ndim != 2 or path.shape[1] != 3:
        raise ValueError(f"expected points of shape (N, 3), got {path.shape}")
    return path


def mark_points(client: Any, body: int, points: np.ndarray, color: Sequence[float]) -> None:
    """Mark points (N, 3) in the window, some thousand of them at most, and step back if it is too small."""
    shown = points[:: 1 + len(points) // 1000].tolist()
    client.addUserDebugPoints(shown, [list(color)] * len(shown), pointSize=2)
    _, _, view, projection, *_, yaw_deg, pitch_deg, _, _ = client.getDebugVisualizerCamera()
    if np.max(np.abs(_on_screen(view, projection, points)), initial=0.0) > 1.0 - MARGIN:
        target, distance = framing(client, body, shown)
        client.resetDebugVisualizerCamera(WINDOW_NEARER * distance, yaw_deg, pitch_deg, target)


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
