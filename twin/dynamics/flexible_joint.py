"""A joint whose drive is elastic: two masses, the motor and the arm, with a gear and a spring between them.

    Jm qm'' + fm qm' + r T = tau          motor
    Ja qa'' + fa qa' - T = 0              arm
    T = k (r qm - qa) + d (r qm' - qa')   torque of spring and damper on the arm

Source: Norrlöf 1999, eq. (3.69)-(3.73); Norrlöf, lecture 3, "Friction and joint flexibilities", of which this
is one joint with r = 1 (the signs of its spring are reversed in print, and d multiplies angles).

The report leaves out the r before T.  With its k and Ja as the stiffness and the inertia of the arm its
spring would create power; its equations are those above if they mean r times both, and
`FlexibleJoint.reported` reads them so.  Of the IRB 1400's axis 1, its Table 3.1 then says k = 80.2 kN m/rad
and Ja = 6.16 kg m^2.
"""

from __future__ import annotations

import warnings
from dataclasses import astuple, dataclass, fields
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats, checked_time_step, real_array
from twin.dynamics.equation_of_motion import mass_matrix
from twin.errors import DriveWarning, RobotError
from twin.robot.drives.drive_step import drive_numbers, drive_step
from twin.robot.drives.drives import Drives
from twin.robot.robot import Robot


@dataclass(frozen=True)
class FlexibleJoint:
    """Motor, gear, spring and arm; motor angles `qm` count before the gear, all else behind it.

    Attributes:
        Jm: moment of inertia of the motor, in [kg m^2].
        Ja: moment of inertia of the arm about the joint, in [kg m^2].
        k: stiffness of the spring, in [N m/rad].
        r: angle of the arm for each radian of the motor where the spring is at rest; not zero.
        fm: viscous friction of the motor, in [N m s/rad].
        fa: viscous friction of the arm, in [N m s/rad].
        d: damping of the spring, in [N m s/rad].
    """

    Jm: float
    Ja: float
    k: float
    r: float = 1.0
    fm: float = 0.0
    fa: float = 0.0
    d: float = 0.0

    def __post_init__(self) -> None:
        for part in fields(self):
            value = getattr(self, part.name)
            if part.name == "r":
                valid, wanted = 0 < abs(value) < inf, "a finite number other than 0"
            elif part.name in ("Jm", "Ja", "k"):
                valid, wanted = 0 < value < inf, "above 0"
            else:
                valid, wanted = 0 <= value < inf, "at least 0"
            if not valid:
                raise ValueError(f"expected {part.name} of a flexible joint to be {wanted}, got {value}")

    @classmethod
    def reported(cls, Jm: float, Ja: float, k: float, r: float, fm: float, fa: float = 0.0) -> FlexibleJoint:
        """The joint that the report's symbols describe: its k, Ja and fa are r times those of the arm.

        Source: Norrlöf 1999, eq. (3.71) and Table 3.1.
        """
        if not 0 < r < inf:
            raise ValueError(f"expected r of the report's joint to be above 0, got {r}")
        return cls(Jm, Ja / r, k / r, r, fm, fa / r)


class StateSpace(NamedTuple):
    """A linear system `x' = A x + B u`, `y = C x`: A is (n, n), B (n, 1), C (1, n)."""

    A: Floats
    B: Floats
    C: Floats


def angle_model(joint: FlexibleJoint) -> StateSpace:
    """From the motor's torque to its angle; the state is `[qm, qm', qa, qa']`.

    Source: Norrlöf 1999, eq. (3.72), (3.73).
    """
    Jm, Ja, k, r, fm, fa, d = astuple(joint)
    A = [
        [0, 1, 0, 0],
        [-k * r * r / Jm, -(fm + d * r * r) / Jm, k * r / Jm, d * r / Jm],
        [0, 0, 0, 1],
        [k * r / Ja, d * r / Ja, -k / Ja, -(fa + d) / Ja],
    ]
    return StateSpace(np.array(A, dtype=np.float64), _column(0, 1 / Jm, 0, 0), _column(1, 0, 0, 0).T)


def velocity_model(joint: FlexibleJoint) -> StateSpace:
    """From the motor's torque to its velocity; the state is `[qm', qa', r qm - qa]`.

    Source: Norrlöf 1999, section 3.3.2, the model with three states; its entry (2, 3) is printed as -k/Ja.
    """
    Jm, Ja, k, r, fm, fa, d = astuple(joint)
    A = [
        [-(fm + d * r * r) / Jm, d * r / Jm, -k * r / Jm],
        [d * r / Ja, -(fa + d) / Ja, k / Ja],
        [r, -1, 0],
    ]
    return StateSpace(np.array(A, dtype=np.float64), _column(1 / Jm, 0, 0), _column(1, 0, 0).T)


