"""Distances of an arm to its cell and to itself: at one configuration, and the nearest along a motion.

A joint that turns by dq moves a point of the arm by at most `r dq`, with r from the lengths of the chain.
Where two configurations have the distances d1 and d2 and the arm moves by at most S between them, no
configuration between them has less than (d1 + d2 - S) / 2. Intervals are halved until none can have less than
the least distance found.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twin.base.arrays import Floats
from twin.base.errors import CellError, near
from twin.data.logs.log import Log
from twin.physics.kinematics.forward import forward_kinematics, link_poses
from twin.physics.multibody.tree import body_from_parameters, inertial_parameters, transformed_parameters
from twin.physics.robot.evaluation import joint_vectors
from twin.physics.robot.robot import Payload, Robot
from twin.studies.cell.cell import (
    DEEPEST,
    Closest,
    Nearest,
    Solid,
    arm_solids,
    body_name,
    coal,
    solids_of,
    touching_links,
    triangles_of,
)

if TYPE_CHECKING:
    from twin.studies.cell.cell import Cell

TOOL = "tool"

PRECISIONS = 1e-7, 1e-6
"""Tolerances of a distance, in [m]; the second is tried where the iteration fails with the first."""


BLOCK = 64
"""Configurations whose poses are computed together."""

FAR = 1e6
"""Distance in [m] beyond which the iteration has failed."""


class Clearance:
    """Pairs of a robot's links, its tool and the objects of a cell, and their distances.

    Attributes:
        robot: the robot.
        cell: the cell.
        solids: shapes of all bodies.
        parts: masses of the objects that a gripper may hold, in [kg], by their names.
        pairs: judged pairs of names with their margins, in [m].
        reach: (n_tree,) largest path of any point of the arm per turn of each joint, in [m/rad], or per way.

    Raises:
        CellError: a rule names what is not there or is never judged, or an object's name is reserved.
    """

    def __init__(self, robot: Robot, cell: Cell) -> None:
        self.robot, self.cell = robot, cell
        self._library = coal()
        self._requests = []
        for precision in PRECISIONS:
            request = self._library.DistanceRequest()
            request.gjk_tolerance = request.epa_tolerance = precision
            request.gjk_max_iterations = request.epa_max_iterations = 1000
            self._requests.append(request)
        T_base_world = np.linalg.inv(cell.T_world_base)
        arm = arm_solids(robot)
        names = {body_name(robot, body): body for body in range(-1, robot.tree.n)}
        reserved = {*names, TOOL, "world"}
        if cell.tool is not None and cell.tool.shapes:
            names[TOOL] = robot.tree.flange_joint
            for shape in cell.tool.shapes:
                arm += solids_of(
                    shape,
                    robot.tree.flange_joint,
                    TOOL,
                    robot.tree.T_joint_flange,
                    f"{cell.file}: tool.shapes",
                )
        self.solids: list[Solid] = arm
        self.parts = {one.name: one.mass for one in cell.objects if one.mass > 0}
        for one in cell.objects:
            if one.name in reserved:
                raise CellError(
                    f"{cell.file}: objects.{one.name} has the name of a part of the robot or of the world, "
                    f"rename it: reserved are {', '.join(sorted(reserved))}"
                )
            names[one.name] = -1
            for shape in one.shapes:
                self.solids += solids_of(
                    shape, -1, one.name, T_base_world @ one.T_world_frame, f"{cell.file}: objects.{one.name}"
                )
        for rule in cell.rules:
            for name in rule.between:
                if name not in names:
                    raise CellError(
                        f"{cell.file}: pairs: there is no {name!r}{near(name, names)}; "
                        f"known are {', '.join(names)}"
                    )
        self._require_free_base()
        self._touching = touching_links(robot)
        judged = self._update()
        for rule in cell.rules:
            if rule.between not in judged and not rule.between & self.parts.keys():
                raise CellError(
                    f"{cell.file}: pairs: {' and '.join(sorted(rule.between))} are never judged, remove the "
                    "rule: they are neighbours, or parts whose distance no joint changes, or have no shapes"
                )

    def _update(self) -> set[frozenset[str]]:
        """Choose the pairs by the bodies that move the shapes; return those that are judged or may touch."""
        self.pairs: dict[tuple[str, str], float] = {}
        chosen, judged = list[tuple[int, int, float]](), set[frozenset[str]]()
        shapes: dict[str, list[int]] = {}
        for k, solid in enumerate(self.solids):
            shapes.setdefault(solid.name, []).append(k)
        for names in combinations(shapes, 2):
            a, b = (self.solids[shapes[name][0]] for name in names)
            if set(names) in self._touching or not self._judged(a, b):
                continue
            judged.add(frozenset(names))
            margin = self.cell.margin_of(*names, links=self._of_arm(a) and self._of_arm(b))
            if margin is None:
                continue
            self.pairs[names] = margin
            chosen += [(i, j, margin) for i, j in product(*(shapes[name] for name in names))]
        first, second, self._margins = np.array(chosen).reshape(-1, 3).T
        self._first, self._second = first.astype(int), second.astype(int)
        self._bodies = np.array([solid.body for solid in self.solids])
        self._T = np.array([solid.T for solid in self.solids])
        self._half = np.array([solid.half for solid in self.solids])
        self.reach = self._reach()
        return judged

    # --------------------------------------------------------------------------------------------- parts

    def attach(self, name: str, q: ArrayLike) -> None:
        """Fix a part to the flange, where it is at joint angles (n,): it is judged as the tool from then on.

        Raises:
            CellError: there is no such part.
        """
        self._fix(name, self.robot.tree.flange_joint, q)

    def detach(self, name: str, q: ArrayLike) -> None:
        """Leave a part in the cell, where it is at joint angles (n,).

        Raises:
            CellError: there is no such part.
        """
        self._fix(name, -1, q)

    def _fix(self, name: str, body: int, q: ArrayLike) -> None:
        if name not in self.parts:
            known = f"{near(name, self.parts)}; objects with a mass are {', '.join(self.parts) or 'none'}"
            raise CellError(f"{self.cell.file}: there is no part {name!r}{known}")
        T = [*link_poses(self.robot, q), np.eye(4)]
        for k, one in enumerate(self.solids):
            if one.name == name:
                place = np.linalg.inv(T[body]) @ T[one.body] @ one.T
                self.solids[k] = one._replace(body=body, T=place)
        self._update()

    def payload(self, name: str) -> Payload:
        """Return a part that is held as the payload of the arm: its mass fills its shapes evenly."""
        T_flange_joint, sums = np.linalg.inv(self.robot.tree.T_joint_flange), np.zeros(10)
        for shape, T in ((one.geometry, one.T) for one in self.solids if one.name == name):
            com, inertia = shape.computeCOM(), shape.computeMomentofInertiaRelatedToCOM()
            body = inertial_parameters(shape.computeVolume(), com, inertia)
            sums += transformed_parameters(body, T_flange_joint @ T)
        return Payload(*body_from_parameters(sums * self.parts[name] / sums[0]))

    def nearest_part(self, q: ArrayLike, T_flange_tool: Floats) -> tuple[float, str]:
        """Return the distance of the part nearest to the tool's point at joint angles (n,), and its name."""
        T_tip = forward_kinematics(self.robot, q, T_flange_tool)
        tip = Solid(-1, TOOL, self._library.Sphere(0.0), T_tip, np.zeros(3))
        each = zip(self.solids, self.poses(q), strict=True)
        return min(
            (self._between(tip, T_tip, one, T)[0], one.name) for one, T in each if one.name in self.parts
        )

    # ------------------------------------------------------------------------------------------- bodies

    def _require_free_base(self) -> None:
        """Raise `CellError` for an object inside the base, which no motion changes; touching is allowed."""
        for one in (solid for solid in self.solids if solid.body < 0 and not self._of_arm(solid)):
            for base in (solid for solid in self.solids if solid.body < 0 and self._of_arm(solid)):
                distance, _ = self._between(one, one.T, base, base.T)
                if distance < -DEEPEST:
                    raise CellError(
                        f"{self.cell.file}: objects.{one.name} is inside the base of the robot: "
                        "is its place right?"
                    )

    def _judged(self, a: Solid, b: Solid) -> bool:
        """Return whether the joints change the distance of two solids that are not neighbours.

        Neighbours are a link and the one that carries it, and two links that a closed loop joins: their
        shapes touch at the joint.
        """
        if a.body == b.body:
            return False
        if not (self._of_arm(a) and self._of_arm(b)):
            return True
        parents = self.robot.tree.parents
        carried = (a.body >= 0 and parents[a.body] == b.body) or (b.body >= 0 and parents[b.body] == a.body)
        return not carried and not any({a.body, b.body} == set(loop.joints) for loop in self.robot.loops)

    def _of_arm(self, solid: Solid) -> bool:
        """Return whether a solid is of a link, the tool, or a part that is held."""
        return solid.body >= 0 or solid.name in (TOOL, "base")

    def _reach(self) -> Floats:
        """Return the largest distance of a point of the arm from each joint, over all configurations."""
        tree = self.robot.tree
        radius = np.zeros(tree.n)
        for solid, T, half in zip(self.solids, self._T, self._half, strict=True):
            if solid.body >= 0:
                farthest = float(np.linalg.norm(T[:3, 3]) + np.linalg.norm(half))
                radius[solid.body] = max(radius[solid.body], farthest)
        straight = np.array(tree.kinds) == "prismatic"
        range_ = np.maximum(np.abs(self.robot.q_min), np.abs(self.robot.q_max))
        stroke = np.where(straight, np.abs(self.robot.embedding) @ range_, 0.0)
        reach = radius + stroke
        for joint in range(tree.n - 1, -1, -1):
            parent = tree.parents[joint]
            if parent >= 0:
                step = float(np.linalg.norm(tree.T_parent_joint[joint][:3, 3])) + stroke[joint]
                reach[parent] = max(reach[parent], step + reach[joint])
        return np.where(straight, 1.0, reach)

    # ----------------------------------------------------------------------------------- configurations

    def poses(self, q: ArrayLike) -> Floats:
        """Return the poses (..., S, 4, 4) of the shapes in the base frame at joint angles (..., n)."""
        T_links = link_poses(self.robot, q)
        base = np.broadcast_to(np.eye(4), (*T_links.shape[:-3], 1, 4, 4))
        return np.concatenate([T_links, base], axis=-3)[..., self._bodies, :, :] @ self._T

    def lower_bounds(self, poses: Floats) -> Floats:
        """Return lower bounds (..., P) of distances less their margins, from boxes around the shapes.

        `poses` (..., S, 4, 4) are those of the shapes.
        """
        half = (np.abs(poses[..., :3, :3]) @ self._half[..., None])[..., 0]
        centre = poses[..., :3, 3]
        apart = np.abs(centre[..., self._first, :] - centre[..., self._second, :])
        gap = np.maximum(apart - half[..., self._first, :] - half[..., self._second, :], 0.0)
        least = np.linalg.norm(gap, axis=-1)
        near = np.nonzero(least == 0.0)
        least[near] = self._oriented_gaps(poses, near)
        # Boxes that touch say nothing about the depth of an overlap.
        return np.where(least > 0.0, least, -np.inf) - self._margins

    def _oriented_gaps(self, poses: Floats, places: tuple[NDArray[np.intp], ...]) -> Floats:
        """Return the largest gaps (m,) of pairs along the axes of the boxes around their shapes.

        `places` are the indices (..., pair) of the pairs.
        """
        *samples, pairs = places
        first, second = self._first[pairs], self._second[pairs]
        T, U = poses[(*samples, first)], poses[(*samples, second)]
        R, S, apart = T[:, :3, :3], U[:, :3, :3], (U - T)[:, :3, 3]
        turned = np.abs(np.swapaxes(R, 1, 2) @ S)
        a, b = self._half[first], self._half[second]
        along_first = np.abs(np.einsum("mij,mi->mj", R, apart)) - a - np.einsum("mij,mj->mi", turned, b)
        along_second = np.abs(np.einsum("mij,mi->mj", S, apart)) - b - np.einsum("mij,mi->mj", turned, a)
        return np.maximum(np.maximum(along_first, along_second).max(axis=1), 0.0)

    def nearest(self, q: ArrayLike) -> Nearest | None:
        """Return the pair that is nearest to its margin at joint angles (n,); None without pairs."""
        return next(self.nearest_each(np.atleast_2d(q)))

    def nearest_each(self, q: ArrayLike) -> Iterator[Nearest | None]:
        """Yield the nearest pair at each of the joint angles (N, n); None without pairs."""
        q = np.asarray(q)
        for start in range(0, len(q), BLOCK):
            poses = self.poses(q[start : start + BLOCK])
            if len(self._margins):
                yield from map(self._nearest, poses, self.lower_bounds(poses))
            else:
                yield from [None] * len(poses)

    def _nearest(self, poses: Floats, bounds: Floats) -> Nearest:
        """Return the nearest pair for poses (S, 4, 4), with lower bounds (P,) of its distances."""
        best, found = np.inf, None
        for pair in np.argsort(bounds):
            if bounds[pair] >= best:
                break
            distance, points = self._distance(pair, poses)
            if distance - self._margins[pair] < best:
                best = distance - self._margins[pair]
                found = pair, distance, points
        assert found is not None
        return self._result(*found)

    def meshes(self, q: ArrayLike) -> list[tuple[Floats, NDArray[np.int64], str]]:
        """Return vertices in the base frame, triangles and names of the tool and the objects."""
        poses = self.poses(q)
        found = []
        for solid, T in zip(self.solids, poses, strict=True):
            if solid.name != body_name(self.robot, solid.body):
                vertices, faces = triangles_of(solid)
                found.append((vertices @ T[:3, :3].T + T[:3, 3], faces, solid.name))
        return found

    def all_pairs(self, q: ArrayLike) -> list[Nearest]:
        """Return the nearest shapes of every pair of names at joint angles (n,), nearest first."""
        (angles,) = joint_vectors(self.robot, q=q)
        poses = self.poses(angles)
        found: dict[tuple[str, str], Nearest] = {}
        for pair in range(len(self._margins)):
            one = self._result(pair, *self._distance(pair, poses))
            if one.pair not in found or one.distance < found[one.pair].distance:
                found[one.pair] = one
        return sorted(found.values(), key=lambda one: one.distance)

    def _result(self, pair: int, distance: float, points: Floats) -> Nearest:
        names = self.solids[self._first[pair]].name, self.solids[self._second[pair]].name
        return Nearest(distance, float(self._margins[pair]), names, points)

    def _distance(self, pair: int, poses: Floats) -> tuple[float, Floats]:
        """Return the signed distance of the shapes of a pair, in [m], and their nearest points (2, 3)."""
        i, j = int(self._first[pair]), int(self._second[pair])
        return self._between(self.solids[i], poses[i], self.solids[j], poses[j])

    def _between(self, a: Solid, T_a: Floats, b: Solid, T_b: Floats) -> tuple[float, Floats]:
        """Return the signed distance of two shapes at their poses, and their nearest points."""
        places = [self._library.Transform3s(T[:3, :3].copy(), T[:3, 3].copy()) for T in (T_a, T_b)]
        for request in self._requests:
            result = self._library.DistanceResult()
            distance = self._library.distance(a.geometry, places[0], b.geometry, places[1], request, result)
            if abs(distance) < FAR:
                points = np.array([result.getNearestPoint1(), result.getNearestPoint2()])
                return float(distance), points
        raise CellError(f"the distance of {a.name} and {b.name} cannot be computed")


