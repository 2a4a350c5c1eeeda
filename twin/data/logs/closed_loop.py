"""Closed loop of a controller and a plant, and its log.

Each control period has four steps.  The state is read, the controller demands torques, the motors limit
them, and the plant advances by a whole number of its time steps under constant torques.  The laws of this
project run as machine code, see `twin.control.control_law`; other controllers, and all with
`NUMBA_DISABLE_JIT=1`, are called from Python, so that a debugger can step through them.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from twin.base.errors import ControllerError, DivergenceError, LimitError, LoopError, SingularityError
from twin.data.logs.annotations import Surroundings
from twin.data.logs.log import Log
from twin.physics.control.control_law import NOT_A_TORQUE, WRONG_SHAPE, ControlLaw, sample
from twin.physics.control.plant import MotorSide, Plant
from twin.physics.control.signals import (
    ALL_ROWS,
    DEMAND,
    PLAIN_ROWS,
    QD,
    TAU,
    TAU_JOINT,
    Bounds,
    Q,
    RunningSensors,
    check_period,
    checked_reference,
    divergence_message,
    joint_without_torque,
    limit_and_record,
    name_of,
    other_rows,
    prepared_table,
    whole_steps,
    within_twice_the_speed_limits,
)
from twin.physics.dynamics.environment import Environment
from twin.physics.robot.drives.motors import MotorLimits, Sensors
from twin.physics.robot.units import joint_unit
from twin.physics.trajectories.sampling import Reference, Samples, State, check_radians

PROGRESS_INTERVAL = 0.05  # s
FLOAT = np.dtype(np.float64)


def run_closed_loop(
    plant: Plant,
    controller: Callable[[State, Reference], np.ndarray],
    reference: Samples,
    *,
    steps_per_period: int = 1,
    start: tuple[ArrayLike, ArrayLike] | None = None,
    part: bool = False,
    sensors: Sensors | RunningSensors | None = None,
    progress: Callable[[float], None] | None = None,
    at_sample: Callable[[int], None] | None = None,
    learn: bool = True,
    environment: Environment | None = None,
) -> Log:
    """Run a controller along a reference, step by step, and return the log.

    Use it for a single run with any plant (PyBullet included), any controller object and sensors: each step
    can be watched in a debugger, and the log holds every signal.  Use `run_rollouts` for thousands of runs:
    it compiles the loop around the analytic plant, runs batches on all cores, and requires a `ControlLaw`.

    The controller receives the motor positions and speeds in joint units, as the sensors measure them.  They
    equal those of the joints unless the drives are elastic.  The run ends with the last sample, which is
    recorded with the torque demanded there.

    Args:
        plant: plant that is set to the start and then driven; it remains open afterwards.
        controller: `(state, reference) -> tau` (n,), in [N m]. Its `reset()`, if it has one, is called first.
            `state.tau` is what the motors gave since the sample before. Its `signals`, a dict of arrays (n,)
            by name if it has one, are recorded at every sample in `Log.law_signals`.  Its
            `prepare(reference)`, if it has one, is called after the reset; if that returns a table
            (N, rows, n), row k is `state.table` at sample k.
        reference: N samples, one per control period.
        steps_per_period: number of plant steps in a control period.
        start: initial joint positions and velocities `(q, qd)`; by default those of the first sample.
        part: whether the reference is a part of a longer run. Then neither plant nor controller is reset
            before it, `prepare` is not called because the rest of the motion is unknown, and the plant also
            runs for a period after the last sample, where the next part begins.
        sensors: sensors between the motors and the controller; by default it receives the exact values.
            A run in parts requires `RunningSensors`, which retain their state from part to part. They are
            restarted if `part` is false.
        progress: function called with the completed fraction, at most some twenty times a second, and with 1
            at the end.
        at_sample: function called with the index of each sample after its state was read.
        learn: whether the controller's `learn(log)`, if it has one, is called after a whole run.  What it
            learns outlasts the reset, so the next run may differ.
        environment: pushes on the tool, in the time of the reference, and surfaces that it can touch; the
            plant needs a `step` with a wrench.

    Raises:
        LimitError: the reference is far beyond the range of a joint, as angles in degrees are.
        ValueError: the reference's period is not `steps_per_period` steps of the plant; a shape or a type is
            wrong; a start is given for a part of a run; the plant, or a controller with a `reset` method, is
            used by another closed loop at this moment; the robot's drives are not ideal, but the plant has no
            drives; there is an environment, and the plant's step takes no wrench.
        ControllerError: the controller does not return n real numbers.
        RobotError: the sensors are encoders, and those of the robot are unknown.
        DivergenceError: the state diverged, a closed kinematic loop folded or opened, a constraint became
            singular, or the controller demanded a torque that is not finite. Its `log` ends before a diverged
            state, which the message gives; it is empty if the first state diverged. It ends with a torque
            that is not finite, in `tau_demand` and `tau` of the last sample.

    Example:
        >>> import controllers, twin
        >>> robot = twin.load("irb140")
        >>> reference = twin.sample(twin.quintic([0] * 6, [0.1] * 6, 0.5), 1e-3)
        >>> law = controllers.make("computed_torque", robot)
        >>> twin.run_closed_loop(twin.AnalyticPlant(robot), law, reference).q[-1].round(3).tolist()
        [0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
    """
    if not callable(controller):
        made = "as controllers.make('pd', robot) makes it"
        raise ValueError(f"expected a controller, {made}, or a function, got {controller!r:.60}")
    if part and start is not None:
        raise ValueError("a part of a run begins at the plant's present state, expected no start")
    if part and isinstance(sensors, Sensors):
        raise ValueError(
            "Sensors do not retain their state between the parts of a run, expected RunningSensors"
        )
    if not part and isinstance(sensors, RunningSensors):
        sensors.restart()
    t, *arrays = checked_reference(reference, plant.robot.n)
    check_radians(plant.robot, Samples(t, *arrays))
    steps_per_period = whole_steps(steps_per_period)
    check_period(t, plant.time_step, steps_per_period)
    loop = _Loop(plant, controller, Samples(t, *arrays), steps_per_period, sensors, environment)
    last, next_report = len(t) - 1, time.perf_counter() + PROGRESS_INTERVAL
    with _exclusive_use(plant, controller), np.errstate(over="ignore", invalid="ignore"):
        loop.begin(start, part)
        for k, desired in enumerate(map(Reference, *arrays)):
            loop.read_state(k)
            if at_sample is not None:
                at_sample(k)
            loop.demand_torque(k, desired)
            if k < last or part:  # a run ends with its last state, a part where the next one begins
                loop.run_plant(k)
            if progress is not None and time.perf_counter() > next_report:
                progress((k + 1) / len(t))
                next_report = time.perf_counter() + PROGRESS_INTERVAL
    if progress is not None:
        progress(1.0)
    log = loop.log(len(t))
    if learn and not part and callable(from_log := getattr(controller, "learn", None)):
        from_log(log)
    return log


class _Loop:
    """Run of a closed loop: signals of the present sample, recorded signals, and the steps of a period.

    Args:
        plant: plant that is set to the start and then driven.
        controller: `(state, reference) -> tau`.
        reference: N checked samples.
        steps_per_period: number of plant steps in a control period.
        sensors: sensors between the motors and the controller, or `None`.
        environment: pushes and surfaces, or `None`.
    """

    def __init__(
        self,
        plant: Plant,
        controller: Callable[[State, Reference], np.ndarray],
        reference: Samples,
        steps_per_period: int,
        sensors: Sensors | RunningSensors | None,
        environment: Environment | None,
    ) -> None:
        robot = plant.robot
        if environment and "wrench" not in inspect.signature(plant.step).parameters:
            raise ValueError(f"expected a plant whose step takes a wrench, got a {type(plant).__name__}")
        if environment is None and getattr(getattr(sensors, "sensors", sensors), "force", None) is not None:
            environment = Environment()  # the sensor measures weight, offset and noise
        self.environment, self.wrench = environment, np.zeros((len(reference.t), 6))
        self.wrench_seen, self.tool = np.zeros(6), np.eye(4)
        if environment is not None:
            self.tool = environment.T_flange_tool.copy()
        self.tool.setflags(write=False)  # so that a plant checks it once
        N, n = reference.q.shape
        if isinstance(controller, ControlLaw) and controller.robot.n != n:
            raise ValueError(f"expected a controller of {n} joints, got one of {controller.robot.n}")
        for array in reference[1:]:  # a controller that writes to its reference would falsify the log
            array.setflags(write=False)
        self.plant, self.controller, self.reference = plant, controller, reference
        self.law = controller.bound if isinstance(controller, ControlLaw) else None
        self.path = np.stack(reference[1:], axis=1)
        self.steps_per_period, self.name = steps_per_period, name_of(controller)
        self.times = reference.t.tolist()
        # With ideal drives and no sensors, motor and measured signals equal the joint signals: no extra rows.
        self.other_rows = other_rows(robot, sensors)
        rows = ALL_ROWS if self.other_rows else PLAIN_ROWS
        self.signals, self.recorded = np.zeros((rows, n)), np.empty((N, rows, n))
        self.state, self.torque = self.signals[: QD + 1], self.signals[TAU]
        self.measured, self.motor_side = self.state, None
        if self.other_rows:
            period = plant.time_step * steps_per_period
            self.motor_side = MotorSide(plant, sensors, self.signals, N, period)
            self.measured = self.motor_side.measured
        self.inverse_speed_limits = Bounds.of(robot).inverse_speed_limits
        self.motor_limits = MotorLimits.of(robot.active_drives, robot.tau_max)
        self.has_loops, self.loop_gap = bool(robot.loops), np.zeros(N)
        signals = getattr(controller, "signals", None)
        names = signals if isinstance(signals, Mapping) else ()
        self.table = np.zeros((N, 0, n))
        self.law_signals = {name: np.full((N, n), np.nan) for name in names}

    def begin(self, start: tuple[ArrayLike, ArrayLike] | None, part: bool) -> None:
        """Reset and prepare controller and plant, unless this is a part, and read the first joint torque."""
        if not part:
            if callable(reset := getattr(self.controller, "reset", None)):
                reset()
            self.table = prepared_table(self.controller, self.reference)
            self.plant.reset(*((self.reference.q[0], self.reference.qd[0]) if start is None else start))
        else:  # the controller sees the torque of the part before; a plant without motors has none
            self.torque[:] = getattr(self.plant, "tau", 0.0)
        if self.motor_side is not None:
            self.motor_side.read_joint_torque()
        self.table.setflags(write=False)  # as the reference

    def read_state(self, k: int) -> None:
        """Read the plant's state at sample k, and measure it with the sensors.

        Raises:
            DivergenceError: the state is not finite or has run away.
        """
        measured = self.plant.state(self.state)
        if measured is not self.state:  # a plant may fill the array that it gets, or return another
            self.state[:] = measured
        if not within_twice_the_speed_limits(self.signals, self.inverse_speed_limits) and (
            message := divergence_message(self.plant.robot, *self.state)
        ):
            raise DivergenceError(f"{message} at t = {self.times[k]:.6g} s", self.log(k))
        if self.motor_side is not None:
            self.motor_side.measure(k)
        if self.environment is not None:
            self.wrench_seen, T = self.environment.at(self.plant.robot, self.times[k], *self.state)
            self.wrench[k] = self.wrench_seen
            if self.motor_side is not None:
                self.wrench_seen = self.motor_side.measured_wrench(self.wrench_seen, T)

    def demand_torque(self, k: int, desired: Reference) -> None:
        """Call the controller for the torques of sample k, apply the motor limits, and record the sample.

        Raises:
            DivergenceError: the controller demands a torque that is not finite.
            ControllerError: the controller does not return n real numbers.
        """
        controller, t = self.controller, self.times[k]
        if self.law is not None:
            trouble = sample(
                self.law, k, t, self.measured, self.path, self.table, self.wrench_seen,
                controller.parameters, controller.memory, self.signals, *self.motor_limits, self.recorded,
            )  # fmt: skip
        else:
            q, qd = self.measured.copy()  # a controller that writes to its input must not falsify the log
            state = State(t, q, qd, self.torque.copy(), self.table[k], self.wrench_seen.copy())
            demand = controller(state, desired)
            if type(demand) is not np.ndarray or demand.dtype is not FLOAT or demand.shape != (len(q),):
                demand = _checked(demand, len(q), self.name, t)
            self.signals[DEMAND] = demand
            trouble = not limit_and_record(self.signals, *self.motor_limits, self.recorded, k)
        for name, rows in self.law_signals.items():
            rows[k] = controller.signals.get(name, np.nan)  # type: ignore[attr-defined]
        if trouble == WRONG_SHAPE:
            raise ControllerError(f"controller {self.name!r} did not return {len(self.torque)} numbers")
        if trouble == NOT_A_TORQUE:
            robot, joint = self.plant.robot, joint_without_torque(self.signals[DEMAND], self.torque)
            unit = joint_unit(robot.joint_kinds[joint], "torque")
            demanded = f"demands {self.torque[joint]} {unit} of {robot.joint_names[joint]} at t = {t:.6g} s"
            raise DivergenceError(f"controller {self.name!r} {demanded}", self.log(k + 1))

    def run_plant(self, k: int) -> None:
        """Advance the plant by a control period under the torques of sample k.

        Raises:
            DivergenceError: a closed kinematic loop folds or opens, or a constraint becomes singular.
        """
        plant, has_next = self.plant, k < len(self.loop_gap) - 1
        try:
            for step in range(self.steps_per_period):
                plant.step(self.torque, *self.push(k, step))
                if self.motor_side is not None and step == 0:  # the log has the torque of the first step
                    self.motor_side.read_joint_torque()
                    self.recorded[k, TAU_JOINT] = self.signals[TAU_JOINT]
                if self.has_loops and has_next:
                    self.loop_gap[k + 1] = max(self.loop_gap[k + 1], plant.loop_gap)
        except (LimitError, LoopError, SingularityError) as error:
            message = f"{error}, in the step after t = {self.times[k]:.6g} s"
            raise DivergenceError(message, self.log(k + 1)) from error

    def push(self, k: int, step: int) -> tuple[()] | tuple[np.ndarray, np.ndarray]:
        """Return the wrench of the environment before a step of sample k, and its tool; or ()."""
        if not (environment := self.environment):
            return ()
        F, plant = self.wrench[k], self.plant
        if step > 0:
            F, _ = environment.at(plant.robot, self.times[k] + step * plant.time_step, *plant.state())
        return (F, self.tool) if np.any(F) else ()

    def log(self, samples: int) -> Log:
        """Return the log of the first `samples` samples."""
        part, outside, surroundings = slice(samples), self.environment, None
        if outside:
            surroundings = Surroundings(self.wrench[part], outside.pushes, outside.surfaces)
        series = np.ascontiguousarray(self.recorded[part].swapaxes(0, 1))
        t, q_ref, qd_ref, qdd_ref = (array[part] for array in self.reference)
        return Log(
            robot=self.plant.robot,
            controller=self.name,
            time_step=self.plant.time_step,
            steps_per_period=self.steps_per_period,
            t=t,
            q_ref=q_ref,
            qd_ref=qd_ref,
            qdd_ref=qdd_ref,
            q=series[Q],
            qd=series[QD],
            tau=series[TAU],
            tau_demand=series[DEMAND],
            saturated=series[TAU] != series[DEMAND],
            loop_gap=self.loop_gap[part],
            surroundings=surroundings,
            T_flange_tool=outside.T_flange_tool if outside else np.eye(4),
            law_signals={name: rows[part] for name, rows in self.law_signals.items()},
            **{name: series[row] for name, row in self.other_rows.items()},
        )


def _checked(demand: Any, n: int, name: str, t: float) -> np.ndarray:
    """Return a controller's demand as an array; raise `ControllerError` unless it is n real numbers.

    They need not be finite.
    """
    array, expected = np.asarray(demand), f"expected {n} real numbers"
    if demand is None:
        returned, expected = "None", f"{expected}: does it end with `return tau`?"
    elif isinstance(demand, np.ma.MaskedArray):
        returned = "a masked array"
    elif array.dtype.kind not in "fiu":
        returned = f"an array of {array.dtype}" if array.ndim else repr(demand)
    elif array.shape != (n,):
        returned = f"tau of shape {array.shape}"
    else:
        return array
    raise ControllerError(f"controller {name!r} returned {returned} at t = {t:.6g} s, {expected}")


_RUNNING: set[int] = set()
_RUNNING_LOCK = threading.Lock()


@contextmanager
def _exclusive_use(plant: Plant, controller: Any) -> Iterator[None]:
    """Reserve a plant and a controller with memory; raise `ValueError` if another thread's loop uses them."""
    has_memory = (
        len(controller.memory) if isinstance(controller, ControlLaw) else hasattr(controller, "reset")
    )
    used = {id(plant), id(controller)} if has_memory else {id(plant)}
    with _RUNNING_LOCK:
        if id(plant) in _RUNNING:
            raise ValueError(
                "this plant is in another closed loop at this moment; use one plant for each loop"
            )
        if used & _RUNNING:
            raise ValueError(
                f"controller {name_of(controller)!r} is in another closed loop at this moment, and two loops "
                "cannot share its memory; use one controller per loop, for example copy.copy(controller)"
            )
        _RUNNING.update(used)
    try:
        yield
    finally:
        with _RUNNING_LOCK:
            _RUNNING.difference_update(used)
