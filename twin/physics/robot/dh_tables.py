"""Robots made from a Denavit-Hartenberg table alone, with or without inertia.

Row i of the table, `A_i = Rz(theta) Tz(d) Tx(a) Rx(alpha)`, leads from frame i - 1 to frame i.  Joint i turns
about (or slides along) z of frame i - 1; the base is frame 0 and the flange the last frame.  Frame i moves
with link i.  Masses are expressed in it, as in laboratory manuals: the centre of mass of a link is measured
from the origin of frame i, at the link's far end, and its tensor is about that centre, in the axes of frame
i.

Source of the convention: Aliaga 2019, eq. (2.1)-(2.4); Ljubljana lab manual, eq. (1.1), (1.2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import real_array
from twin.base.errors import RobotError
from twin.physics.multibody.recursions import require_moved_mass
from twin.physics.multibody.tree import Tree, frozen, inertial_parameters, transformed_parameters
from twin.physics.robot.robot import DH, NamedPoses, Robot

KINDS = ("revolute", "prismatic")
NO_MASSES = "its DH table is known, but not the masses of its links"


class LinkBody(NamedTuple):
    """Mass properties of link i, in DH frame i.

    Attributes:
        mass: mass, in [kg].
        com: (3,) centre of mass relative to the origin of frame i, in [m].
        inertia: (3, 3) tensor about the centre of mass, in [kg m^2].

    Example:
        >>> import numpy as np
        >>> import twin
        >>> rod = twin.robot.LinkBody(3.0, com=[-0.5, 0, 0], inertia=np.diag([0, 0.25, 0.25]))
        >>> arm = twin.dh_robot("rod", twin.robot.DH([0], [0], [1], [0]), bodies=[rod])
        >>> twin.mass_matrix(arm, [0]).round(4).tolist()  # m l^2 / 3
        [[1.0]]
    """

    mass: float
    com: ArrayLike = (0.0, 0.0, 0.0)
    inertia: ArrayLike = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


def dh_robot(
    name: str,
    dh: DH,
    *,
    kinds: Sequence[str] | None = None,
    coupling: ArrayLike | None = None,
    bodies: Sequence[LinkBody | None] | None = None,
    joint_names: Sequence[str] | None = None,
    q_min: ArrayLike | None = None,
    q_max: ArrayLike | None = None,
    qd_max: ArrayLike | None = None,
    tau_max: ArrayLike | None = None,
    unphysical: bool = False,
    file: Path | None = None,
) -> Robot:
    """Return a robot made from its DH table.

    Args:
        name: name of the robot.
        dh: DH table of n rows.
        kinds: `"revolute"` or `"prismatic"` for each joint; all revolute by default.
        coupling: (n, n) matrix S of the DH angles, `theta = S q + theta0`, as of a parallelogram; by default,
            and in the row of a prismatic joint, the unit matrix.
        bodies: mass properties of each link, `None` for a massless one; without this argument the robot has
            only kinematics.
        joint_names: names of the joints, `joint_1` and so on by default.
        q_min: (n,) lower ends of the joint ranges, in [rad] or [m]; none by default.
        q_max: (n,) upper ends of the joint ranges.
        qd_max: (n,) speed limits, in [rad/s] or [m/s]; none by default.
        tau_max: (n,) torque or force limits, in [N m] or [N]; none by default.
        unphysical: accept impossible bodies, for published numbers of such bodies.
        file: file with the table.

    Raises:
        ValueError: an array has the wrong shape, or is not finite.
        RobotError: a body is impossible, a joint moves no mass, or a range is empty.

    Example:
        >>> import twin
        >>> dh = twin.robot.DH(theta0=[0, 0], d=[0, 0], a=[1, 0.5], alpha=[0, 0])
        >>> arm = twin.dh_robot("planar", dh)
        >>> twin.forward_kinematics(arm, [0, 0])[:3, 3].tolist()
        [1.5, 0.0, 0.0]
    """
    columns = [
        np.array(real_array(column, f"DH {letter}")) for letter, column in zip(DH._fields, dh, strict=True)
    ]
    n = columns[0].size
    if n < 1 or any(column.shape != (n,) or not np.all(np.isfinite(column)) for column in columns):
        raise ValueError(
            "expected a DH table of four columns of finite numbers, all of one length, got "
            + ", ".join(
                f"{letter} {column.tolist()}" for letter, column in zip(DH._fields, columns, strict=True)
            )
        )
    moves = ("revolute",) * n if kinds is None else tuple(kinds)
    names = tuple(f"joint_{i + 1}" for i in range(n)) if joint_names is None else tuple(joint_names)
    for what, count in (
        ("kinds", len(moves)),
        ("joint_names", len(names)),
        ("bodies", len(moves if bodies is None else bodies)),
    ):
        if count != n:
            raise ValueError(f"expected {n} {what}, one per row of the DH table, got {count}")
    if len(set(names)) < n or not all(names):
        raise ValueError(f"expected different, non-empty joint_names, got {', '.join(map(repr, names))}")
    for kind in moves:
        if kind not in KINDS:
            raise ValueError(f"expected joints of kind {' or '.join(KINDS)}, got {kind!r}")
    S = _coupling(coupling, moves)
    tails = [link_tail(*row) for row in zip(*columns[1:], strict=True)]
    none = frozen(np.zeros(0))
    tree = _tree(names, moves, columns[0], tails, _parameters(name, bodies, tails, unphysical))
    if bodies is not None:
        require_moved_mass(f"robot {name!r}", tree)
    low, high, speed, effort = _limits(name, names, n, q_min, q_max, qd_max, tau_max)
    return Robot(
        name=name,
        urdf=None,
        tree=tree,
        q_min=low,
        q_max=high,
        qd_max=speed,
        tau_max=effort,
        dh_coupling=frozen(np.where(np.array(moves)[:, None] == "revolute", S, 0.0)),
        embedding=S,
        embedding_offset=frozen(np.zeros(n)),
        driven=tuple(range(n)),
        passive_min=none,
        passive_max=none,
        dh=DH(*(frozen(column) for column in columns)),
        file=file,
        inertia_fault="" if bodies is not None else NO_MASSES,
    )


def _coupling(coupling: ArrayLike | None, kinds: tuple[str, ...]) -> np.ndarray:
    """Return the checked matrix S (n, n) of the joints' positions, `S q`."""
    n = len(kinds)
    S = frozen(np.eye(n) if coupling is None else real_array(coupling, "coupling"))
    if S.shape != (n, n) or not np.all(np.isfinite(S)) or not np.linalg.matrix_rank(S) == n:
        raise ValueError(f"expected a coupling of shape {(n, n)} that can be inverted, got {S.tolist()}")
    for i, kind in enumerate(kinds):
        if kind == "prismatic" and not np.array_equal(S[i], np.eye(n)[i]):
            raise ValueError(f"expected row {i + 1} of the coupling to be {np.eye(n)[i].tolist()}: it slides")
    return S


