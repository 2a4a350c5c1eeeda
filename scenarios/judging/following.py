"""Let an arm follow a reference in the engine, let the model predict this run, and test its feedback.

A run whose error is only rounding does not show its feedback: it never acts, so that a wrong gain would stay
hidden.  The model therefore runs once more, from an initial error of 1 mrad (of 1 mm) in every joint.  With
an exact model, a reference in the engine's steps and `computed_torque` or `dob`, the difference d of both
runs obeys a linear recursion for each joint, whatever the motion and the friction are:

    dd+ = dd - T (Kv dd + Kp d),    d+ = d + T dd+

Its spectral radius must be below 1.  The gains of `cascade`, `admittance` and `hybrid` act on the coupled
arm; there the error must decay.  Where the second run reaches a torque limit, its motion is not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from controllers import Controller
from scenarios.judging import bounds
from scenarios.judging.agreement import STATES, differing_samples
from scenarios.judging.bounds import RECURSIVE, rounding_of
from scenarios.judging.run import Feedback, Loop, Prediction, Stops, TrackingRun
from scenarios.metric import Metric
from scenarios.setup import Arms, Setup
from twin.base.errors import DivergenceError, TouchedError
from twin.data.logs.annotations import LoadChange, Payloads
from twin.physics.robot.robot import Robot

if TYPE_CHECKING:
    from controllers import Controller
    from scenarios.judging.run import TrackingRun
    from twin.data.logs.log import Log
    from twin.physics.control.plant import AnalyticPlant
    from twin.physics.engine.simulation import Simulation
    from twin.physics.trajectories.sampling import Reference, Samples, State

START = 1e-3
"""Initial error, in [rad] or [m]."""
DECAYED = 0.1
"""Share of the initial error to which it decays."""
TIME_CONSTANTS = 30.0
"""Longest second run, in units of 1 / bandwidth: a tenth takes 3.9 of them, and some 10 with `cascade`."""
RECURSION = 1e-9
"""[rad]: largest deviation from the recursion."""
STABLE = 1.0 - 1e-9
"""Largest spectral radius."""
RADIUS, DECAY = "spectral radius of the feedback", "time in which 1 mrad decays to a tenth"
"""Names of the checks."""


def feedback_of(
    log: Log, q_model: np.ndarray, loop: Loop, plant: AnalyticPlant, law: Controller, reference: Samples
) -> Feedback:
    """Return the second run for a run that may only have rounding as its error.

    Args:
        log: log of the run.
        q_model: (N, n) positions of the model's first run, in [rad].
        loop: facts of the closed loop.
        plant: the model's plant.
        law: the controller.
        reference: reference of the run.
    """
    from twin.data.logs.closed_loop import run_closed_loop

    longest = TIME_CONSTANTS / loop.bandwidth
    count = min(len(log.t), int(np.searchsorted(log.t, longest, side="right")) + 1)
    if log.payloads is not None:  # up to the first change of the payload
        count = min(count, int(np.count_nonzero(log.payloads.load == log.payloads.load[0])))
    first = type(reference)(*(part[:count] for part in reference))
    start = reference.q[0] + START, reference.qd[0]
    try:
        again = run_closed_loop(plant, law, first, start=start, learn=False)
        d, saturates = again.q - q_model[:count], bool(np.any(again.saturated))
    except DivergenceError:
        d, saturates = np.full((count, plant.robot.n), np.inf), False
    if log.controller not in RECURSIVE:
        return Feedback(d, saturates)
    return Feedback(d, saturates, loop.gains["Kp"], loop.gains["Kv"])


def recursion(Kp: np.ndarray, Kv: np.ndarray, T: float) -> np.ndarray:
    """Return the matrices (n, 2, 2) by which an error and its speed change in a period T, in [s]."""
    A = np.empty((len(Kp), 2, 2))
    A[:, 1, 0], A[:, 1, 1] = -T * Kp, 1.0 - T * Kv
    A[:, 0] = [1.0, 0.0] + T * A[:, 1]
    return A


def feedback_metrics(run: TrackingRun) -> tuple[Metric, ...]:
    """Return the checks of the feedback; empty for a run whose error judges it."""
    feedback = None if run.prediction is None else run.prediction.feedback
    if feedback is None or run.loop is None:
        return ()
    log, Kp, Kv = run.log, feedback.Kp, feedback.Kv
    d, T, longest = feedback.difference, log.time_step, TIME_CONSTANTS / run.loop.bandwidth
    time, why = _decay_time(d, T), "the model's run from an initial error of 1 mrad"
    saturates, judged = feedback.saturates, time < np.inf or len(d) * T >= longest
    if saturates or not judged:
        why = f"not judged: the second run {'reaches a torque limit' if saturates else 'is short'}"
    if Kp is None or Kv is None:
        return (Metric(DECAY, time, "s", None if saturates or not judged else longest, why),)
    A = recursion(Kp, Kv, T)
    count, state = max(len(d), int(longest / T)), np.zeros((log.robot.n, 2, 1))
    expected, state[:, 0] = np.full((count, log.robot.n), np.inf), START
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(count):
            expected[k], state = state[:, 0, 0], A @ state
    radii = np.max(np.abs(np.linalg.eigvals(A)), axis=1)
    joint, stable = log.robot.joint_names[int(np.argmax(radii))], np.max(radii) <= STABLE
    return (
        Metric(RADIUS, float(np.max(radii)), "", STABLE, "an error decays; it follows from Kp, Kv", joint),
        Metric(DECAY, _decay_time(expected, T), "s", None, "by the recursion"),
        Metric(
            "1 mrad, model - its recursion",
            float(np.max(np.abs(d - expected[: len(d)]))) if stable else 0.0,
            "rad",
            RECURSION if stable and not saturates else None,
            "with an exact model the feedback is linear; rounding is left",
        ),
    )


def _decay_time(d: np.ndarray, T: float) -> float:
    """Return the time after which the differences (M, n) stay below a tenth, in [s]; inf if they do not."""
    above = np.flatnonzero(~(np.max(np.abs(d), axis=1) <= DECAYED * START))
    last = int(above[-1]) if len(above) else -1
    return (last + 1) * T if last + 1 < len(d) else np.inf


class LawPerLoad:
    """Controller of an arm whose payload changes at known times: one controller for each payload.

    A `ControlLaw` inherits the memory of the one before it, so that an integral stays.

    Attributes:
        name: name of the controllers.

    Args:
        laws: controllers in their order.
        times: times at which each begins, the first one 0, in [s].
    """

    def __init__(self, laws: Sequence[Controller], times: Sequence[float]) -> None:
        self.laws, self._times, self._active = tuple(laws), tuple(times), 0
        self.name = self.laws[0].name

    @property
    def signals(self) -> dict[str, np.ndarray]:
        """Signals of the active controller."""
        return getattr(self.laws[self._active], "signals", {})

    def reset(self) -> None:
        """Return to the first controller, and reset all."""
        self._active = 0
        for law in self.laws:
            if callable(reset := getattr(law, "reset", None)):
                reset()

    def prepare(self, reference: Samples) -> np.ndarray:
        """Return the tables of the controllers, each from the time at which it begins."""
        from twin.physics.control.signals import prepared_table

        tables = [prepared_table(law, reference) for law in self.laws]
        active = np.searchsorted(self._times, reference.t, side="right") - 1
        return np.stack(tables)[active, np.arange(len(active))]

    def __call__(self, state: State, reference: Reference) -> np.ndarray:
        """Return the torques (n,) of the controller for the payload at this time, in [N m]."""
        from twin.physics.control.control_law import ControlLaw

        while self._active + 1 < len(self.laws) and state.t >= self._times[self._active + 1]:
            before, self._active = self.laws[self._active], self._active + 1
            after = self.laws[self._active]
            if isinstance(before, ControlLaw) and isinstance(after, ControlLaw):
                after.memory[:] = before.memory
        return self.laws[self._active](state, reference)


def is_repeatable(law: Any) -> bool:
    """Return whether a controller is a `ControlLaw`, or consists of such."""
    from twin.physics.control.control_law import ControlLaw

    return all(isinstance(one, ControlLaw) for one in getattr(law, "laws", (law,)))


def gains(law: Any, n: int) -> dict[str, np.ndarray]:
    """Return the gains (n,) of a controller of n joints by name; empty if it has no known gains."""
    from twin.physics.control.control_law import (  # imported here because it compiles kernels
        PLAIN,
        ControlLaw,
    )

    found: dict[str, Any] = {}
    law = getattr(law, "laws", (law,))[0]  # gains may depend on the payload; those for the first are stored
    if isinstance(law, ControlLaw):
        found = law.rows
    elif hasattr(law, "__dict__"):
        found = {name: vars(law)[name] for name in PLAIN if name in vars(law)}
    return {name: row for name, value in found.items() if (row := _row(value, n)) is not None}


def _row(value: Any, n: int) -> np.ndarray | None:
    """Return a value as one number for every joint (n,); `None` if it has another shape or type."""
    try:
        array = np.asarray(value)
        return np.broadcast_to(array, (n,)).astype(np.float64) if array.dtype.kind in "fiu" else None
    except ValueError:
        return None


def follow(
    setup: Setup,
    reference: Samples,
    arms: Arms | Robot,
    *,
    loads: Sequence[LoadChange] = (),
    stops: Sequence[int] = (),
    at_sample: Callable[[Simulation, int], None] | None = None,
) -> TrackingRun:
    """Let the engine's robot follow a reference under the controller of the setup.

    The same controller then drives the analytic plant through the same loop. This is the model's prediction.
    If the setup has the log of a draw of a sweep, it is completed instead, without a prediction.

    Args:
        setup: controller, bandwidth, periods, drives of its model, sensors, window.
        reference: samples at the control period; the run starts on the first.
        arms: plant and controller's model, before the setup changes them; a robot is both.
        loads: payloads of plant and model in their order, the first at sample 0, if they change. Each has a
            controller, made for it; the payloads of the setup replace them.
        stops: indices of S samples at which the engine's tool pose is recorded.
        at_sample: function called with the simulation and the index of every sample.

    Raises:
        DivergenceError: the simulation diverged; the log of the error has the samples before.
        TouchedError: a person changed the motion at the window; its log has the whole motion.

    Example:
        >>> import twin
        >>> from scenarios import Setup, follow
        >>> robot, setup = twin.load("irb140"), Setup(controller="pd_gravity")
        >>> run = follow(setup, setup.sampling().sampled(twin.hold([0] * 6, 0.1)), robot)
        >>> run.log.q.shape, run.prediction.q.shape
        ((101, 6), (101, 6))
    """
    if isinstance(arms, Robot):
        arms = Arms(arms)
    driven = _Driven(setup, reference, arms, loads)
    if setup.simulated is not None:
        log = driven.completed(setup.simulated[1])
        return TrackingRun(log, driven.loop, stops=_modelled_stops(log, stops), is_draw=True)
    log, poses = driven.in_engine(stops, at_sample)
    return TrackingRun(log, driven.loop, driven.prediction(log), _stops(stops, poses))


class _Driven:
    """Plant, controller and payloads of a run.

    Attributes:
        plant: the plant with its first payload and the changes of the setup.
        loop: facts of the closed loop.
    """

    def __init__(self, setup: Setup, reference: Samples, arms: Arms, loads: Sequence[LoadChange]) -> None:
        self._setup, self._reference, self._loads = setup, reference, loads
        self.plant = setup.with_plant_changes(arms.plant)
        self._models = [setup.model_of(arms)]
        if loads:
            self.plant = self.plant.with_payload(loads[0].payload)
            loaded = [arms.nominal.with_payload(one.model_payload) for one in loads]
            self._models = [setup.model_of(arms._replace(model=model)) for model in loaded]
        if (outside := setup.environment) is not None:
            from twin.physics.dynamics.operational_space import check_contact

            check_contact(self.plant, outside, reference.q, setup.time_step)
        self._payloads = {one.sample: one.payload for one in loads if one.sample > 0}
        self._law = self.controller(setup)
        exact = arms.model is None and all(one.payload is one.model_payload for one in loads)
        self.loop = Loop(
            bandwidth=setup.bandwidth,
            consistent=setup.reference == "consistent",
            sensors=setup.sensors is not None,
            known_law=setup.known_law and exact,
            derived_gains=set(dict(setup.law_settings)) <= {"force"},  # the force is no gain
            repeatable=is_repeatable(self._law),
            gains=gains(self._law, self.plant.n),
        )

    def controller(self, setup: Setup) -> Controller:
        """Return the controller of a setup, with a controller for each payload."""
        laws = [setup.control_law(model) for model in self._models]
        times = [self._reference.t[one.sample] for one in self._loads]
        return laws[0] if len(laws) == 1 else LawPerLoad(laws, times)

    def change_load(self, driven: Simulation | AnalyticPlant, k: int) -> None:
        """Change the payload at a sample, the first one included, where a run in the window restarts."""
        restarts = k == 0 and self._payloads and driven.robot.payload is not self.plant.payload
        if k in self._payloads or restarts:
            driven.change_payload(self._payloads.get(k, self.plant.payload))

    def completed(self, log: Log) -> Log:
        """Return a log with the first payload, the tool, the drives of the model and the payloads."""
        return replace(
            log, robot=self.plant, T_flange_tool=self._setup.T_flange_tool,
            model_drives=self._models[0].drive_mode,
            payloads=Payloads.of(self._loads, len(log.t)) if self._payloads else None,
        )  # fmt: skip

    def in_engine(
        self, stops: Sequence[int], at_sample: Callable[[Simulation, int], None] | None
    ) -> tuple[Log, np.ndarray]:
        """Return the log of the engine, and the poses (S, 7) of its tool at the stops."""
        from twin.physics.engine.simulation import Simulation
        from twin.physics.rotations.rotations import pose_vector

        setup, poses = self._setup, np.zeros((len(stops), 7))
        with Simulation(self.plant, time_step=setup.time_step, gui=setup.gui) as simulation:

            def sampled_state(k: int) -> None:
                if k in stops:
                    poses[list(stops).index(k)] = pose_vector(simulation.tool_pose())
                self.change_load(simulation, k)
                if at_sample is not None:
                    at_sample(simulation, k)

            try:
                log = shown(simulation, setup, self.controller, self._reference, sampled_state)
            except (DivergenceError, TouchedError) as error:
                if error.log is not None:
                    error.log, error.loop = self.completed(error.log), self.loop
                raise
        return self.completed(log), poses

    def prediction(self, log: Log) -> Prediction:
        """Return the model's run, what a replay of the log gives, and the rounding of both."""
        from twin.data.logs.closed_loop import run_closed_loop
        from twin.physics.control.plant import AnalyticPlant

        setup, law, reference, sensors = self._setup, self._law, self._reference, self._setup.sensors
        plant = AnalyticPlant(self.plant, setup.time_step)
        predicted = run_closed_loop(
            plant, law, reference, steps_per_period=setup.steps_per_period, sensors=sensors,
            at_sample=partial(self.change_load, plant), learn=False, environment=setup.environment,
        )  # fmt: skip
        found = Prediction(
            q=predicted.q,
            start=np.array([getattr(predicted, name)[0] for name in STATES[:4]]),
            differs=differing_samples(log, law, reference, sensors),
            rounding=rounding_of(log, predicted, law, reference, sensors),
        )
        if not bounds.is_exact(TrackingRun(log, self.loop)):
            return found
        plant.change_payload(self.plant.payload)
        return replace(found, feedback=feedback_of(log, predicted.q, self.loop, plant, law, reference))


