"""Flexible joint: two inertias, the motor and the arm, connected by a gear and a spring.

    Jm qm'' + fm qm' + r T = tau          motor
    Ja qa'' + fa qa' - T = 0              arm
    T = k (r qm - qa) + d (r qm' - qa')   torque of spring and damper on the arm

Source: Norrlöf 1999, eq. (3.69)-(3.73); Norrlöf, lecture 3, "Friction and joint flexibilities", for one joint
with r = 1 (in print the signs of its spring are reversed, and d multiplies angles).

The report omits the r before T.  If its k and Ja were the stiffness and the inertia of the arm, the spring
would create power.  Its equations equal those above if its k and Ja are r times these quantities, and
`FlexibleJoint.reported` interprets them so.  For axis 1 of the IRB 1400, Table 3.1 then gives
k = 80.2 kN m/rad and Ja = 6.16 kg m^2.
"""

from __future__ import annotations

import warnings
from dataclasses import astuple, dataclass, fields
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, checked_time_step, real_array
from twin.base.errors import DriveWarning, RobotError
from twin.physics.dynamics.equation_of_motion import mass_matrix
from twin.physics.robot.drives.drive_step import drive_numbers, drive_step
from twin.physics.robot.drives.drives import Drives
from twin.physics.robot.robot import Robot


