"""Identification of dynamic parameters from recordings; `irb-twin identify` calls it."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats
from twin.base.errors import IdentificationWarning
from twin.data.identification.alternatives import delay_finding, found_delay, without_delay
from twin.data.identification.deviations import (
    KINDS,
    Part,
    Residuals,
    block_covariance,
    growth_over_halves,
    half_factors,
    half_fits,
    warn_of_repetition,
    weighted_residuals,
)
from twin.data.identification.least_squares import (
    Fit,
    Triangles,
    chosen_min_speed,
    fitted,
    joint_residuals,
    solved,
    spike_findings,
    triangles,
    used_equally,
    useless_friction,
    with_weights,
    without_rest,
    without_spikes,
)
from twin.data.identification.measurements import (
    Filtering,
    Measurements,
    measured_parts,
    measurements_of_log,
    motion_at,
)
from twin.data.identification.requirements import (
    Undetermined,
    mass_factor,
    model_findings,
    require_motion,
    require_rank,
    require_units,
    warn_of_extrapolation,
    warn_of_masses,
)
from twin.data.identification.result import Identification
from twin.data.identification.torque_model import FRICTION, TorqueModel, friction_of, identifiable
from twin.data.logs.log import Log
from twin.data.logs.recordings.finding import Finding
from twin.data.logs.recordings.torque_recording import TorqueRecording
from twin.physics.robot.robot import Robot

Source: TypeAlias = Log | TorqueRecording | Measurements
"""Data from which parameters are identified."""

CERTAIN = 3.0
"""Deviations by which friction that grows with the load must exceed 0."""

FEWEST = 2
"""Smallest number of equations per parameter."""

ROBUST = 4
"""Largest number of fits without the spikes of the one before."""

CUTOFFS = (1.0, 2.0, 4.0)
"""Factors of a chosen cut-off, which are tried until all parameters are determined."""

CORRECTIONS = 4
"""Largest number of fits with a corrected delay; each corrects what the one before, with a delay, missed."""

SMALLEST_DELAY = 2e-5
"""Delay in [s] that is not corrected."""


def identify(
    robot: Robot,
    *sources: Source,
    validate: Sequence[Source] = (),
    both_sides: bool = False,
    filtering: Filtering | None = None,
    start: float | None = None,
    end: float | None = None,
    split: float | None = None,
    friction: Sequence[str] = (),
    min_speed: float | None = None,
    deviations: str = "blocks",
    weights: ArrayLike | Sequence[ArrayLike] | None = None,
    delay: float | Literal["auto"] = 0.0,
    torque_sensors: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Identification:
    """Identify the dynamic parameters of a robot from recordings of its motion and torques.

    Args:
        robot: robot that moved.  Its kinematics, gears and mounting are assumed to be correct.  Its masses
            and friction serve only for comparison and to check the units.
        sources: logs, or recordings of positions and torques (`twin.logs.read_torque_recording`).
        validate: further recordings, on which the result is validated.
        both_sides: whether coupled drives have inertia and friction on both sides, see
            `twin.identification.torque_model`.
        filtering: filter settings for recordings; exact logs are not filtered.
        start: start of the interval that is used, in [s].
        end: end of the interval that is used, in [s].
        split: time from which on samples are used for validation only, in [s].
        friction: further friction to identify: `"load"`, which grows with the transmitted torque, `"root"`,
            with the root of the speed, and `"difference"` of viscous friction between the directions.  What
            the robot's drives have of these is always identified.
        min_speed: speed of a shaft below which samples are excluded from the fit, in [rad/s], since friction
            near rest is another; `None` to choose it from filtered recordings.
        deviations: `"blocks"` for deviations of the block bootstrap (`twin.identification.deviations`), or
            `"white"` for independent equations.
        weights: weights w of the equations: the fit minimises the sum of `(w (tau - Y beta))^2`, so that w is
            one over the expected deviation of a torque, up to a common factor.  Numbers (n,), one per joint;
            or an array (N, n) for each source, in a sequence if there are several, with a row per sample.  An
            equation of weight 0 is excluded.  `None` for one over the deviation of each joint's residuals.
        delay: time by which torques were recorded later than positions, in [s]; or `"auto"` to correct the
            one that `Identification.delay` states.
        torque_sensors: whether sensors behind the gears measured the torques of the recordings, so that they
            have no part of rotors and friction of the drives, which then remain those of the robot.
        progress: callback that receives the fraction done.

    Raises:
        IdentificationError: the recordings do not determine the parameters; the message states why.
        RobotError: the masses of the robot's links are not known.
        ValueError: a setting is invalid, or weights have another shape, or are negative or not finite.

    Example:
        >>> import twin
        >>> from scenarios.joint_tracking import JointTracking
        >>> log = JointTracking(duration=4.0).run(JointTracking.setup(robot="two_link", time_step=0.005)).log
        >>> found = twin.identify(log.robot, log)
        >>> [(one.stands_for, round(one.value, 4)) for one in (found.values[1], found.values[3])]
        [('mx2', 0.5), ('Izz2', 0.3333)]
    """
    if not sources:
        raise ValueError("expected a recording to identify from, got none")
    require_options(min_speed, deviations)
    robot = identifiable(robot)
    if torque_sensors:
        require_sensors(sources, friction or both_sides)
    kinds = () if torque_sensors else friction_of(robot, friction)
    model = TorqueModel(robot, both_sides, kinds, torque_sensors=torque_sensors)
    if delay != "auto" and not abs(delay) < np.inf:
        raise ValueError(f"expected a delay in s, or 'auto', got {delay!r}")
    given, fault = filtering or Filtering(), None
    settings = Settings(model, min_speed, deviations, weights, progress, delay, start, end, split)
    chosen = given.cutoff is None and any(isinstance(source, TorqueRecording) for source in sources)
    for factor in CUTOFFS if chosen else CUTOFFS[:1]:
        try:
            return _filtered(sources, validate, replace(given, factor=factor), settings)
        except Undetermined as error:
            fault = fault or error
    assert fault is not None
    raise fault


class Settings(NamedTuple):
    """Settings that all fits of one identification share."""

    model: TorqueModel
    min_speed: float | None
    deviations: str
    weights: ArrayLike | Sequence[ArrayLike] | None
    progress: Callable[[float], None] | None
    delay: float | Literal["auto"]
    start: float | None
    end: float | None
    split: float | None


def _filtered(
    sources: Sequence[Source], validate: Sequence[Source], filtering: Filtering, settings: Settings
) -> Identification:
    """Identify from sources with some filter settings, and correct a delay if that is asked."""
    robot, split, delay = settings.model.robot, settings.split, settings.delay
    whole, kept_out = (
        [
            part.between(settings.start, settings.end)
            for source in some
            for part in measured_sources(source, robot, filtering)
        ]
        for some in (sources, validate)
    )
    if split is not None:
        kept_out += [one.between(split, None) for one in whole]
        whole = [one.between(None, split) for one in whole]
    whole = whole if settings.weights is None else with_weights(whole, settings.weights)
    findings = [finding for one in (*whole, *kept_out) for finding in one.findings]
    if delay != "auto":
        whole, kept_out = ([without_delay(one, float(delay)) for one in part] for part in (whole, kept_out))
    found = _identified(whole, kept_out, settings, findings)
    if delay == "auto" and found.delay is not None and found.delay.certain:
        value, first = 0.0, found.delay
        for _ in range(CORRECTIONS):
            assert found.delay is not None
            if not abs(found.delay.value) > max(found.delay.deviation, SMALLEST_DELAY):
                break
            value += found.delay.value
            late = [[without_delay(one, value) for one in part] for part in (whole, kept_out)]
            found = _identified(*late, settings, findings)
        text = (
            f"torques were recorded {1e3 * abs(value):.3g} +- {1e3 * first.deviation:.2g} ms "
            f"{'after' if value > 0 else 'before'} the positions: corrected"
        )
        found = replace(found, findings=(*found.findings, Finding("late", (), text, stops=False)))
    return found


def _period(measured: Sequence[Measurements]) -> float:
    """Return the longest time between two samples, in [s]."""
    return max(float(one.t[1] - one.t[0]) for one in measured)


def _identified(
    whole: Sequence[Measurements],
    kept_out: Sequence[Measurements],
    settings: Settings,
    findings: Sequence[Finding],
) -> Identification:
    """Identify from measurements; `findings` are those of their recordings."""
    model, robot = with_exact_motors(settings.model, whole), settings.model.robot
    require_motion(robot, whole)
    without = model.without_load
    require_units(without, whole)
    speed = chosen_min_speed(without, whole) if settings.min_speed is None else settings.min_speed
    whole = [without_rest(one, robot, speed) for one in whole]
    if without is not model and any(one.load is None for one in (*whole, *kept_out)):
        beta = fitted(triangles(without, whole)).beta
        whole, kept_out = ([with_load(without, beta, one) for one in part] for part in (whole, kept_out))
    fit, weighted = _fit(model, whole, settings.progress)
    with_spikes = whole
    for _ in range(ROBUST):
        whole, count = without_spikes(model, fit.beta, whole)
        if not count:
            break
        fit, weighted = _fit(model, whole, None)
    if dropped := _useless_friction(model, fit, whole, settings):
        model = replace(model, friction=tuple(one for one in model.friction if one not in dropped))
        fit, weighted = _fit(model, whole, settings.progress)
    reduced = triangles(model, map(used_equally, whole)) if settings.weights is not None else weighted
    ordinary = solved(reduced, np.ones(robot.n))
    validation = joint_residuals(triangles(model, kept_out), fit.beta) if kept_out else None
    of_joints = joint_residuals(reduced, fit.beta)
    residuals = _residuals(model, fit, whole)
    covariance, blocks = fit.covariance, 0
    if settings.deviations == "blocks":
        covariance, blocks = block_covariance(model, fit, residuals)
        warn_of_repetition(residuals, of_joints.percent)
    filtered = [one for one in whole if one.low_pass is not None]
    halves = half_fits(model, fit, whole) if len(filtered) == len(whole) else None
    factors = None if halves is None else half_factors(model, fit, covariance, [half for half, _ in halves])
    growth = None if halves is None else growth_over_halves(fit, weighted, halves)
    warn_of_extrapolation(model, covariance, whole, of_joints.torque_rms)
    factor = mass_factor(model, fit.beta, reduced)
    late = found_delay(model, whole)
    found = Identification(
        model, fit.beta, covariance, fit.condition, fit.rank, of_joints,
        joint_residuals(reduced, ordinary.beta), validation, speed,
        tuple(f"{one.name}: {one.how}" for one in whole), tuple(whole), tuple(kept_out), reduced,
        weighted, fit, blocks, factor, late, half_factors=factors, growth=growth,
    )  # fmt: skip
    of_model = model_findings(found, any(one.stops for one in findings))
    if not any(one.stops and one.name != "worse" for one in (*findings, *of_model)):
        of_model += delay_finding(late, _period(whole))
        warn_of_masses(model, factor, fit.beta, found.deviations)
    return replace(found, findings=(*findings, *spike_findings(with_spikes, whole), *of_model))


def _fit(
    model: TorqueModel, measured: Sequence[Measurements], progress: Callable[[float], None] | None
) -> tuple[Fit, Triangles]:
    """Fit a model to recordings that determine it; return the fit and the reduced equations."""
    reduced = triangles(model, measured, progress)
    count, r = int(np.sum(reduced.counts)), len(model.base.columns)
    if count < FEWEST * r:
        raise Undetermined(
            f"{count} equations are too few for {r} parameters: expected {FEWEST * r} or more; record for "
            "longer, or use more rows (a higher --cutoff)"
        )
    given = any(one.row_weights is not None for one in measured)
    fit = solved(reduced, np.ones(model.robot.n)) if given else fitted(reduced)
    require_rank(model, fit, measured)
    return fit, reduced


def _residuals(model: TorqueModel, fit: Fit, whole: Sequence[Measurements]) -> list[Residuals]:
    """Return the weighted residuals of a fit to some measurements."""
    r = len(fit.beta)
    return weighted_residuals(model, fit, [Part(whole, np.eye(r), np.zeros(r))])


def _useless_friction(
    model: TorqueModel, fit: Fit, whole: Sequence[Measurements], settings: Settings
) -> list[tuple[str, int]]:
    """Return further friction that predicts nothing, or grows with the load by nothing, and warn of it.

    What the robot's file has predicts something by assumption.
    """
    if not model.friction:
        return []
    drives = model.robot.active_drives
    asked = [kind for kind in FRICTION if not np.any(getattr(drives, FRICTION[kind][0]))]
    useless = [kind for kind in useless_friction(model, whole) if kind in asked]
    if useless:
        warnings.warn(
            f"--friction {' '.join(useless)} does not improve the prediction of parts of the recordings "
            "from the others, and is left out",
            IdentificationWarning,
            stacklevel=4,
        )
    covariance = fit.covariance
    if settings.deviations == "blocks":
        covariance = block_covariance(model, fit, _residuals(model, fit, whole))[0]
    small = _small_loads(model, fit, covariance) if "load" not in useless else []
    return [one for one in model.friction if one[0] in useless or one in small]


def _small_loads(model: TorqueModel, fit: Fit, covariance: Floats) -> list[tuple[str, int]]:
    """Return the friction by load that is negative or within `CERTAIN` deviations of 0, and warn of it."""
    symbols = dict(zip(model.base.symbols, zip(fit.beta, np.diag(covariance), strict=True), strict=True))
    small = []
    for kind, drive in model.friction:
        value, variance = symbols.get(f"{FRICTION[kind][1]}{drive + 1}", (0.0, 0.0))
        if kind == "load" and not value > CERTAIN * np.sqrt(variance):
            small.append((kind, drive))
    if small:
        joints = ", ".join(str(drive + 1) for _, drive in small)
        warnings.warn(
            f"friction that grows with the load is not found in joint {joints} (negative, or within "
            f"{CERTAIN:g} deviations of 0), and assumed to be 0 there",
            IdentificationWarning,
            stacklevel=3,
        )
    return small


def with_load(model: TorqueModel, beta: Floats, measured: Measurements) -> Measurements:
    """Return measurements with the torques that drives transmit.

    Where they are not recorded, they are those of links and springs in a fit.  Rotors that no torque tells
    from links are in them, and constant torques of springs are not, since no torque tells them from offsets.

    Args:
        model: model without friction that grows with the load.
        beta: (r,) its base parameters.
        measured: the measurements.
    """
    if measured.load is not None:
        return measured
    columns, sections = model.base.columns, model.sections
    of_drives = (columns >= sections.drives.start) & (columns < sections.friction.stop)
    Y = model.regressor(*motion_at(measured, np.arange(len(measured.t))))[..., columns]
    return replace(measured, load=Y @ np.where(of_drives, 0.0, beta))


def with_exact_motors(model: TorqueModel, measured: Sequence[Measurements]) -> TorqueModel:
    """Return the model in which rotors differ from links, if all recordings have exact motions of motors."""
    exact = all(one.motor is not None and one.low_pass is None for one in measured)
    return replace(model, apart=True) if exact else model


def require_options(min_speed: float | None, deviations: str) -> None:
    """Raise `ValueError` for a speed or a kind of deviations that does not exist."""
    if min_speed is not None and not 0 <= min_speed < np.inf:
        raise ValueError(f"expected a min_speed of at least 0 rad/s, got {min_speed}")
    if deviations not in KINDS:
        raise ValueError(f"expected deviations to be {' or '.join(KINDS)}, got {deviations!r}")


def require_sensors(sources: Sequence[Source], of_drives: object = ()) -> None:
    """Raise `ValueError` for what torque sensors do not see: friction of drives, and motors of logs."""
    if of_drives:
        raise ValueError("torque sensors behind the gears see no friction of drives, on neither side")
    if any(isinstance(one, Log) for one in sources):
        raise ValueError("a log has the torques of motors, not of sensors behind the gears: expected a table")


def measured_sources(source: Source, robot: Robot, filtering: Filtering | None) -> list[Measurements]:
    """Return the measurements of any source, which must have as many joints as the robot."""
    if isinstance(source, Log):
        measured = [measurements_of_log(source, filtering=filtering)]
    elif isinstance(source, TorqueRecording):
        if source.q.shape[1] != robot.n:
            raise ValueError(_joints(source.name, robot, source.q.shape[1]))
        measured = measured_parts(source, robot, filtering)
    else:
        measured = [source]
    if measured[0].q.shape[1] != robot.n:
        raise ValueError(_joints(measured[0].name, robot, measured[0].q.shape[1]))
    return measured


def _joints(name: str, robot: Robot, count: int) -> str:
    """Say that a source has another number of joints than the robot."""
    return f"{name}: expected {robot.n} joints, as {robot.name!r} has, got {count}"
