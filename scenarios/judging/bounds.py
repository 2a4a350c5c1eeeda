"""Bounds of a run: of its tracking error, derived from the equations of the loop, and of its rounding.

Write `e = q_ref - q`. The response of a loop `edd + 2 omega ed + omega^2 e = a(t)` from rest is a
convolution whose kernel `t exp(-omega t)` is positive and has the area `1 / omega^2`, so

    |e| <= max|a| / omega^2.                                                                        (1)

**Feedback without a model** (`pd`, `pd_gravity`, `pid`). With the gains of `controllers.gains` each joint is
such a loop. Its disturbance is the torque that the motion needs and the controller does not supply,
`d = tau_ref - tau_given`: (1) with `a = d / Mbar`. For `pid` the kernel of `s / (s + omega)^3` is
`(t - omega t^2 / 2) exp(-omega t)`, which changes sign at `t = 2 / omega`; the area of its magnitude is
`4 exp(-2) / omega^2 = 0.541 / omega^2`.
The errors of the other joints disturb a joint, too, by `M_ij edd_j`. Assume `|edd_j| = |d_j| / Mbar_j`, where
`d_j` is in turn disturbed by its neighbours. Then `sum_k (|M_offdiagonal| Mbar^-1)^k |d|` replaces `|d|`,
with couplings through one joint (k = 1) up to all n. *This is an estimate, not a bound*, for three reasons.
`edd_j` has this size at the start only; it could be up to `2 + 2 exp(-2) = 2.27` times as large later (the
area of the magnitude of the kernel of `s^2 / (s + omega)^2`), if d changed its sign at the worst instants.
The diagonal of M is replaced by the constant Mbar. The series is truncated. On the other hand, errors and
couplings do not all reach their maxima at the same time. `MARGIN` covers the balance by experience, not by
proof.

**Computed torque** is the loop (1) exactly, if engine and reference move alike in one control period T. With
s engine steps in a period and a constant acceleration `a`, semi-implicit Euler moves by
`T qd + (1 + 1/s) T^2 a / 2`. A reference that obeys the recursion with the period T moves by
`T qd + T^2 a`. A reference sampled from a continuous motion moves by `T qd + T^2 a / 2` and gains
`T a + T^2 j / 2` of speed, with the jerk j. So the error drifts by `p a` in [rad/s], where p is

    T (1 - 1/s) / 2  for the first,  -T / (2 s)  for the second.

A torque that is constant over s steps was computed for the state at their beginning. Its acceleration
therefore drifts by some `Delta` over the period, on average by `(1 - 1/s) Delta / 2`. In the loop, the two
contributions of the jerk combine to one, and for both kinds of reference

    a(t) = 2 omega p qdd + (1 - 1/s) (T j - Delta) / 2,                                             (2)

which is 0 for a recursive reference with s = 1, and `-omega T qdd` for a continuous one.

**Rigid drives.** Computed torque with rigid drives in its model is exact, too: it accelerates the rotors and
predicts the friction of the next step (`controllers.computed_torque`).
For feedback without a model, the drives are an additional disturbance. With the rotors' inertia A at the
joints, shafts that turn with `R qd`, their viscous friction `V = R^T diag(Fv) R` and dry friction of at most
Fs each,

    d = tau_ref + A qdd_ref + V qd_ref - tau_given,  and up to  |R^T| Fs  more,

because dry friction is bounded, sticking or sliding, under any friction law, and (1) only requires a bounded
disturbance. `V ed` is a damper in the joint's loop; that of the other joints is a disturbance of at most
`|V_ij| |d_j| / (omega Mbar_j)`, since `|ed| <= 2 exp(-1) max|a| / omega`. `M + A` replaces M. The offset F0
and, at the reference's speed, `Fd |w|` and `Fr sqrt|w| sgn w` belong to d. The latter two grow with the speed
as viscous friction does, so that they damp, too; V takes `Fv + Fd`. Friction by load adds `mu |T|` to Fs,
where T is the torque on the arm: that of the reference, and that of the error, at most `|d|` in turn, so that
all is divided by `1 - mu`.

**Cascade** with its torque feed-forward, on an exact model with ideal drives and a recursive reference, is
exact: torque and speed of the reference leave its loops nothing to correct. With rigid drives the
feed-forward supplies the dry friction of the reference, up to Fs, while the friction of the joint may be up
to Fs in the opposite direction: `|d| <= 2 |R^T| Fs`. There is no other disturbance. With the gains of
`controllers.gains`

    E(s) / D(s) = s / (Mbar (s^3 + 2 omega s^2 + 3/2 omega^2 s + 1/4 omega^3)).

The area of the magnitude of that kernel h follows from its integral g, the kernel without the s: g is never
negative, rises up to `omega t = 2.944`, where h changes its sign for the only time, and falls to zero. So the
area is twice the largest g, `1.155 / omega^2`.

**No bound** is known with elastic drives, with sensors, with a model that is not the plant, with gains set by
hand, under a push, or for a user's controller: the errors are reported without a limit.

No limit in this module depends on the residual that it judges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import twin
from scenarios.judging.run import Rounding
from scenarios.metric import Metric
from twin.physics.multibody.recursions import mass_matrix, placements

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scenarios.judging.run import Loop, TrackingRun
    from twin.data.logs.log import Log
    from twin.physics.control.control_law import ControlLaw
    from twin.physics.dynamics.equation_of_motion import PlantState
    from twin.physics.robot.drives.motors import Sensors
    from twin.physics.robot.robot import Robot
    from twin.physics.trajectories.sampling import Samples

ROUND_OFF = 1e-10
"""[rad]: computed torque with an exact model. Observed: 1e-15 on smooth joint motion; long runs need more."""
EXACT = {
    "ideal": ("computed_torque", "cascade", "dob", "admittance", "hybrid"),
    "rigid": ("computed_torque", "dob", "admittance", "hybrid"),
    "elastic": (),
}
"""Controllers that an exact model makes exact, by the drives of plant and model."""
RECURSIVE = ("computed_torque", "dob")
"""Controllers whose error obeys a linear recursion with an exact model, whatever their gains are."""
BOUNDED = {
    "ideal": ("pd", "pd_gravity", "pid", "computed_torque"),
    "rigid": ("pd", "pd_gravity", "pid", "cascade"),
    "elastic": (),
}
"""Controllers that have a bound where they are not exact, by the drives of plant and model."""
AREAS = {"pd": 1.0, "pd_gravity": 1.0, "pid": 4 * math.exp(-2), "cascade": 1.1548939}
"""Areas of the magnitude of the kernels from a disturbing acceleration to the error, times omega^2."""
MARGIN = 2.0
"""Factor for controllers without a model, for the varying inertia and the coupling of the joints.

