"""Motion supervision: external torques on an arm, found by a residual observer from its motors alone.

The arm moves by `qd+ = qd + T qdd` under the torque tau of its motors and an external one.  From the speeds
at both ends of a period, the torque of the controller's model for this motion less that of the motors is the
residual of the period,

    d_k = M(q_k) (qd_{k+1} - qd_k) / T + C qd_k + g(q_k) + A (qd_{k+1} - qd_k) / T + F_k - tau_k,
    r   <- r + K T (d_k - r),

with the rotors' inertia A and the friction F of the model's drives, and a first-order filter of the bandwidth
K.  For an exact model that moves, r is the filtered torque `J^T F` of the wrench F on the arm at the tool, up
to rounding.  The torque of the motors is that which they gave, not the demand.  An observer of
the generalised momentum in continuous time (De Luca) is off by some hundredths of a newton metre at 1 ms.

While a joint rests or turns back, its friction is unknown: up to its static friction, d_k counts as friction
and is left out.  Otherwise the least error of the load would show as all of it wherever a joint stops.
`hidden_force` says what that hides at the tool.  In free motion r is the error of the model.  Thresholds lie
above it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import ArrayLike, NDArray

from twin.base.arrays import Floats
from twin.base.jit import compiled
from twin.physics.control.control_law import ControlLaw, Model, compiled_law, load_memory, motor_torque
from twin.physics.dynamics.regressor import dynamics_regressor
from twin.physics.kinematics.forward import jacobian
from twin.physics.robot.evaluation import copied
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.sampling import Reference, State

BANDWIDTH = 60.0  # of the observer, in [1/s]
MARGIN, LEAST = 1.1, 0.5  # threshold over the largest residual of free motion, and [N m] that are added
MOVES = 0.01  # speed from which on a joint moves, in [rad/s]


@register_jitable
def observe(
    model: Model, q: NDArray, qd: NDArray, tau: NDArray, K: NDArray, hidden: NDArray, memory: NDArray
) -> None:
    """Update the disturbance, row 2 of an `observer_memory`, by the period that ends now.

    Args:
        model: the controller's model.
        q: (n,) measured positions, in [rad].
        qd: (n,) measured speeds, in [rad/s].
        tau: (n,) torques that the motors gave in the period, in [N m].
        K: (n,) bandwidth, in [1/s]; from 1 / period on it does not filter.
        hidden: (n,) torque that counts as friction while a joint does not move, in [N m].
        memory: (rows, n), changed in place.
    """
    T = model.period
    q_before, qd_before, disturbance, started, load = memory[0], memory[1], memory[2], memory[3], memory[4:]
    if started[0] > 0.0:
        needed = np.empty(len(q))
        motor_torque(model, q_before, qd_before, (qd - qd_before) / T, load, needed)
        for i in range(len(q)):
            torque = needed[i] - tau[i]
            if qd[i] * qd_before[i] < MOVES**2:
                torque -= min(max(torque, -hidden[i]), hidden[i])
            disturbance[i] += min(K[i] * T, 1.0) * (torque - disturbance[i])
    q_before[:], qd_before[:], started[:] = q, qd, 1.0


def observer_memory(robot: Robot) -> NDArray:
    """Return the start of the memory of `observe`, whose row 2 is the disturbance."""
    return np.vstack([np.zeros((4, robot.n)), load_memory(robot)])


@compiled_law
def residual(state, reference, parameters, memory, model):
    """Return the residual; K and the hidden torque are parameters, see `twin.control.control_law`."""
    observe(model, state.q, state.qd, state.tau, parameters[0], parameters[1], memory)
    return memory[2].copy()


@compiled
def over_samples(bound, q, qd, given, parameters, memory, residuals):
    """Fill the residuals (N, n) of samples before which the motors gave the torques `given` (N, n)."""
    for k in range(len(q)):
        state = State(0.0, q[k].copy(), qd[k].copy(), given[k].copy(), np.zeros((0, 0)), np.zeros(6))
        unused = Reference(state.q, state.q, state.q)
        residuals[k] = bound.law(state, unused, parameters, memory, bound.model)


class ResidualObserver(ControlLaw):
    """Observer of the external torques on an arm, sample by sample or over a whole log.

    Attributes:
        torque: (1, n) torque of the motors since the last sample, in [N m].

    Args:
        model: the controller's model of the robot, drives and payload included.
        bandwidth: bandwidth K, scalar or (n,), in [1/s]; from 1 / period on it does not filter.
        period: control period, in [s].

    Example:
        >>> import controllers, twin
        >>> from twin.physics.control.supervision import ResidualObserver
        >>> robot = twin.load("two_link")
        >>> rest, law = twin.hold([0, 0], 0.2), controllers.make("computed_torque", robot)
        >>> push = twin.dynamics.Environment(twin.dynamics.pushes("0:1 5,0,0"))
        >>> plant, reference = twin.AnalyticPlant(robot), twin.sample(rest, 1e-3)
        >>> log = twin.run_closed_loop(plant, law, reference, environment=push)
        >>> r = ResidualObserver(robot).follow(log.q, log.qd, log.tau)
        >>> r[-1].round(1).tolist()  # J^T F for the force of 5 N across the links of 1 m
        [10.0, 5.0]
    """

    def __init__(self, model: Robot, bandwidth: ArrayLike = BANDWIDTH, period: float = 1e-3) -> None:
        drives, hidden = model.active_drives, np.zeros(model.n)
        if drives is not None:
            hidden = np.abs(drives.friction_matrix.T) @ drives.static
        parameters = bandwidth, hidden
        super().__init__(model, residual, parameters, memory=observer_memory(model), period=period)
        self.torque = np.zeros((1, model.n))

    def follow(self, q: Floats, qd: Floats, tau: Floats) -> Floats:
        """Return the residuals at N samples, which follow those of the call before.

        Args:
            q: (N, n) measured positions, in [rad].
            qd: (N, n) measured speeds, in [rad/s].
            tau: (N, n) torques of the motors from each sample to the next, in [N m].

        Returns:
            r (N, n) of the periods up to each sample, in [N m].
        """
        given, self.torque = np.vstack([self.torque, tau[:-1]]), copied(tau[-1:])
        found = np.empty_like(given)
        over_samples(self.bound or self, copied(q), copied(qd), given, self.parameters, self.memory, found)
        return found


def residuals(log: Any, model: Robot, K: ArrayLike = BANDWIDTH) -> Floats:
    """Return the residuals r (N, n) of a `twin.Log`, in [N m], see `ResidualObserver.follow`.

    Args:
        log: the log; its measured values count, as for a controller.
        model: the controller's model of the robot.
        K: bandwidth, scalar or (n,), in [1/s].

    Example:
        >>> from scenarios.gravity_hold import GravityHold
        >>> from twin.physics.control.supervision import residuals
        >>> log = GravityHold(duration=0.1).run().log
        >>> bool(abs(residuals(log, log.robot)).max() < 1e-11)
        True
    """
    period = log.time_step * log.steps_per_period
    return ResidualObserver(model, K, period).follow(log.q_seen, log.qd_seen, log.tau)


def thresholds(largest: ArrayLike) -> Floats:
    """Return thresholds (n,) for the largest residuals (n,) of free motion, in [N m].

    Example:
        >>> from twin.physics.control.supervision import thresholds
        >>> thresholds([10.0, 0.0]).tolist()
        [11.5, 0.5]
    """
    return MARGIN * np.asarray(largest, dtype=np.float64) + LEAST


def hidden_force(robot: Robot, q: ArrayLike, T_flange_tool: ArrayLike | None = None) -> Floats:
    """Return the largest force along each base axis that no residual shows while all joints stick.

    Up to it, the torque `J^T F` on every shaft with friction is at most its static friction, so that the arm
    may stay at rest under unchanged motor torques.  A larger force moves a shaft.  Friction that grows with
    the load is not counted.

    Args:
        robot: the robot with its drives.
        q: (..., n) positions, in [rad].
        T_flange_tool: (4, 4) pose of the tool on the flange; by default the flange itself.

    Returns:
        (..., 3) forces along x, y and z, in [N]: infinite along an axis that no shaft feels, and 0 without
        friction.

    Example:
        >>> import twin
        >>> from twin.physics.control.supervision import hidden_force
        >>> robot = twin.load("irb140").with_drives("rigid")
        >>> hidden_force(robot, robot.poses["test_3"]).round(0).tolist()
        [163.0, 68.0, 66.0]
    """
    q, drives = np.asarray(q, dtype=np.float64), robot.active_drives
    if drives is None:
        return np.zeros((*q.shape[:-1], 3))
    on_joints = np.swapaxes(jacobian(robot, q, T_flange_tool)[..., :3, :], -1, -2)
    on_shafts = np.abs(drives.transmission @ on_joints)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.fmin.reduce(drives.static[:, None] / on_shafts, axis=-2)


def lacking_mass(log: Any, model: Robot) -> tuple[float, float]:
    """Return the mass that the tool data of a model lacks, and the share of the residual that it explains.

    In free motion, wrong tool data is the usual cause of large residuals.  The residual of each period is
    fitted by a body at the flange, and by the drives' friction and rotors, where joints move.

    Args:
        log: `twin.Log` of a free motion; its measured values count.
        model: the controller's model of the robot, with the payload that it knows.

    Returns:
        mass in [kg], negative if the model has too much, and the share of the squared residual that the body
        explains, 1 for all of it.

    Example:
        >>> from scenarios import JointTracking
        >>> from twin.physics.control.supervision import lacking_mass
        >>> log = JointTracking(duration=0.5).run(JointTracking.setup(payload="3", model_payload="0")).log
        >>> np.round(lacking_mass(log, log.robot.with_payload(None)), 3).tolist()
        [3.0, 1.0]
    """
    T, q, qd, after = log.time_step * log.steps_per_period, log.q_seen, log.qd_seen[:-1], log.qd_seen[1:]
    r, moves = residuals(log, model, 1.0 / T)[1:], np.abs(after) > MOVES
    Y = dynamics_regressor(model, q[:-1], qd, (after - qd) / T, after)
    first, end = 10 * model.tree.flange_joint, 10 * model.tree.n
    body, r = Y[..., first : first + 10][moves], r[moves]
    phi = np.linalg.lstsq(np.hstack([body, Y[..., end:][moves]]), r, rcond=None)[0][:10]
    return -float(phi[0]), 1.0 - float(np.sum((r - body @ phi) ** 2) / max(np.sum(r**2), 1e-300))
