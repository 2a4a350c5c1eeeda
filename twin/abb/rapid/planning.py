"""Plan of a program: its path with corners, its time law, and what it asks of every joint."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from twin.abb.rapid.targets import LEVER, Move, Pause, Segment, payload_of, tool_frame
from twin.abb.rapid.values import Record
from twin.base.arrays import Floats
from twin.base.errors import PayloadWarning, RapidError
from twin.physics.kinematics.forward import jacobian
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.fastest_motion import (
    Law,
    PathMotion,
    RestError,
    Torques,
    at_points,
    both_ends,
    fastest,
    interval_times,
    largest_x,
    path_torques,
    torque_law,
)
from twin.physics.trajectories.joint_paths import KINDS, NEAR_SINGULAR, singular_distances
from twin.physics.trajectories.joint_trajectories import Sequence as MotionSequence
from twin.physics.trajectories.joint_trajectories import Trajectory, hold

CORNER_POINTS = 12


class Piece(NamedTuple):
    """Part of the path with its derivatives by the path's parameter, at N points.

    Attributes:
        segment: index of the segment.
        width: distances of the points, (N - 1,), in [m].
        q: (N, 6) joint angles in [rad].
        dq: (N, 6) first derivatives.
        ddq: (N, 6) second derivatives.
        corner: whether it is a corner from the segment before.
        at: place on the segment at which it begins, in [m].
    """

    segment: int
    width: Floats
    q: Floats
    dq: Floats
    ddq: Floats
    corner: bool = False
    at: float = 0.0


def groups_of(segments: Sequence[Segment], events: Sequence[Move | Pause]) -> list[list[Segment] | Pause]:
    """Return the segments between two stops, and the pauses; a pause stops the arm, too."""
    groups: list[list[Segment] | Pause] = []
    rest = list(segments[::-1])
    stopped = True
    for event in events:
        if isinstance(event, Pause):
            groups.append(event)
            stopped = True
            continue
        if not rest:
            break
        segment = rest.pop()
        if stopped:
            groups.append([])
        group = groups[-1]
        assert isinstance(group, list)
        group.append(segment)
        stopped = event.stops or stops(segment)
    return groups


def stops(segment: Segment) -> bool:
    """Return whether the arm stops at the end of a segment: at a stop point, or without a zone."""
    return segment.move.stops or _zone(segment) <= 0.0


def _zone(segment: Segment) -> float:
    """Return the radius of the zone at the end of a segment, in the measure of its length, in [m]."""
    zone = segment.move.zone
    return LEVER * np.radians(zone["zone_ori"]) if segment.turns else 1e-3 * zone["pzone_tcp"]


def pieces_of(group: Sequence[Segment], begin: float = 0.0) -> list[Piece]:
    """Return the path of a group: what remains of its segments, and the corners between them.

    It begins at a place on the first segment, in [m], at most in its middle.
    """
    moving = [(k, segment) for k, segment in enumerate(group) if segment.length > 1e-9]
    cuts = np.zeros(len(moving) + 1)  # radius of the corner before each segment
    for i in range(len(moving) - 1):
        (_, one), (_, next_) = moving[i], moving[i + 1]
        cuts[i + 1] = min(_zone(one), one.length / 2, next_.length / 2)
    pieces: list[Piece] = []
    splines = [
        CubicSpline(np.linspace(0, segment.length, len(segment.q)), segment.q) for _, segment in moving
    ]
    for i, (k, segment) in enumerate(moving):
        first, last = cuts[i] if i else begin, segment.length - cuts[i + 1]
        if cuts[i] > 0:
            pieces.append(_corner(splines[i - 1], moving[i - 1][1].length - cuts[i], splines[i], cuts[i], k))
        if last - first > 1e-12:
            s = _grid(first, last, splines[i].x, i == 0 and begin == 0.0, i == len(moving) - 1)
            q, dq, ddq = (splines[i](s, order) for order in (0, 1, 2))
            pieces.append(Piece(k, np.diff(s), q, dq, ddq, at=float(first)))
    return pieces


def _grid(first: float, last: float, knots: Floats, begins: bool, ends: bool) -> Floats:
    """Return points of a path in [m]: the spline's knots, and denser ones where the arm starts or stops.

    There the acceleration changes at once.
    """
    step = min(knots[1], last - first)
    inner = knots[(knots > first + 1e-3 * step) & (knots < last - 1e-3 * step)]
    even = np.concatenate([[first], inner, [last]])
    near = 0.25 ** np.arange(6, 0, -1) * step
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
    return Piece(segment, np.full(CORNER_POINTS - 1, width / (CORNER_POINTS - 1)), q, dq, ddq, corner=True)


TIME_TOLERANCE = 1e-4
"""Largest relative error of a programmed time (`\\T`)."""

TIMED_PASSES = 30
"""Largest number of solutions for programmed times."""


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


class Begin(NamedTuple):
    """Beginning of a path in motion: the place on its first segment in [m], and x there."""

    at: float = 0.0
    x: float = 0.0


REST = Begin()


class LargestShare(NamedTuple):
    """Largest share of a limit that a joint uses, and the index of the joint."""

    share: float
    joint: int


NONE = LargestShare(0.0, 0)


@dataclass(frozen=True, eq=False)
class PlannedMove:
    """Figures of a move: from the middle of its first corner to the middle of its last; 0 if it goes nowhere.

    Attributes:
        move: the instruction.
        length: length of the tool's path in [mm].
        time: estimated duration in [s].
        bound: duration at the limits in [s]; NaN if no torque limit of a joint is known.
        by_speed: duration by speeds alone in [s].
        joint_speed: largest share of a joint's speed limit.
        torque: largest share of a joint's torque limit; NaN for a robot without masses, and if no torque
            limit of a joint is known.
        singular: name and distance of the nearest singularity, "" if it is far.
    """

    move: Move
    length: float = 0.0
    time: float = 0.0
    bound: float = 0.0
    by_speed: float = 0.0
    joint_speed: LargestShare = NONE
    torque: LargestShare = NONE
    singular: str = ""


@dataclass(frozen=True, eq=False)
class Plan:
    """Plan of a program.

    Attributes:
        moves: the planned moves.
        starts: times in the motion at which the moves begin, in [s].
        waits: waits of the program, each with the time at which it begins, in [s].
        pauses: sum of the waits in [s].
        motion: estimated motion with its waits and rests, a `Trajectory`.
    """

    moves: tuple[PlannedMove, ...]
    starts: tuple[float, ...]
    waits: tuple[tuple[float, Pause], ...]
    pauses: float
    motion: MotionSequence

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
        return self.motion.duration


def plan(
    robot: Robot, segments: Sequence[Segment], events: Sequence[Move | Pause], limits: Limits | None = None
) -> Plan:
    """Return the plan of moves.

    Args:
        robot: the arm; its payload is replaced by tool and grip load of each move.
        segments: paths of the moves, in order.
        events: moves and pauses, in order; further moves than segments are left out.
        limits: share, settling and accelerations.

    Example:
        >>> robot = twin.load("irb140")
        >>> module = twin.rapid.export(robot, [robot.poses["zero"], robot.poses["test_1"]])
        >>> program = twin.rapid.interpret(twin.rapid.parse(module), robot)
        >>> plan = twin.rapid.plan(robot, program.segments, program.events)
        >>> [round(move.joint_speed[0], 3) <= 0.995 for move in plan.moves]
        [True, True]

    Raises:
        RapidError: a move cannot keep the limits; the message states file and line.
    """
    limits = limits or Limits()
    moves: list[PlannedMove] = []
    motions: list[Trajectory] = []
    starts: list[float] = []
    waits: list[tuple[float, Pause]] = []
    pauses = now = 0.0
    at = segments[0].q[0] if segments else np.zeros(robot.n)
    for group in groups_of(segments, events):
        if isinstance(group, Pause):
            waits.append((now, group))
            pauses += group.seconds
            now += group.seconds
            motions.append(hold(at, group.seconds))
            continue
        chain = plan_chain(robot, group, limits)
        moves += chain.moves
        starts += (now + chain.starts).tolist()
        if chain.motion is None:
            continue
        now += sum(one.time for one in chain.moves) + limits.settling
        motions.append(chain.motion)
        at = chain.motion.q[-1]
        if limits.settling:
            motions.append(hold(at, limits.settling))
    motion = MotionSequence(tuple(motions) or (hold(at, 0.0),))
    return Plan(tuple(moves), tuple(starts), tuple(waits), pauses, motion)


class Chain(NamedTuple):
    """Planned moves between two stops.

    Attributes:
        moves: the planned moves.
        motion: their motion, None if they go nowhere.
        straight: pairs of the index of a move and the interval of the motion at which its path begins behind
            a corner.
        at: places on the segments of these moves, in [m].
    """

    moves: list[PlannedMove]
    motion: PathMotion | None
    straight: list[tuple[int, int]]
    at: list[float]

    @property
    def starts(self) -> Floats:
        """Times at which the moves begin, in [s]."""
        return np.cumsum([0.0, *(one.time for one in self.moves[:-1])])


def plan_chain(robot: Robot, group: Sequence[Segment], limits: Limits, begin: Begin = REST) -> Chain:
    """Return the plan of moves between two stops, or of their rest from a place on the first one.

    Raises:
        RapidError: a move cannot keep the limits; the message states file and line.
    """
    pieces = pieces_of(group, begin.at)
    if not pieces:
        return Chain([PlannedMove(segment.move) for segment in group], None, [], [])
    laws = _laws(robot, group, pieces, limits, begin.x)
    q = np.vstack([pieces[0].q[:1], *(piece.q[1:] for piece in pieces)])
    dq = np.vstack([pieces[0].dq[:1], *(piece.dq[1:] for piece in pieces)])
    first = np.cumsum([0, *(len(piece.width) for piece in pieces)])
    straight = [(piece.segment, int(k)) for piece, k in zip(pieces, first, strict=False) if not piece.corner]
    return Chain(
        _figures(robot, group, pieces, laws), PathMotion(laws.width, laws.estimate.x, q, dq), straight,
        [piece.at for piece in pieces if not piece.corner],
    )  # fmt: skip


# ------------------------------------------------------------------------------------------- time laws


def _ends(values: Sequence[Floats]) -> Floats:
    """Return values at the points of pieces as (M, 2, ...) values at both ends of the intervals."""
    return np.concatenate([both_ends(one) for one in values])


class _Laws(NamedTuple):
    """Time laws of a group: x by speeds alone, at the limits, and estimated, with the intervals' lengths."""

    width: Floats
    by_speed: Floats
    bound: Law
    estimate: Law