Observed errors over the estimate, on all scenarios and arms, with ideal and rigid drives, at 10 to 40 rad/s:
up to 0.99 without an integral, 0.82 with `pid`, 0.46 with `cascade`.
"""


def is_exact(run: TrackingRun) -> bool:
    """Return whether the tracking error of a run that started on its reference can only be rounding."""
    log, loop = run.log, run.loop
    if loop is None:
        return False
    undisturbed = (
        log.steps_per_period == 1 and loop.consistent and not loop.sensors and log.surroundings is None
    )
    any_gains = log.controller in RECURSIVE or loop.derived_gains
    exact = makes_exact(log.controller, log.drives, log.model_drives)
    return exact and loop.known_law and undisturbed and any_gains


def makes_exact(controller: str, drives: str, model_drives: str) -> bool:
    """Return whether a controller is exact on an exact model with these drives."""
    return model_drives == drives and controller in EXACT[drives]


def has_bound(run: TrackingRun) -> bool:
    """Return whether `tracking_bound` is known for the run."""
    log, loop = run.log, run.loop
    if loop is None:
        return False
    bounded = log.drives == log.model_drives and log.controller in BOUNDED[log.drives]
    bounded = bounded and log.payloads is None and log.surroundings is None  # they hold for one payload, free
    return bounded and loop.known_law and loop.derived_gains and not loop.sensors and not is_exact(run)


def is_plain(run: TrackingRun) -> bool:
    """Return whether drives are ideal, no push acts, and the controller is known, with derived gains."""
    ideal = run.log.drives == run.log.model_drives == "ideal" and run.log.surroundings is None
    return run.loop is not None and ideal and run.loop.known_law and run.loop.derived_gains


def tracking_bound(run: TrackingRun) -> tuple[NDArray, str]:
    """Return a bound of the tracking error; for controllers without a model, an estimate (see the module).

    Args:
        run: a run that started on its reference, with an exact model in the controller.

    Returns:
        bound: (n,) in [rad].
        rule: rule of the bound, in a sentence.
    """
    assert run.loop is not None
    if run.log.controller == "computed_torque":
        return _sampling_bound(run.log, run.loop)
    return _missing_torque_bound(run.log, run.loop.bandwidth)


def _missing_torque_bound(log: Log, omega: float) -> tuple[NDArray, str]:
    from controllers.gains import diagonal_inertia
    from twin.physics.dynamics.equation_of_motion import gravity_torque, inverse_dynamics, mass_matrix

    robot, law = log.robot, log.controller
    missing = np.zeros_like(log.q_ref)
    if law != "cascade":  # its feed-forward supplies this torque
        missing = inverse_dynamics(robot.arm, log.q_ref, log.qd_ref, log.qdd_ref)
    if law == "pd_gravity":
        missing = missing - gravity_torque(robot, log.q_ref)
    coupling, what = np.abs(mass_matrix(robot, log.q_ref)), "the largest torque"
    if (drives := robot.active_drives) is not None:
        R, w = drives.friction_matrix, log.qd_ref @ drives.friction_matrix.T
        V = R.T @ ((drives.viscous + np.abs(drives.viscous_difference))[:, None] * R)
        load = inverse_dynamics(robot.arm, log.q_ref, log.qd_ref, log.qdd_ref) @ drives.transmission.T
        dry = (drives.static + drives.coulomb_per_load * np.abs(load)) @ np.abs(R)
        if law == "cascade":
            missing, what = missing + 2 * dry, "twice the static friction"
        else:
            smooth = drives.viscous * w + drives.viscous_difference * np.abs(w) + drives.offset
            smooth += drives.viscous_root * np.sqrt(np.abs(w)) * np.sign(w)
            rotors = log.qdd_ref @ drives.reflected_inertia
            missing = np.abs(missing + rotors + smooth @ R) + dry
            what = "the largest torque, with rotors and friction,"
        missing = missing / (1 - np.max(drives.coulomb_per_load))
        coupling = coupling + np.abs(V) / omega
    coupling = coupling * (1 - np.eye(robot.n))
    Mbar, disturbing = diagonal_inertia(robot), np.abs(missing)
    for _ in range(robot.n):
        disturbing = np.abs(missing) + np.einsum("kij,kj->ki", coupling, disturbing / Mbar)
    stiffness = np.maximum(omega**2 * Mbar, np.finfo(float).tiny)
    with np.errstate(over="ignore"):  # very soft springs overflow to an infinite bound
        bound = MARGIN * AREAS[law] * np.max(disturbing, axis=0) / stiffness
    bound = np.maximum(bound, ROUND_OFF)  # without a disturbance, rounding remains
    factor = f"{MARGIN:g} x" + f" {AREAS[law]:.3f} x" * (AREAS[law] != 1.0)
    return bound, f"{factor} {what} not compensated, with that of coupled joints / (omega^2 diag M(0))"


def _sampling_bound(log: Log, loop: Loop) -> tuple[NDArray, str]:
    from twin.physics.dynamics.equation_of_motion import forward_dynamics, inverse_dynamics

    robot, s, omega = log.robot, log.steps_per_period, loop.bandwidth
    T = s * log.time_step
    q, qd, qdd = log.q_ref, log.qd_ref, log.qdd_ref
    held = inverse_dynamics(robot, q, qd, qdd)
    drift = forward_dynamics(robot, q + T * qd, qd + T * qdd, held) - qdd
    share = 1 - 1 / s
    p = T / 2 * (share if loop.consistent else 1 / s)
    lag = np.max(np.abs(np.diff(qdd, axis=0) - drift[:-1]), axis=0)  # T j - Delta
    a = 2 * omega * p * np.max(np.abs(qdd), axis=0) + share / 2 * lag
    margin = 1 + omega * T  # effect of the sampling on the loop itself
    why = "control period x largest acceleration / omega, and the lag of a torque held over several steps"
    return np.maximum(margin * a / omega**2, ROUND_OFF), why  # at rest rounding remains


SPEED_CHANGE = 1e-11
"""Rounding over the largest change of speed in a period; stiff springs and wrists amplify it.

