"""Volume, extent and points of the shapes of a `robot.toml`."""

import numpy as np
from scipy.spatial.transform import Rotation


def in_shape(shape, points):
    """Which of the points (N, 3) lie in one shape of `robot.toml`."""
    if "box" in shape:
        R = Rotation.from_euler("xyz", shape.get("rpy_deg", [0, 0, 0]), degrees=True).as_matrix()
        return np.all(np.abs((points - shape["at"]) @ R) <= np.array(shape["box"]) / 2, axis=1)
    start, end = np.array(shape["from"], float), np.array(shape["to"], float)
    length = np.linalg.norm(end - start)
    along = (points - start) @ (end - start) / length
    off_axis = np.sum((points - start) ** 2, axis=1) - along**2
    return (along >= 0) & (along <= length) & (off_axis <= shape["cylinder"] ** 2)


def extent(shape):
    """Lowest and highest corner, (2, 3), of one shape."""
    if "box" in shape:
        R = Rotation.from_euler("xyz", shape.get("rpy_deg", [0, 0, 0]), degrees=True).as_matrix()
        half = np.abs(R) @ np.array(shape["box"]) / 2
        return np.array([shape["at"] - half, shape["at"] + half])
    ends = np.array([shape["from"], shape["to"]], float)
    axis = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
    across = shape["cylinder"] * np.sqrt(np.maximum(1 - axis**2, 0))
    return np.array([ends.min(axis=0) - across, ends.max(axis=0) + across])


def bounds(shapes):
    """Lowest and highest corner, (2, 3), of all shapes together."""
    corners = np.array([extent(shape) for shape in shapes])
    return np.array([corners[:, 0].min(axis=0), corners[:, 1].max(axis=0)])


def sampled(shapes, seed):
    """Points within the shapes, (N, 3), and their volume in [m^3]."""
    low, high = bounds(shapes)
    points = np.random.default_rng(seed).uniform(low, high, (30_000, 3))
    inside = np.any([in_shape(shape, points) for shape in shapes], axis=0)
    return points[inside], inside.mean() * np.prod(high - low)
