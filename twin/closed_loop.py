"""A controller and a plant in a loop, and the record of what they did.

In each control period: the state is read, the controller demands torques, the drives limit them, and the
plant runs for a whole number of its steps while they are held.  Between reading and stepping all is done by
`twin.control_loop.control`, in compiled code where the kernels are compiled.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from twin.batch import copied
from twin.compiled_loops import compilable, compiled_control
from twin.control_law import ControlLaw
from twin.control_loop import ASKED, DEMAND, NO_DEMAND, QD, RAN_AWAY, TAU, Knowledge, nobody, saturated
from twin.errors import DivergenceError, LimitError, LoopError
from twin.limits import check_radians
from twin.log import Log
from twin.robot import Robot
from twin.sampling import Reference, Samples, State
from twin.watch import Bounds, what_is_beyond

PROGRESS_INTERVAL = 0.05  # s


class Plant(Protocol):
    """What `run_closed_loop` drives: `twin.engine.Simulation` or `twin.analytic_plant.AnalyticPlant`.

    `state` may fill `out` (2, n) or return an array of its own.  `tau` is one array for a whole run, written
    anew for each sample: a plant that keeps it must copy it.
    """

    robot: Robot
    time_step: float
    loop_gap: float

    def reset(self, q: ArrayLike, qd: ArrayLike | None = None) -> None: ...  # noqa: D102
    def state(self, out: np.ndarray | None = None) -> np.ndarray: ...  # noqa: D102
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
            A `ControlLaw` is compiled in, if numba can compile it; `lambda *at: law(*at)`, say to debug it,
            is called from Python.
        reference: N samples, one a control period.
        steps_per_period: engine steps in a control period.
        start: joint positions and velocities `(q, qd)` to start from; those of the first sample by default.
        progress: called with the fraction done, at most some twenty times a second, and with 1 at the end.

    Raises:
        LimitError: the reference is far beyond the range of a joint, as angles in degrees are.
        ValueError: the reference's period is not `steps_per_period` steps of the plant; a shape is wrong.
        DivergenceError: the run ran away, a closed loop folded or came open, or the controller demanded a
            torque that is not finite. Its `log` holds the samples up to there: before the state that is
            beyond reason, which the message tells; with the torque that is not finite, in `tau_demand` and
            `tau` of the last sample. It is empty when the first state is beyond reason.
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
    if isinstance(controller, ControlLaw) and controller.robot.n != n:  # its kernels would write beyond n
        raise ValueError(f"expected a controller of {n} joints, got one of {controller.robot.n}")
    signals, recorded = np.zeros((4, n)), np.empty((N, 4, n))
    state, torque = signals[: QD + 1], signals[TAU]
    loop_gap = np.zeros(N)
    name = _name(controller)

    def log(samples: int) -> Log:
        """The first so many samples."""
        part = slice(samples)
        q, qd, tau_demand, tau = np.ascontiguousarray(recorded[part].swapaxes(0, 1))
        return Log(
            robot=robot,
            controller=name,
            time_step=plant.time_step,
            steps_per_period=steps_per_period,
            t=t[part],
            q_ref=q_ref[part],
            qd_ref=qd_ref[part],
            qdd_ref=qdd_ref[part],
            q=q,
            qd=qd,
            tau=tau,
            tau_demand=tau_demand,
            saturated=saturated(tau_demand, robot.tau_max),
            loop_gap=loop_gap[part],
        )

    def asked(k: int) -> np.ndarray:
        """What the controller demands at a sample."""
        q, qd = state.copy()
        demand = controller(State(float(t[k]), q, qd), Reference(q_ref[k], qd_ref[k], qdd_ref[k]))
        if np.shape(demand) != (n,):
            raise ValueError(
                f"controller {name!r} returned tau of shape {np.shape(demand)} at t = {t[k]:.6g} s, "
                f"expected {(n,)}"
            )
        return demand

    def diverged(trouble: int, k: int) -> Exception:
        """What ended the run at a sample."""
        when = f"at t = {t[k]:.6g} s"
        if trouble == RAN_AWAY:
            return DivergenceError(f"{what_is_beyond(robot, *state)} {when}", log(k))
        if trouble == NO_DEMAND:
            asked(k)  # from Python it raises what it did not in the compiled loop; its memory is what it left
            return ValueError(f"controller {name!r} failed {when}, and did not when it was asked again")
        joint = int(np.argmin(np.isfinite(torque)))
        message = f"controller {name!r} demands {torque[joint]} N m of {robot.joint_names[joint]} {when}"
        return DivergenceError(message, log(k + 1))

    if callable(reset := getattr(controller, "reset", None)):
        reset()
    plant.reset(*((q_ref[0], qd_ref[0]) if start is None else start))
    loops = bool(robot.loops)
    tell = time.perf_counter() + PROGRESS_INTERVAL
    path = np.stack([q_ref, qd_ref, qdd_ref], axis=1)
    with _controlled(robot, controller, path, t, signals, recorded) as samples:
        for k in range(N):
            measured = plant.state(state)
            if measured is not state:
                state[:] = measured
            trouble = next(samples)
            if trouble == ASKED:
                signals[DEMAND] = asked(k)
                trouble = next(samples)
            if trouble:
                raise diverged(trouble, k)
            if k < N - 1:
                try:
                    for _ in range(steps_per_period):
                        plant.step(torque)
                        if loops:
                            loop_gap[k + 1] = max(loop_gap[k + 1], plant.loop_gap)
                except (LimitError, LoopError) as error:
                    message = f"{error}, in the step after t = {t[k]:.6g} s"
                    raise DivergenceError(message, log(k + 1)) from error
            if progress is not None and time.perf_counter() > tell:
                progress((k + 1) / N)
                tell = time.perf_counter() + PROGRESS_INTERVAL
    if progress is not None:
        progress(1.0)
    return log(N)


@contextmanager
def _controlled(
    robot: Robot, controller: Any, path: np.ndarray, t: np.ndarray, signals: np.ndarray, log: np.ndarray
) -> Iterator[Iterator[int]]:
    """`twin.control_loop.control` around a controller, which it asks for every torque or has compiled in."""
    law = controller if _is_plain_law(controller) else ControlLaw(robot, nobody)
    model, asks = law.model, law is not controller
    control = compiled_control(robot, law, asks)  # kept to the end, for it keeps what the samples point to
    samples = control(
        asks,
        Knowledge(copied(model.inertias), copied(model.gravity), copied(model.tau_max)),
        copied(law.parameters),
        law.memory,
        Bounds.of(robot),
        copied(path),
        copied(t),
        signals,
        log,
    )
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows, the watch reports
            yield samples
    finally:
        signals[: QD + 1] = np.nan
        for _ in samples:  # to its end, where a compiled generator lets go of its arrays
            pass


def _is_plain_law(controller: Any) -> bool:
    """Whether all of a controller is its law, and the law can be compiled."""
    if not isinstance(controller, ControlLaw) or type(controller).__call__ is not ControlLaw.__call__:
        return False
    law, parameters, memory = controller.law, controller.parameters, controller.memory
    fits = all(isinstance(array, np.ndarray) and array.ndim == 2 for array in (parameters, memory))
    fits = fits and memory.dtype == np.float64 and memory.flags.carray
    return fits and isinstance(getattr(law, "py_func", law), FunctionType) and compilable(law)


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
