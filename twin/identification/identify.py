"""From recordings to parameters: what `irb-twin identify` does, as a function."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from twin.arrays import Floats
from twin.errors import IdentificationError
from twin.identification.least_squares import (
    JointResiduals,
    Triangles,
    fitted,
    joint_residuals,
    require_motion,
    require_rank,
    require_units,
    solved,
    triangles,
    warn_of_masses,
)
from twin.identification.measurements import (
    Filtering,
    Measurements,
    equations,
    filtered_measurements,
    measurements_of_log,
)
from twin.identification.torque_model import TorqueModel, identifiable
from twin.logs.log import Log
from twin.logs.recordings.torque_recording import TorqueRecording
from twin.robot.robot import Robot

Source: TypeAlias = Log | TorqueRecording | Measurements
"""What parameters are identified from."""

FEWEST = 2
"""Equations a parameter, at least."""


class BaseValue(NamedTuple):
    """A base parameter that was identified.

    Attributes:
        symbol: of the parameter that it is named after, as `mx2`.
        stands_for: the sum of parameters, as `mx2 + 0.36 m3`.
        value: what was found.
        deviation: its standard deviation, as least squares tells it.
        unit: of both.
        before: what the robot that was given has.
    """

    symbol: str
    stands_for: str
    value: float
    deviation: float
    unit: str
    before: float


@dataclass(frozen=True, eq=False)
class Identification:
    """What recordings tell of a robot.

    Attributes:
        model: what was fitted: the robot, its drives, and its base parameters, `model.base`.
        beta: (r,) base parameters, `model.base.K @ pi`.
        covariance: (r, r) of them.
        condition: of the equations, columns scaled to norm 1.
        rank: how many base parameters the recordings tell: all, else `identify` raises.
        residuals: of the fit, every joint weighted by its own noise.
        ordinary: of a fit that weights all joints alike.
        validation: of recordings that were kept out, None where there were none.
        how: how each recording was used, a sentence each.
        measured: the recordings; `kept_out` those of the validation.
        reduced: the equations of the recordings.
    """

    model: TorqueModel
    beta: Floats
    covariance: Floats
    condition: float
    rank: int
    residuals: JointResiduals
    ordinary: JointResiduals
    validation: JointResiduals | None
    how: tuple[str, ...]
    measured: tuple[Measurements, ...]
    kept_out: tuple[Measurements, ...]
    reduced: Triangles

    @property
    def deviations(self) -> Floats:
        """Standard deviations (r,) of the base parameters."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def values(self) -> tuple[BaseValue, ...]:
        """The base parameters, one by one."""
        base, parameters = self.model.base, self.model.parameters
        before = base.K @ parameters.values
        return tuple(
            BaseValue(*row)
            for row in zip(
                base.symbols,
                base.sums,
                self.beta.tolist(),
                self.deviations.tolist(),
                (parameters.units[k] for k in base.columns),
                before.tolist(),
                strict=True,
            )
        )

    def predicted(self, measured: Measurements) -> tuple[Floats, Floats, Floats]:
        """Times (m,), measured and predicted torques (m, n) of measurements, filtered as they are."""
        blocks = [
            (measured.t[places], rows[..., -1], rows[..., :-1] @ self.beta)
            for places, rows, _ in equations(self.model, measured)
        ]
        t, tau, predicted = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return t, tau, predicted


def identify(
    robot: Robot,
    *sources: Source,
    validate: Sequence[Source] = (),
    both_sides: bool = False,
    filtering: Filtering | None = None,
    start: float | None = None,
    end: float | None = None,
    split: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> Identification:
    """Identify the dynamic parameters of a robot from recordings of its motion and torques.

    Args:
        robot: what moved: its kinematics, gears and mounting count; its masses and friction only to tell
            what was found from what was thought, and whether units are right.
        sources: logs, or recordings of positions and torques (`twin.logs.read_torque_recording`).
        validate: others, on which what was found is tested.
        both_sides: whether coupled drives have inertia and friction on both sides, see
            `twin.identification.torque_model`.
        filtering: how recordings are filtered; logs of ours are not.
        start: only what was recorded from this time on counts, in [s].
        end: only what was recorded before it, in [s].
        split: what was recorded from this time on is kept out, and tests what was found, in [s].
        progress: called with the fraction done, now and then.

    Raises:
        IdentificationError: the recordings do not tell the parameters, with the reason.
        RobotError: the masses of its links are not known.
    """
    if not sources:
        raise ValueError("expected a recording to identify from, got none")
    robot = identifiable(robot)
    model = TorqueModel(robot, both_sides)
    whole = [measured_source(source, robot, filtering).between(start, end) for source in sources]
    kept_out = [measured_source(source, robot, filtering).between(start, end) for source in validate]
    if split is not None:
        kept_out += [one.between(split, None) for one in whole]
        whole = [one.between(None, split) for one in whole]
    require_motion(robot, whole)
    require_units(model, whole)
    reduced = triangles(model, whole, progress)
    count, r = int(np.sum(reduced.counts)), len(model.base.columns)
    if count < FEWEST * r:
        raise IdentificationError(
            f"{count} equations are too few for {r} parameters: expected {FEWEST * r} or more; record for "
            "longer, or keep more rows (a higher cut-off)"
        )
    ordinary, fit = solved(reduced, np.ones(robot.n)), fitted(reduced)
    require_rank(model, fit, whole)
    warn_of_masses(model, fit.beta, reduced)
    validation = joint_residuals(triangles(model, kept_out), fit.beta) if kept_out else None
    return Identification(
        model, fit.beta, fit.covariance, fit.condition, fit.rank, joint_residuals(reduced, fit.beta),
        joint_residuals(reduced, ordinary.beta), validation,
        tuple(f"{one.name}: {one.how}" for one in whole), tuple(whole), tuple(kept_out), reduced,
    )  # fmt: skip


def measured_source(source: Source, robot: Robot, filtering: Filtering | None) -> Measurements:
    """The measurements of any source, of as many joints as the robot has."""
    if isinstance(source, Log):
        measured = measurements_of_log(source, filtering=filtering)
    elif isinstance(source, TorqueRecording):
        measured = filtered_measurements(source, filtering)
    else:
        measured = source
    if measured.q.shape[1] != robot.n:
        raise ValueError(
            f"{measured.name}: expected {robot.n} joints, as {robot.name!r} has, got {measured.q.shape[1]}"
        )
    return measured