@dataclass(frozen=True)
class FlexibleJoint:
    """Flexible joint with motor, gear, spring and arm.

    Motor angles `qm` are on the motor's side of the gear, all other quantities on the arm's side.

    Attributes:
        Jm: moment of inertia of the motor, in [kg m^2].
        Ja: moment of inertia of the arm about the joint, in [kg m^2].
        k: stiffness of the spring, in [N m/rad].
        r: gear ratio, the angle of the arm per radian of the motor if the spring is relaxed; not zero.
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
                valid, expected = 0 < abs(value) < inf, "a finite number other than 0"
            elif part.name in ("Jm", "Ja", "k"):
                valid, expected = 0 < value < inf, "above 0"
            else:
                valid, expected = 0 <= value < inf, "at least 0"
            if not valid:
                raise ValueError(f"expected {part.name} of a flexible joint to be {expected}, got {value}")

    @classmethod
    def reported(cls, Jm: float, Ja: float, k: float, r: float, fm: float, fa: float = 0.0) -> FlexibleJoint:
        """Return the joint for the symbols of the report, whose k, Ja and fa are r times those of the arm.

        Source: Norrlöf 1999, eq. (3.71) and Table 3.1.
        """
        if not 0 < r < inf:
            raise ValueError(f"expected r of the report's joint to be above 0, got {r}")
        return cls(Jm, Ja / r, k / r, r, fm, fa / r)


class StateSpace(NamedTuple):
    """Linear system `x' = A x + B u`, `y = C x`, with A (n, n), B (n, 1) and C (1, n)."""

    A: Floats
    B: Floats
    C: Floats


def angle_model(joint: FlexibleJoint) -> StateSpace:
    """Return the linear model from the motor's torque to its angle; the state is `[qm, qm', qa, qa']`.

    Example:
        >>> from twin.physics.dynamics.flexible_joint import FlexibleJoint, angle_model
        >>> model = angle_model(FlexibleJoint(Jm=1, Ja=2, k=100, fm=3, d=2))
        >>> model.A[1].tolist()
        [-100.0, -5.0, 100.0, 2.0]

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
    """Return the linear model from the motor's torque to its velocity; the state is `[qm', qa', r qm - qa]`.

    Example:
        >>> from twin.physics.dynamics.flexible_joint import FlexibleJoint, velocity_model
        >>> model = velocity_model(FlexibleJoint(Jm=1, Ja=2, k=100, fm=3, d=2))
        >>> model.A[0].tolist()
        [-5.0, 2.0, -100.0]

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
    """Return the eigenvalues (n,) of A, in [1/s], in ascending order of their real parts.

    Example:
        >>> from twin.physics.dynamics.flexible_joint import FlexibleJoint, poles, velocity_model
        >>> model = velocity_model(FlexibleJoint(Jm=1, Ja=1, k=12.5, d=3))
        >>> poles(model)[:2].round(4).tolist()
        [(-3-4j), (-3+4j)]
    """
    return np.sort_complex(np.linalg.eigvals(model.A))


def zeros(joint: FlexibleJoint) -> np.ndarray:
    """Return the zeros (2,) from the motor's torque to its motion, in [1/s].

    They are the poles of the arm with the motor locked.

    Example:
        >>> from twin.physics.dynamics.flexible_joint import FlexibleJoint, zeros
        >>> zeros(FlexibleJoint(Jm=1, Ja=1, k=25, d=6)).round(4).tolist()
        [(-3-4j), (-3+4j)]
    """
    return np.sort_complex(np.linalg.eigvals(angle_model(joint).A[2:, 2:]))


def frequency_response(model: StateSpace, omega: ArrayLike) -> np.ndarray:
    """Return the complex gain `C (i omega - A)^-1 B` (...,) at frequencies `omega` (...,), in [rad/s].

    Example:
        >>> from twin.physics.dynamics.flexible_joint import FlexibleJoint, frequency_response, velocity_model
        >>> model = velocity_model(FlexibleJoint(Jm=1, Ja=1, k=100))
        >>> abs(frequency_response(model, [1, 20])).round(4).tolist()
        [0.4975, 0.075]
    """
    s = 1j * real_array(omega, "omega")[..., None, None]
    x = np.linalg.solve(
        s * np.eye(len(model.A)) - model.A, np.broadcast_to(model.B, (*s.shape[:-2], *model.B.shape))
    )
    return (model.C @ x)[..., 0, 0]


def energy_matrix(joint: FlexibleJoint) -> Floats:
    """Return H (4, 4) of the energy `x^T H x / 2` at `x = [qm, qm', qa, qa']`; the power is `x^T H x'`.

    Example:
        >>> from twin.physics.dynamics.flexible_joint import FlexibleJoint, energy_matrix
        >>> energy_matrix(FlexibleJoint(Jm=1, Ja=2, k=100)).diagonal().tolist()
        [100.0, 1.0, 100.0, 2.0]
    """
    r, k = joint.r, joint.k
    return np.array(
        [[k * r * r, 0, -k * r, 0], [0, joint.Jm, 0, 0], [-k * r, 0, k, 0], [0, 0, 0, joint.Ja]],
        dtype=np.float64,
    )


def energy(joint: FlexibleJoint, x: ArrayLike) -> np.ndarray:
    """Return the kinetic energy of both inertias plus the energy of the spring.

    Args:
        joint: the joint.
        x: (..., 4) state `[qm, qm', qa, qa']`, in [rad, rad/s].

    Returns:
        (...,), in [J].

    Example:
        >>> from twin.physics.dynamics.flexible_joint import FlexibleJoint, energy
        >>> joint = FlexibleJoint(Jm=1, Ja=1, k=100)
        >>> round(float(energy(joint, [0.1, 1, 0, 2])), 4)  # 1/2 (1 + 4) + 1/2 100 0.1^2
        3.0
    """
    qm, qmd, qa, qad = _state(x)
    return (joint.Jm * qmd**2 + joint.Ja * qad**2 + joint.k * (joint.r * qm - qa) ** 2) / 2


def spring_torque(joint: FlexibleJoint, x: ArrayLike) -> np.ndarray:
    """Return the torque T (...,) of spring and damper on the arm, in [N m], at states `x` (..., 4).

    Example:
        >>> from twin.physics.dynamics.flexible_joint import FlexibleJoint, spring_torque
        >>> joint = FlexibleJoint(Jm=1, Ja=1, k=100)
        >>> round(float(spring_torque(joint, [0.1, 0, 0, 0])), 4)
        10.0
    """
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
    """Simulate the motion of a flexible joint under a torque of its motor.

    Errors are of first order in the step.  Friction that is not viscous acts on the motor.  It is expressed
    on the joint's side of the gear, as in `twin.robot.drives.drives.Drives`.

    Args:
        joint: the joint.
        tau: (N,) torque of the motor in each step, in [N m].
        time_step: integration step, in [s].
        x: (4,) initial state `[qm, qm', qa, qa']`, in [rad, rad/s].
        coulomb: Coulomb friction of the motor, in [N m].
        static: breakaway torque of the motor, in [N m]; by default `coulomb`.
        stribeck_speed: Stribeck speed, see `Drives`, in [rad/s].

    Returns:
        (N + 1, 4) states, the initial state first.

    Raises:
        ValueError: a shape is wrong, a value is not finite, the step is not positive, or the friction values
            are invalid.

    Example:
        >>> from twin.physics.dynamics.flexible_joint import FlexibleJoint, simulate_flexible_joint
        >>> joint = FlexibleJoint(Jm=1, Ja=2, k=100)
        >>> x = simulate_flexible_joint(joint, [2.0] * 100, time_step=1e-3)
        >>> round(float(joint.Jm * x[-1, 1] + joint.Ja * x[-1, 3]), 4)  # 2 N m for 0.1 s
        0.2
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
    M = np.array([[joint.Ja + dt * joint.fa]])  # so that the arm's friction acts at the speed after the step
    (theta, thetad), (q, qd) = (start[:2, None] * r).copy(), start[2:, None].copy()
    next_qd, next_thetad, torque = np.empty((3, 1))
    states = np.empty((len(torques) + 1, 4))
    states[0] = start
    for k, motor_torque in enumerate(torques):
        at_joint = np.array([motor_torque / r])
        drive_step(numbers, M, joint.fa * qd, at_joint, q, qd, theta, thetad, next_qd, next_thetad, torque)
        qd[:], thetad[:] = next_qd, next_thetad
        q += dt * qd
        theta += dt * thetad
        states[k + 1] = theta[0] / r, thetad[0] / r, q[0], qd[0]
    return states


