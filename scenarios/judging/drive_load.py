"""Load of the motors with the rated payload, each axis at its speed limit; check of the friction law."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scenarios.judging.motion_range import finite_speed, random_positions
from scenarios.metric import Metric
from twin.base.errors import RobotError
from twin.data.logs.figures import place_of_largest
from twin.physics.robot.drives.drives import MOTOR, Drives
from twin.physics.robot.robot import Payload, Robot
from twin.physics.robot.units import caption_unit

if TYPE_CHECKING:
    from twin.data.logs.log import Log


PAYLOAD_COM = (0.083, 0.0, 0.080)
"""Centre of mass in [m], flange frame: 0.080 m beyond the flange and 0.083 m off the last axis.

So it loads every axis.
"""


def known_drives(robot: Robot) -> Drives:
    """Return the drives in the robot's file, in any drive mode.

    Raises:
        RobotError: the file has no drives.
    """
    if robot.drives is None:
        raise RobotError(f"robot {robot.name!r} has no drives: its file has no table [drives]")
    return robot.drives


def with_rated_payload(robot: Robot) -> Robot:
    """Return the robot with its rated payload as a point mass at `PAYLOAD_COM`.

    A robot without a rating, or with a payload, is returned unchanged.
    """
    if robot.rating is None or robot.payload is not None:
        return robot
    return robot.with_payload(Payload(robot.rating.payload, PAYLOAD_COM))


class DriveLoad(NamedTuple):
    """Loads of the motors, each axis moving alone at its speed limit: (n,) each, torques at the joint.

    Attributes:
        gravity: largest gravity torque over all poses, in [N m].
        friction: friction torque at the speed limit, in [N m].
        torque_max: largest torque of the motor at that speed, in [N m].
        rotor_share: share of the rotor in the inertia that the motor accelerates, in the median pose.
        time: times from rest to the speed limit in the worst and the median pose (2, n), in [s], with the
            remaining torque.
        speed: speed of the motor at the joint's speed limit, over its maximum.
    """

    gravity: NDArray
    friction: NDArray
    torque_max: NDArray
    rotor_share: NDArray
    time: NDArray
    speed: NDArray

    @property
    def use(self) -> NDArray:
        """Share of the motor's torque that weight and friction take in the worst pose."""
        with np.errstate(divide="ignore"):  # the torque is 0 beyond the motor's maximum speed
            return (self.gravity + self.friction) / self.torque_max


def drive_load(robot: Robot, seed: int, states: int) -> DriveLoad:
    """Return the load of each motor over random poses within the joints' ranges.

    An axis that moves alone at constant speed accelerates no rotor and causes no Coriolis torque. Its motor
    therefore carries weight and friction only. The remaining torque accelerates the rotor and the arm.

    Args:
        robot: robot with its payload, and with drives that are not ideal.
        seed: seed of the random poses.
        states: number of poses.
    """
    from twin.physics.dynamics.equation_of_motion import friction_torque, gravity_torque, mass_matrix
    from twin.physics.robot.drives.motors import MotorLimits, torque_at_speed

    drives, v = known_drives(robot), finite_speed(robot)
    to_motors = np.linalg.inv(drives.coupling)  # maps rows of joint torques to motor torques
    q = random_positions(robot, np.random.default_rng(seed), states)
    gravity = np.abs(gravity_torque(robot, q) @ to_motors)
    inertia = np.diagonal(to_motors.T @ mass_matrix(robot.arm, q), axis1=1, axis2=2)
    rotor = np.diagonal(to_motors.T @ drives.reflected_inertia)
    friction = np.diagonal(friction_torque(robot, np.diag(v)) @ to_motors)
    limits = MotorLimits.of(drives, robot.tau_max).limits
    torque_max = np.array([torque_at_speed(limits, i, limits[0, i], v[i]) for i in range(robot.n)])
    with np.errstate(divide="ignore"):
        time = (inertia + rotor) * v / np.maximum(torque_max - gravity - friction, 0.0)
    return DriveLoad(
        gravity=gravity.max(axis=0),
        friction=friction.copy(),
        torque_max=torque_max,
        rotor_share=rotor / (rotor + np.median(inertia, axis=0)),
        time=np.array([time.max(axis=0), np.median(time, axis=0)]),
        speed=np.abs(drives.ratio) * v / drives.motor_speed_max,
    )


def worst_axis(robot: Robot, name: str, shares: NDArray, why: str) -> Metric:
    """Return a check that the largest of the axes' shares (n,) is at most 1."""
    axis = int(np.argmax(shares))
    joint = robot.joint_names[axis]
    why = f"{why}, the axis moving alone; largest for {joint}"
    return Metric(name, float(shares[axis]), "", 1.0, why, f"of {joint}")


