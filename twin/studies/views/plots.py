"""Figures for notebooks and reports: a robot in a configuration, its friction, and its motors in a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LightSource
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, float_array
from twin.base.errors import RobotError
from twin.base.formatting import literal
from twin.base.notebook import Plot
from twin.physics.dynamics.equation_of_motion import friction_torque
from twin.physics.kinematics.forward import forward_kinematics, link_poses
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import joint_unit
from twin.studies.views.browser import arm_meshes

if TYPE_CHECKING:
    from twin.data.logs.log import Log


COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
)  # Okabe-Ito, for colour-blind readers


AXES = ("#d55e00", "#009e73", "#0072b2")  # colours of x, y and z
AXIS = 0.15  # length of the axes of a frame, as a share of the arm's size
SUN = LightSource(azdeg=225, altdeg=40)


def robot_plot(robot: Robot, q: ArrayLike | None = None) -> Plot:
    """Return a picture of a robot with the frames of its base and of its flange, x red, y green, z blue.

    Args:
        robot: the robot.
        q: (n,) joint positions, in [rad]; `None` for the zero position.

    Raises:
        ValueError: q has another shape, or is not finite.
        RobotError: a shape of the robot cannot be drawn.
    """
    q = np.zeros(robot.n) if q is None else float_array(q, "q", (robot.n,))
    figure = Plot(figsize=(5.5, 5.5), layout="constrained")
    axes, half = draw_solids(figure, arm_triangles(robot, q), "{}  [m]")
    for name, pose in (("base", np.eye(4)), ("flange", forward_kinematics(robot, q))):
        for color, direction in zip(AXES, pose[:3, :3].T, strict=True):
            axes.quiver(*pose[:3, 3], *(2 * AXIS * half * direction), color=color, lw=2, zorder=10)
        axes.text(*(pose[:3, 3] + 0.1 * half * pose[:3, 2]), name, fontsize=8)
    angles = ", ".join(f"{value:.4g}" for value in q)
    axes.set_title(f"{robot.name} at q = ({angles})  [rad]", fontsize=10)
    return figure


def arm_triangles(robot: Robot, q: ArrayLike) -> list[tuple[Floats, Floats]]:
    """Return triangles (N, 3, 3) of each part of the arm, in base axes in [m], and its colour (3,).

    Args:
        robot: the robot.
        q: (n,) joint positions, in [rad].
    """
    T, parts = link_poses(robot, q), []
    for mesh in arm_meshes(robot):
        pose = np.eye(4) if mesh.link < 0 else T[mesh.link]
        triangles = (mesh.vertices @ pose[:3, :3].T + pose[:3, 3])[mesh.faces]
        parts.append((triangles, np.array(mesh.color) / 255.0))
    return parts


def draw_solids(
    figure: Plot, parts: Sequence[tuple[Floats, Floats]], label: str, **style: Any
) -> tuple[Any, float]:
    """Draw shaded solids; return the axes, and half the edge of the cube that they show, in [m].

    Args:
        figure: the figure.
        parts: triangles (N, 3, 3) of each solid, in [m], and its colour (3,).
        label: text at an axis, with its name as `{}`.
        style: further settings of the triangles.
    """
    triangles = np.concatenate([corners for corners, _ in parts])
    colors = np.concatenate([np.broadcast_to(color, (len(corners), 3)) for corners, color in parts])
    points = triangles.reshape(-1, 3)
    middle, half = (points.max(axis=0) + points.min(axis=0)) / 2, np.ptp(points, axis=0).max() / 2
    axes: Any = figure.add_subplot(projection="3d")
    axes.add_collection3d(
        Poly3DCollection(triangles, facecolors=colors, shade=True, lightsource=SUN, **style)
    )
    for axis, centre in zip("xyz", middle, strict=True):
        getattr(axes, f"set_{axis}lim")(centre - half, centre + half)
        getattr(axes, f"set_{axis}label")(label.format(axis), fontsize=9)
    axes.tick_params(labelsize=8)
    axes.set_box_aspect((1, 1, 1), zoom=0.85)  # room for the labels
    axes.view_init(elev=20, azim=-55)
    return axes, half


def friction_plot(robot: Robot) -> Plot:
    """Return the friction torque of every joint over its speed, while the other joints are at rest.

    Args:
        robot: robot with drives (`Robot.with_drives`).

    Raises:
        RobotError: the drives of the robot are ideal, without friction.
    """
    if robot.active_drives is None:
        raise RobotError(f"{robot.name} has ideal drives, without friction: expected rigid or elastic ones")
    columns = min(3, robot.n)
    figure = Plot(figsize=(3.6 * columns, 2.4 * -(-robot.n // columns) + 0.6), layout="constrained")
    figure.suptitle(literal(f"Friction of the joints of {robot.name}"), fontweight="bold")
    grid = figure.subplots(-(-robot.n // columns), columns, squeeze=False)
    for axes in grid.flat[robot.n :]:
        axes.set_axis_off()
    for joint, (axes, kind) in enumerate(zip(grid.flat, robot.joint_kinds, strict=False)):
        top = robot.qd_max[joint] if np.isfinite(robot.qd_max[joint]) else 1.0
        speeds = top * np.geomspace(1e-5, 1.0, 400)
        qd = np.zeros((2 * len(speeds) + 1, robot.n))
        qd[:, joint] = [*-speeds[::-1], np.nan, *speeds]  # a gap at rest, where friction holds the joint
        friction = friction_torque(robot, np.nan_to_num(qd))[:, joint]
        axes.plot(qd[:, joint], np.where(np.isnan(qd[:, joint]), np.nan, friction), color=COLOURS[0], lw=1.6)
        axes.set_title(literal(robot.joint_names[joint]), loc="left", fontsize=9, fontweight="bold")
        axes.set_xlabel(f"speed  [{joint_unit(kind, 'speed')}]", fontsize=9)
        axes.set_ylabel(f"friction  [{joint_unit(kind, 'torque')}]", fontsize=9)
        axes.tick_params(labelsize=8)
        axes.grid(True, color="0.9")
    return figure


PER_MINUTE = 60 / (2 * np.pi)  # 1/min in a rad/s


def draw_motors(logs: Sequence[Log], path: Path) -> None:
    """Draw the torque of every motor over its speed, with the curve of its torque limit.

    Args:
        logs: runs with one robot.
        path: path of the PNG to write.
    """
    robot = logs[0].robot
    drives = robot.drives
    assert drives is not None
    rows = -(-robot.n // 3)
    figure = Plot(figsize=(12.0, 3.2 * rows + 0.6), layout="constrained")
    figure.suptitle(literal(f"Motors of {robot.name}: torque over speed"), fontweight="bold")
    panels = figure.subplots(rows, 3, squeeze=False).ravel()
    for axes in panels[robot.n :]:
        axes.set_axis_off()
    for motor, axes in enumerate(panels[: robot.n]):
        axes.set_title(literal(robot.joint_names[motor]))
        for k, log in enumerate(logs):
            speed = log.qd_motor @ drives.motor_matrix[motor]
            name, colour = literal(log.controller), COLOURS[k % len(COLOURS)]
            axes.plot(PER_MINUTE * speed, log.tau_motor[:, motor], lw=1.0, color=colour, label=name)
        rated, top = PER_MINUTE * drives.motor_speed_rated[motor], PER_MINUTE * drives.motor_speed_max[motor]
        torque = drives.motor_torque_max[motor]
        if np.isfinite(top) and np.isfinite(torque):
            limit = np.array([[-top, 0.0], [-top, -torque], [rated, -torque], [top, 0.0]])
            for curve in (limit, -limit):
                axes.plot(*curve.T, color="0.35", lw=1.6, label="limit of the motor")
        joint_limit = PER_MINUTE * abs(drives.ratio[motor]) * robot.qd_max[motor]
        for speed in (-joint_limit, joint_limit):
            axes.axvline(speed, color="0.4", lw=1.0, ls=":", label="speed limit of the joint")
        axes.grid(True, color="0.9")
        axes.set(xlabel="speed  [1/min]", ylabel="torque  [N m]")
    handles, labels = panels[0].get_legend_handles_labels()
    entries = dict(zip(labels, handles, strict=True))
    figure.legend(entries.values(), entries, loc="outside lower center", ncols=len(entries), frameon=False)
    figure.savefig(path, dpi=110, format="png")
