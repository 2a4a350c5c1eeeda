"""Reach of an arm: its envelope, maps of what it can do in the poses of a plane, and their picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats
from twin.base.errors import RobotError
from twin.base.formatting import literal
from twin.physics.dynamics.equation_of_motion import gravity_torque
from twin.physics.kinematics.forward import jacobian, link_poses
from twin.physics.kinematics.inverse import inverse_kinematics
from twin.physics.robot.limits import folded
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.joint_paths import singular_distances
from twin.studies.cell.clearance import Clearance
from twin.studies.views.plots import Plot, arm_triangles, draw_solids

DIVISIONS = 600
"""Divisions of the ranges of joints 2 and 3 for the envelope."""

DECIMALS = 9
"""Decimals of the manipulability that decide between solutions; symmetric ones differ by round-off."""

CHUNK = 20_000
"""Poses that are computed together."""


class Envelope(NamedTuple):
    """Reach of the wrist centre while the arm points forward.

    Attributes:
        x: (N,) horizontal distances from axis 1, forward positive, in [m].
        z: (N,) heights over the base, in [m].
        sector: (2,) range of joint 1, in [rad].
    """

    x: Floats
    z: Floats
    sector: Floats

    @property
    def front(self) -> float:
        """Largest reach forward, in [m]."""
        return float(self.x.max())

    @property
    def rear(self) -> float:
        """Largest reach backward over the arm, in [m]."""
        return float(-self.x.min())

    @property
    def top(self) -> float:
        """Largest height, in [m]."""
        return float(self.z.max())


@dataclass(frozen=True, eq=False)
class PlaneMap:
    """Figures of an arm for tool poses on a plane, each (H, W); NaN where no solution exists.

    Attributes:
        x: (W,) coordinates along x of the plane, in [m].
        y: (H,) coordinates along y, in [m].
        solutions: number of solutions of the inverse kinematics within the ranges.
        manipulability: Yoshikawa's measure of the solution for which it is largest; the others describe it.
        torque_margin: smallest share of a joint's torque that gravity leaves at rest.
        singular: distance from the nearest singularity, see `singular_distances`.
        clearance: distance to the nearest pair less its margin, in [m]; NaN without a cell.
    """

    x: Floats
    y: Floats
    solutions: Floats
    manipulability: Floats
    torque_margin: Floats
    singular: Floats
    clearance: Floats

    @property
    def share(self) -> float:
        """Share of the poses that can be reached."""
        return float((self.solutions > 0).mean())


def envelope(robot: Robot, divisions: int = DIVISIONS) -> Envelope:
    """Return the reach of the wrist centre for all angles of joints 2 and 3, with the others at zero.

    Example:
        >>> reach = twin.cell.envelope(twin.load("irb140"))
        >>> round(reach.front, 4), round(reach.rear, 4), round(reach.top, 4)
        (0.81, 0.67, 1.092)

    Raises:
        RobotError: the arm does not have six axes.
    """
    if robot.n != 6:
        raise RobotError(f"robot {robot.name!r} has {robot.n} axes, the envelope is known for 6")
    # The angles where the forearm and the arm are in line are extremes, so the grids contain zero.
    q2, q3 = (np.union1d(np.linspace(robot.q_min[k], robot.q_max[k], divisions), [0.0]) for k in (1, 2))
    q = np.zeros((len(q2) * len(q3), 6))
    q[:, 1], q[:, 2] = (grid.ravel() for grid in np.meshgrid(q2, q3))
    allowed = ~folded(robot, q).any(axis=-1)
    wrist = link_poses(robot, q[allowed])[:, 4, :3, 3]
    return Envelope(wrist[:, 0], wrist[:, 2], np.array([robot.q_min[0], robot.q_max[0]]))


def plane_map(
    robot: Robot,
    T_base_plane: Floats,
    x: Floats,
    y: Floats,
    *,
    R_plane_tool: Floats | None = None,
    T_flange_tool: Floats | None = None,
    clearance: Clearance | None = None,
    progress: Callable[[float], Any] | None = None,
) -> PlaneMap:
    """Return what an arm can do with its tool on the points of a plane.

    Args:
        robot: arm with a closed inverse kinematics.
        T_base_plane: (4, 4) pose of the plane in the base frame; its z axis is the normal.
        x: (W,) coordinates along its x axis, in [m].
        y: (H,) coordinates along its y axis, in [m].
        R_plane_tool: (3, 3) orientation of the tool on the plane; by default it points against the normal.
        T_flange_tool: (4, 4) pose of the tool on the flange.
        clearance: distances in a cell.
        progress: function called with the share done.

    Example:
        >>> robot, T = twin.load("irb140"), np.eye(4)
        >>> T[:3, 3] = 0.45, 0, 0.3
        >>> found = twin.cell.plane_map(robot, T, np.linspace(-0.1, 0.1, 5), np.linspace(-0.1, 0.1, 5))
        >>> found.share
        1.0
    """
    R = np.diag([1.0, -1.0, -1.0]) if R_plane_tool is None else R_plane_tool
    points = np.stack([*(grid.ravel() for grid in np.meshgrid(x, y)), np.zeros(len(x) * len(y))], axis=1)
    poses = np.tile(np.eye(4), (len(points), 1, 1))
    poses[:, :3, :3] = T_base_plane[:3, :3] @ R
    poses[:, :3, 3] = points @ T_base_plane[:3, :3].T + T_base_plane[:3, 3]
    figures = np.full((5, len(points)), np.nan)
    for first in range(0, len(points), CHUNK):
        part = slice(first, first + CHUNK)
        q = inverse_kinematics(robot, poses[part], T_flange_tool=T_flange_tool)
        there = np.isfinite(q).all(axis=-1)
        figures[0, part] = there.sum(axis=-1)
        measure = np.full(there.shape, -np.inf)
        measure[there] = np.abs(np.linalg.det(jacobian(robot, q[there], T_flange_tool)))
        rows = np.flatnonzero(there.any(axis=-1))
        best = q[rows, np.round(measure[rows], DECIMALS).argmax(axis=-1)]  # among equals the first
        figures[1, first + rows] = measure[rows].max(axis=-1)
        if robot.has_inertia and len(best):
            used = np.abs(gravity_torque(robot, best)) / robot.tau_max
            figures[2, first + rows] = 1.0 - used.max(axis=-1)
        if len(best):
            near = np.abs(singular_distances(robot, best, np.zeros_like(best))[0])
            figures[3, first + rows] = near.min(axis=-1)
        if clearance is not None:
            for row, found in zip(rows, clearance.nearest_each(best), strict=True):
                figures[4, first + row] = np.nan if found is None else found.clearance
        if progress is not None:
            progress(min(1.0, (first + CHUNK) / len(points)))
    shape = (len(y), len(x))
    return PlaneMap(np.asarray(x), np.asarray(y), *(figure.reshape(shape) for figure in figures))


OBJECT = (0.35, 0.55, 0.75)
TOOL_COLOUR = (0.85, 0.75, 0.2)


def cell_plot(clearance: Clearance, q: ArrayLike) -> Plot:
    """Return a picture of a robot in its cell, with a line between the nearest points.

    Args:
        clearance: distances of the robot in its cell.
        q: (n,) joint angles, in [rad].
    """
    robot = clearance.robot
    parts = arm_triangles(robot, q)
    for vertices, faces, name in clearance.meshes(q):
        parts.append((vertices[faces], np.array(TOOL_COLOUR if name == "tool" else OBJECT)))
    figure = Plot(figsize=(6.5, 6), layout="constrained")
    axes, _ = draw_solids(figure, parts, "{} of the base  [m]", alpha=0.9)
    nearest = clearance.nearest(q)
    if nearest is not None:
        axes.plot(*nearest.points.T, color="red", lw=2.5, zorder=20)
        axes.set_title(f"{literal(nearest.names)}: {nearest.text}", fontsize=10)
    return figure


def reach_plot(envelope: Envelope, plane: PlaneMap | None, title: str) -> Plot:
    """Return the envelope in side and top view, and the maps of a plane."""
    maps = (
        [] if plane is None else [(name, image) for name, image in _maps(plane) if np.isfinite(image).any()]
    )
    count = 2 + len(maps)
    columns = min(3, count)
    rows = -(-count // columns)
    figure = Plot(figsize=(4.2 * columns, 3.8 * rows + 0.4), layout="constrained")
    figure.suptitle(title)
    grid = figure.subplots(rows, columns, squeeze=False).flat
    side, top, *others = grid
    cells = 0.01
    filled = np.unique(np.round(np.column_stack([envelope.x, envelope.z]) / cells), axis=0) * cells
    side.plot(*filled.T, "s", ms=1.6, color="#9ecae1")
    side.set(xlabel="x [m]", ylabel="z [m]", title="wrist centre, from the side", aspect="equal")
    angles = np.linspace(envelope.sector[0], envelope.sector[1], 200)
    for radius, label in ((envelope.front, "front"), (envelope.rear, "rear, over the arm")):
        top.plot(radius * np.cos(angles), radius * np.sin(angles), label=f"{label}: {1e3 * radius:.1f} mm")
    top.set(xlabel="x [m]", ylabel="y [m]", title="largest reach, from above", aspect="equal")
    top.legend(fontsize=7, loc="upper right")
    for axes, (name, image) in zip(others, maps, strict=False):
        assert plane is not None
        ends = (plane.x[0], plane.x[-1], plane.y[0], plane.y[-1])
        drawn = axes.imshow(image, origin="lower", extent=ends, aspect="equal", cmap="viridis")
        figure.colorbar(drawn, ax=axes, shrink=0.8)
        axes.set(xlabel="x of the plane [m]", ylabel="y of the plane [m]", title=name)
    for axes in others[len(maps) :]:
        axes.set_axis_off()
    return figure


def _maps(plane: PlaneMap) -> list[tuple[str, Floats]]:
    """Return the titles and values of the maps."""
    return [
        ("number of solutions", np.where(plane.solutions > 0, plane.solutions, np.nan)),
        ("manipulability [m^3]", plane.manipulability),
        ("torque left by gravity [%]", 100 * plane.torque_margin),
        ("distance from a singularity", plane.singular),
        ("clearance of the cell [mm]", 1e3 * plane.clearance),
    ]