class Gripper:
    """Gripper that takes the part of a cell that is nearest to the tool's point when it closes.

    Attributes:
        clearance: the parts, and their distances.
        signal: name of the output that closes it, "" if a program's load does.
        is_closed: whether it is closed.
        held: name of the part that it holds, "" without one.

    Args:
        clearance: the parts, and their distances.
        signal: name of the output that closes it, "" if a program's load does.
        within: largest distance of a part from the tool's point from which it takes it, in [m].
    """

    def __init__(self, clearance: Clearance, signal: str = "", within: float = 0.05) -> None:
        self.clearance, self.signal, self._within = clearance, signal, within
        self.is_closed, self.held = False, ""

    @property
    def payload(self) -> Payload | None:
        """The part that it holds, as the payload of the arm."""
        return self.clearance.payload(self.held) if self.held else None

    def switch(self, closes: bool, q: ArrayLike, T_flange_tool: Floats) -> str:
        """Close or open at joint angles (n,); return a sentence on what changed, "" if nothing did."""
        if closes == self.is_closed:
            return ""
        self.is_closed, self.held, held = closes, "", self.held
        if closes:
            distance, name = self.clearance.nearest_part(q, T_flange_tool)
            if not distance <= self._within:
                return f"gripper: no part within {1e3 * self._within:g} mm, {name} at {1e3 * distance:.0f} mm"
            self.clearance.attach(name, q)
            self.held = name
            return f"gripper: holds {name}"
        if held:
            self.clearance.detach(held, q)
        return f"gripper: leaves {held}" if held else ""