def _stops(samples: Sequence[int], poses: np.ndarray) -> Stops | None:
    """Return the stops of a run; `None` if there are none."""
    return Stops(np.array(samples, dtype=int), poses) if len(samples) else None


def _modelled_stops(log: Log, samples: Sequence[int]) -> Stops | None:
    """Return the stops of a log by the model's kinematics."""
    from twin.physics.kinematics.forward import forward_kinematics
    from twin.physics.rotations.rotations import pose_vector

    q = log.q[np.array(samples, dtype=int)]
    return _stops(samples, pose_vector(forward_kinematics(log.robot, q, log.T_flange_tool)))


def shown(
    simulation: Simulation,
    setup: Setup,
    make: Callable[[Setup], Controller],
    reference: Samples,
    at_sample: Callable[[int], None] | None = None,
) -> Log:
    """Run the closed loop in the engine, with a window if the setup requests one; return its log.

    Args:
        simulation: simulation of the plant.
        setup: setup; its periods and sensors are those of the loop.
        make: function that returns the controller of a setup.
        reference: reference of the controller.
        at_sample: function called at every sample.

    Raises:
        DivergenceError: the simulation diverged.
        TouchedError: a person changed the motion at the window.
    """
    from twin.data.logs.closed_loop import run_closed_loop

    def loop(law: Controller, at_sample: Callable[[int], None] | None) -> Log:
        return run_closed_loop(
            simulation, law, reference, steps_per_period=setup.steps_per_period, sensors=setup.sensors,
            progress=setup.progress, at_sample=at_sample, learn=False, environment=setup.environment,
        )  # fmt: skip

    if not setup.gui:
        return loop(make(setup), at_sample)
    from scenarios.bench.watched import Watched

    return Watched(simulation, setup, make, reference).run(loop, at_sample)
