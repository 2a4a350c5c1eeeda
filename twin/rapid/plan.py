"""Plan of a program: its path with corners, its time law, and what it asks of every joint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from twin.arrays import Floats
from twin.dynamics.equation_of_motion import gravity_torque, inverse_dynamics
from twin.errors import RapidError
from twin.kinematics.forward import jacobian
from twin.rapid.functions import matrix
from twin.rapid.instructions import Move, Pause
from twin.rapid.targets import LEVER, Segment, tool_frame
from twin.rapid.time_law import fastest, interval_times
from twin.rapid.values import Record
from twin.robot.drives.motors import MotorLimits, available_torque, motor_side
from twin.robot.robot import Payload, Robot
from twin.trajectories.joint_paths import KINDS, singular_distances

SPEED_SHARE = 0.995
"""Share of the joint speeds that is planned, since speeds between the points of a path are a little larger."""

CORNER_POINTS = 12
PASSES = 3
"""Solutions of a time law; friction and the torque of a motor at speed come from the one before."""

NEAR_SINGULAR = 0.1
"""Distance from a singularity, as in `singular_distances`, below which a move shows it."""


class Limits(NamedTuple):
    """Limits of a plan.

    Attributes:
        share: share of the torque beside gravity and friction, or of `accelerations`, that is used.
        settling: rest at every stop, in [s].
        accelerations: (6,) largest accelerations in [rad/s^2], for robots without masses; None: torques.
    """

    share: float = 1.0
    settling: float = 0.0
    accelerations: Floats | None = None


class Piece(NamedTuple):
    """Part of the path with its derivatives by the path's parameter, at N points.

    Attributes:
        segment: index of the segment.
        width: distances of the points, (N - 1,), in [m].
        q: (N, 6) joint angles in [rad].
        dq: (N, 6) first derivatives.
        ddq: (N, 6) second derivatives.
    """

    segment: int
    width: Floats
    q: Floats
    dq: Floats
    ddq: Floats


@dataclass(frozen=True, eq=False)
class PlannedMove:
    """Figures of a move: from the middle of its first corner to the middle of its last.

    Attributes:
        move: the instruction.
        length: length of the tool's path in [mm].
        time: estimated duration in [s].
        bound: duration at the limits in [s].
        by_speed: duration by speeds alone in [s].
        joint_speed: largest share of a joint's speed limit, and the joint.
        torque: largest share of a joint's torque limit, and the joint; NaN for a robot without masses.
        singular: name and distance of the nearest singularity, "" if it is far.
    """

    move: Move
    length: float
    time: float
    bound: float
    by_speed: float
    joint_speed: tuple[float, int]
    torque: tuple[float, int]
    singular: str


@dataclass(frozen=True, eq=False)
class Plan:
    """Plan of a program.

    Attributes:
        moves: the planned moves.
        pauses: sum of the waits in [s].
        settling: sum of the rests at stops in [s].
        t: (N,) times of the points of the estimated motion in [s].
        q: (N, 6) joint angles there in [rad].
    """

    moves: tuple[PlannedMove, ...]
    pauses: float
    settling: float
    t: Floats
    q: Floats

    @property
    def by_speed(self) -> float:
        """Time by speeds alone, in [s]."""
        return sum(move.by_speed for move in self.moves) + self.pauses

    @property
    def bound(self) -> float:
        """Time at the limits of the joints, a lower bound, in [s]."""
        return sum(move.bound for move in self.moves) + self.pauses

    @property
    def time(self) -> float:
        """Estimated time, in [s]."""
        return sum(move.time for move in self.moves) + self.pauses + self.settling


def plan(robot: Robot, segments: Sequence[Segment], events: Sequence[Move | Pause], limits: Limits) -> Plan:
    """Return the plan of moves.

    Args:
        robot: the arm; its payload is replaced by tool and grip load of each move.
        segments: paths of the moves, in order.
        events: moves and pauses, in order; further moves than segments are left out.
        limits: share, settling and accelerations.

    Raises:
        RapidError: a move cannot keep the limits; the message states file and line.
    """
    planned: list[PlannedMove] = []
    times, angles, now = [np.zeros(1)], [segments[0].q[:1] if segments else np.zeros((1, 6))], 0.0
    settling = 0.0
    for group in _groups(segments, events):
        pieces = _pieces(group)
        if not pieces:
            planned += [_still(segment) for segment in group]
            continue
        laws = _laws(robot, group, pieces, limits)
        moves, spent = _figures(robot, group, pieces, laws)
        planned += moves
        times.append(now + np.cumsum(spent))
        angles.append(np.vstack([piece.q[1:] for piece in pieces]))
        now += float(spent.sum()) + limits.settling
        settling += limits.settling
    pauses = sum(event.seconds for event in events if isinstance(event, Pause))
    return Plan(tuple(planned), pauses, settling, np.concatenate(times), np.vstack(angles))


# ---------------------------------------------------------------------------------------------- geometry


def _groups(segments: Sequence[Segment], events: Sequence[Move | Pause]) -> list[list[Segment]]:
    """Return the segments between two stops; a pause stops the arm, too."""
    groups: list[list[Segment]] = [[]]
    rest = list(segments)
    for event in events:
        if isinstance(event, Pause):
            if groups[-1]:
                groups.append([])
            continue
        if not rest:
            break
        groups[-1].append(rest.pop(0))
        if event.stops:
            groups.append([])
    return [group for group in groups if group]


def _zone(segment: Segment) -> float:
    """Return the radius of the zone at the end of a segment, in the measure of its length, in [m]."""
    zone = segment.move.zone.values
    return LEVER * np.radians(zone[4]) if segment.turns else 1e-3 * zone[1]


def _pieces(group: Sequence[Segment]) -> list[Piece]:
    """Return the path of a group: what remains of its segments, and the corners between them."""
    moving = [(k, segment) for k, segment in enumerate(group) if segment.length > 1e-9]
    cuts = np.zeros(len(moving) + 1)  # radius of the corner before each segment
    for i in range(len(moving) - 1):
        (_, one), (_, next_) = moving[i], moving[i + 1]
        cuts[i + 1] = min(_zone(one), one.length / 2, next_.length / 2)
    pieces: list[Piece] = []
    splines = [CubicSpline(np.linspace(0, segment.length, len(segment.q)), segment.q) for _, segment in moving]
    for i, (k, segment) in enumerate(moving):
        first, last = cuts[i], segment.length - cuts[i + 1]
        if cuts[i] > 0:
            pieces.append(_corner(splines[i - 1], moving[i - 1][1].length - cuts[i], splines[i], cuts[i], k))
        if last - first > 1e-12:
            s = _grid(first, last, len(segment.q), i == 0, i == len(moving) - 1)
            q, dq, ddq = (splines[i](s, order) for order in (0, 1, 2))
            pieces.append(Piece(k, np.diff(s), q, dq, ddq))
    return pieces


def _grid(first: float, last: float, count: int, begins: bool, ends: bool) -> Floats:
    """Return points of a path in [m]; near a stop, where the acceleration changes at once, they are denser."""
    even = np.linspace(first, last, count)
    near = 0.25 ** np.arange(6, 0, -1) * (even[1] - even[0])
    dense = [first + near] * begins + [last - near] * ends
    return np.unique(np.concatenate([even, *dense]))


def _corner(before: CubicSpline, leave: float, after: CubicSpline, enter: float, segment: int) -> Piece:
    """Return a cubic from one path to the next, with their tangents at its ends."""
    width = 2.0 * enter
    ends = np.vstack([before(leave), after(enter)])
    slopes = np.vstack([before(leave, 1), after(enter, 1)])
    w = np.linspace(0.0, 1.0, CORNER_POINTS)[:, None]
    chord = (ends[1] - ends[0]) / width
    b = 3 * chord - 2 * slopes[0] - slopes[1]
    c = slopes[0] + slopes[1] - 2 * chord
    q = ends[0] + width * (slopes[0] * w + b * w**2 + c * w**3)
    dq = slopes[0] + 2 * b * w + 3 * c * w**2
    ddq = (2 * b + 6 * c * w) / width
    return Piece(segment, np.full(CORNER_POINTS - 1, width / (CORNER_POINTS - 1)), q, dq, ddq)


# ------------------------------------------------------------------------------------------- time laws


class _Law(NamedTuple):
    """Time law of a group: x at the nodes, and the torques (M, 2, 6) at the ends of the M intervals."""

    x: Floats
    torque: Floats
    limit: Floats


class _Laws(NamedTuple):
    """Time laws of a group: by speeds alone, at the limits, and estimated."""

    by_speed: Floats
    bound: _Law
    estimate: _Law


def _ends(values: Sequence[Floats]) -> Floats:
    """Return values at the points of pieces as (M, 2, ...) values at both ends of the intervals."""
    return np.concatenate([np.stack([one[:-1], one[1:]], axis=1) for one in values])


def _laws(robot: Robot, group: Sequence[Segment], pieces: Sequence[Piece], limits: Limits) -> _Laws:
    width = np.concatenate([piece.width for piece in pieces])
    dq = _ends([piece.dq for piece in pieces])
    by_ends = np.minimum(
        _speed_limits(robot, group, pieces),
        np.min((SPEED_SHARE * robot.qd_max / np.maximum(np.abs(dq), 1e-12)) ** 2, axis=-1),
    )
    x_max = np.full(len(width) + 1, np.inf)
    x_max[:-1] = by_ends[:, 0]
    x_max[1:] = np.minimum(x_max[1:], by_ends[:, 1])
    x_max = np.minimum(x_max, 1e12)
    bound = _solved(robot, group, pieces, width, x_max, limits._replace(share=1.0))
    estimate = bound
    shares = {segment.move.settings.acceleration for segment in group}
    if limits.share != 1.0 or shares != {1.0}:
        estimate = _solved(robot, group, pieces, width, x_max, limits, with_settings=True)
    return _Laws(x_max, bound, estimate)


def _speed_limits(robot: Robot, group: Sequence[Segment], pieces: Sequence[Piece]) -> Floats:
    """Return the largest x (M, 2) by the speeds of the tool."""
    found: list[Floats] = [np.empty(0)] * len(pieces)
    for tool, same in _alike(pieces, lambda piece: group[piece.segment].move.tool):
        q, dq = (np.vstack([getattr(pieces[k], name) for k in same]) for name in ("q", "dq"))
        twist = (jacobian(robot, q, tool_frame(tool)) @ dq[..., None])[..., 0]
        v, omega = np.linalg.norm(twist[:, :3], axis=1), np.linalg.norm(twist[:, 3:], axis=1)
        moves = [group[pieces[k].segment].move for k in same]
        speeds = [(1e9, 1e9) if move.duration is not None else move.speed for move in moves]
        counts = [len(pieces[k].q) for k in same]
        allowed, turning = np.repeat(np.array(speeds) * [1e-3, np.pi / 180], counts, axis=0).T
        x = np.minimum(allowed / np.maximum(v, 1e-12), turning / np.maximum(omega, 1e-12)) ** 2
        for k, part in zip(same, np.split(x, np.cumsum(counts)[:-1]), strict=True):
            found[k] = part
    return _ends(found)


def _alike(pieces: Sequence[Piece], key: Callable[[Piece], Any]) -> list[tuple[Any, list[int]]]:
    """Return the values of `key` and, for each, the indices of the pieces that have it."""
    values: list[tuple[Any, list[int]]] = []
    for k, piece in enumerate(pieces):
        value = key(piece)
        for known, same in values:
            if known is value or known == value:
                same.append(k)
                break
        else:
            values.append((value, [k]))
    return values


def _solved(
    robot: Robot,
    group: Sequence[Segment],
    pieces: Sequence[Piece],
    width: Floats,
    x_max: Floats,
    limits: Limits,
    *,
    with_settings: bool = False,
) -> _Law:
    """Return the fastest law within torques, or within accelerations."""
    moves = [group[piece.segment].move for piece in pieces]
    share = np.array([limits.share * (one.settings.acceleration if with_settings else 1.0) for one in moves])
    per_interval = np.repeat(share, [len(piece.width) for piece in pieces])[:, None, None]
    x = np.zeros(len(width) + 1)
    dq = _ends([piece.dq for piece in pieces])
    if limits.accelerations is not None:
        a, b = dq, _ends([piece.ddq for piece in pieces])
        top = np.broadcast_to(per_interval * limits.accelerations, a.shape)
        fault = fastest(width, a, b, -top.copy(), top.copy(), x_max, x)
        assert fault < 0  # rest keeps every limit
        nothing = np.full(a.shape, np.nan)
        return _Law(x, nothing, nothing)
    a, b, g = (_ends(part) for part in _coefficients(robot, group, pieces))
    drives = robot.active_drives
    motors = MotorLimits.of(drives, robot.tau_max)
    x[:] = np.minimum(x_max, 1.0)
    for _ in range(PASSES):
        speeds = dq * np.sqrt(np.stack([x[:-1], x[1:]], axis=1))[..., None]
        friction = _friction(robot, dq, speeds)
        held = motor_side(motors.coupling, 1, g + friction)
        motor_speed = motor_side(motors.coupling, 0, speeds)
        up = available_torque(motors, np.ones_like(held), motor_speed) * np.ones_like(held)
        down = available_torque(motors, -np.ones_like(held), motor_speed) * np.ones_like(held)
        low, high = per_interval * (-down - held), per_interval * (up - held)
        a_m, b_m = motor_side(motors.coupling, 1, a), motor_side(motors.coupling, 1, b)
        fault = fastest(width, a_m, b_m, low, high, x_max, x)
        if fault >= 0:
            joint = int(np.argmax(np.max(np.abs(held[fault]) / np.maximum(up[fault], 1e-9), axis=0)))
            move = moves[int(np.searchsorted(np.cumsum([len(p.width) for p in pieces]), fault, side="right"))]
            raise RapidError(
                f"{move.name}: {robot.joint_names[joint]} needs {np.abs(held[fault][:, joint]).max():.4g} N m at "
                f"rest, its drive gives {up[fault][:, joint].min():.4g} N m",
                "time",
                move.file,
                move.line,
            )
    u = np.diff(x) / (2.0 * width)
    torque = a_m * u[:, None, None] + b_m * np.stack([x[:-1], x[1:]], axis=1)[..., None] + held
    return _Law(x, torque, np.where(torque > 0, up, down))


def _coefficients(robot: Robot, group: Sequence[Segment], pieces: Sequence[Piece]) -> tuple[list[Floats], ...]:
    """Return torques per u and per x, and those of gravity, at the points of the pieces; rotors included."""
    found: tuple[list[Floats], ...] = tuple([np.empty(0)] * len(pieces) for _ in range(3))
    drives = robot.active_drives

    def load(piece: Piece) -> tuple[Record, Record]:
        move = group[piece.segment].move
        return move.tool, move.settings.load

    for (tool, grip), same in _alike(pieces, load):
        loaded = _loaded(robot, tool, grip)
        q, dq, ddq = (np.vstack([getattr(pieces[k], name) for k in same]) for name in ("q", "dq", "ddq"))
        g = gravity_torque(loaded, q)
        a = inverse_dynamics(loaded, q, np.zeros_like(q), dq) - g
        b = inverse_dynamics(loaded, q, dq, ddq) - g
        if drives is not None:
            a, b = a + dq @ drives.reflected_inertia.T, b + ddq @ drives.reflected_inertia.T
        ends = np.cumsum([len(pieces[k].q) for k in same])[:-1]
        for values, all_values in zip(found, (a, b, g), strict=True):
            for k, part in zip(same, np.split(all_values, ends), strict=True):
                values[k] = part
    return found


def _friction(robot: Robot, dq: Floats, speeds: Floats) -> Floats:
    """Return the friction torque at the ends of the intervals; at rest that of the beginning motion."""
    drives = robot.active_drives
    if drives is None:
        return np.zeros_like(speeds)
    R = drives.friction_matrix
    direction, fast = np.sign(np.round(dq @ R.T, 12)), speeds @ R.T
    return (drives.coulomb * direction + drives.viscous * fast) @ R


def _loaded(robot: Robot, tool: Record, grip: Record) -> Robot:
    """Return the robot with the load of its tool and that in its gripper."""
    loads = [(tool.values[2], np.eye(4)), (grip, tool_frame(tool))]
    mass, moment, inertia = 0.0, np.zeros(3), np.zeros((3, 3))
    for load, frame in loads:
        m = load.values[0]
        if m <= 0.001:  # load0: no load
            continue
        T = frame @ matrix(load.values[1], load.values[2])
        p, R = T[:3, 3], T[:3, :3]
        mass, moment = mass + m, moment + m * p
        inertia += R @ np.diag(load.values[3:6]) @ R.T + m * (p @ p * np.eye(3) - np.outer(p, p))
    if mass == 0.0:
        return robot
    com = moment / mass
    about = inertia - mass * (com @ com * np.eye(3) - np.outer(com, com))
    return robot.with_payload(Payload(mass, com, np.round(0.5 * (about + about.T), 12)))


# --------------------------------------------------------------------------------------------- figures


def _still(segment: Segment) -> PlannedMove:
    """Return the figures of a move that goes nowhere."""
    return PlannedMove(segment.move, 0.0, 0.0, 0.0, 0.0, (0.0, 0), (0.0, 0), "")


def _figures(
    robot: Robot, group: Sequence[Segment], pieces: Sequence[Piece], laws: _Laws
) -> tuple[list[PlannedMove], Floats]:
    """Return the figures of the moves of a group, and the estimated durations of the intervals (M,)."""
    width = np.concatenate([piece.width for piece in pieces])
    with np.errstate(divide="ignore"):
        by_speed = 0.5 * width * (1 / np.sqrt(laws.by_speed[:-1]) + 1 / np.sqrt(laws.by_speed[1:]))
    bound = interval_times(width, laws.bound.x)
    times = interval_times(width, laws.estimate.x)
    # A corner is a piece before its segment: its first half belongs to the move before.
    owner = np.concatenate([_owners(piece, pieces[k - 1] if k else None) for k, piece in enumerate(pieces)])
    dq = _ends([piece.dq for piece in pieces])
    q = _ends([piece.q for piece in pieces])
    x = laws.estimate.x
    speed_share = np.abs(dq) * np.sqrt(np.stack([x[:-1], x[1:]], axis=1))[..., None] / robot.qd_max
    torque_share = np.abs(laws.estimate.torque) / laws.estimate.limit
    near = np.abs(singular_distances(robot, q.reshape(-1, 6), np.zeros((2 * len(q), 6)))[0]) if robot.dh else None
    moves = []
    begins = np.searchsorted(owner, np.arange(len(group) + 1))
    for k, segment in enumerate(group):
        mine = slice(begins[k], begins[k + 1])
        if mine.start == mine.stop:
            moves.append(_still(segment))
            continue
        time = float(times[mine].sum())
        if (wanted := segment.move.duration) is not None:
            if wanted < bound[mine].sum() - 1e-3:
                raise RapidError(
                    f"{segment.move.name} \\T:={wanted:g}: expected at least {bound[mine].sum():.3f} s",
                    "time",
                    segment.move.file,
                    segment.move.line,
                )
            times[mine] *= wanted / time
            time = wanted
        moves.append(
            PlannedMove(
                segment.move,
                0.0 if segment.turns else 1e3 * segment.length,
                time,
                float(bound[mine].sum()),
                float(by_speed[mine].sum()),
                _largest(speed_share[mine]),
                _largest(torque_share[mine]),
                "" if near is None else _nearest(near[2 * mine.start : 2 * mine.stop]),
            )
        )
    return moves, times


def _owners(piece: Piece, before: Piece | None) -> Floats:
    """Return for each interval of a piece the index of its segment."""
    count = len(piece.width)
    owners = np.full(count, piece.segment)
    if count == CORNER_POINTS - 1 and before is not None and before.segment < piece.segment:
        owners[: count // 2] = before.segment
    return owners


def _largest(shares: Floats) -> tuple[float, int]:
    flat = shares.reshape(-1, shares.shape[-1])
    if np.isnan(flat).all():
        return float("nan"), 0
    joint = int(np.nanargmax(flat.max(axis=0)))
    return float(flat[:, joint].max()), joint


def _nearest(distances: Floats) -> str:
    least = distances.min(axis=0)
    kind = int(np.argmin(least))
    return f"{KINDS[kind][0]} {least[kind]:.3f}" if least[kind] < NEAR_SINGULAR else ""