def poles(model: StateSpace) -> np.ndarray:
    """Eigenvalues (n,) of A, in [1/s], in the order of their real parts."""
    return np.sort_complex(np.linalg.eigvals(model.A))


def zeros(joint: FlexibleJoint) -> np.ndarray:
    """Zeros (2,) from the motor's torque to its motion, in [1/s]: how the arm swings with the motor held."""
    return np.sort_complex(np.linalg.eigvals(angle_model(joint).A[2:, 2:]))


def frequency_response(model: StateSpace, omega: ArrayLike) -> np.ndarray:
    """The complex gain `C (i omega - A)^-1 B` (...,) at frequencies `omega` (...,), in [rad/s]."""
    s = 1j * real_array(omega, "omega")[..., None, None]
    x = np.linalg.solve(
        s * np.eye(len(model.A)) - model.A, np.broadcast_to(model.B, (*s.shape[:-2], *model.B.shape))
    )
    return (model.C @ x)[..., 0, 0]


def energy_matrix(joint: FlexibleJoint) -> Floats:
    """H (4, 4) of the energy `x^T H x / 2` at `x = [qm, qm', qa, qa']`: it changes by `x^T H x'`."""
    r, k = joint.r, joint.k
    return np.array(
        [[k * r * r, 0, -k * r, 0], [0, joint.Jm, 0, 0], [-k * r, 0, k, 0], [0, 0, 0, joint.Ja]],
        dtype=np.float64,
    )


def energy(joint: FlexibleJoint, x: ArrayLike) -> np.ndarray:
    """Kinetic energy of both masses and what the spring stores.

    Args:
        joint: the joint.
        x: (..., 4) state `[qm, qm', qa, qa']`, in [rad, rad/s].

    Returns:
        (...,), in [J].
    """
    qm, qmd, qa, qad = _state(x)
    return (joint.Jm * qmd**2 + joint.Ja * qad**2 + joint.k * (joint.r * qm - qa) ** 2) / 2


def spring_torque(joint: FlexibleJoint, x: ArrayLike) -> np.ndarray:
    """Torque T (...,) of spring and damper on the arm, in [N m], at states `x` (..., 4)."""
    qm, qmd, qa, qad = _state(x)
    return joint.k * (joint.r * qm - qa) + joint.d * (joint.r * qmd - qad)


def _column(*entries: float) -> Floats:
    return np.array(entries, dtype=np.float64)[:, None]


def _state(x: ArrayLike) -> np.ndarray:
    array = real_array(x, "x")
    if array.ndim == 0 or array.shape[-1] != 4 or not np.all(np.isfinite(array)):
        raise ValueError(
            f"expected a finite state [qm, qm', qa, qa'] of shape (..., 4), got {array.tolist()}"
        )
    return np.moveaxis(array, -1, 0)