def _laws(
    robot: Robot, group: Sequence[Segment], pieces: Sequence[Piece], limits: Limits, x_begin: float
) -> _Laws:
    """Return the time laws of a group, from x at its beginning."""
    width = np.concatenate([piece.width for piece in pieces])
    dq = _ends([piece.dq for piece in pieces])
    by_ends = np.minimum(_speed_limits(robot, group, pieces), largest_x(robot, dq))
    x_max = np.minimum(at_points(by_ends), 1e12)
    if limits.accelerations is None:
        torques = _torques(robot, group, pieces)

    def solved(share: float, x_max: Floats, *, settings: bool) -> Law:
        moves = [group[piece.segment].move for piece in pieces]
        shares = [share * (move.settings.acceleration if settings else 1.0) for move in moves]
        used = np.repeat(shares, [len(piece.width) for piece in pieces])
        if limits.accelerations is not None:
            top = used[:, None, None] * np.broadcast_to(limits.accelerations, dq.shape)
            x, none = np.zeros(len(x_max)), np.full(dq.shape, np.nan)
            ddq = _ends([piece.ddq for piece in pieces])
            blocked = fastest(width, dq, ddq, -top, top, x_max, x, x_begin)
            assert blocked < 0  # rest keeps every limit
            return Law(x, none, none)
        try:
            return torque_law(robot, width, dq, torques, used, x_max, x_begin)
        except RestError as error:
            starts = np.cumsum([len(piece.width) for piece in pieces])
            move = moves[int(np.searchsorted(starts, error.interval, side="right"))]
            raise RapidError(f"{move.name}: {error}", "time", move.file, move.line) from None

    bound = solved(1.0, x_max, settings=False)
    estimate = bound
    if limits.share != 1.0 or any(segment.move.settings.acceleration != 1.0 for segment in group):
        estimate = solved(limits.share, x_max, settings=True)
    laws = _Laws(width, x_max, bound, estimate)
    if any(segment.move.duration is not None for segment in group):
        laws = _timed(group, pieces, laws, lambda x_max: solved(limits.share, x_max, settings=True))
    return laws


