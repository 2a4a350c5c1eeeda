"""A robot as every computation sees it: its tree, limits, mounting, payload, and published geometry."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from twin import recursion
from twin.errors import RobotError, UnknownNameError
from twin.tree import Tree, frozen, inertial_parameters, transformed_parameters

GRAVITY = 9.81  # m/s^2, as in all the sources
MOUNTINGS = {
    "floor": (0.0, 0.0, -GRAVITY),
    "wall": (-GRAVITY, 0.0, 0.0),  # base plate on a wall, x axis of the base pointing up
    "inverted": (0.0, 0.0, GRAVITY),
}


class DH(NamedTuple):
    """Standard Denavit-Hartenberg rows `Rz(theta) Tz(d) Tx(a) Rx(alpha)`: (n,) arrays, in [rad, m, m, rad].

    The angle of a row is `theta = S q + theta0`.
    """

    theta0: np.ndarray
    d: np.ndarray
    a: np.ndarray
    alpha: np.ndarray


@dataclass(frozen=True, eq=False)
class Payload:
    """A body fixed to the flange, in the flange's frame (z out of the flange).

    Attributes:
        mass: in [kg].
        com: (3,) centre of mass, in [m].
        inertia: (3, 3) tensor about the centre of mass, in [kg m^2]; a point mass by default.
    """

    mass: float
    com: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0)
    inertia: Sequence[Sequence[float]] | np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))

    def __post_init__(self) -> None:
        com, inertia = frozen(self.com), frozen(self.inertia)
        if not 0 <= self.mass < np.inf:
            raise ValueError(f"expected a payload mass of at least 0 kg, got {self.mass}")
        if com.shape != (3,) or not np.all(np.isfinite(com)):
            raise ValueError(f"expected a payload centre of mass of 3 finite numbers, got {com.tolist()}")
        largest = np.max(np.abs(inertia), initial=0.0)
        if inertia.shape != (3, 3) or not np.all(np.abs(inertia - inertia.T) <= 1e-12 * largest):
            raise ValueError("expected a payload inertia of shape (3, 3), symmetric and finite")
        inertia = frozen((inertia + inertia.T) / 2)
        if self.mass == 0 and largest > 0:
            raise ValueError("expected no inertia of a payload without mass; give it a mass above 0 kg")
        moments = np.linalg.eigvalsh(inertia)
        slack = 1e-9 * abs(moments[2])
        if not moments[0] >= -slack or not moments[2] <= moments[0] + moments[1] + slack:
            raise ValueError(f"no body has the principal moments of inertia {moments.tolist()} kg m^2")
        object.__setattr__(self, "com", com)
        object.__setattr__(self, "inertia", inertia)


@dataclass(frozen=True, eq=False)
class Robot:
    """One robot; immutable, so that a controller's model and the plant can differ without surprises.

    Attributes:
        name: its name in `urdf/`, or the URDF's.
        urdf: the file that it was loaded from.
        tree: the moving joints of the URDF, payload included.
        q_min, q_max: (n,) joint range, in [rad].
        qd_max: (n,) speed limits, in [rad/s].
        tau_max: (n,) torque limits of the drives, in [N m].
        S: (n, n) coupling of the DH angles, `theta = S q + dh.theta0`.
        G, g0: (n_tree, n) and (n_tree,) embedding `q_tree = G q + g0`.
        gravity: (3,) acceleration of gravity in the base frame, in [m/s^2]; turning it mounts the robot.
        dh: the published Denavit-Hartenberg table, `None` for a robot known by its URDF alone.
        poses: named joint positions, (n,) each, in [rad].
        payload: what the flange carries.
        bare: the tree without the payload, `None` where there is none.
    """

    name: str
    urdf: Path
    tree: Tree
    q_min: np.ndarray
    q_max: np.ndarray
    qd_max: np.ndarray
    tau_max: np.ndarray
    S: np.ndarray
    G: np.ndarray
    g0: np.ndarray
    gravity: np.ndarray = field(default_factory=lambda: frozen(MOUNTINGS["floor"]))
    dh: DH | None = None
    poses: Mapping[str, np.ndarray] = field(default_factory=lambda: MappingProxyType({}))
    payload: Payload | None = None
    bare: Tree | None = None

    @property
    def n(self) -> int:
        """Number of joints that the pendant shows."""
        return self.G.shape[1]

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of those joints."""
        return self.tree.names[: self.n]

    @cached_property
    def kernels(self) -> Any:
        """The compiled functions of this geometry; see `twin.kernels.kernels_for`."""
        from twin.kernels import kernels_for

        return kernels_for(self.tree, self.G, self.g0)

    def with_payload(self, payload: Payload | None) -> Robot:
        """The same robot with that payload, or with none, in place of what it carries."""
        bare = self.tree if self.bare is None else self.bare
        if payload is None:
            return replace(self, tree=bare, payload=None, bare=None)
        body = inertial_parameters(payload.mass, np.asarray(payload.com), np.asarray(payload.inertia))
        loaded = bare.with_body(bare.flange_joint, transformed_parameters(body, bare.T_joint_flange))
        return replace(self, tree=loaded, payload=payload, bare=bare)

    def with_gravity(self, gravity: Sequence[float] | np.ndarray) -> Robot:
        """The same robot under the acceleration of gravity `gravity`: (3,), base frame, in [m/s^2]."""
        vector = frozen(gravity)
        if vector.shape != (3,) or not np.all(np.isfinite(vector)):
            raise ValueError(f"expected a gravity vector of 3 finite numbers, got {vector.tolist()}")
        return replace(self, gravity=vector)

    def mounted(self, where: str) -> Robot:
        """The same robot mounted on the `"floor"`, on a `"wall"` (base x axis up) or `"inverted"`."""
        if where not in MOUNTINGS:
            raise UnknownNameError(f"unknown mounting {where!r}: known are {', '.join(MOUNTINGS)}")
        return self.with_gravity(MOUNTINGS[where])