def _tree(
    names: tuple[str, ...],
    kinds: tuple[str, ...],
    theta0: np.ndarray,
    tails: list[np.ndarray],
    inertias: np.ndarray,
) -> Tree:
    """Return a chain with link frames on the joints' axes: z along the axis, x as in the next DH frame."""
    n = len(names)
    before = [np.eye(4), *tails]
    return Tree(
        names=names,
        links=tuple(f"link_{i + 1}" for i in range(n)),
        kinds=kinds,
        parents=tuple(range(-1, n - 1)),
        T_parent_joint=frozen([before[i] @ dh_turn(theta0[i]) for i in range(n)]),
        axes=frozen(np.tile((0.0, 0.0, 1.0), (n, 1))),
        inertias=frozen(inertias),
        flange_joint=n - 1,
        T_joint_flange=frozen(tails[-1]),
    )


def _parameters(
    name: str, bodies: Sequence[LinkBody | None] | None, tails: list[np.ndarray], unphysical: bool
) -> np.ndarray:
    """Return the inertial parameters (n, 10) of the links in their own frames."""
    inertias = np.zeros((len(tails), 10))
    for i, body in enumerate(bodies or ()):
        if body is None:
            continue
        where = f"link {i + 1} of robot {name!r}"
        com, inertia = (
            real_array(body.com, f"com of {where}"),
            real_array(body.inertia, f"inertia of {where}"),
        )
        if com.shape != (3,) or inertia.shape != (3, 3) or not np.all(inertia == inertia.T):
            raise ValueError(f"{where}: expected com of shape (3,) and a symmetric inertia of shape (3, 3)")
        if not (0 <= body.mass < np.inf and np.all(np.isfinite(com)) and np.all(np.isfinite(inertia))):
            raise RobotError(f"{where} has a mass below 0 kg, or a mass property that is not finite")
        if not unphysical:
            _require_possible(where, body.mass, inertia)
        inertias[i] = transformed_parameters(inertial_parameters(body.mass, com, inertia), tails[i])
    return inertias