MAX_CYCLES_PER_STEP = 0.25
"""Largest resolved number of vibration cycles in a step; the simulated frequency is then 15 % too low."""


def spring_frequencies(robot: Robot, q: ArrayLike) -> np.ndarray:
    """Return the undamped frequency (n,) of each elastic joint's motor against the arm, in [Hz].

    It is 0 for a rigid joint.  Each spring is considered alone.  Its stiffness k acts on the motor, whose
    coupled motors are free, and on the arm, whose other joints are free, so that

        (2 pi f)^2 = k_i ((A_e^-1)_ii + 1 / m_i),    1 / m_i = (M + A_r)^-1_ii,

    with the rotors `A_e` of the elastic and `A_r` of the rigid drives.  The highest frequency of the whole
    arm is at least the largest of these, and at most the root of the sum of their squares.

    Args:
        robot: robot with known drives, in any drive mode.
        q: (n,) joint positions, in [rad].

    Raises:
        RobotError: the robot's drives are unknown.
    """
    drives = robot.drives
    if drives is None:
        raise RobotError(f"robot {robot.name!r} has no springs: its drives are unknown")
    A, rigid = drives.reflected_inertia, np.isinf(drives.stiffness)
    arm = np.diag(np.linalg.inv(mass_matrix(robot.arm, q) + np.where(np.outer(rigid, rigid), A, 0.0)))
    turning = np.flatnonzero(~rigid & (np.diag(A) > 0.0))
    motor = np.full(robot.n, np.inf)  # a rotor without inertia has an infinite frequency
    motor[turning] = np.diag(np.linalg.inv(A[np.ix_(turning, turning)]))
    frequencies = np.zeros(robot.n)
    frequencies[~rigid] = np.sqrt(drives.stiffness * (motor + arm))[~rigid] / (2 * np.pi)
    return frequencies


def frequency_in_steps(frequency: float, time_step: float) -> float:
    """Return the frequency at which a drive step simulates a vibration of the given frequency, in [Hz].

    The constant average acceleration of the step lowers the frequency, `tan(omega' dt / 2) = omega dt / 2`
    with `omega = 2 pi f`: by 3 % for ten steps per cycle, by 15 % for four (N. Newmark 1959, beta = 1/4).
    """
    return float(np.arctan(np.pi * frequency * time_step) / (np.pi * time_step))


def warn_of_unresolved_springs(robot: Robot, time_step: float) -> bool:
    """Warn if the time step is too long for the vibrations of elastic joints at `q = 0`.

    The simulation remains stable, but such a joint vibrates too slowly.  Return whether a warning was issued.
    """
    if robot.drive_mode != "elastic":
        return False
    frequencies = spring_frequencies(robot, np.zeros(robot.n)).tolist()
    names = zip(robot.joint_names, frequencies, strict=True)
    fast = {joint: f for joint, f in names if f * time_step > MAX_CYCLES_PER_STEP}
    if fast:
        joints = ", ".join(
            f"{joint} at {f:.0f} Hz (simulated at {frequency_in_steps(f, time_step):.0f} Hz)"
            for joint, f in fast.items()
        )
        warnings.warn(
            f"steps of {time_step:g} s are too long for the springs of {joints}; if their vibration "
            "matters, use at least 4 steps per cycle",
            DriveWarning,
            stacklevel=3,
        )
    return bool(fast)