def load_table(load: DriveLoad, robot: Robot) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """Return a row for each axis: shares of its motor's torque, and the times to the joint's speed limit."""
    unit = caption_unit(robot.joint_kinds, "{torque}")
    rows: list[tuple[str, ...]] = [
        ("axis", "weight", "friction", f"limit {unit}", "use", "margin", "rotor", "worst s", "median s")
    ]
    for joint, name in enumerate(robot.joint_names):
        torques = (load.gravity[joint], load.friction[joint], load.torque_max[joint])
        shares = (load.use[joint], 1.0 - load.use[joint], load.rotor_share[joint])
        numbers = [f"{torque:.1f}" for torque in torques] + [f"{100 * share:.0f} %" for share in shares]
        rows.append((name, *numbers, *(f"{time:.3f}" for time in load.time[:, joint])))
    caption = (
        "Each axis alone at its speed limit, with the rated payload. Weight (in the worst pose) and friction "
        f"are in {unit} at the joint; use is their sum over the limit. Rotor is the rotor's share of the "
        "inertia in the median pose. The times, in s, are from rest to that speed, in the worst and in the "
        "median pose."
    )
    return caption, tuple(rows)


AT_REST = 1e-11
"""[rad/s]: largest speed of a shaft at rest; the motions of two coupled motors cancel up to rounding."""
LIMIT = 5e-11
"""Largest error over the largest torque of rotors, springs, arm and motors.

Observed: 6e-13.
"""
LOOP_LIMIT = 2e-10
"""Limit where the engine solves a closed loop, from which it leaves an error of speed in each step.

Observed: 1.1e-11 and 5.9e-11 on two processors.  Of the latter, all is the step's 8e-13 rad/s, for which
`scenarios.judging.bounds` permits 2.1e-12 rad/s there: 1.5e-10 of the largest torque.
"""


def friction_metrics(log: Log) -> tuple[Metric, ...]:
    """Return the check that the drives obey the friction law; empty without drives.

    Empty also with several engine steps in a control period, because the log lacks the states in between.
    """
    if log.robot.active_drives is None or log.steps_per_period != 1 or len(log.t) < 2:
        return ()
    error = friction_errors(log)
    return (
        Metric(
            "friction - its law",
            float(np.max(np.abs(error))),
            "",
            LOOP_LIMIT if log.robot.loops else LIMIT,
            "over the largest torque: motor torque less that of rotors, springs and arm, compared with the "
            "friction law; the limit is the rounding of accelerations",
            place_of_largest(log, error),
        ),
    )


def friction_errors(log: Log) -> NDArray:
    """Return the deviations (N-1, n) of friction and springs from their laws, over the largest torque.

    Args:
        log: log of a run with drives and one engine step in a control period.
    """
    from twin.physics.dynamics.equation_of_motion import inverse_dynamics

    if len(pieces := log.parts()) > 1:
        return np.concatenate([friction_errors(piece) for piece in pieces])
    robot, drives, dt = log.robot, log.robot.drives, log.time_step
    assert drives is not None
    q, qd, qd_next = log.q[:-1], log.qd[:-1], log.qd[1:]
    motor, speed, speed_next = log.q_motor[:-1], log.qd_motor[:-1], log.qd_motor[1:]
    arm = inverse_dynamics(robot.arm, q, qd, (qd_next - qd) / dt, log.wrench[:-1], log.T_flange_tool)
    rotors = (speed_next - speed) / dt @ drives.reflected_inertia
    elastic = np.isfinite(drives.stiffness) & (robot.drive_mode == "elastic")
    at_motor = np.array([side == MOTOR for side in drives.friction_at])
    # Newmark's mean of the twist over the step, and the mean of its speed.
    twist = motor - q + dt / 4 * (speed_next - speed - qd_next + qd)
    twist_speed = (speed_next + speed - qd_next - qd) / 2
    stiffness, damping = np.where(elastic, drives.stiffness, 0.0), np.where(elastic, drives.damping, 0.0)
    T = np.where(elastic, stiffness * twist + damping * twist_speed, arm)
    # Without a spring, friction at a joint acts on its motor's side, too, but on this joint alone.
    shafts = np.where(at_motor[:, None], drives.coupling, np.eye(robot.n))
    left = np.linalg.solve(shafts.T, (log.tau[:-1] - rotors - T).T).T
    behind_spring = elastic & ~at_motor
    friction = np.where(behind_spring, T - arm, left)
    balance = np.where(behind_spring, left, T - arm)  # must be 0: no friction acts on this side
    w, w_next = (
        np.where(at_motor, of_motors @ drives.coupling.T, of_joints)
        for of_motors, of_joints in ((speed, qd), (speed_next, qd_next))
    )
    excess = drives.static - drives.coulomb
    with np.errstate(divide="ignore", invalid="ignore"):  # the Stribeck speed may be 0
        ratio = np.where(w == 0, 0.0, w / drives.stribeck_speed)
    falling = np.where(excess > 0, np.exp(-(ratio**2)), 0.0)
    level = drives.coulomb + excess * falling + drives.viscous_root * np.sqrt(np.abs(w))
    transmitted = log.torque_before[:-1] @ drives.transmission.T
    level = level + drives.coulomb_per_load * np.abs(transmitted)
    friction = friction - drives.viscous_difference * np.abs(w) - drives.offset
    sliding = friction - level * np.sign(w_next) - drives.viscous * w_next
    resting = np.maximum(np.abs(friction) - level, 0.0)
    error = np.where(np.abs(w_next) > AT_REST, sliding, resting)
    largest = np.max(np.abs([log.tau[:-1], rotors, T, arm]))
    return np.where(np.abs(balance) > np.abs(error), balance, error) / largest