def _require_possible(where: str, mass: float, inertia: np.ndarray) -> None:
    moments = np.linalg.eigvalsh(inertia)
    slack = 1e-6 * abs(moments[2])  # error due to rounding to six printed digits
    if mass == 0 and np.any(inertia != 0):
        raise RobotError(f"{where} has inertia but no mass; give it a mass above 0 kg")
    if not moments[2] <= moments[0] + moments[1] + slack:  # this also excludes negative moments
        raise RobotError(
            f"{where} has principal moments of inertia {', '.join(f'{m:g}' for m in moments)} kg m^2, which "
            "are impossible: expected none below 0, and none above the sum of the others"
        )


def _limits(
    name: str, names: Sequence[str], n: int, *given: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the limits, (n,) each, infinite where they are not given."""
    arrays = []
    for what, values, none in zip(
        ("q_min", "q_max", "qd_max", "tau_max"), given, (-np.inf, np.inf, np.inf, np.inf), strict=True
    ):
        array = frozen(np.full(n, none) if values is None else real_array(values, what))
        if array.shape != (n,) or np.any(np.isnan(array)):
            raise ValueError(f"expected {n} numbers for {what}, got {array.tolist()}")
        arrays.append(array)
    low, high, speed, effort = arrays
    for i, joint in enumerate(names):
        if not low[i] < high[i]:
            raise RobotError(
                f"{joint} of robot {name!r} has the range {low[i]:g} to {high[i]:g}, expected q_min < q_max"
            )
        if not (speed[i] > 0 and effort[i] > 0):
            raise RobotError(f"{joint} of robot {name!r}: expected limits of speed and effort above 0")
    return low, high, speed, effort


def dh_turn(theta: float) -> np.ndarray:
    """Return `Rz(theta)` (4, 4)."""
    c, s = _cosine_sine(theta)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=np.float64)


def link_tail(d: float, a: float, alpha: float) -> np.ndarray:
    """Return `Tz(d) Tx(a) Rx(alpha)` (4, 4), from the moved joint to the DH frame behind it."""
    c, s = _cosine_sine(alpha)
    return np.array([[1, 0, 0, a], [0, c, -s, 0], [0, s, c, d], [0, 0, 0, 1]], dtype=np.float64)


def _cosine_sine(angle: float) -> tuple[float, float]:
    """Return cosine and sine, exact at quarter turns, where an error of 6e-17 would remain in all results."""
    pair = np.cos(angle), np.sin(angle)
    c, s = (float(np.round(x)) if abs(x - np.round(x)) < 1e-15 else float(x) for x in pair)
    return c, s


def robot_of_table(path: Path, facts: Mapping[str, Any]) -> Robot:
    """Return the robot of a `dh.toml` with these facts, see `urdf/dh_facts.py`."""
    table, joints, links = facts["dh"], facts.get("joints", {}), facts.get("link", {})
    n = len(table["d"])
    bodies = [_link_body(links[str(i + 1)]) if str(i + 1) in links else None for i in range(n)]
    poses = {
        name: frozen(real_array(pose["q"], f"poses.{name}.q"))
        for name, pose in facts.get("poses", {}).items()
    }
    try:
        robot = dh_robot(
            facts["name"],
            DH(
                theta0=np.deg2rad(table["theta0_deg"]),
                d=np.array(table["d"], dtype=np.float64),
                a=np.array(table["a"], dtype=np.float64),
                alpha=np.deg2rad(table["alpha_deg"]),
            ),
            kinds=table.get("kinds"),
            coupling=table.get("coupling"),
            bodies=bodies if links else None,
            joint_names=joints.get("names"),
            q_min=joints.get("q_min"),
            q_max=joints.get("q_max"),
            qd_max=joints.get("qd_max"),
            tau_max=joints.get("effort"),
            unphysical="unphysical" in facts,
            file=path,
        )
    except (RobotError, ValueError) as error:
        raise RobotError(f"{path}: {error}") from error
    return replace(robot, poses=MappingProxyType(NamedPoses(poses)))


def _link_body(values: Mapping[str, Any]) -> LinkBody:
    xx, yy, zz, xy, xz, yz = map(float, values.get("inertia", [0] * 6))
    com = tuple(map(float, values.get("com", [0] * 3)))
    return LinkBody(float(values.get("mass", 0)), com, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