PRECISION, SHARE = 1e-4, 0.01
"""Precision of the least distance between the samples: in [m], or as a share of it if that is larger."""

STRIDE = 64
"""Samples between the configurations that are looked at first."""

BATCH = 64
"""Intervals that are halved together, which is faster than one by one although more of them are halved."""


def least_distance(cell: Cell, log: Log) -> Closest:
    """Return the nearest approach of a recorded motion.

    Between samples of a log with one engine step per control period, the joints turn evenly. Otherwise the
    samples are thinned: the bound assumes no joint faster than its limit, and the result is not proven.

    Example:
        >>> from scenarios.gravity_hold import GravityHold
        >>> log = GravityHold(duration=0.1).run().log
        >>> cell = twin.Cell.empty(margin=0.01)
        >>> twin.cell.least_distance(cell, log).proven
        True

    Raises:
        CellError: the cell does not fit the robot, or has no pair to judge.
    """
    q = log.q[np.isfinite(log.q).all(axis=1).cumprod().astype(bool)]
    if not len(q):
        raise CellError("the log has no finite joint angles")
    clearance = Clearance(log.robot, cell)
    known = log.steps_per_period == 1
    slack = np.zeros(clearance.robot.tree.n)
    if not known:
        slack = np.abs(log.robot.embedding) @ log.robot.qd_max * log.time_step * log.steps_per_period
    found = closest(clearance, log.t[: len(q)], q, slack, refine=known)
    return found if len(q) == len(log.t) else replace(found, lost_at=float(log.t[len(q)]))


