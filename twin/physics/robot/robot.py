"""Robot: its tree, Denavit-Hartenberg table, limits, mounting, payload and drives."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, float_array, real_array
from twin.base.errors import PayloadWarning, RobotError, UnknownNameError, near
from twin.base.formatting import html_table
from twin.base.wings import from_above
from twin.physics.multibody.tree import (
    Loop,
    Portable,
    Tree,
    frozen,
    inertial_parameters,
    transformed_parameters,
)
from twin.physics.robot.drives.drives import Drives, known_mode
from twin.physics.robot.units import joint_unit, shown, within_reach

if TYPE_CHECKING:
    from twin.base.notebook import Plot
    from twin.physics.multibody.kernels import SingleSample
    from twin.physics.robot.drives.drive_step import DriveModel


GRAVITY = 9.81  # m/s^2, as in all the sources
MOUNTINGS = {
    "floor": (0.0, 0.0, -GRAVITY),
    "wall": (-GRAVITY, 0.0, 0.0),  # base plate on a wall, x axis of the base upwards
    "inverted": (0.0, 0.0, GRAVITY),
}


def mounting_gravity(where: str | float) -> tuple[float, float, float]:
    """Return the acceleration of gravity in the base frame for a mounting, see `Robot.mounted`.

    Raises:
        UnknownNameError: the mounting is neither a name nor a finite number of degrees.
    """
    if where in MOUNTINGS:
        return MOUNTINGS[where]
    try:
        angle = math.radians(float(where))
    except ValueError:
        angle = math.nan
    if not math.isfinite(angle):
        raise UnknownNameError(
            f"unknown mounting {where!r}: known are {', '.join(MOUNTINGS)}, "
            "and degrees about the base's y axis, as 30"
        )
    return (GRAVITY * math.sin(angle), 0.0, -GRAVITY * math.cos(angle))


class DH(NamedTuple):
    """Standard Denavit-Hartenberg rows `Rz(theta) Tz(d) Tx(a) Rx(alpha)`: (n,) arrays, in [rad, m, m, rad].

    The angle of a row is `theta = S q + theta0`.  For a prismatic joint its row of S is 0, and `d + q`
    replaces d.
    """

    theta0: np.ndarray
    d: np.ndarray
    a: np.ndarray
    alpha: np.ndarray


def dh_transforms(dh: DH, theta: ArrayLike) -> Floats:
    """Return the transform of every row, `A = Rz(theta) Tz(d) Tx(a) Rx(alpha)`.

    Args:
        dh: table of n rows; for a prismatic joint, its column d may be of shape (..., n).
        theta: (..., n) DH angles, in [rad]; `twin.kinematics.dh_from_joint_angles` converts joint
            angles to them.

    Returns:
        (..., n, 4, 4) pose of frame i in frame i - 1, lengths in [m].

    Raises:
        ValueError: theta is not of shape (..., n).

    Example:
        >>> import twin
        >>> dh = twin.robot.DH(theta0=[0, 0], d=[0, 0], a=[1, 0.5], alpha=[0, 0])
        >>> twin.robot.dh_transforms(dh, [0, 0])[:, :3, 3].tolist()
        [[1.0, 0.0, 0.0], [0.5, 0.0, 0.0]]

    Source: Norrlöf 1999, eq. (2.23).
    """
    theta = float_array(theta, "theta", (len(dh.alpha),))
    d, theta = np.broadcast_arrays(np.asarray(dh.d, dtype=np.float64), theta)
    c, s = np.cos(theta), np.sin(theta)
    ca, sa = np.cos(dh.alpha), np.sin(dh.alpha)
    A = np.zeros((*theta.shape, 4, 4))
    A[..., 0, 0], A[..., 0, 1], A[..., 0, 2], A[..., 0, 3] = c, -s * ca, s * sa, dh.a * c
    A[..., 1, 0], A[..., 1, 1], A[..., 1, 2], A[..., 1, 3] = s, c * ca, -c * sa, dh.a * s
    A[..., 2, 1], A[..., 2, 2], A[..., 2, 3] = sa, ca, d
    A[..., 3, 3] = 1.0
    return A


def dh_poses(dh: DH, theta: ArrayLike) -> Floats:
    """Return the poses of frames 1 to n in the base frame, the products of the transforms up to each.

    Args:
        dh: table as for `dh_transforms`.
        theta: (..., n) DH angles, in [rad].

    Returns:
        (..., n, 4, 4); the last one is the flange's, equal to `forward_kinematics` of the same robot.

    Raises:
        ValueError: theta is not of shape (..., n).

    Example:
        >>> import twin
        >>> dh = twin.robot.DH(theta0=[0, 0], d=[0, 0], a=[1, 0.5], alpha=[0, 0])
        >>> twin.robot.dh_poses(dh, [0, 0])[:, :3, 3].tolist()
        [[1.0, 0.0, 0.0], [1.5, 0.0, 0.0]]

    Source: Norrlöf 1999, eq. (2.65); Aliaga 2019, eq. (2.4).
    """
    T = dh_transforms(dh, theta)
    for i in range(1, T.shape[-3]):
        T[..., i, :, :] = T[..., i - 1, :, :] @ T[..., i, :, :]
    return T


class Frame(NamedTuple):
    """Frame of a link: index of the joint of the tree that moves it, -1 for the base, and its pose (4, 4)."""

    joint: int
    T: np.ndarray


class Rating(NamedTuple):
    """Ratings of the data sheet: `payload` in [kg], `reach` of the wrist centre in [m]."""

    payload: float
    reach: float


class PublishedPose(NamedTuple):
    """Published pose of the flange, (7,) `[x y z a b c d]`, and the tolerance due to its printed digits."""

    flange: np.ndarray
    tolerance: float


@dataclass(frozen=True, eq=False)
class Payload(Portable):
    """Body fixed to the flange, in the flange's frame (z points away from the flange).

    Attributes:
        mass: mass, in [kg].
        com: (3,) centre of mass, in [m].
        inertia: (3, 3) tensor about the centre of mass, in [kg m^2]; a point mass by default.

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> loaded = robot.with_payload(twin.Payload(6.0, com=[0, 0, 0.1]))
        >>> torques = [twin.gravity_torque(arm, robot.poses["zero"]) for arm in (robot, loaded)]
        >>> round(float(torques[1][4] - torques[0][4]), 3)  # 6 g (0.065 + 0.1)
        -9.712
    """

    mass: float
    com: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0)
    inertia: Sequence[Sequence[float]] | np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))

    def __post_init__(self) -> None:
        if real_array(self.mass, "the payload's mass").shape != ():
            raise ValueError(f"expected a payload mass that is one number, in kg, got {self.mass!r}")
        com = frozen(real_array(self.com, "the payload's com"))
        inertia = frozen(real_array(self.inertia, "the payload's inertia"))
        if not 0 <= self.mass < np.inf:
            raise ValueError(f"expected a payload mass of at least 0 kg, got {self.mass}")
        if com.shape != (3,) or not np.all(np.isfinite(com)):
            raise ValueError(f"expected a payload centre of mass of 3 finite numbers, got {com.tolist()}")
        within_reach(com, "the payload's centre of mass")
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


class NamedPoses(dict):
    """Joint positions by name; an unknown name raises an error that lists the known ones."""

    def __missing__(self, name: str) -> np.ndarray:
        known = ", ".join(self) or "none"
        raise UnknownNameError(f"unknown pose {name!r}{near(str(name), self)}: known are {known}")


@dataclass(frozen=True, eq=False)
class Robot(Portable):
    """Robot; immutable, so that a change of the plant cannot change the model of a controller.

    Attributes:
        name: name in `urdf/`, or that of the URDF.
        urdf: path of the URDF, `None` for a robot made from a DH table alone.
        tree: moving joints of the URDF, payload included.
        q_min, q_max: (n,) joint range, in [rad] (of a prismatic joint in [m], and so on).
        qd_max: (n,) speed limits, in [rad/s].
        tau_max: (n,) torque limits of the drives, in [N m].
        dh_coupling: (n, n) matrix S of the DH angles, `theta = S q + dh.theta0`.
        embedding: (n_tree, n) matrix G of all joints of the tree, `q_tree = G q + g0`.
        embedding_offset: (n_tree,) offset g0 of it, in [rad].
        driven: indices of the tree joints that motors turn, one per joint of the teach pendant; the others
            are passive.
        passive_min, passive_max: (n_tree - n,) range of the passive joints, in [rad]: limits between joints.
        unjudged: passive joints whose range is the twin's own, as no source has the arm's, and why.
        loops: closed loops; the embedding satisfies them for every q.
        gravity: (3,) acceleration of gravity in the base frame, in [m/s^2]; it expresses the mounting.
        dh: published Denavit-Hartenberg table, `None` for a robot from a URDF alone.
        poses: named joint positions, (n,) each, in [rad].
        published: published flange poses of some named positions.
        tour: names of the poses that the tool visits in the scenario `pose_path`.
        rating: payload and reach of the data sheet, `None` if unknown.
        payload: payload on the flange, `None` without one.
        bare: tree without the payload, `None` without a payload.
        file: file that the robot was loaded from (a URDF, a `robot.toml`, a `dh.toml`), `None` if made in a
            program.
        inertia_fault: why the masses of the links are unknown or impossible, so that there are no dynamics;
            "" if they are known.
        drives: drive trains, `None` if unknown.
        frames: frames of all links of the URDF by their names, fixed ones included.
        tool_frame: name of the link whose frame is the flange; "" for the last frame of a DH table.
        tool_reason: why that frame was taken, "" if the file or the caller names it.
        notes: a sentence for each odd statement of its URDF, and what is made of it.
        locked: positions of the joints of the URDF that do not move, in [rad] or [m], see
            `twin.robot.loops`.
        drive_mode: drive model, one of `twin.robot.drives.drives.MODES`; with `"ideal"` the joints get the
            demanded torque, up to `tau_max`, and the robot is its rigid body alone.

    Example:
        >>> import twin
        >>> robot = twin.load("irb140").mounted("inverted").with_drives("rigid")
        >>> robot.n, round(float(robot.gravity[2]), 2), robot.drive_mode
        (6, 9.81, 'rigid')
    """

    name: str
    urdf: Path | None
    tree: Tree
    q_min: np.ndarray
    q_max: np.ndarray
    qd_max: np.ndarray
    tau_max: np.ndarray
    dh_coupling: np.ndarray
    embedding: np.ndarray
    embedding_offset: np.ndarray
    driven: tuple[int, ...]
    passive_min: np.ndarray
    passive_max: np.ndarray
    unjudged: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    loops: tuple[Loop, ...] = ()
    gravity: np.ndarray = field(default_factory=lambda: frozen(MOUNTINGS["floor"]))
    dh: DH | None = None
    poses: Mapping[str, np.ndarray] = field(default_factory=lambda: MappingProxyType({}))
    published: Mapping[str, PublishedPose] = field(default_factory=lambda: MappingProxyType({}))
    tour: tuple[str, ...] = ()
    rating: Rating | None = None
    payload: Payload | None = None
    bare: Tree | None = None
    file: Path | None = None
    inertia_fault: str = ""
    drives: Drives | None = None
    drive_mode: str = "ideal"
    frames: Mapping[str, Frame] = field(default_factory=lambda: MappingProxyType({}))
    tool_frame: str = ""
    tool_reason: str = ""
    notes: tuple[str, ...] = ()
    locked: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    def __repr__(self) -> str:
        load = "" if self.payload is None else f", with {self.payload.mass:g} kg"
        drives = "" if self.drive_mode == "ideal" else f", {self.drive_mode} drives"
        return f"<Robot {self.name}: {', '.join(self.joint_names)}{load}{drives}>"

    def _repr_html_(self) -> str:
        """Return a table of the joints and of the masses of their links."""
        rows: list[tuple[str, ...]] = [("joint", "range", "speed limit", "torque limit", "mass of its link")]
        limits = dict(
            zip(
                self.driven,
                zip(self.q_min, self.q_max, self.qd_max, self.drive_torque_max, strict=True),
                strict=True,
            )
        )
        for k, (name, kind) in enumerate(zip(self.tree.names, self.tree.kinds, strict=True)):
            cells = ("passive", "", "")
            if k in limits:
                low, high, speed, torque = limits[k]
                cells = (
                    f"{shown(low, kind, 4)} to {shown(high, kind, 4)}",
                    shown(speed, kind, 4, "/s"),
                    f"{torque:.4g} {joint_unit(kind, 'torque')}",
                )
            mass = f"{self.tree.inertias[k, 0]:.4g} kg" if self.has_inertia else "unknown"
            rows.append((name, *cells, mass))
        load = "" if self.payload is None else f", {self.payload.mass:g} kg at the flange"
        return html_table(f"{self.name}: {self.drive_mode} drives{load}", rows)

    def plot(self, q: ArrayLike | None = None) -> Plot:
        """Return a picture of the robot at positions q (n,), in [rad], by default zero; a notebook shows it.

        Raises:
            ValueError: q has another shape, or is not finite.
            RobotError: a shape of the robot cannot be drawn.
        """
        return from_above("twin.studies.views.plots.robot_plot")(self, q)

    @property
    def n(self) -> int:
        """Number of joints of the teach pendant."""
        return self.embedding.shape[1]

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints of the teach pendant."""
        return tuple(self.tree.names[i] for i in self.driven)

    @property
    def joint_kinds(self) -> tuple[str, ...]:
        """Kind of each joint of the teach pendant, `"revolute"` or `"prismatic"`."""
        return tuple(self.tree.kinds[i] for i in self.driven)

    @property
    def inertias(self) -> np.ndarray:
        """Inertial parameters (n_tree, 10) of the links, payload included."""
        if not self.has_inertia:
            self.require_inertia()
        return self.tree.inertias

    @property
    def has_inertia(self) -> bool:
        """Whether the masses of the links are known; without them there are no dynamics."""
        return not self.inertia_fault

    def require_inertia(self) -> None:
        """Raise `RobotError` if the masses of the links are unknown, so that there are no dynamics."""
        if self.inertia_fault:
            raise RobotError(f"robot {self.name!r} has no dynamics: {self.inertia_fault}")

    @property
    def active_drives(self) -> Drives | None:
        """Active drives, `None` if they are ideal."""
        return None if self.drive_mode == "ideal" else self.drives

    @property
    def drive_torque_max(self) -> np.ndarray:
        """Torque limits (n,) at standstill, in [N m]; infinite where no limit is known.

        They are those of the active drives' motors, and `tau_max` for ideal drives and for unknown motors.
        """
        return self.tau_max if self.active_drives is None else self.active_drives.torque_limits(self.tau_max)

    @property
    def joints_without_torque_limit(self) -> tuple[str, ...]:
        """Names of the joints of which neither the motor's torque limit nor the effort is known."""
        return tuple(
            name for name, most in zip(self.joint_names, self.drive_torque_max, strict=True) if most == np.inf
        )

    @cached_property
    def arm(self) -> Robot:
        """Rigid body of the robot, `with_drives("ideal")`, with the same compiled functions."""
        if self.active_drives is None:
            return self
        arm = replace(self, drive_mode="ideal")
        arm.__dict__["kernels"] = self.kernels  # the value of the cached property
        return arm

    @cached_property
    def drive_model(self) -> DriveModel:
        """Rotors and friction of the active drives, for compiled functions."""
        from twin.physics.robot.drives.drive_step import DriveModel

        return DriveModel.of(self.active_drives, self.n)

    @cached_property
    def passive(self) -> tuple[int, ...]:
        """Indices of the tree joints without a motor."""
        return tuple(i for i in range(self.tree.n) if i not in self.driven)

    @cached_property
    def followers(self) -> tuple[int, ...]:
        """Indices of the passive joints that no closed loop holds: gears of `<mimic>` do."""
        ends = [joint for loop in self.loops for joint in loop.joints]
        held = {joint for end in ends for joint in self.tree.carriers(end)}
        return tuple(joint for joint in self.passive if joint not in held)

    def tree_positions(self, q: np.ndarray) -> np.ndarray:
        """Return the positions (..., n_tree) of all joints of the tree, in [rad], for `q` (..., n)."""
        return q @ self.embedding.T + self.embedding_offset

    @cached_property
    def motor_shafts(self) -> Floats | None:
        """Matrix (n, n) of q for the positions of the joints with motors; `None` if they are q themselves."""
        G = self.embedding[list(self.driven)]
        return None if np.array_equal(G, np.eye(self.n)) else np.linalg.inv(G)

    def joint_positions(self, q_tree: np.ndarray) -> np.ndarray:
        """Return q (..., n), in [rad], for positions (..., n_tree) of all joints of the tree."""
        driven = list(self.driven)
        if self.motor_shafts is None:
            return q_tree[..., driven]
        return (q_tree[..., driven] - self.embedding_offset[driven]) @ self.motor_shafts.T

    def passive_angles(self, q: np.ndarray) -> np.ndarray:
        """Return the positions (..., n_tree - n) of the passive joints, in [rad], for `q` (..., n)."""
        passive = list(self.passive)
        return q @ self.embedding[passive].T + self.embedding_offset[passive]

    @cached_property
    def kernels(self) -> Any:
        """Compiled functions of this geometry; see `twin.physics.multibody.kernels.kernels_for`."""
        from twin.physics.multibody.kernels import kernels_for

        return kernels_for(self.tree, self.embedding, self.embedding_offset, self.loops)

    @cached_property
    def single_sample(self) -> SingleSample:
        """Compiled functions for a single sample, with checks of their arguments."""
        from twin.physics.multibody.kernels import SingleSample

        return SingleSample(self.n, self.kernels, self.tree.inertias, self.gravity, self.has_inertia)

    @property
    def unloaded_tree(self) -> Tree:
        """Tree without the payload."""
        return self.tree if self.bare is None else self.bare

    def with_payload(self, payload: Payload | None) -> Robot:
        """Return the robot with another payload, or without one for `None`.

        Warns:
            PayloadWarning: the payload is heavier than the rating of the robot.
        """
        bare = self.unloaded_tree
        if payload is None:
            return replace(self, tree=bare, payload=None, bare=None)
        if not isinstance(payload, Payload):
            raise ValueError(f"expected a twin.Payload or None, got {payload!r}: write twin.Payload(mass)")
        if self.rating is not None and payload.mass > self.rating.payload:
            # Without the mass, so that a sweep over masses says it once.
            sentence = f"the payload is above {self.rating.payload:g} kg, the rating of {self.name}"
            warnings.warn(sentence, PayloadWarning, stacklevel=2)
        body = inertial_parameters(payload.mass, np.asarray(payload.com), np.asarray(payload.inertia))
        loaded = bare.with_body(bare.flange_joint, transformed_parameters(body, bare.T_joint_flange))
        return replace(self, tree=loaded, payload=payload, bare=bare)

    def with_gravity(self, gravity: Sequence[float] | np.ndarray) -> Robot:
        """Return the robot with another acceleration of gravity: (3,), base frame, in [m/s^2]."""
        vector = frozen(real_array(gravity, "gravity"))
        if vector.shape != (3,) or not np.all(np.isfinite(vector)):
            raise ValueError(f"expected a gravity vector of 3 finite numbers, got {vector.tolist()}")
        return replace(self, gravity=vector)

    def with_drives(self, mode: str, drives: Drives | None = None) -> Robot:
        """Return the robot with `"ideal"`, `"rigid"` or `"elastic"` drives.

        Args:
            mode: drive model, see `twin.robot.drives.drives.MODES`.
            drives: drives that replace those of the robot, if given.

        Raises:
            UnknownNameError: there is no such mode.
            RobotError: the drives are unknown, or for another number of joints, or the robot's masses are
                unknown.
        """
        known = self.drives if drives is None else drives
        if known_mode(mode) != "ideal":
            self.require_inertia()
            if known is None:
                why = "its file has no table [drives]: expected ideal drives"
                if self.locked:
                    why = (
                        "joints are locked, and only a robot.toml with [joints.locked] states drives for that"
                    )
                raise RobotError(f"robot {self.name!r} cannot have {mode} drives, because {why}")
        if known is not None and known.n != self.n:
            raise RobotError(f"robot {self.name!r} has {self.n} joints, got drives for {known.n}")
        return replace(self, drives=known, drive_mode=mode)

    def mounted(self, where: str | float) -> Robot:
        """Return the robot mounted on the `"floor"`, on a `"wall"` (base x axis up), `"inverted"`, or tilted.

        A number, or its text, is the angle in degrees by which the base is turned about its y axis: 30 leans
        the arm forward, -90 is the wall.
        """
        return self.with_gravity(mounting_gravity(where))

    def frame_of(self, link: str) -> Frame:
        """Return the frame of a link.

        Args:
            link: name of a link of the URDF, or of the tree, with or without `link_`.

        Raises:
            UnknownNameError: there is no such link.
        """
        moving = {name: Frame(joint, frozen(np.eye(4))) for joint, name in enumerate(self.tree.links)}
        known = moving | dict(self.frames)
        name = link if link in known else f"link_{link}"
        if name not in known:
            raise UnknownNameError(
                f"unknown link {link!r} of {self.name}{near(link, known)}: known are {', '.join(known)}"
            )
        return known[name]

    def with_flange_on(self, joint: int) -> Robot:
        """Return the robot whose flange is the frame of the link that a joint moves, of the base for -1.

        Its kinematics are those of that frame; `link=` of the kinematics uses it.
        """
        if joint not in self._flanges:
            tree = replace(self.tree, flange_joint=joint, T_joint_flange=frozen(np.eye(4)))
            self._flanges[joint] = replace(self, tree=tree)
        return self._flanges[joint]

    @cached_property
    def _flanges(self) -> dict[int, Robot]:
        """Robots of `with_flange_on`, whose compiled functions are loaded once."""
        return {}

    def with_tool_frame(self, link: str) -> Robot:
        """Return the robot with the frame of another link as its flange; a payload moves there.

        The DH table and published poses, which are those of the former flange, are dropped unless the frame
        is the same.

        Args:
            link: name of a link of the URDF, which a joint moves.

        Raises:
            UnknownNameError: there is no such link.
            RobotError: no joint moves it.
        """
        frame, tree = self.frame_of(link), self.unloaded_tree
        if frame.joint < 0:
            raise RobotError(f"no joint moves link {link!r} of {self.name}, so it cannot be the tool frame")
        moved = replace(self.with_payload(None), tool_frame=link, tool_reason="")
        if frame.joint != tree.flange_joint or not np.array_equal(frame.T, tree.T_joint_flange):
            tree = replace(tree, flange_joint=frame.joint, T_joint_flange=frame.T)
            none = MappingProxyType({})
            moved = replace(moved, tree=tree, dh=None, dh_coupling=frozen(np.eye(self.n)), published=none)
        return moved if self.payload is None else moved.with_payload(self.payload)
