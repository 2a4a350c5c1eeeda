"""Geometry of a plan: the moves between two stops as one path, whose corners are cut within their zones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from twin.abb.rapid.recorder import Move, Pause
from twin.abb.rapid.targets import LEVER, Segment
from twin.base.arrays import Floats

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