def simulate_flexible_joint(
    joint: FlexibleJoint,
    tau: ArrayLike,
    time_step: float,
    x: ArrayLike = (0.0, 0.0, 0.0, 0.0),
    coulomb: float = 0.0,
    static: float | None = None,
    stribeck_speed: float = 0.0,
) -> Floats:
    """The motion of a flexible joint under a torque of its motor.

    Errors are of first order in the step.  Friction that is not viscous acts on the motor, and is told on the
    joint's side of the gear, as in `twin.robot.drives.drives.Drives`.

    Args:
        joint: the joint.
        tau: (N,) torque of the motor in each step, in [N m].
        time_step: in [s].
        x: (4,) state `[qm, qm', qa, qa']` at the start, in [rad, rad/s].
        coulomb: friction of the moving motor at small speed, in [N m].
        static: torque at which the motor breaks away, in [N m]; `coulomb` if left out.
        stribeck_speed: see `Drives`, in [rad/s].

    Returns:
        (N + 1, 4) states, the one at the start among them.

    Raises:
        ValueError: a shape is another, a value not finite, the step not above 0, or friction cannot be.
    """
    torques, start = real_array(tau, "tau"), real_array(x, "x")
    if torques.ndim != 1 or not np.all(np.isfinite(torques)):
        raise ValueError(f"expected finite torques tau of shape (N,), got shape {torques.shape}")
    if start.shape != (4,) or not np.all(np.isfinite(start)):
        raise ValueError(f"expected a finite state [qm, qm', qa, qa'] of shape (4,), got {start.tolist()}")
    r, dt = joint.r, checked_time_step(time_step)
    drives = Drives(
        ratio=[1 / r],
        rotor_inertia=joint.Jm,
        coulomb=coulomb,
        static=static,
        stribeck_speed=stribeck_speed,
        viscous=joint.fm / r**2,
        stiffness=joint.k,
        damping=joint.d,
    )
    numbers = drive_numbers(drives, "elastic", dt)
    M = np.array([[joint.Ja + dt * joint.fa]])  # so that its friction acts at the speed after the step
    (theta, thetad), (q, qd) = (start[:2, None] * r).copy(), start[2:, None].copy()
    next_qd, next_thetad, torque = np.empty((3, 1))
    found = np.empty((len(torques) + 1, 4))
    found[0] = start
    for k, motor_torque in enumerate(torques):
        at_joint = np.array([motor_torque / r])
        drive_step(numbers, M, joint.fa * qd, at_joint, q, qd, theta, thetad, next_qd, next_thetad, torque)
        qd[:], thetad[:] = next_qd, next_thetad
        q += dt * qd
        theta += dt * thetad
        found[k + 1] = theta[0] / r, thetad[0] / r, q[0], qd[0]
    return found


MOST_TURNS = 0.25
"""Of a vibration, in a step: see `frequency_in_steps`, by which it is then 15 % too slow."""


def spring_frequencies(robot: Robot, q: ArrayLike) -> np.ndarray:
    """Undamped frequency (n,) of every elastic joint's motor against the arm, in [Hz]; 0 of a rigid joint.

    One spring at a time: its stretch is pulled back by the stiffness k at the motor, whose inertia is `A_ii`,
    and at the arm, all other joints of which are free, so that

        (2 pi f)^2 = k_i (1 / A_ii + 1 / m_i),    1 / m_i = (M + A_r)^-1_ii,

    with the rotors `A_r` of the drives that are rigid.  The fastest vibration of the whole is at least as
    fast as each of these, and no faster than the root of the sum of their squares.

    Args:
        robot: with known drives, whichever of them act.
        q: (n,) joint positions, in [rad].

    Raises:
        RobotError: its drives are not known.
    """
    drives = robot.drives
    if drives is None:
        raise RobotError(f"robot {robot.name!r} has no springs: its drives are not known")
    A, rigid = drives.reflected_inertia, np.isinf(drives.stiffness)
    arm = np.diag(np.linalg.inv(mass_matrix(robot, q) + np.where(np.outer(rigid, rigid), A, 0.0)))
    with np.errstate(divide="ignore"):  # a rotor without inertia has no end to it
        squared = np.where(rigid, 0.0, drives.stiffness) * (1.0 / np.diag(A) + arm)
    return np.where(rigid, 0.0, np.sqrt(squared) / (2 * np.pi))


def frequency_in_steps(frequency: float, time_step: float) -> float:
    """Return what the constant average acceleration of a drive step makes of a frequency, in [Hz].

    With `omega = 2 pi f` that is `tan(omega' dt / 2) = omega dt / 2`, always slower: by 3 % where a turn is
    ten steps, by 15 % where it is four (N. Newmark 1959, beta = 1/4).
    """
    return float(np.arctan(np.pi * frequency * time_step) / (np.pi * time_step))


def warn_of_unresolved_springs(robot: Robot, time_step: float) -> bool:
    """Warn, in one sentence, where steps are too long for the vibrations of elastic joints at `q = 0`.

    The simulation stays stable then, but such a joint vibrates slower than it should.  Returns whether it
    warned.
    """
    if robot.drive_mode != "elastic":
        return False
    frequencies = spring_frequencies(robot, np.zeros(robot.n)).tolist()
    names = zip(robot.joint_names, frequencies, strict=True)
    fast = {joint: f for joint, f in names if f * time_step > MOST_TURNS}
    if fast:
        told = ", ".join(
            f"{joint} at {f:.0f} Hz ({frequency_in_steps(f, time_step):.0f} Hz in such steps)"
            for joint, f in fast.items()
        )
        warnings.warn(
            f"steps of {time_step:g} s are too long for the springs of {told}; where their vibration "
            "matters, take at least 4 steps for each of its turns",
            DriveWarning,
            stacklevel=3,
        )
    return bool(fast)
