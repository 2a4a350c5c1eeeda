"""A controller and a plant in a loop, and the record of what they did.

In each control period: the state is read, the controller demands torques, the drives limit them, and the
plant runs for a whole number of its steps while they are held.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from twin.drive import drive_torque, saturated
from twin.dynamics import mass_matrix
from twin.errors import DivergenceError, LimitError, LoopError
from twin.limits import check_radians
from twin.log import Log, poses
from twin.robot import Robot
from twin.sampling import Reference, Samples, State

RUNAWAY_SPEED = 20.0
"""A joint at so many times its speed limit has run away: no gain or mismatch study comes near, and a step of
1 ms still resolves the motion, so that the log shows how it came about."""

RUNAWAY_ENERGY = 25.0
"""So has a robot with so many times the kinetic energy of its joints at their speed limits, taken one by one
at q = 0.  A heavy joint reaches this long before 20 times its limit; a wrist joint hardly shows in it."""

UNLIMITED_SPEED = 1e3
"""What stands for 20 times the speed limit, in [rad/s] or [m/s], where the URDF names none."""

PROGRESS_INTERVAL = 0.05  # s


class Plant(Protocol):
    """What `run_closed_loop` drives: `twin.engine.Simulation` or `twin.analytic_plant.AnalyticPlant`."""

    robot: Robot
    time_step: float
    loop_gap: float

    def reset(self, q: ArrayLike, qd: ArrayLike | None = None) -> None: ...  # noqa: D102
    def state(self) -> tuple[np.ndarray, np.ndarray]: ...  # noqa: D102
    def step(self, tau: np.ndarray) -> None: ...  # noqa: D102


def run_closed_loop(
    plant: Plant,
    controller: Callable[[State, Reference], np.ndarray],
    reference: Samples,
    *,
    steps_per_period: int = 1,
    start: tuple[ArrayLike, ArrayLike] | None = None,
    progress: Callable[[float], None] | None = None,
) -> Log:
    """Run a controller along a reference.

    The last sample is recorded with the torque that the controller demands there, and the run ends with it.

    Args:
        plant: put at the start, then driven; not closed.
        controller: `(state, reference) -> tau` (n,), in [N m]; its `reset()` is called first, if it has one.
        reference: N samples, one a control period.
        steps_per_period: engine steps in a control period.
        start: joint positions and velocities `(q, qd)` to start from; those of the first sample by default.
        progress: called with the fraction done, at most some twenty times a second, and with 1 at the end.

    Raises:
        LimitError: the reference is far beyond the range of a joint, as angles in degrees are.
        ValueError: the reference's period is not `steps_per_period` steps of the plant; a shape is wrong.
        DivergenceError: the run ran away, a closed loop folded or came open, or the controller demanded a
            torque that is not finite. Its `log`
            holds the samples up to there: before the state that is beyond reason, which the message tells;
            with the torque that is not finite, in `tau_demand` and `tau` of the last sample. It is empty
            when the first state is beyond reason.
    """
    robot = plant.robot
    t, q_ref, qd_ref, qdd_ref = checked_reference(reference, robot.n)
    check_radians(robot, Samples(t, q_ref, qd_ref, qdd_ref))
    steps_per_period = whole_steps(steps_per_period)
    check_period(t, plant.time_step, steps_per_period)
    # A controller that writes to its reference would falsify the log; these views refuse.
    for array in (q_ref, qd_ref, qdd_ref):
        array.setflags(write=False)
    N, n = q_ref.shape
    q, qd, tau, tau_demand = np.empty((4, N, n))
    loop_gap = np.zeros(N)
    name = _name(controller)

    def log(samples: int) -> Log:
        """The first so many samples."""
        part = slice(samples)
        pose, pose_ref = poses(robot, q[part], q_ref[part])
        return Log(
            robot=robot,
            controller=name,
            time_step=plant.time_step,
            steps_per_period=steps_per_period,
            t=t[part],
            q_ref=q_ref[part],
            qd_ref=qd_ref[part],
            qdd_ref=qdd_ref[part],
            q=q[part],
            qd=qd[part],
            tau=tau[part],
            tau_demand=tau_demand[part],
            saturated=saturated(tau_demand[part], robot.tau_max),
            loop_gap=loop_gap[part],
            pose=pose,
            pose_ref=pose_ref,
        )

    if callable(reset := getattr(controller, "reset", None)):
        reset()
    plant.reset(*((q_ref[0], qd_ref[0]) if start is None else start))
    watch, tau_max, shape = Watch(robot), robot.tau_max, (n,)
    tell = time.perf_counter() + PROGRESS_INTERVAL
    samples = zip(t.tolist(), q_ref, qd_ref, qdd_ref, strict=True)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows, the watch reports
        for k, (now, *wanted) in enumerate(samples):
            q_k, qd_k = plant.state()
            q[k], qd[k] = q_k, qd_k
            if (trouble := watch(q_k, qd_k)) is not None:
                raise DivergenceError(f"{trouble} at t = {now:.6g} s", log(k))
            demand = controller(State(now, q_k, qd_k), Reference(*wanted))
            if np.shape(demand) != shape:
                raise ValueError(
                    f"controller {name!r} returned tau of shape {np.shape(demand)} at t = {now:.6g} s, "
                    f"expected {shape}"
                )
            tau_demand[k] = demand
            held = drive_torque(tau_demand[k], tau_max, out=tau[k])
            if not held.dot(held) < np.inf:  # a drive without a limit lets infinity through
                joint = int(np.argmin(np.isfinite(held)))
                raise DivergenceError(
                    f"controller {name!r} demands {held[joint]} N m of {robot.joint_names[joint]} "
                    f"at t = {now:.6g} s",
                    log(k + 1),
                )
            if k < N - 1:
                try:
                    for _ in range(steps_per_period):
                        plant.step(held)
                        loop_gap[k + 1] = max(loop_gap[k + 1], plant.loop_gap)
                except (LimitError, LoopError) as error:
                    raise DivergenceError(
                        f"{error}, in the step after t = {now:.6g} s", log(k + 1)
                    ) from error
            if progress is not None and time.perf_counter() > tell:
                progress((k + 1) / N)
                tell = time.perf_counter() + PROGRESS_INTERVAL
    if progress is not None:
        progress(1.0)
    return log(N)


class Watch:
    """Tells a run that has run away; costs next to nothing while all is well."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.limit = np.where(np.isfinite(robot.qd_max), robot.qd_max, UNLIMITED_SPEED / RUNAWAY_SPEED)
        self.per_limit = 1.0 / self.limit
        self.energy = 0.5 * float(np.diag(mass_matrix(robot, np.zeros(robot.n))) @ self.limit**2)

    def __call__(self, q: np.ndarray, qd: np.ndarray) -> str | None:
        """What is wrong with a state, or `None`."""
        ratio = qd * self.per_limit
        # No joint is above twice its limit, nor does the energy come near; infinite positions and NaN fail.
        if ratio.dot(ratio) <= 4.0 and q.dot(q) < np.inf:
            return None
        broken = ~(np.isfinite(q) & np.isfinite(qd))
        if broken.any():
            joint = int(np.argmax(broken))
            return f"{self.robot.joint_names[joint]} is at {q[joint]} rad with {qd[joint]} rad/s"
        joint = int(np.argmax(np.abs(ratio)))
        fastest = (
            f"{self.robot.joint_names[joint]} runs away: {qd[joint]:.6g} rad/s, "
            f"with a limit of {self.robot.qd_max[joint]:.6g} rad/s,"
        )
        if not abs(ratio[joint]) <= RUNAWAY_SPEED:
            return fastest
        kinetic = 0.5 * float(qd @ mass_matrix(self.robot, q) @ qd)
        if not kinetic <= RUNAWAY_ENERGY * self.energy:
            return f"{fastest} and a kinetic energy of {kinetic:.6g} J"
        return None


