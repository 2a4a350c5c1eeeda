"""Moves of RAPID, and their targets as joint angles: frames, configurations, turns, and the way of a move."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from twin.abb.rapid.frames import frame_of, matrix, pose_record
from twin.abb.rapid.values import PREDEFINED, Record, text_of
from twin.base.arrays import Floats
from twin.base.errors import LimitError, RapidError, RobotError
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.kinematics.inverse import inverse_kinematics
from twin.physics.robot.limits import ROUND_OFF, check_position, folded
from twin.physics.robot.robot import Payload, Robot

QUADRANT = np.pi / 2
EDGE = np.radians(0.01)
"""Distance from the edge of a quadrant, in [rad], within which an angle belongs to both."""

MOST_OFF = 1
"""Quadrants by which axes 1, 4 and 6 may be off their confdata: `Offs` of a target often crosses an edge."""

LARGEST_STEP = np.radians(20.0)
"""Turn of a joint between two points of a line beyond which the line is singular there, in [rad]."""

POINTS = 4, 60
"""Smallest and largest number of points along a move."""

MM_PER_POINT, TURN_PER_POINT = 5e-3, np.radians(2.0)

BENT = np.radians(30.0)
"""Angle of joint 5 at a start that nobody gives, in [rad]."""

SHORT = 6e-4
"""Length of a move in [m] up to which no corner is made at its end (ours, from reports on 0.5 mm)."""

LEVER = 0.1
"""Length of a move's path per turn, in [m/rad], if the tool's point stands still."""


NO_LOAD = 0.001
"""Mass of `load0` in [kg], which stands for no load."""


class Settings(NamedTuple):
    """Settings of the motion that instructions change.

    Attributes:
        conf_j: whether joint moves must reach the configuration of their target (ConfJ).
        conf_l: the same for lines and circles (ConfL).
        acceleration: share of the acceleration, 0 to 1 (AccSet).
        override: share of the programmed speed, 0 to 1 (VelSet).
        speed_max: largest speed of the tool, in mm/s (VelSet).
        load: payload in the gripper (GripLoad).
        displacement: pose by which targets are displaced (PDispOn, PDispSet), None for no displacement.
    """

    conf_j: bool = True
    conf_l: bool = True
    acceleration: float = 1.0
    override: float = 1.0
    speed_max: float = 5000.0
    load: Record = PREDEFINED["load0"].value
    displacement: Record | None = None


class Speed(NamedTuple):
    """Speed of a move: of the tool in mm/s, and of its orientation in degrees/s."""

    tcp: float
    ori: float


@dataclass(frozen=True, eq=False)
class Move:
    r"""Move instruction with its arguments.

    Attributes:
        file: file of the instruction.
        line: line of the instruction.
        name: name of the instruction, such as MoveL.
        kind: "joint", "line" or "circle".
        target: robtarget or jointtarget.
        speed: speed of the tool in mm/s, and of its orientation in degrees/s.
        zone: zonedata; `finep` is a stop.
        tool: tooldata.
        work_object: wobjdata.
        via: robtarget on a circle.
        duration: time of the move in s (`\T`), None if the speed counts.
        settings: settings of the motion.
        routine: name of the routine with the instruction.
        triggers: what happens on the way on a live controller, see `twin.abb.controller.motion.Trigger`.
    """

    file: str
    line: int
    name: str
    kind: str
    target: Record
    speed: Speed
    zone: Record
    tool: Record
    work_object: Record
    via: Record | None = None
    duration: float | None = None
    settings: Settings = field(default_factory=Settings)
    routine: str = ""
    triggers: tuple[Any, ...] = ()

    @property
    def stops(self) -> bool:
        """Whether the arm stops at the target."""
        return self.zone["finep"]


class Pause(NamedTuple):
    """Wait for a time, in s; the arm stands still."""

    file: str
    line: int
    seconds: float


class Segment(NamedTuple):
    """Move as joint angles along its path, before its corners are cut.

    Attributes:
        move: the instruction.
        q: (N, 6) joint angles at evenly spaced points, in [rad].
        length: length of the path of the tool's point, or of its turn times `LEVER`, in [m].
        turns: whether the tool's point stands still.
        row: row of the inverse kinematics, RAPID's cfx, of a line or circle; -1 for joint moves.
    """

    move: Move
    q: Floats
    length: float
    turns: bool
    row: int


class Arm:
    """Arm that goes from target to target.

    Attributes:
        robot: arm with a closed inverse kinematics.
        q: (6,) joint angles after the last move, in [rad].
        segments: one per move.
        warnings: pairs of a move and a sentence on it.
        assumed: pairs of a move and a sentence on what is assumed for it.

    Args:
        robot: arm with a closed inverse kinematics.
        start: (6,) joint angles at the beginning, in [rad]; by default the target of a first move that is
            linear, zero before a first joint move, and zero with joint 5 at 30 degrees for a program that
            asks where the arm is before its first move.
        displacement: (4, 4) error of all work objects, in their axes, in [m]; the identity by default.
        T_world_base: (4, 4) pose of the arm's base in the world of its work objects, in [m]; the identity by
            default.
    """

    def __init__(
        self,
        robot: Robot,
        start: Floats | None = None,
        displacement: Floats | None = None,
        T_world_base: Floats | None = None,
    ) -> None:
        if robot.n != 6:
            raise RobotError(f"robot {robot.name!r} has {robot.n} axes, RAPID programs are planned for 6")
        inverse_kinematics(robot, np.eye(4))  # refuse other families now
        self.robot = robot
        self.q = np.zeros(6) if start is None else np.array(start, dtype=float)
        self._is_free = start is None
        self._displacement = np.eye(4) if displacement is None else displacement
        self._T_base_world = np.eye(4) if T_world_base is None else np.linalg.inv(T_world_base)
        self.segments: list[Segment] = []
        self.warnings: list[tuple[Move, str]] = []
        self.assumed: list[tuple[Move, str]] = []

    # ------------------------------------------------------------------------------- state and functions

    def stay(self) -> None:
        """Settle the start of a program that asks where its arm is: with a bent wrist, not a singular one."""
        if self._is_free:
            self.q[4], self._is_free = BENT, False

    def joints(self, q: Floats | None = None) -> Record:
        """Return joint angles (6,) in [rad] as a jointtarget, by default those after the last move."""
        return _jointtarget(self.q if q is None else q)

    def target(self, tool: Record, work_object: Record, q: Floats | None = None) -> Record:
        """Return the pose of the tool in the work object as a robtarget."""
        angles = self.q if q is None else q
        T = (
            np.linalg.inv(self._object_frame(work_object))
            @ forward_kinematics(self.robot, angles)
            @ tool_frame(tool)
        )
        conf = Record("confdata", [float(one) for one in self.configuration(angles)])
        pose = pose_record(T)
        return Record("robtarget", [pose["trans"], pose["rot"], conf, Record("extjoint", [9e9] * 6)])

    def calculated_target(self, target: Record, tool: Record, work_object: Record) -> Record:
        """Return the robtarget of a jointtarget."""
        return self.target(tool, work_object, np.radians(target["robax"].values))

    def calculated_joints(self, target: Record, tool: Record, work_object: Record) -> Record:
        """Return the jointtarget of a robtarget in its configuration."""
        return _jointtarget(self.solution(target, tool, work_object, exact=True)[0])

    def _object_frame(self, work_object: Record) -> Floats:
        """Return the pose of a work object in the base frame (4, 4), in [m]; wobj0 is the world."""
        T = self._T_base_world @ object_frame(work_object)
        return T if work_object is PREDEFINED["wobj0"].value else T @ self._displacement

    def configuration(self, q: Floats) -> tuple[int, int, int, int]:
        """Return cf1, cf4, cf6 and cfx of joint angles (6,)."""
        cf1, cf4, cf6 = (int(one) for one in np.floor(q[[0, 3, 5]] / QUADRANT))
        return cf1, cf4, cf6, self.row(q)

    def row(self, q: Floats) -> int:
        """Return the row of the inverse kinematics in which joint angles (6,) are."""
        rows = inverse_kinematics(self.robot, forward_kinematics(self.robot, q), limits=False)
        return int(np.nanargmin([_distance(q, one) for one in rows]))

    # ------------------------------------------------------------------------------------------ targets

    def solution(
        self, target: Record, tool: Record, work_object: Record, *, exact: bool
    ) -> tuple[Floats, str]:
        """Return the joint angles (6,) of a robtarget, and a warning, "" for none.

        Args:
            target: the robtarget.
            tool: its tool.
            work_object: its work object.
            exact: whether the configuration must be the named one; otherwise the nearest is taken.

        Raises:
            RapidError: the pose is out of reach, or has no solution in this configuration.
        """
        wanted = target["robconf"].values
        found, matching = self._solutions(target, tool, work_object)
        nearest = min((q for q, _ in found), key=lambda q: float(np.sum((q - self.q) ** 2)))
        if matching:
            best = min(matching, key=lambda q: float(np.sum((q - self.q) ** 2)))
            if exact or np.allclose(best, nearest):
                return best, self._near(best, wanted)
        elif exact:
            there = sorted({_conf_text((*self.configuration(q)[:3], row)) for q, row in found})
            raise RapidError(
                f"no solution has confdata {_conf_text(wanted)}; this pose has {', '.join(there)}", "target"
            )
        return nearest, self._other(nearest, wanted)

    def _solutions(
        self, target: Record, tool: Record, work_object: Record
    ) -> tuple[list[tuple[Floats, int]], list[Floats]]:
        """Return the solutions of a robtarget with their rows, and those in its configuration.

        Raises:
            RapidError: there is none.
        """
        T = self._object_frame(work_object) @ frame_of(target)
        rows = inverse_kinematics(self.robot, T @ np.linalg.inv(tool_frame(tool)), limits=False)
        found = [(q, row) for row in range(8) for q in self._turns(rows[row])]
        if not found:
            reason = "is out of reach" if np.isnan(rows).all() else "needs joints beyond their ranges"
            raise RapidError(f"{text_of(target['trans'])} {reason}", "target")
        wanted = target["robconf"].values
        offs = [
            (max(off), sum(off), q)
            for q, row in found
            if row == wanted[3] and (off := quadrants_off(q, wanted))
        ]
        near = [one for one in offs if one[0] <= MOST_OFF]
        return found, [q for most, total, q in near if total == min(one[1] for one in near)]

    def _near(self, q: Floats, wanted: list[float]) -> str:
        """Return a remark on joint angles that are in other quadrants, "" if they are in those named."""
        return self._other(q, wanted) if any(quadrants_off(q, wanted)) else ""

    def _other(self, q: Floats, wanted: list[float]) -> str:
        return f"goes to confdata {_conf_text(self.configuration(q))}, the target names {_conf_text(wanted)}"

    def _turns(self, q: Floats) -> list[Floats]:
        """Return the angles of a solution with all full turns that the ranges allow."""
        if np.isnan(q).any():
            return []
        choices = [
            [q[i] + 2 * np.pi * k for k in range(-3, 4)
             if self.robot.q_min[i] - EDGE <= q[i] + 2 * np.pi * k <= self.robot.q_max[i] + EDGE]
            for i in range(6)
        ]  # fmt: skip
        found = []
        for one in product(*choices):
            angles = np.clip(one, self.robot.q_min, self.robot.q_max)
            try:
                check_position(self.robot, angles, hint=False)
            except LimitError:
                continue
            found.append(angles)
        return found

    # -------------------------------------------------------------------------------------------- moves

    def move(self, move: Move) -> None:
        """Go to the end of a move, and add its segment.

        Raises:
            RapidError: the target or the path to it is impossible.
        """
        if self._is_free and move.kind == "line":
            self._begin_at(move)
        self._is_free = False
        segment = self._joint_move(move) if move.kind == "joint" else self._tool_move(move)
        if 0.0 < segment.length <= SHORT and not segment.turns and not move.stops:
            self.warnings.append(
                (move, f"of {1e3 * segment.length:.2g} mm: corner path failure, executed as fine")
            )
            segment = segment._replace(move=replace(move, zone=move.zone.changed(finep=True, pzone_tcp=0.0)))
        self.segments.append(segment)
        self.q = segment.q[-1]

    def _begin_at(self, move: Move) -> None:
        """Begin at the target of a first move: in its configuration, else near the middle of the ranges."""
        found, matching = self._solutions(move.target, move.tool, move.work_object)
        low, high = self.robot.q_min, self.robot.q_max

        def off_middle(q: Floats) -> float:
            return float(np.abs((2 * q - low - high) / (high - low)).max())

        self.q = min(matching or [q for q, _ in found], key=off_middle)
        angles = ", ".join(f"{one:.0f}" for one in np.degrees(self.q))
        self.assumed.append(
            (move, f"is the first move: the arm begins at its target, at [{angles}] deg (--start)")
        )

    def _joint_move(self, move: Move) -> Segment:
        if move.target.type == "jointtarget":
            end = np.radians(move.target["robax"].values)
            try:
                check_position(self.robot, end, hint=False)
            except LimitError as error:
                raise RapidError(str(error), "target") from None
        else:
            exact = move.settings.conf_j
            end, warning = self.solution(move.target, move.tool, move.work_object, exact=exact)
            if warning:
                self.warnings.append((move, warning))
        coarse = self.q + np.linspace(0, 1, 20)[:, None] * (end - self.q)
        points = (forward_kinematics(self.robot, coarse) @ tool_frame(move.tool))[:, :3, 3]
        length = float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
        N = _count(length, float(np.abs(end - self.q).max()))
        q = self.q + np.linspace(0, 1, N)[:, None] * (end - self.q)
        self._check_ranges(q)
        return self._segment(move, q, length, float(np.abs(end - self.q).max()))

    def _tool_move(self, move: Move) -> Segment:
        tool = tool_frame(move.tool)
        T_start = forward_kinematics(self.robot, self.q) @ tool
        T_object = self._object_frame(move.work_object)
        T_end = T_object @ frame_of(move.target)
        if move.via is None:
            poses, length, turn = line_poses(T_start, T_end)
        else:
            poses, length, turn = circle_poses(T_start, T_object @ frame_of(move.via), T_end)
        rows = inverse_kinematics(self.robot, poses @ np.linalg.inv(tool), limits=False)
        row = self.segments[-1].row if self.segments else -1
        row = row if row >= 0 else self.row(self.q)
        q = np.unwrap(np.vstack([self.q, rows[1:, row]]), axis=0)
        lost = np.flatnonzero(np.isnan(q).any(axis=1))
        steps = np.abs(np.diff(q, axis=0)).max(axis=1)
        jumps = np.flatnonzero(steps > LARGEST_STEP)
        if lost.size and not (jumps.size and jumps[0] < lost[0] - 1):
            share = (lost[0] - 0.5) / (len(q) - 1)
            raise RapidError(f"{move.name} leaves the reach after {100 * share:.0f} % of the way", "path")
        if jumps.size:
            k = jumps[0]
            joint = int(np.abs(q[k + 1] - q[k]).argmax())
            turned = np.degrees(abs(q[k + 1, joint] - q[k, joint]))
            raise RapidError(
                f"{move.name} passes a singularity after {100 * k / (len(q) - 1):.0f} % of the way: "
                f"{self.robot.joint_names[joint]} would turn by {turned:.0f} deg at once",
                "path",
            )
        self._check_ranges(q)
        segment = self._segment(move, q, length, turn, row)
        if move.settings.conf_l:
            self._check_end(segment)
        return segment

    def _segment(self, move: Move, q: Floats, length: float, turn: float, row: int = -1) -> Segment:
        turns = length < 1e-6
        return Segment(move, q, LEVER * turn if turns else length, turns, row)

    def _check_ranges(self, q: Floats) -> None:
        robot = self.robot
        outside = ~((q >= robot.q_min - ROUND_OFF) & (q <= robot.q_max + ROUND_OFF)).all(axis=1)
        for k in np.flatnonzero(outside | folded(robot, q).any(axis=-1))[:1]:
            try:
                check_position(robot, q[k], hint=False)
            except LimitError as error:
                share = 100 * k / max(len(q) - 1, 1)
                raise RapidError(f"{error}, after {share:.0f} % of the way", "path") from None

    def _check_end(self, segment: Segment) -> None:
        wanted = segment.move.target["robconf"].values
        q = segment.q[-1]
        if max(quadrants_off(q, wanted)) > MOST_OFF or wanted[3] != segment.row:
            here = _conf_text((*self.configuration(q)[:3], segment.row))
            raise RapidError(
                f"the line ends in confdata {here}, the target names {_conf_text(wanted)}; "
                "ConfL \\Off allows it",
                "target",
            )


def tool_frame(tool: Record) -> Floats:
    """Return the pose of a tool on the flange (4, 4), in [m]."""
    return frame_of(tool["tframe"])


def object_frame(work_object: Record) -> Floats:
    """Return the pose of a work object in the base frame (4, 4), in [m]."""
    return frame_of(work_object["uframe"]) @ frame_of(work_object["oframe"])


def is_load(load: Record) -> bool:
    """Return whether a loaddata stands for a load."""
    return load["mass"] > NO_LOAD


def payload_of(tool: Record, grip: Record, held: Payload | None = None) -> Payload | None:
    """Return the load of a tool, that in its gripper and a part as one payload, None without a load."""
    bodies = [] if held is None else [(held.mass, np.asarray(held.com), np.asarray(held.inertia))]
    for load, frame in ((tool["tload"], np.eye(4)), (grip, tool_frame(tool))):
        if is_load(load):
            T = frame @ matrix(load["cog"], load["aom"])
            R, about_com = T[:3, :3], np.diag([load["ix"], load["iy"], load["iz"]])
            bodies.append((load["mass"], T[:3, 3], R @ about_com @ R.T))
    mass, moment, inertia = 0.0, np.zeros(3), np.zeros((3, 3))
    for m, p, about in bodies:
        mass, moment = mass + m, moment + m * p
        inertia += about + m * (p @ p * np.eye(3) - np.outer(p, p))
    if mass == 0.0:
        return None
    com = moment / mass
    about = inertia - mass * (com @ com * np.eye(3) - np.outer(com, com))
    return Payload(mass, com, np.round(0.5 * (about + about.T), 12))


def _jointtarget(q: Floats) -> Record:
    axes = Record("robjoint", np.degrees(q).tolist())
    return Record("jointtarget", [axes, Record("extjoint", [9e9] * 6)])


def _distance(q: Floats, other: Floats) -> float:
    """Return the distance of joint angles (6,) up to full turns, in [rad]."""
    return float(np.abs((q - other + np.pi) % (2 * np.pi) - np.pi).max())


def quadrants_off(q: Floats, wanted: list[float]) -> list[float]:
    """Return by how many quadrants axes 1, 4 and 6 are off those of a confdata."""
    low, high = (np.floor((q[[0, 3, 5]] + edge) / QUADRANT) for edge in (-EDGE, EDGE))
    return np.abs(np.clip(wanted[:3], low, high) - wanted[:3]).tolist()


def _conf_text(conf: tuple[int, ...] | list[float]) -> str:
    return "[" + ",".join(f"{one:.0f}" for one in conf) + "]"


def _count(length: float, turn: float) -> int:
    low, high = POINTS
    return int(np.clip(low + max(length / MM_PER_POINT, turn / TURN_PER_POINT), low, high))


def line_poses(T_start: Floats, T_end: Floats) -> tuple[Floats, float, float]:
    """Return poses (N, 4, 4) along a straight line, its length in [m] and its turn in [rad]."""
    way = T_end[:3, 3] - T_start[:3, 3]
    turn = Rotation.from_matrix(T_start[:3, :3].T @ T_end[:3, :3]).as_rotvec()
    length, angle = float(np.linalg.norm(way)), float(np.linalg.norm(turn))
    s = np.linspace(0, 1, _count(length, angle))
    poses = np.tile(np.eye(4), (len(s), 1, 1))
    poses[:, :3, 3] = T_start[:3, 3] + s[:, None] * way
    poses[:, :3, :3] = T_start[:3, :3] @ Rotation.from_rotvec(s[:, None] * turn).as_matrix()
    return poses, length, angle


def circle_poses(T_start: Floats, T_via: Floats, T_end: Floats) -> tuple[Floats, float, float]:
    """Return poses (N, 4, 4) along an arc through three points, its length in [m] and its turn in [rad].

    The orientation turns with the arc; what remains to the end's orientation is spread over the arc, in the
    sense that comes nearer to the orientation of the second point.

    Raises:
        RapidError: the three points are in a line.
    """
    a, b, c = (T[:3, 3] for T in (T_start, T_via, T_end))
    normal = np.cross(b - a, c - a)
    size = np.linalg.norm(normal)
    if size < 1e-6 * max(np.linalg.norm(b - a), np.linalg.norm(c - a), 1e-9) ** 2 or size < 1e-12:
        raise RapidError("the three points of the circle are in a line, or two are equal", "path")
    normal /= size
    u, v = b - a, c - a
    centre = a + (np.dot(v, v) * np.cross(size * normal, u) + np.dot(u, u) * np.cross(v, size * normal)) / (
        2 * size**2
    )
    x = (a - centre) / np.linalg.norm(a - centre)
    y = np.cross(normal, x)
    angle = float(np.arctan2((c - centre) @ y, (c - centre) @ x) % (2 * np.pi))
    radius = float(np.linalg.norm(a - centre))
    rest = Rotation.from_matrix(
        T_start[:3, :3].T @ Rotation.from_rotvec(-angle * normal).as_matrix() @ T_end[:3, :3]
    ).as_rotvec()
    size = np.linalg.norm(rest)
    if size > 0:
        # the other sense of this turn, if the orientation of the point on the circle is nearer to it
        via = float(np.arctan2((b - centre) @ y, (b - centre) @ x) % (2 * np.pi))
        at_via = T_start[:3, :3].T @ Rotation.from_rotvec(-via * normal).as_matrix() @ T_via[:3, :3]
        rest = min(
            (rest, rest * (1.0 - 2.0 * np.pi / size)),
            key=lambda one: Rotation.from_matrix(
                Rotation.from_rotvec(-via / angle * one).as_matrix() @ at_via
            ).magnitude(),
        )
    turn = angle + float(np.linalg.norm(rest))
    s = np.linspace(0, 1, _count(radius * angle, turn))
    poses = np.tile(np.eye(4), (len(s), 1, 1))
    arc = s[:, None] * angle
    poses[:, :3, 3] = centre + radius * (np.cos(arc) * x + np.sin(arc) * y)
    turned = Rotation.from_rotvec(arc * normal).as_matrix()
    poses[:, :3, :3] = turned @ T_start[:3, :3] @ Rotation.from_rotvec(s[:, None] * rest).as_matrix()
    return poses, radius * angle, turn