def robot_names() -> tuple[str, ...]:
    """The robots that `load` knows by name."""
    folders = (entry for entry in resources.files("urdf").iterdir() if entry.is_dir())
    return tuple(sorted(entry.name for entry in folders if entry.joinpath("robot.toml").is_file()))


def load(name_or_path: str | Path) -> Robot:
    """Load a robot.

    Args:
        name_or_path: a name from `robot_names()`; a `.urdf` file; or a `robot.toml`, which has its URDF
            beside it under the name that it gives.

    Raises:
        UnknownNameError: there is no robot of that name.
        RobotError: the file is missing, malformed, or describes a body that cannot exist.
    """
    text = str(name_or_path)
    path = Path(text)
    if path.suffix == ".urdf":
        return _from_urdf(path)
    if path.suffix == ".toml":
        return _from_facts(path)
    if text not in robot_names():
        raise UnknownNameError(
            f"unknown robot {text!r}: known are {', '.join(robot_names())}, "
            "or the path of a .urdf or a robot.toml"
        )
    return _from_facts(Path(str(resources.files("urdf"))) / text / "robot.toml")


def _from_urdf(path: Path) -> Robot:
    from twin.urdf_file import read_urdf

    name, tree, *limits = read_urdf(path)
    _require_inertia(path, tree)
    identity, zeros = frozen(np.eye(tree.n)), frozen(np.zeros(tree.n))
    return Robot(name, path, tree, *limits, S=identity, G=identity, g0=zeros)


def _from_facts(path: Path) -> Robot:
    from urdf.facts import FactsError, read

    try:
        facts = read(path)
    except FactsError as error:
        raise RobotError(str(error)) from error
    robot = _from_urdf(path.parent / f"{facts['name']}.urdf")
    table = facts["dh"]
    dh = DH(
        theta0=frozen(np.deg2rad(table["theta0_deg"])),
        d=frozen(table["d"]),
        a=frozen(table["a"]),
        alpha=frozen(np.deg2rad(table["alpha_deg"])),
    )
    poses = {name: frozen(np.deg2rad(pose["q_deg"])) for name, pose in facts["poses"].items()}
    _require_agreement(path, robot, dh, poses)
    return replace(robot, name=facts["name"], dh=dh, poses=MappingProxyType(poses))


def _require_inertia(path: Path, tree: Tree) -> None:
    """Raise `RobotError` where joints move no mass of their own, which leaves accelerations undefined."""
    somewhere = [0.1 * (i + 1) for i in range(tree.n)]  # in no special position
    at = recursion.placements(tree, somewhere, math)
    still, inertias = [0.0] * tree.n, tree.inertias.tolist()
    units = np.eye(tree.n).tolist()
    M = np.array([recursion.newton_euler(tree, at, still, unit, inertias, recursion.ZERO) for unit in units])
    for name, moment in zip(tree.names, np.diag(M), strict=True):
        if not moment > 0:
            raise RobotError(f"{path}: joint {name!r} moves no mass; give a link beyond it an <inertial>")
    scale = np.sqrt(np.diag(M))
    values, vectors = np.linalg.eigh(M / np.outer(scale, scale))
    if not values[0] > 1e-12:
        first, second = (tree.names[i] for i in sorted(np.argsort(np.abs(vectors[:, 0]))[-2:].tolist()))
        raise RobotError(
            f"{path}: joints {first!r} and {second!r} move the same mass in the same way; "
            "give the link between them an <inertial>"
        )


def _require_agreement(path: Path, robot: Robot, dh: DH, poses: Mapping[str, np.ndarray]) -> None:
    """Raise `RobotError` where a robot.toml contradicts the URDF beside it."""
    for name, q in poses.items():
        for joint, value, low, high in zip(robot.joint_names, q, robot.q_min, robot.q_max, strict=True):
            if not low <= value <= high:
                raise RobotError(
                    f"{path}: pose {name!r} puts {joint} at {np.rad2deg(value):g} degrees, "
                    f"outside its range of {np.rad2deg(low):g} to {np.rad2deg(high):g}"
                )
    q = np.linspace(0.1, 0.6, robot.n)  # in no special position
    T_dh = np.eye(4)
    for theta, d, a, alpha in zip(robot.S @ q + dh.theta0, dh.d, dh.a, dh.alpha, strict=True):
        ct, st, ca, sa = math.cos(theta), math.sin(theta), math.cos(alpha), math.sin(alpha)
        T_dh = T_dh @ [
            [ct, -ca * st, sa * st, a * ct],
            [st, ca * ct, -sa * ct, a * st],
            [0, sa, ca, d],
            [0, 0, 0, 1],
        ]
    at = recursion.placements(robot.tree, q.tolist(), math)
    R, p = recursion.tool_frame(robot.tree, recursion.world_frames(robot.tree, at), np.eye(4).tolist())
    apart = np.max(np.abs(T_dh[:3] - np.column_stack([R, p])))
    if not apart < 1e-9:
        raise RobotError(
            f"{path}: its DH table and {robot.urdf.name} differ by {apart:.3g} in the pose of the flange; "
            "write the URDF anew with python -m urdf.build"
        )
