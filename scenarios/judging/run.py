"""Run of a scenario as a value: its log, its loop, and what the analytic model predicts for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from twin.data.logs.log import Log


@dataclass(frozen=True, eq=False)
class Loop:
    """Facts of a closed loop that limits depend on.

    Attributes:
        bandwidth: bandwidth of the controller, in [rad/s].
        consistent: whether the reference obeys the engine's recursion.
        sensors: whether the controller measures through sensors.
        known_law: whether a bound of the tracking error may apply: a built-in controller whose model is the
            plant.
        derived_gains: whether the gains follow from the bandwidth.
        repeatable: whether the controller is a `ControlLaw`, which repeats its torques.
        gains: gains (n,) of the controller by name.
    """

    bandwidth: float
    consistent: bool
    sensors: bool
    known_law: bool
    derived_gains: bool
    repeatable: bool
    gains: Mapping[str, NDArray] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Rounding:
    """Distance between runs that differ by rounding alone, see `scenarios.judging.bounds`.

    Attributes:
        spread: (N,) largest distance of two such runs up to each sample, in [rad]; NaN if it is unknown.
        undetermined_from: time from which rounding decides the path, in [s]; `None` if it does not.
        kicked: signals (R, N, n) of such runs by name; empty unless rounding decides the path.
    """

    spread: NDArray
    undetermined_from: float | None = None
    kicked: Mapping[str, NDArray] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Feedback:
    """Second run of the model, from an initial error, see `scenarios.judging.following`.

    Attributes:
        difference: (M, n) difference of both runs; infinite if the second one diverges.
        saturates: whether the second run reaches a torque limit.
        Kp, Kv: (n,) gains of a controller whose error obeys a recursion; `None` for others.
    """

    difference: NDArray
    saturates: bool
    Kp: NDArray | None = None
    Kv: NDArray | None = None


@dataclass(frozen=True, eq=False)
class Prediction:
    """Run of the analytic model under the same controller.

    Attributes:
        q: (N, n) positions of the model, in [rad].
        start: (4, n) initial state of the model: q, qd, q_motor, qd_motor.
        differs: (N,) samples at which a repeated run of controller, sensors and motor limits differs.
        rounding: distance of runs that differ by rounding.
        feedback: second run from an initial error, if the error can only be rounding.
    """

    q: NDArray
    start: NDArray
    differs: NDArray
    rounding: Rounding
    feedback: Feedback | None = None


@dataclass(frozen=True, eq=False)
class Stops:
    """Poses of the engine's tool at some samples: samples (S,), and poses (S, 7) `[x y z a b c d]`."""

    samples: NDArray
    poses: NDArray


@dataclass(frozen=True, eq=False)
class TrackingRun:
    """Run of an arm along a reference.

    A scenario with figures of its own returns a subclass with fields for them.

    Attributes:
        log: log of the engine.
        loop: facts of the closed loop; `None` if they are not known, as for a log alone.
        prediction: run of the analytic model; `None` if there is none.
        stops: poses of the tool where the run was to be measured.
        is_draw: whether the log is that of a draw of a sweep, or of a run with other rounding. The engine is
            not compared with the model there.
    """

    log: Log
    loop: Loop | None = None
    prediction: Prediction | None = None
    stops: Stops | None = None
    is_draw: bool = False

    def save(self, path: str | Path) -> None:
        """Write the log with loop, prediction and stops as a NumPy archive, which `twin.Log.load` reads, too.

        Raises:
            TwinError: the log is not consistent.
            OSError: the file cannot be written.
        """
        self.log.save(path, dict(pair for name in PARTS for pair in _flat(name, getattr(self, name))))

    @staticmethod
    def load(path: str | Path) -> TrackingRun:
        """Read a run that `save` wrote; the parts that a log does not have are `None`.

        Raises:
            TwinError: the file is missing or is not a log.
        """
        from twin.data.logs.archive import read_arrays
        from twin.data.logs.log import Log

        log, arrays = Log.load(path), read_arrays(path)
        return TrackingRun(log, **{name: _built(name, kind, arrays) for name, kind in PARTS.items()})

    def with_log(self, log: Log) -> TrackingRun:
        """Return the run with another log, which the model does not predict, as that of a draw."""
        return replace(self, log=log, prediction=None, is_draw=True)


PARTS: dict[str, type] = {"loop": Loop, "prediction": Prediction, "stops": Stops}
NESTED: dict[str, type] = {"rounding": Rounding, "feedback": Feedback}
MAPPINGS = ("gains", "kicked")


def _flat(name: str, part: Any) -> list[tuple[str, Any]]:
    """Return the values of a part by their names in an archive, as `prediction.rounding.spread`."""
    if part is None:
        return []
    if isinstance(part, Mapping) or type(part) in (*PARTS.values(), *NESTED.values()):
        inner = part.items() if isinstance(part, Mapping) else vars(part).items()
        return [pair for key, value in inner for pair in _flat(f"{name}.{key}", value)]
    return [(name, np.asarray(part))]


def _built(name: str, kind: type, arrays: Mapping[str, NDArray]) -> Any:
    """Return the part of an archive with this name; `None` if it has none."""
    prefix = f"{name}."
    inner = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
    if not inner:
        return None
    values: dict[str, Any] = {}
    for key, array in inner.items():
        first, _, rest = key.partition(".")
        if not rest:
            values[first] = array[()] if array.shape == () else array
        elif first in MAPPINGS:
            values.setdefault(first, {})[rest] = array
        else:
            values[first] = _built(first, NESTED[first], inner)
    return kind(**values)