def _timed(
    group: Sequence[Segment], pieces: Sequence[Piece], laws: _Laws, solved: Callable[[Floats], Law]
) -> _Laws:
    r"""Return laws whose estimate keeps the programmed times (`\T`): their moves get a largest speed."""
    owner = _owners(pieces)
    caps = np.full(len(laws.width), np.inf)
    for _ in range(TIMED_PASSES):
        times = interval_times(laws.width, laws.estimate.x)
        worst = 0.0
        for k, segment in enumerate(group):
            mine, wanted = owner == k, segment.move.duration
            if wanted is None or not mine.any():
                continue
            least = interval_times(laws.width, laws.bound.x)[mine].sum()
            if wanted < least * (1.0 - TIME_TOLERANCE):
                move, sentence = segment.move, f"\\T:={wanted:g}: expected at least {least:.3f} s"
                raise RapidError(f"{move.name} {sentence}", "time", move.file, move.line)
            ratio = times[mine].sum() / wanted
            fastest_now = both_ends(laws.estimate.x)[mine].max()
            caps[mine] = ratio**2 * np.minimum(caps[mine], fastest_now)
            worst = max(worst, abs(ratio - 1.0))
        if worst <= TIME_TOLERANCE:
            break
        x_max = np.minimum(laws.by_speed, at_points(np.stack([caps, caps], axis=1)))
        laws = laws._replace(estimate=solved(x_max))
    return laws


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


