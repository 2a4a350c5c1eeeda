"""Drive trains of a robot: motors, gears, friction and elastic joints.

Motor angles follow the joints as `theta_m = N q`, with `N = diag(ratio) coupling`.  The coupling is the
identity except for wrists whose motors turn together.  Motor torques act on the joints as `N^T tau_m`, and
the rotors appear there as the inertia `A = N^T J N`.  The motors of elastic joints have separate angles,
which are expressed in joint units, `q_motor = N^-1 theta_m`: a relaxed spring has `q_motor = q`.

Sources: Norrlöf 1999, eq. (3.69), (3.70); Norrlöf, lecture 3; Ljubljana lab manual, eq. (6.93).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from twin.base.arrays import Floats, real_array
from twin.base.errors import UnknownNameError
from twin.base.formatting import short_repr
from twin.physics.multibody.tree import Portable, frozen

MODES = ("ideal", "rigid", "elastic")
"""Drive models: only torque limits, everything but the springs, or everything."""

MOTOR, JOINT = "motor", "joint"

MORE_FRICTION = ("coulomb_per_load", "viscous_root", "viscous_difference", "offset")
"""Friction of drives beside Coulomb, static and viscous friction."""

Column: TypeAlias = Any
"""(n,) numbers; `Drives` also accepts one number for all joints, except for the ratio."""


def known_mode(mode: str) -> str:
    """Return the mode if it is valid.

    Raises:
        UnknownNameError: it is not one of `MODES`.
    """
    if mode not in MODES:
        raise UnknownNameError(f"unknown drives {mode!r}: known are {', '.join(MODES)}")
    return mode


@dataclass(frozen=True, eq=False)
class Drives(Portable):
    """One drive per joint; arrays are (n,).

    Quantities of the motor refer to the motor's side of the gear, those of the joint to the joint's side.
    Torques and Coulomb friction differ by the ratio; inertia, viscous friction, stiffness and damping by its
    square.

    Attributes:
        ratio: motor turns per turn of the joint, negative if they turn in opposite directions.
        rotor_inertia: inertia of the rotor and the gear's input, at the motor, in [kg m^2].
        coupling: (n, n), 1 on its diagonal: `theta_m = diag(ratio) coupling q`.
        motor_torque_max: largest torque of the motor, in [N m].
        motor_speed_rated: largest speed with that torque, in [rad/s]; above it the torque decreases
            linearly, to 0 at `motor_speed_max`.
        motor_speed_max: largest speed of the motor, in [rad/s].
        encoder_counts: counts per turn of the motor; 0 if unknown.
        coulomb: friction of a moving joint at low speed, in [N m].
        static: breakaway torque of a sticking joint, in [N m].
        stribeck_speed: speed that scales the transition from `static` to `coulomb`, in [rad/s]; with 0 the
            friction drops at once.
        viscous: friction per speed, in [N m s/rad].
        coulomb_per_load: increase of the Coulomb friction per transmitted torque.
        viscous_root: increase of the Coulomb friction per square root of the speed, in [N m (s/rad)^(1/2)].
        viscous_difference: difference of the viscous friction between the directions, half of it, in
            [N m s/rad]: the friction is `viscous + viscous_difference` forward and
            `viscous - viscous_difference` backward.
        offset: constant torque against the positive direction, in [N m]: half the difference of the Coulomb
            friction between the directions.
        stiffness: stiffness of the gear, in [N m/rad]; infinite for a rigid gear.
        damping: damping of the gear, in [N m s/rad].
        friction_at: `"motor"` or `"joint"` for each joint: the side of the spring on which friction acts.

    Raises:
        ValueError: a value is invalid; the message contains axis, value, and what is valid.

    Example:
        >>> import twin
        >>> gears = twin.Drives(ratio=[100.0, -80.0], rotor_inertia=1e-4, coulomb=[5.0, 2.0])
        >>> robot = twin.load("two_link").with_drives("rigid", gears)
        >>> twin.friction_torque(robot, [0.1, -0.1]).tolist()
        [5.0, -2.0]
    """

    ratio: Column
    rotor_inertia: Column
    coupling: Column = None
    motor_torque_max: Column = np.inf
    motor_speed_rated: Column = None
    motor_speed_max: Column = np.inf
    encoder_counts: Column = 0.0
    coulomb: Column = 0.0
    static: Column = None
    stribeck_speed: Column = 0.0
    viscous: Column = 0.0
    coulomb_per_load: Column = 0.0
    viscous_root: Column = 0.0
    viscous_difference: Column = 0.0
    offset: Column = 0.0
    stiffness: Column = np.inf
    damping: Column = 0.0
    friction_at: tuple[str, ...] = ()

    __repr__ = short_repr

    def __post_init__(self) -> None:
        n = real_array(self.ratio, "ratio of the drives").size
        given: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(self)}
        given["coupling"] = np.eye(n) if self.coupling is None else self.coupling
        given["static"] = self.coulomb if self.static is None else self.static
        given["friction_at"] = tuple(self.friction_at) or (MOTOR,) * n
        if self.motor_speed_rated is None:
            given["motor_speed_rated"] = self.motor_speed_max
        for name, value in given.items():
            object.__setattr__(self, name, value if name == "friction_at" else _column(name, value, n))
        self._check_numbers()
        self._check_shafts()

    def _check_numbers(self) -> None:
        """Raise `ValueError` if a number is impossible for a drive."""
        top, inf = self.motor_speed_max, np.inf
        for name, valid, expected in (
            ("ratio", (self.ratio != 0) & (np.abs(self.ratio) < inf), "a finite number other than 0"),
            ("rotor_inertia", _amount(self.rotor_inertia), "at least 0 kg m^2"),
            ("motor_torque_max", self.motor_torque_max > 0, "above 0 N m"),
            ("motor_speed_max", top > 0, "above 0 rad/s"),
            (
                "motor_speed_rated",
                (self.motor_speed_rated > 0) & (self.motor_speed_rated <= top),
                "above 0 rad/s and at most motor_speed_max",
            ),
            ("encoder_counts", _amount(self.encoder_counts), "at least 0"),
            ("coulomb", _amount(self.coulomb), "at least 0 N m"),
            (
                "static",
                (self.static >= self.coulomb) & (self.static < inf),
                "at least the Coulomb friction",
            ),
            ("stribeck_speed", _amount(self.stribeck_speed), "at least 0 rad/s"),
            ("viscous", _amount(self.viscous), "at least 0 N m s/rad"),
            (
                "coulomb_per_load",
                (self.coulomb_per_load >= 0) & (self.coulomb_per_load < 1),
                "at least 0 and below 1",
            ),
            ("viscous_root", _amount(self.viscous_root), "at least 0 N m (s/rad)^(1/2)"),
            (
                "viscous_difference",
                np.abs(self.viscous_difference) <= self.viscous,
                "at most the viscous friction",
            ),
            ("offset", np.isfinite(self.offset), "a finite number"),
            ("stiffness", self.stiffness > 0, "above 0 N m/rad, inf for a rigid joint"),
            ("damping", _amount(self.damping), "at least 0 N m s/rad"),
        ):
            if not np.all(valid):
                axis = int(np.argmin(valid))
                value = getattr(self, name)[axis]
                beside = f" of {self.coulomb[axis]:g} N m" if name == "static" else ""
                raise ValueError(
                    f"drives: {name} of axis {axis + 1} is {value:g}, expected {expected}{beside}"
                )

    def _check_shafts(self) -> None:
        """Raise `ValueError` unless the motors, and the shafts with friction, turn independently."""
        if not np.all(np.diagonal(self.coupling) == 1.0):
            raise ValueError("drives: expected coupling with 1 on its diagonal, as the ratios are in ratio")
        if not np.linalg.cond(self.coupling) < 1e8:
            raise ValueError("drives: coupling is singular, so some motion of the joints turns no motor")
        for axis, side in enumerate(self.friction_at, start=1):
            if side not in (MOTOR, JOINT):
                raise ValueError(f"drives: friction_at of axis {axis} is {side!r}, expected motor or joint")
        if len(self.friction_at) != self.n:
            raise ValueError(f"drives: expected friction_at of {self.n} axes, got {len(self.friction_at)}")
        if not np.linalg.cond(self.friction_matrix) < 1e8:
            raise ValueError(
                "drives: the shafts with friction, by coupling and friction_at, do not turn independently"
            )

    @property
    def n(self) -> int:
        """Number of axes."""
        return self.ratio.size

    @cached_property
    def motor_matrix(self) -> Floats:
        """Matrix N (n, n) of the motor angles `theta_m = N q`."""
        return frozen(self.ratio[:, None] * self.coupling)

    @cached_property
    def reflected_inertia(self) -> Floats:
        """Inertia A = N^T J N (n, n) of the rotors at the joints, in [kg m^2]."""
        N = self.motor_matrix
        return frozen(N.T @ (self.rotor_inertia[:, None] * N))

    @cached_property
    def friction_matrix(self) -> Floats:
        """Matrix R (n, n): with rigid gears, shafts with friction turn at `R qd`, in joint units."""
        at_motor = np.array([side == MOTOR for side in self.friction_at])
        return frozen(np.where(at_motor[:, None], self.coupling, np.eye(self.n)))

    @cached_property
    def transmission(self) -> Floats:
        """Matrix W (n, n): the shafts with friction transmit the torques `W tau` of the joints."""
        at_motor = np.array([side == MOTOR for side in self.friction_at])
        return frozen(np.where(at_motor[:, None], np.linalg.inv(self.coupling).T, np.eye(self.n)))

    @property
    def torque_max(self) -> Floats:
        """Torque limit of each motor at standstill, at the joint's side of the gear (n,), in [N m]."""
        return np.abs(self.ratio) * self.motor_torque_max

    def torque_limits(self, tau_max: Floats) -> Floats:
        """Return the torque limits (n,), in [N m]: `tau_max` (n,) where that of the motor is unknown."""
        return np.where(np.isinf(self.torque_max), tau_max, self.torque_max)

    def with_columns(self, **columns: Floats) -> Drives:
        """Return the drives with other numbers, (n,) each; five times as fast as `replace`.

        Args:
            columns: numbers by name; `coupling` and `friction_at`, whose checks are slow, are not allowed.

        Raises:
            ValueError: a value is invalid; the message contains axis, value, and what is valid.
        """
        other = object.__new__(Drives)
        for item in fields(self):
            given = columns.get(item.name)
            value = getattr(self, item.name) if given is None else frozen(given)
            object.__setattr__(other, item.name, value)
        other._check_numbers()
        return other

    def without_friction(self) -> Drives:
        """Return the drives without friction."""
        none = dict.fromkeys(("coulomb", "static", "viscous", *MORE_FRICTION), 0.0)
        return replace(self, **none)


def _column(name: str, value: Any, n: int) -> Floats:
    """Return a quantity as an array: (n,), or (n, n) for the coupling."""
    array = real_array(value, f"{name} of the drives")
    shape = (n, n) if name == "coupling" else (n,)
    if array.shape not in (shape, () if name not in ("ratio", "coupling") else shape):
        raise ValueError(f"drives: expected {name} of shape {shape}, got {array.shape}")
    if np.any(np.isnan(array)):
        raise ValueError(f"drives: expected {name} without NaN, got {array.tolist()}")
    return frozen(np.broadcast_to(array, shape))


def _amount(values: np.ndarray) -> np.ndarray:
    """Return whether numbers are finite and not negative."""
    return (values >= 0) & (values < np.inf)
