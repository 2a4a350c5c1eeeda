"""What stands in the panels of a picture of logs over time: a panel a joint, a curve a log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from twin.errors import UnknownNameError
from twin.logs.columns import unit_of
from twin.logs.tracking_error import POSE_COMPONENTS, joint_error, tool_distance, tool_turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from twin.logs.log import Log

TITLES = {
    "error": "Tracking error: reference minus position",
    "torque": "Torque that the motors brought to the joints",
    "speed": "Speed of the joints",
    "position": "Position of the joints",
    "pose": "Pose of the tool: position, and orientation as a unit quaternion",
}
"""What can be drawn, and what is written above it."""


class Curve(NamedTuple):
    """A log in a panel.

    Attributes:
        log: its name.
        t: (N,) times, in [s].
        values: (N,) of what is drawn.
        wanted: (N,) of the reference, `None` where it has none.
        low, high: limits, infinite where there are none.
        cut: (N,) true where the torque was cut to its limit, `None` where that does not belong to the panel.
    """

    log: str
    t: NDArray
    values: NDArray
    wanted: NDArray | None = None
    low: float = -np.inf
    high: float = np.inf
    cut: NDArray | None = None


class Panel(NamedTuple):
    """A panel: its title, the unit of its values, and its curves, one a log that has them."""

    title: str
    unit: str
    curves: list[Curve]


def panels(logs: Mapping[str, Log], what: str, joints: Sequence[str] | None = None) -> list[Panel]:
    """The panels of a picture; joints of the same name and unit share theirs.

    Args:
        logs: by name.
        what: a key of `TITLES`.
        joints: names of those to draw; `None` for all, and for the error also that of the tool.

    Raises:
        ValueError: there is nothing of that name to draw.
        UnknownNameError: none of the robots has such a joint.
    """
    if what not in TITLES:
        raise ValueError(f"expected one of {', '.join(TITLES)} to draw, got {what!r}")
    if joints is not None:
        _require_known(logs, what, joints)
    found: dict[tuple[str, str], Panel] = {}
    kinds = (
        [_pose] if what == "pose" else [_joints, *([_tool_error] if what == "error" and not joints else [])]
    )
    for kind in kinds:
        for name, log in logs.items():
            for title, unit, curve in kind(name, log, what):
                if joints is None or title in joints:
                    found.setdefault((title, unit), Panel(title, unit, [])).curves.append(curve)
    return list(found.values())


def _require_known(logs: Mapping[str, Log], what: str, joints: Sequence[str]) -> None:
    if what == "pose":
        raise ValueError("joints can be chosen of error, torque, speed and position; the pose has none")
    known = dict.fromkeys(name for log in logs.values() for name in log.robot.joint_names)
    for joint in joints:
        if joint not in known:
            raise UnknownNameError(f"unknown joint {joint!r}: known are {', '.join(known)}")


def _joints(name: str, log: Log, what: str) -> Iterator[tuple[str, str, Curve]]:
    robot, endless = log.robot, np.full(log.robot.n, np.inf)
    quantity, values, wanted, low, high = {
        "error": ("error", joint_error(log), None, -endless, endless),
        "torque": ("tau", log.tau, None, -robot.drive_torque_max, robot.drive_torque_max),
        "speed": ("qd", log.qd, log.qd_ref, -robot.qd_max, robot.qd_max),
        "position": ("q", log.q, log.q_ref, robot.q_min, robot.q_max),
    }[what]
    for k, (joint, kind) in enumerate(zip(robot.joint_names, robot.joint_kinds, strict=True)):
        reference = None if wanted is None else wanted[:, k]
        curve = Curve(name, log.t, values[:, k], reference, low[k], high[k], log.saturated[:, k])
        yield joint, unit_of(kind, quantity), curve


def _tool_error(name: str, log: Log, _: str) -> Iterator[tuple[str, str, Curve]]:
    yield "tool, distance from the wanted place", "m", Curve(name, log.t, tool_distance(log))
    yield "tool, angle from the wanted orientation", "rad", Curve(name, log.t, tool_turn(log))


def _pose(name: str, log: Log, _: str) -> Iterator[tuple[str, str, Curve]]:
    for k, component in enumerate(POSE_COMPONENTS):
        unit = "m" if component in "xyz" else ""
        yield f"tool {component}", unit, Curve(name, log.t, log.pose[:, k], log.pose_ref[:, k])
        if component == "z":
            yield "tool, distance from the wanted place", "m", Curve(name, log.t, tool_distance(log))