def _torques(robot: Robot, group: Sequence[Segment], pieces: Sequence[Piece]) -> Torques:
    """Return the torques at both ends of the intervals, with the load of each move."""
    found: list[Any] = [None] * len(pieces)

    def load(piece: Piece) -> tuple[Record, Record]:
        move = group[piece.segment].move
        return move.tool, move.settings.load

    for (tool, grip), same in _alike(pieces, load):
        q, dq, ddq = (np.vstack([getattr(pieces[k], name) for k in same]) for name in ("q", "dq", "ddq"))
        payload = payload_of(tool, grip)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PayloadWarning)  # the program's notes say it, line by line
            loaded = robot if payload is None else robot.with_payload(payload)
        torques = path_torques(loaded, q, dq, ddq)
        ends = np.cumsum([len(pieces[k].q) for k in same])[:-1]
        for k, *parts in zip(same, *(np.split(one, ends) for one in torques), strict=True):
            found[k] = parts
    return Torques(*(_ends(parts) for parts in zip(*found, strict=True)))


# --------------------------------------------------------------------------------------------- figures


def _figures(
    robot: Robot, group: Sequence[Segment], pieces: Sequence[Piece], laws: _Laws
) -> list[PlannedMove]:
    """Return the figures of the moves of a group."""
    width = laws.width
    with np.errstate(divide="ignore"):
        by_speed = 0.5 * width * (1 / np.sqrt(laws.by_speed[:-1]) + 1 / np.sqrt(laws.by_speed[1:]))
    bound = interval_times(width, laws.bound.x)
    judged = np.isfinite(laws.bound.limit).all()
    bound = bound if judged or np.isnan(laws.bound.limit).all() else np.full_like(bound, np.nan)
    times = interval_times(width, laws.estimate.x)
    owner = _owners(pieces)
    q, dq = _ends([piece.q for piece in pieces]), _ends([piece.dq for piece in pieces])
    speed_share = np.abs(dq) * np.sqrt(both_ends(laws.estimate.x))[..., None] / robot.qd_max
    torque_share = np.abs(laws.estimate.torque) / (laws.estimate.limit if judged else np.nan)
    near = None
    if robot.dh:
        flat = q.reshape(-1, q.shape[-1])
        near = np.abs(singular_distances(robot, flat, np.zeros_like(flat))[0])
    moves = []
    begins = np.searchsorted(owner, np.arange(len(group) + 1))
    for k, segment in enumerate(group):
        mine = slice(begins[k], begins[k + 1])
        if mine.start == mine.stop:
            moves.append(PlannedMove(segment.move))
            continue
        moves.append(PlannedMove(
            segment.move, 0.0 if segment.turns else 1e3 * segment.length, float(times[mine].sum()),
            float(bound[mine].sum()), float(by_speed[mine].sum()), _largest(speed_share[mine]),
            _largest(torque_share[mine]),
            "" if near is None else _nearest(near[2 * mine.start : 2 * mine.stop]),
        ))  # fmt: skip
    return moves


def _owners(pieces: Sequence[Piece]) -> Floats:
    """Return the index of the segment of each interval; a corner belongs half to the segment before."""
    owners = []
    for k, piece in enumerate(pieces):
        mine = np.full(len(piece.width), piece.segment)
        if piece.corner:
            mine[: len(mine) // 2] = pieces[k - 1].segment if k else piece.segment
        owners.append(mine)
    return np.concatenate(owners)


def _largest(shares: Floats) -> LargestShare:
    flat = shares.reshape(-1, shares.shape[-1])
    if np.isnan(flat).all():
        return LargestShare(float("nan"), 0)
    joint = int(np.nanargmax(flat.max(axis=0)))
    return LargestShare(float(flat[:, joint].max()), joint)


def _nearest(distances: Floats) -> str:
    least = distances.min(axis=0)
    kind = int(np.argmin(least))
    return f"{KINDS[kind][0]} {least[kind]:.3f}" if least[kind] < NEAR_SINGULAR else ""