def closest(clearance: Clearance, t: Floats, q: Floats, slack: Floats, *, refine: bool = True) -> Closest:
    """Return the nearest approach along joint angles.

    Args:
        clearance: distances of the robot in its cell.
        t: (N,) times, in [s].
        q: (N, n) joint angles, in [rad].
        slack: (n_tree,) largest additional turn of the joints between two samples, in [rad].
        refine: whether the joints turn evenly between samples, up to the slack. With slack, the time of an
            approach between two samples is approximate; the bound is not.
    """
    q_tree = clearance.robot.tree_positions(q)
    steps = np.abs(np.diff(q_tree, axis=0))
    steps = steps + slack if refine else np.maximum(steps, slack)
    path = np.concatenate([[0.0], np.cumsum(steps @ clearance.reach)])
    N = len(q)
    seen: dict[float, Nearest] = {}

    def look_at(places: list[float]) -> None:
        s = np.array(places)
        k = s.astype(int)
        after = np.minimum(k + 1, N - 1)
        each = clearance.nearest_each(q[k] + (s - k)[:, None] * (q[after] - q[k]))
        for place, found in zip(places, each, strict=True):
            if found is None:
                raise CellError(f"{clearance.cell.file}: there is no pair to judge")
            seen[place] = found

    starts = sorted({*range(0, N, STRIDE), N - 1})
    look_at(list(map(float, starts)))
    at = min(seen, key=lambda s: seen[s].clearance)
    best = seen[at]

    def path_to(s: float) -> float:
        k = min(int(s), N - 1)
        return float(path[k] + (s - k) * (path[min(k + 1, N - 1)] - path[k]))

    def lower(a: float, b: float) -> float:
        return 0.5 * (seen[a].clearance + seen[b].clearance - (path_to(b) - path_to(a)))

    waiting = [(lower(a, b), a, b) for a, b in zip(map(float, starts), map(float, starts[1:]), strict=False)]
    heapq.heapify(waiting)
    bound = best.clearance
    while waiting:
        enough = best.clearance - max(PRECISION, SHARE * best.clearance)
        halved: list[tuple[float, float, float]] = []
        while waiting and waiting[0][0] < enough and len(halved) < BATCH:
            low, a, b = heapq.heappop(waiting)
            if b - a > 1.0:
                halved.append((a, float(int(0.5 * (a + b))), b))
            elif refine:
                halved.append((a, 0.5 * (a + b), b))
            else:
                bound = min(bound, low)
        if not halved:
            bound = min(bound, waiting[0][0]) if waiting else bound
            break
        look_at([middle for _, middle, _ in halved])
        for a, middle, b in halved:
            if seen[middle].clearance < best.clearance:
                best, at = seen[middle], middle
            for one in ((a, middle), (middle, b)):
                heapq.heappush(waiting, (lower(*one), *one))
    bound = min(bound, best.clearance)
    k = min(int(at), N - 2) if N > 1 else 0
    share = at - k
    after = min(k + 1, N - 1)
    return Closest(
        best,
        float(t[k] + share * (t[after] - t[k])),
        q[k] + share * (q[after] - q[k]),
        bound,
        refine,
        N,
    )