Observed: 2e-12 with elastic drives and five steps in a period, 1e-13 otherwise.
"""
SPEED = 1e-14
"""Rounding of the speed in a step, over the largest speed or 1 rad/s. Observed: 5e-16."""
LOOP_SPEED = 2e-12
"""[rad/s]: speed error of a closed loop in a step.

The engine solves the loop's constraint to a residual of 1e-25, the square of 3e-13. Observed: 3.3e-13.
"""
LIGHT = 1e-5
"""Inertia of a joint, in [kg m^2], below which rounding of its torque shows in its speed."""
EPS = 2.0 * float(np.finfo(np.float64).eps)
"""Rounding of a sum of a few products, over the largest of them."""
POSITION = 8.0
"""Rounding of the position in a step, besides the error of the speed.

In units in the last place of the largest angle. Observed: 2.
"""
TORQUE = 3e-14
"""Rounding over the largest torque in the arm; mass matrix and bias are sums of some dozen products.

Observed: 2e-15.
"""
RUNS = 8
"""Number of kicked runs: runs of the analytic plant with random rounding errors ("kicks")."""
SPREAD_MARGIN = 5.0
"""Factor of the spread of the kicked runs, because real rounding has other signs than the drawn kicks."""
ULPS = 8.0
"""Rounding of the positions themselves, in units in the last place of the largest angle."""
DECIDED = 1e-6
"""[rad]: difference of two runs above which rounding has decided the path."""
SOUND = 1e-9
"""Difference of a figure between kicked runs, absolute or relative, below which the figure has no span."""
SIGNALS = ("q", "qd", "tau", "tau_demand", "tau_joint", "q_motor", "qd_motor", "q_seen", "qd_seen")


def largest(values: NDArray) -> float:
    """Return the largest magnitude of values; 0 for none."""
    return float(np.max(np.abs(values), initial=0.0))


def step_limits(log: Log, residuals: PlantState) -> PlantState:
    """Return the limits of the residuals in a control period from rounding: one number for each signal.

    Args:
        log: log of the engine's run.
        residuals: engine less model, see `Log.model_residuals`.
    """
    s = log.steps_per_period
    # The changes of speed are those of the model, because a fault of the engine would widen its limit.
    change = largest(log.qd[1:] - residuals.qd - log.qd[:-1])
    change_motor = largest(log.qd_motor[1:] - residuals.qd_motor - log.qd_motor[:-1])
    speed = SPEED_CHANGE * max(change, change_motor) + s * SPEED * max(1.0, largest(log.qd))
    speed = max(speed, s * log.time_step * light_joint_rounding(log))
    if log.robot.loops:
        speed += s * LOOP_SPEED
    place = s * POSITION * float(np.spacing(max(1.0, largest(log.q)))) + s * log.time_step * speed
    torque = TORQUE * max(1.0, largest(log.tau_joint[:-1] - residuals.tau_joint))
    return type(residuals)(place, speed, place, speed, torque)  # type: ignore[arg-type]


def light_joint_rounding(log: Log) -> float:
    """Return the rounding of the accelerations of an arm with a light joint, in [rad/s^2]; 0 for another.

    The torque of a joint is a component of the moment on its link, and has the rounding of the whole moment.
    A point load on the axis of a flange turns with the flange's inertia alone: 5 N m round by 1e-15 N m,
    which accelerate 2e-6 kg m^2 by 5e-10 rad/s^2.
    """
    robot = log.robot
    if not robot.has_inertia or len(log.t) < 2:
        return 0.0
    rotors = 0.0 if robot.active_drives is None else robot.active_drives.reflected_inertia
    at = placements(robot.tree, robot.tree_positions(log.q[0]).tolist(), math)
    G = robot.embedding
    M = G.T @ np.array(mass_matrix(robot.tree, at, robot.tree.inertias.tolist())) @ G + rotors
    if not np.max(np.diag(np.linalg.inv(M))) > 1.0 / LIGHT:
        return 0.0
    chosen = np.unique(np.linspace(0, len(log.t) - 2, 100).astype(int))
    qdd = np.diff(log.qd, axis=0)[chosen] / (log.time_step * log.steps_per_period)
    q, qd = log.q[chosen], log.qd[chosen]
    wrenches = twin.joint_wrenches(robot, q, qd, qdd).joints
    turns = np.array(robot.tree.kinds) == "revolute"
    size = np.linalg.norm(np.where(turns[:, None], wrenches[..., 3:], wrenches[..., :3]), axis=-1)
    inverse = np.abs(np.linalg.inv(twin.mass_matrix(robot, q)))
    return EPS * largest(np.einsum("kij,kj->ki", inverse, size @ np.abs(G)))


def rounding_of(log: Log, predicted: Log, law: Any, reference: Samples, sensors: Sensors | None) -> Rounding:
    """Return the distance between runs that differ by rounding.

    It is 0 if engine and model agree to the rounding of the positions, and NaN if it is unknown, as for a
    controller that is not a `ControlLaw`, and for a payload that changes.

    Args:
        log: the engine's run.
        predicted: run of the analytic plant under the same controller.
        law: the controller.
        reference: reference of both runs.
        sensors: sensors of both runs.
    """
    from twin.physics.control.control_law import ControlLaw

    N = len(log.t)
    if np.max(np.abs(log.q - predicted.q)) <= position_rounding(log):
        return Rounding(np.zeros(N))
    try:
        one_robot = isinstance(law, ControlLaw) and log.payloads is None
        kicked = kicked_runs(log, law, reference, sensors) if one_robot else None
    except ValueError:  # a controller that cannot be compiled
        kicked = None
    if kicked is None:
        return Rounding(np.full(N, np.nan))
    paths = np.concatenate([predicted.q[None], kicked["q"]])
    # A run that diverged has NaN and counts as infinitely far away.
    distance = np.max(np.nan_to_num(np.ptp(paths, axis=0), nan=np.inf), axis=1)
    spread = np.maximum.accumulate(distance)
    if spread[-1] <= DECIDED:
        return Rounding(spread)
    first = float(log.t[np.argmax(spread > DECIDED)])
    return Rounding(spread, first, kicked)


def kicked_runs(log: Log, law: ControlLaw, reference: Samples, sensors: Sensors | None) -> dict[str, NDArray]:
    """Return the signals (RUNS, N, n) of runs of the analytic plant with random rounding errors.

    Their size is that of the engine's residuals.

    Raises:
        ValueError: the controller cannot be compiled.
    """
    from twin.physics.control.rollout import run_rollouts

    rng, (N, n) = np.random.default_rng(0), log.q.shape
    signs = np.resize([1.0, -1.0], RUNS)
    kicks = np.zeros((RUNS, N, 4, n))
    residuals = log.model_residuals()
    limits = step_limits(log, residuals)
    for row, (residual, limit) in enumerate(zip(residuals[:4], limits[:4], strict=True)):
        kicks[:, 1:, row] = signs[:, None, None] * np.clip(residual, -limit, limit)
    half_ulps = 0.5 * np.spacing(np.max(np.abs(log.qd), axis=0)) * rng.choice([-1.0, 1.0], (RUNS, N, n))
    kicks[:, :, 1] += half_ulps
    kicks[:, :, 3] += half_ulps  # equal to the joints' kicks, because rigid drives couple motors and joints
    robots = [with_friction_scaled(log.robot, ulps) for ulps in np.resize([1, -1, 2, -2], RUNS)]
    rollouts = run_rollouts(
        robots,
        law,
        reference,
        sensors=sensors,
        time_step=log.time_step,
        steps_per_period=log.steps_per_period,
        keep_failures=True,
        noise_seeds=None if sensors is None else [sensors.seed] * RUNS,
        kicks=kicks,
        environment=log.environment,
        warn=False,
    )
    return {name: getattr(rollouts, name) for name in SIGNALS}


def with_friction_scaled(robot: Robot, ulps: float) -> Robot:
    """Return a robot with friction increased by some units in the last place, if its drives are not ideal."""
    drives = robot.active_drives
    if drives is None:
        return robot
    scale = 1.0 + ulps * np.finfo(float).eps
    scaled = replace(drives, coulomb=scale * drives.coulomb, static=scale * drives.static)
    return robot.with_drives(robot.drive_mode, scaled)


def other_roundings(run: TrackingRun) -> Iterator[TrackingRun]:
    """Yield the kicked runs that did not diverge."""
    from twin.data.logs.annotations import Surroundings
    from twin.physics.kinematics.forward import forward_kinematics
    from twin.physics.rotations.rotations import pose_vector

    assert run.prediction is not None
    kicked = run.prediction.rounding.kicked
    for k in range(RUNS):
        signals = {name: kicked[name][k] for name in SIGNALS}
        if all(np.all(np.isfinite(signal)) for signal in signals.values()):
            saturated = signals["tau"] != signals["tau_demand"]
            log, outside = run.log, run.log.surroundings
            if (world := log.environment) is not None:  # a contact differs with the motion
                outside = Surroundings.of(world, log.robot, log.t, signals["q"], signals["qd"])
            other = run.with_log(replace(log, saturated=saturated, surroundings=outside, **signals))
            if run.stops is not None:
                poses = forward_kinematics(run.log.robot, signals["q"][run.stops.samples])
                other = replace(other, stops=replace(run.stops, poses=pose_vector(poses)))
            yield other


def with_spans(
    metrics: Sequence[Metric], run: TrackingRun, judge: Callable[[TrackingRun], Sequence[Metric]]
) -> tuple[Metric, ...]:
    """Return metrics with their spans over the kicked runs; unchanged if rounding does not decide the path.

    Args:
        metrics: metrics of the engine's run.
        run: the engine's run.
        judge: function that returns the metrics of a run.
    """
    if run.prediction is None or run.prediction.rounding.undetermined_from is None:
        return tuple(metrics)
    # The engine's run comes first, without the checks of engine against model, which have no span.
    kicked = list(other_roundings(run))
    figures: dict[str, list[float]] = {}
    for one in (run.with_log(run.log), *kicked):
        for metric in judge(one):
            if metric.value is not None:
                figures.setdefault(metric.name, []).append(metric.value)
    if len(kicked) < RUNS:  # a kicked run diverged
        figures = {name: [*values, np.inf] for name, values in figures.items()}
    found = []
    for metric in metrics:
        low, high = min(figures.get(metric.name, [0.0])), max(figures.get(metric.name, [0.0]))
        sound = high - low <= SOUND * max(1.0, abs(low))
        found.append(metric if sound else replace(metric, span=(low, high)))
    return tuple(found)


def position_rounding(log: Log) -> float:
    """Return the rounding of a run's positions alone, in [rad]."""
    return ULPS * float(np.spacing(np.max(np.abs(log.q), initial=1.0)))


def whole_run_limit(log: Log, rounding: Rounding, samples: int | None = None) -> float:
    """Return the allowed distance of the engine's run from the model's, in [rad]; infinity if unknown.

    Args:
        log: log of the engine's run.
        rounding: distance of runs that differ by rounding.
        samples: number of compared samples, from the first on; all by default.
    """
    spread = np.nan_to_num(rounding.spread[:samples], nan=np.inf)
    return SPREAD_MARGIN * float(np.max(spread, initial=0.0)) + position_rounding(log)
