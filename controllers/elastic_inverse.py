"""Inverse of elastic joints: the motors move so that the springs move the arm along the reference.

The links need the torque T of the reference's inverse dynamics, which spring and damper transmit,

    T = K e + D ed,    theta = q_ref + e,    tau = T + A thetadd + F(thetad),

with the rotors' inertia A and the motors' friction F.  The twist e follows from T, and the motors' reference
theta from it, before the run.  The law adds feedback of the motors, as in computed torque,

    tau = T + Mbar u + A (thetadd + u) + F,    u = Kv (thetad - qd_motor) + Kp (theta - q_motor),

with the inertia Mbar of the arm at each joint.  F is the friction in the coming step, foreseen at the
measured speed.  With an exact model the error is that of the samples: the smoother the reference, the
smaller.

In the engine's steps the torque of a spring is the mean of three twists with the weights 1/4, 1/2, 1/4, and
that of a damper belongs to the speed over two steps (`twin.robot.drives.drive_step`).  The trapezoidal rule
for K and D gives twists whose torque is such a mean B of the torque that is put in.  Therefore `2 T - B T` is
put in, which leaves an error of the fourth order in the period.  This requires one engine step in a period:
with two, the error of an IRB 140 that moves to a pose in 1 s is 1.7e-4 rad instead of 7e-8.

Without springs in the model, and in parts of a run, whose rest is unknown, the law is computed torque.

Source: A. De Luca, W. Book, "Robots with flexible elements", Springer Handbook of Robotics (2016), section
11.1.4, on the inverse dynamics of elastic joints; the inverse of the discrete spring is ours.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import lfilter

from controllers.computed_torque import computed_torque
from controllers.gains import AccelerationGains, acceleration_gains, diagonal_inertia, with_chosen
from twin.base.errors import LimitError
from twin.physics.control.control_law import ControlLaw, Model, compiled_law, load_memory, motor_torque
from twin.physics.dynamics.equation_of_motion import inverse_dynamics
from twin.physics.robot.drives.drive_step import add_drive_torque
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import joint_unit
from twin.physics.trajectories.sampling import Reference, Samples, State

JUMP = 20.0
"""Torque of a motor's reference over its limit that only a jump of the reference causes."""

T_ARM, THETA, THETAD, THETADD = range(4)
"""Rows of the prepared table: torque of the springs, and the motion of the motors in joint units."""


@compiled_law
def elastic_inverse(
    state: State, reference: Reference, parameters: NDArray, memory: NDArray, model: Model
) -> NDArray:
    """Return the torque; Kp, Kv and Mbar are the parameters, see `twin.control.control_law`."""
    Kp, Kv, inertia, table = parameters[0], parameters[1], parameters[2], state.table
    if len(table) == 0:  # a part of a run
        qdd = reference.qdd + Kv * (reference.qd - state.qd) + Kp * (reference.q - state.q)
        tau = np.empty(len(qdd))
        motor_torque(model, state.q, state.qd, qdd, memory, tau)
        return tau
    feedback = Kv * (table[THETAD] - state.qd) + Kp * (table[THETA] - state.q)
    tau = table[T_ARM] + inertia * feedback
    add_drive_torque(model.drives, state.qd, table[THETADD] + feedback, model.period, tau, tau)
    return tau


class ElasticInverse(ControlLaw):
    """Motion of the motors that lets springs move the arm along the reference, plus PD of the motors."""

    name = "elastic_inverse"

    def __init__(
        self, robot: Robot, *, bandwidth: ArrayLike = 20.0, period: float = 1e-3,
        Kp: ArrayLike | None = None, Kv: ArrayLike | None = None,
    ) -> None:  # fmt: skip
        """Derive the gains from the bandwidth, except for those that are given.

        Args:
            robot: the controller's model of the robot, drives included; elastic ones for springs.
            bandwidth: natural frequencies omega, scalar or (n,), in [rad/s].
            period: time between two calls, in [s].
            Kp: position gain, scalar or (n,), in [1/s^2].
            Kv: speed gain, scalar or (n,), in [1/s].
        """
        gains = with_chosen(acceleration_gains(robot, bandwidth), Kp=Kp, Kv=Kv)
        drives = robot.active_drives
        if drives is None or robot.drive_mode != "elastic" or not np.any(np.isfinite(drives.stiffness)):
            super().__init__(robot, computed_torque, gains, memory=load_memory(robot), period=period)
        else:
            inertia = diagonal_inertia(robot.arm)
            super().__init__(robot, elastic_inverse, (*gains, inertia), period=period)

    @property
    def gains(self) -> AccelerationGains:
        """Gains Kp, Kv."""
        return AccelerationGains(*self.parameters[:2])

    @property
    def rows(self) -> dict[str, NDArray]:
        """Gains (n,) by name."""
        return self.gains._asdict()

    def prepare(self, reference: Samples) -> NDArray | None:
        """Return the motors' reference and the springs' torque (N, 4, n); `None` without springs.

        Raises:
            LimitError: the reference jumps.
        """
        drives = self.robot.active_drives
        if self.law is not elastic_inverse or drives is None:
            return None
        T = inverse_dynamics(self.robot.arm, *reference[1:])
        e = twists(T, drives.stiffness, drives.damping, self.period)
        ed = np.diff(e, axis=0, prepend=e[:1]) / self.period
        edd = np.diff(ed, axis=0, append=ed[-1:]) / self.period
        motors = reference.q + e, reference.qd + ed, reference.qdd + edd
        torque = T + motors[2] @ drives.reflected_inertia
        load = np.abs(torque) / self.robot.drive_torque_max
        if not np.all(load <= JUMP):
            k, joint = np.unravel_index(int(np.argmax(~(load <= JUMP))), load.shape)
            unit = joint_unit(self.robot.joint_kinds[joint], "torque")
            raise LimitError(
                f"the reference jumps at t = {reference.t[k]:.6g} s (sample {k}): the springs of "
                f"{self.robot.joint_names[joint]} would need {torque[k, joint]:.4g} {unit}, "
                f"the limit is {self.robot.drive_torque_max[joint]:.4g} {unit}; "
                "expected a motion with continuous acceleration"
            )
        return np.stack([T, *motors], axis=1)


def twists(T: NDArray, stiffness: NDArray, damping: NDArray, dt: float) -> NDArray:
    """Return the twists (N, n) of springs that transmit torques in the engine's steps, in [rad].

    Args:
        T: (N, n) torques, constant before the first and after the last sample, in [N m].
        stiffness: (n,) stiffness K, infinite without a spring, in [N m/rad].
        damping: (n,) damping D, in [N m s/rad].
        dt: time step, in [s].
    """
    padded = np.concatenate([T[:1], T, T[-1:]])
    sharp = 2 * T - (padded[:-2] + 2 * T + padded[2:]) / 4
    e = np.zeros_like(T)
    for i in np.flatnonzero(np.isfinite(stiffness)):
        K, D, first = stiffness[i], damping[i], sharp[0, i]
        # K (f + f_before) / 2 + D (f - f_before) / dt = T, e = (f + f_before) / 2, at rest before the start
        b, a = [0.5, 0.5], [K / 2 + D / dt, K / 2 - D / dt]
        e[:, i], _ = lfilter(b, a, sharp[:, i], zi=[(b[1] - a[1] / K) * first / a[0]])
    return e
