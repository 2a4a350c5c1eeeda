"""Environment of a tool: pushes, as a person exerts them, and compliant surfaces that the tool touches.

Both are one force element: a wrench on the tool as a function of the time, the pose of the tool and its
twist.  The engine and the analytic plant get it as the argument `wrench` of `step`, evaluated at the state
before the step by the same code, so that both remain equal to rounding.  The contact solver of the engine
takes no part: its error would hide ours.

A push is a text or a file of wrenches over time; several, separated by `;`, add up:

    1.0:2.0 20,10,-30            force in [N] from 1 s to 2 s, base axes
    1.0:2.0 0,0,-30,0,0,2 tool   force, and moment in [N m], in the axes of the tool
    push.csv tool                columns t,fx,fy,fz or t,fx,fy,fz,mx,my,mz, linear between the rows

A surface bounds a solid body, in the base frame.  A ball of radius `tip` (a point by default) around the
tool's origin touches it with the depth delta and the velocity v of its deepest point:

    plane=0,0,1 at=0.5,0,0.3 stiffness=2e4 damping=100 friction=0.3     normal, and a point of the plane
    box=0.4,0.6,0.1 at=0.6,0,0.2 rpy_deg=0,0,30 stiffness=5e4           sides, centre, turns about x, y, z
    sphere=0.1 at=0.6,0,0.2 stiffness=1e4 tip=0.005                     radius, centre
    cylinder=0.05 from=0.5,-1,0.2 to=0.5,1,0.2 stiffness=1e4            radius, ends of the axis

    f = F n - friction F v_t / sqrt(v_t^2 + slip^2),   F = max(0, stiffness delta - damping n.v),

with the outward normal n and the sliding velocity v_t.  The force never pulls.  Coulomb friction is
regularised: below the speed `slip`, by default 0.01 m/s, it is viscous.

Source: spring and damper of Kelvin and Voigt, and regularised Coulomb friction, as in every textbook of
contact mechanics; the clamp at 0 is that of K. Hunt, F. Crossley, J. Applied Mechanics 42 (1975), 440-445.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, real_array
from twin.base.jit import compiled
from twin.physics.robot.evaluation import copied

if TYPE_CHECKING:
    from twin.physics.robot.robot import Robot

COMPONENTS = {"fx": "N", "fy": "N", "fz": "N", "mx": "N m", "my": "N m", "mz": "N m"}
"""Components of a wrench with their units."""
EDGE = 1e-9
"""[s]: a push begins and ends this much earlier, because the times of samples are rounded."""
SHAPES = ("plane", "sphere", "cylinder", "box")
"""Shapes of surfaces, by the number in the first column of `Environment.surfaces`."""
STIFFNESS, DAMPING, FRICTION, SLIP, TIP, AXES, ORIGIN, SIZE, COLUMNS = 1, 2, 3, 4, 5, 6, 15, 18, 21
"""Columns of `Environment.surfaces`: numbers, axes of the body by rows (9), its origin (3), its size (3)."""


@dataclass(frozen=True, eq=False)
class Environment:
    """Pushes on a tool, and surfaces that it touches.

    Attributes:
        pushes: (R, 9) number of the push, 1 for the axes of the tool or 0 for those of the base, time in [s],
            and wrench `[f; mu]` on the robot at the tool's origin, in [N, N m].  The times of a push rise;
            it is linear between its rows, and zero before its first and from its last row.
        surfaces: (S, 21) surfaces, as `surface` returns a row.
        T_flange_tool: (4, 4) pose of the tool on the flange; by default the flange itself.

    Raises:
        ValueError: the rows have another form, a number is not finite, or the tool is no pose.

    Example:
        >>> import twin
        >>> robot, q = twin.load("irb140"), [0.0] * 6  # the flange is at (0.515, 0, 0.712)
        >>> floor = twin.dynamics.surface("plane=0,0,1 at=0,0,0.714 stiffness=1e4 damping=100")
        >>> world = twin.dynamics.Environment(twin.dynamics.pushes("1:2 20,10,-30"), [floor])
        >>> world.wrench(robot, [0.9, 1.6], [q] * 2, [q] * 2)[:, :3].round(9).tolist()
        [[0.0, 0.0, 20.0], [20.0, 10.0, -10.0]]
    """

    pushes: Any = ()
    surfaces: Any = ()
    T_flange_tool: Any = field(default_factory=lambda: np.eye(4))

    def __post_init__(self) -> None:
        from twin.physics.kinematics.forward import tool_pose

        for name, columns in (("pushes", 9), ("surfaces", COLUMNS)):
            rows = copied(real_array(getattr(self, name), f"rows of {name}"))
            rows = rows.reshape(0, columns) if not rows.size else rows
            if rows.ndim != 2 or rows.shape[1] != columns:
                raise ValueError(f"expected rows (R, {columns}) of {name}, got shape {rows.shape}")
            object.__setattr__(self, name, rows)
        object.__setattr__(self, "T_flange_tool", copied(tool_pose(self.T_flange_tool)))
        if not np.all(np.isfinite(self.surfaces)):  # a depth of NaN would be no contact
            raise ValueError("expected finite numbers of surfaces")
        for number in dict.fromkeys(self.pushes[:, 0].tolist()):
            one = self.pushes[self.pushes[:, 0] == number]
            times = one[:, 2]
            if not np.all(np.isfinite(one)):
                raise ValueError(f"push {number + 1:g}: expected finite numbers")
            if len(one) < 2 or not np.all(np.diff(times) > 0):
                got = ", ".join(f"{t:g}" for t in times[:8])
                raise ValueError(f"push {number + 1:g}: expected two or more rising times in s, got {got}")

    def __bool__(self) -> bool:
        return len(self.pushes) + len(self.surfaces) > 0

    def wrench(self, robot: Robot, t: ArrayLike, q: ArrayLike, qd: ArrayLike) -> Floats:
        """Return the wrenches (..., 6) at times t (...,) and states q, qd (..., n), base axes."""
        q = np.asarray(q, dtype=np.float64)
        t, qd = np.broadcast_to(t, q.shape[:-1]), np.broadcast_to(qd, q.shape)
        found = np.empty((*q.shape[:-1], 6))
        for k in np.ndindex(t.shape):
            found[k] = self.at(robot, float(t[k]), q[k].copy(), qd[k].copy())[0]
        return found

    def at(self, robot: Robot, t: float, q: Floats, qd: Floats) -> tuple[Floats, Floats]:
        """Return the wrench (6,) at one checked state, and the pose (4, 4) of the tool, for loops."""
        T, J, V, F = np.empty((4, 4)), np.empty((6, robot.n)), np.empty(6), np.empty(6)
        robot.kernels.tool_pose(q, self.T_flange_tool, T)
        robot.kernels.jacobian(q, self.T_flange_tool, J)
        tool_twist(J, qd, V)
        touch(t, T, V, self.pushes, self.surfaces, F)
        return F, T

    def depths(self, robot: Robot, q: ArrayLike) -> tuple[Floats, Floats]:
        """Return depths (N, S) of the tool in the surfaces, negative outside, and normals (N, S, 3)."""
        from twin.physics.kinematics.forward import forward_kinematics

        p = forward_kinematics(robot, q, self.T_flange_tool)[:, :3, 3].copy()
        depth, normal = np.empty((len(p), len(self.surfaces))), np.empty((len(p), len(self.surfaces), 3))
        for k, s in np.ndindex(depth.shape):
            depth[k, s] = self.surfaces[s, TIP] - signed_distance(self.surfaces[s], p[k], normal[k, s])
        return depth, normal


@compiled
def touch(t, T, V, pushes, surfaces, F):
    """Fill the wrench F (6,) on a tool; the groups are those of an `Environment`.

    Args:
        t: time, in [s].
        T: (4, 4) pose of the tool in the base frame.
        V: (6,) twist of the tool's origin, base axes.
        pushes: (R, 9) rows.
        surfaces: (S, 21) rows.
        F: (6,) output, base axes.
    """
    for i in range(6):
        F[i] = 0.0
    for k in range(len(pushes) - 1):
        start, end = pushes[k, 2], pushes[k + 1, 2]
        if pushes[k, 0] != pushes[k + 1, 0] or t < start - EDGE or t >= end - EDGE:
            continue
        share = max((t - start) / (end - start), 0.0)
        for i in range(6):
            if pushes[k, 1] == 0.0:
                F[i] += pushes[k, 3 + i] + share * (pushes[k + 1, 3 + i] - pushes[k, 3 + i])
            else:
                half = 3 * (i // 3)
                for j in range(3):
                    one, next_one = pushes[k, 3 + half + j], pushes[k + 1, 3 + half + j]
                    F[i] += T[i - half, j] * (one + share * (next_one - one))
    p, n, v = np.empty(3), np.empty(3), np.empty(3)
    for s in range(len(surfaces)):
        for i in range(3):
            p[i] = T[i, 3]
        radius = surfaces[s, TIP]
        depth = radius - signed_distance(surfaces[s], p, n)
        if not depth > 0.0:
            continue
        for i in range(3):  # the deepest point is at -radius n
            a, b = (i + 1) % 3, (i + 2) % 3
            v[i] = V[i] - radius * (V[3 + a] * n[b] - V[3 + b] * n[a])
        across = v[0] * n[0] + v[1] * n[1] + v[2] * n[2]
        force = max(surfaces[s, STIFFNESS] * depth - surfaces[s, DAMPING] * across, 0.0)
        sliding = 0.0
        for i in range(3):
            v[i] -= across * n[i]
            sliding += v[i] * v[i]
        drag = surfaces[s, FRICTION] * force / np.sqrt(sliding + surfaces[s, SLIP] ** 2)
        for i in range(3):
            v[i] = force * n[i] - drag * v[i]
            F[i] += v[i]
        for i in range(3):
            a, b = (i + 1) % 3, (i + 2) % 3
            F[3 + i] -= radius * (n[a] * v[b] - n[b] * v[a])


@compiled
def tool_twist(J, qd, V):
    """Fill the twist V (6,) of a tool, `J qd`."""
    for i in range(6):
        V[i] = 0.0
        for j in range(len(qd)):
            V[i] += J[i, j] * qd[j]


@compiled
def joint_torque(J, F, tau):
    """Fill the joint torque (n,) of a wrench F (6,) at a tool, `J^T F`."""
    for j in range(len(tau)):
        tau[j] = 0.0
        for i in range(6):
            tau[j] += J[i, j] * F[i]


@compiled
def signed_distance(surface, p, n):
    """Return the distance of a point p (3,) from a surface, negative inside; fill the outward normal n (3,).

    A body is the set in which some excesses are negative: of a box three, `|x_i| - half side`, of a cylinder
    two, of a sphere and a plane one.  Outside, the distance is the length of their positive parts.
    """
    x, excess, along = np.empty(3), np.zeros(3), np.zeros((3, 3))
    for i in range(3):
        x[i] = 0.0
        for j in range(3):
            x[i] += surface[AXES + 3 * i + j] * (p[j] - surface[ORIGIN + j])
    shape, count = int(surface[0]), 1
    if shape == 0:
        excess[0], along[0, 2] = x[2], 1.0
    elif shape == 3:
        count = 3
        for i in range(3):
            excess[i], along[i, i] = abs(x[i]) - surface[SIZE + i], np.sign(x[i])
    else:
        flat = 3 - (shape == 2)  # the radius of a cylinder is that of its first two coordinates
        radius = 0.0
        for i in range(flat):
            radius += x[i] * x[i]
        radius = np.sqrt(radius)
        for i in range(flat):
            along[0, i] = x[i] / radius if radius > 0.0 else 0.0
        if radius == 0.0:
            along[0, flat - 1] = 1.0
        excess[0] = radius - surface[SIZE]
        if shape == 2:
            count = 2
            excess[1], along[1, 2] = abs(x[2]) - surface[SIZE + 2], np.sign(x[2])
    largest, outside = 0, 0.0
    for i in range(count):
        if excess[i] > excess[largest]:
            largest = i
        outside += max(excess[i], 0.0) ** 2
    distance = np.sqrt(outside) if outside > 0.0 else excess[largest]
    for j in range(3):
        n[j] = 0.0
        for i in range(count):
            inside = 1.0 if i == largest else 0.0
            share = max(excess[i], 0.0) / distance if outside > 0.0 else inside
            for axis in range(3):
                n[j] += share * along[i, axis] * surface[AXES + 3 * axis + j]
    return distance


def checked_wrench(wrench: ArrayLike) -> np.ndarray:
    """Return a wrench (6,) `[f; mu]`; raise `ValueError` unless it is 6 finite numbers."""
    F = real_array(wrench, "wrench")
    if F.shape != (6,) or not np.all(np.isfinite(F)):
        raise ValueError(f"expected a finite wrench of shape (6,), got {F.tolist()}")
    return F


PLACED = {"at?": 3, "rpy_deg?": 3}
BODIES: dict[str, dict[str, Any]] = {
    "plane": {"plane": 3, "at?": 3},
    "sphere": {"sphere": "number", "at?": 3},
    "cylinder": {"cylinder": "number", "from": 3, "to": 3},
    "box": {"box": 3, **PLACED},
}
CONTACT = {"stiffness": "number", "damping?": "signed", "friction?": "signed", "slip?": "number"}
"""Keys of bodies and of their contact, see `urdf.schema`."""


def surface(values: str | Mapping[str, Any], T_base: ArrayLike | None = None) -> Floats:
    """Return the row (21,) of a surface, see the module.

    Args:
        values: text of `key=value` pairs, or a table of them as in the file of a cell.
        T_base: (4, 4) frame of its coordinates in the base frame; by default that frame.

    Raises:
        ValueError: a key or a value is invalid; the message contains it and what is valid.

    Example:
        >>> import twin
        >>> twin.dynamics.surface("sphere=0.1 at=0.6,0,0.2 stiffness=1e4")[:6].tolist()
        [1.0, 10000.0, 0.0, 0.0, 0.01, 0.0]
    """
    from urdf.schema import check_table

    table = numbers_by_key(values) if isinstance(values, str) else dict(values)
    shape = next((name for name in SHAPES if name in table), None)
    if shape is None:
        raise ValueError(f"surface: expected one of the keys {', '.join(SHAPES)}, got {values!r}")
    check_table("surface", table, {**BODIES[shape], **CONTACT, "tip?": "signed"}, 0)
    size, T = np.zeros(3), placement(table)
    if shape == "box":
        size[:] = np.array(table["box"]) / 2.0
    elif shape != "plane":
        size[0] = table[shape]
    if shape == "cylinder":
        size[2] = np.linalg.norm(np.subtract(table["to"], table["from"])) / 2.0
    head = [float(table.get(key, default)) for key, default in DEFAULTS.items()]
    if not (min(head) >= 0.0 and (shape != "box" or min(size) > 0.0)):
        raise ValueError(f"surface: expected sides above 0, and no number below 0, got {values!r}")
    T = T if T_base is None else real_array(T_base, "T_base") @ T
    return np.array([float(SHAPES.index(shape)), *head, *T[:3, :3].T.ravel(), *T[:3, 3], *size])


DEFAULTS = {"stiffness": 0.0, "damping": 0.0, "friction": 0.0, "slip": 0.01, "tip": 0.0}
"""Numbers of a surface in the order of its columns, with the values of those that may be omitted."""


def placement(table: Mapping[str, Any]) -> Floats:
    """Return the pose (4, 4) of a body: its `at`, and its `rpy_deg`, turns about the fixed axes x, y, z.

    The third axis of a plane is its normal; that of a cylinder leads `from` one end `to` the other.
    """
    from scipy.spatial.transform import Rotation

    T = np.eye(4)
    T[:3, 3] = table.get("at", (0, 0, 0))
    if "from" in table:
        start, end = np.array(table["from"], dtype=float), np.array(table["to"], dtype=float)
        T[:3, :3], T[:3, 3] = axes_along(end - start), (start + end) / 2.0
    elif "plane" in table:
        T[:3, :3] = axes_along(table["plane"])
    else:
        T[:3, :3] = Rotation.from_euler("xyz", table.get("rpy_deg", (0, 0, 0)), degrees=True).as_matrix()
    return T


def axes_along(z: ArrayLike) -> Floats:
    """Return a rotation (3, 3) whose third axis is along a vector; raise `ValueError` for a zero vector."""
    z = np.array(z, dtype=np.float64)
    if not (length := float(np.linalg.norm(z))) > 0.0:
        raise ValueError("expected an axis that is not 0")
    z /= length
    x = np.asarray(np.cross(z, np.eye(3)[np.argmin(np.abs(z))]), dtype=np.float64)
    x /= np.linalg.norm(x)
    return np.array([x, np.cross(z, x), z], dtype=np.float64).T


def numbers_by_key(text: str) -> dict[str, Any]:
    """Return the number, or the numbers, of `key=number,number,...` pairs by key.

    Raises:
        ValueError: the text is invalid, or a key occurs twice.
    """
    found: dict[str, Any] = {}
    for part in text.split():
        key, _, values = part.partition("=")
        try:
            numbers = [float(number) for number in values.split(",")]
        except ValueError:
            numbers = []
        if not numbers or key in found:
            raise ValueError(f"expected pairs key=number,number,... with different keys, got {part!r}")
        found[key] = numbers if len(numbers) > 1 else numbers[0]
    return found


def pushes(text: str) -> Floats:
    """Return the rows (R, 9) of the pushes that a text describes, see the module and `Environment`.

    Args:
        text: pushes, separated by `;`.

    Raises:
        ValueError: the text is invalid, or a file cannot be read or is invalid.

    Example:
        >>> import twin
        >>> twin.dynamics.pushes("1.0:2.0 20,10,-30").tolist()
        [[0.0, 0.0, 1.0, 20.0, 10.0, -30.0, 0.0, 0.0, 0.0], [0.0, 0.0, 2.0, 20.0, 10.0, -30.0, 0.0, 0.0, 0.0]]
    """
    rows = []
    for number, part in enumerate(text.split(";")):
        one = part.strip().removesuffix(" tool").strip()
        table = _file(one) if one.lower().endswith(".csv") else _constant(one)
        if not table:
            raise ValueError(f"{one}: expected two or more rows of a push")
        rows += [[float(number), float(part.strip().endswith(" tool")), *row] for row in table]
    return Environment(np.array(rows)).pushes


def _constant(text: str) -> list[list[float]]:
    """Return the first and the last row of `start:end Fx,Fy,Fz[,Mx,My,Mz]`: time and wrench."""
    span, _, wrench = text.partition(" ")
    try:
        start, end = map(float, span.split(":"))
        return [_row([t, *wrench.split(",")], (4, 7)) for t in (start, end)]
    except ValueError:
        raise ValueError(
            "expected a push as start:end Fx,Fy,Fz or start:end Fx,Fy,Fz,Mx,My,Mz in s, N and N m, with "
            f"'tool' after it for tool axes, or as a file .csv, got {text!r}"
        ) from None


def _file(path: str) -> list[list[float]]:
    """Return the rows of a CSV file: time and wrench."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            head, *lines = [row for row in csv.reader(file) if row] or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"cannot read the push {path}: {reason}") from None
    names, known = [name.strip().lower() for name in head], ("t", *COMPONENTS)
    if tuple(names) not in (known[:4], known):
        raise ValueError(f"{path}: expected columns t,fx,fy,fz[,mx,my,mz] of a push, got {','.join(head)!r}")
    rows = []
    for number, cells in enumerate(lines, 1):
        try:
            rows.append(_row(cells, (len(names),)))
        except ValueError:
            raise ValueError(f"{path}: expected {len(names)} numbers in row {number}, got {cells}") from None
    return rows


def _row(cells: Sequence[str | float], counts: tuple[int, ...]) -> list[float]:
    """Return time and wrench, with a moment of 0 if there is none; raise `ValueError` for another count."""
    values = [float(cell) for cell in cells]
    if len(values) not in counts:
        raise ValueError
    return [*values, 0.0, 0.0, 0.0][:7]