def checked_reference(reference: Samples, n: int) -> tuple[np.ndarray, ...]:
    """Copies of the reference's arrays, checked."""
    arrays = tuple(np.array(part, dtype=np.float64) for part in reference)
    N = len(arrays[0])
    if N == 0:
        raise ValueError("expected a reference of at least one sample")
    for name, array, shape in zip(
        ("t", "q", "qd", "qdd"), arrays, ((N,), (N, n), (N, n), (N, n)), strict=True
    ):
        if array.shape != shape:
            raise ValueError(f"expected reference.{name} of shape {shape}, got {array.shape}")
        if not np.all(np.isfinite(array)):
            raise ValueError(f"expected reference.{name} to be finite")
    return arrays


def whole_steps(steps_per_period: Any) -> int:
    """The steps of a period as an integer; `ValueError` for anything else, 2.0 included."""
    try:
        steps = operator.index(steps_per_period)
    except TypeError:
        steps = 0
    if not steps >= 1:
        raise ValueError(
            f"expected a whole number of engine steps in a period, an integer of at least 1, "
            f"got {steps_per_period!r}"
        )
    return steps


def check_period(t: np.ndarray, time_step: float, steps_per_period: int) -> None:
    """Raise `ValueError` unless the samples are `steps_per_period` engine steps apart."""
    if len(t) < 2:
        return
    period, expected = t[1] - t[0], steps_per_period * time_step
    if not abs(period - expected) <= 1e-9 * expected:
        raise ValueError(
            f"the reference has a period of {period:.6g} s, "
            f"which is not {steps_per_period} steps of {time_step:.6g} s (steps_per_period x time_step)"
        )
    if not np.all(np.abs(np.diff(t) - expected) <= 1e-6 * expected):
        raise ValueError(f"expected reference.t to advance by {expected:.6g} s everywhere")


def _name(controller: Any) -> str:
    """The controller's name, a function's own if it has no other."""
    return str(getattr(controller, "name", getattr(controller, "__name__", type(controller).__name__)))
