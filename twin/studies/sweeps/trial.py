"""Trials of a sweep: a trial is one closed loop, which an experiment makes from named values.

A trial gives a row of figures, but no log.  This module also computes digests of all that the figures depend
on, part by part, so that a change is detected and named.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from twin.base.plugins import PACKAGES, PROJECT, user_files
from twin.base.version import __version__, library_versions
from twin.data.logs.figures import LOADS

if TYPE_CHECKING:
    from twin.data.logs.log import Log
    from twin.physics.control.control_law import ControlLaw
    from twin.physics.dynamics.environment import Environment
    from twin.physics.robot.drives.motors import Sensors
    from twin.physics.robot.robot import Robot
    from twin.physics.trajectories.sampling import Samples


class Judgement(NamedTuple):
    """Name of the first check that a log fails, "" if none, and the values of `Trial.metrics`."""

    check: str
    values: tuple[float, ...] = ()


class Trial(NamedTuple):
    """One closed loop that can be run.

    Trials that share their reference, and differ only in numbers of plant, controller and noise, run in one
    call; so an experiment returns the same `reference` object for equal references.

    Attributes:
        plant: the arm, with its drives and its payload.
        controller: the controller, with its model.
        reference: reference at every control period; the run starts at the first sample.
        sensors: sensors between motors and controller; `None` for ideal measurements at the motors.
        time_step: time step in [s].
        steps_per_period: number of time steps per control period.
        T_flange_tool: (4, 4) pose of the tool whose error is computed; `None` for none, which is faster.
        loads: whether the loads on foundation and pins are computed, too, which takes some times as long.
        error_limit: limit of the largest joint error, in [rad]; infinite if unknown.
        leaves_limits: whether the arm is meant to leave its ranges and speed limits.
        judge: function that judges the log of the run; it decides alone whether a run that did not end early
            passes. `None` if the figures decide.
        metrics: names of the experiment's further figures, whose values `judge` returns.
        environment: pushes and surfaces that act on the tool; `None` for none.
    """

    plant: Robot
    controller: ControlLaw
    reference: Samples
    sensors: Sensors | None = None
    time_step: float = 1e-3
    steps_per_period: int = 1
    T_flange_tool: np.ndarray | None = None
    loads: bool = False
    error_limit: float = np.inf
    leaves_limits: bool = False
    judge: Callable[[Log], Judgement] | None = None
    metrics: tuple[str, ...] = ()
    environment: Environment | None = None


class Experiment(Protocol):
    """Quantities that can vary, and the trial of given values.

    An experiment is pickled for other processes, and must make the same trial there: it contains names and
    numbers, and loads what they refer to when it is needed.
    """

    def nominal(self, name: str) -> float:
        """Return the nominal value of a quantity, to which scaled variations refer.

        Raises:
            UnknownNameError: the quantity is unknown; the message names the nearest ones.
            VariationError: the quantity is not a number, or cannot vary.
        """
        ...

    def trial(self, values: Mapping[str, float]) -> Trial:
        """Return the closed loop with these values.

        Args:
            values: absolute values by the names of the quantities, each in its unit.

        Raises:
            TwinError, ValueError: the closed loop cannot be made.
        """
        ...


PATHS = ("file", "urdf")
"""Fields of a robot that are not compared, because they differ between machines."""

MOST_NAMED = 5


@cache
def surroundings() -> dict[str, str]:
    """Return versions, the type of the processor, and a digest of every source file of this project."""
    from llvmlite.binding import get_host_cpu_name

    files = [file for package in PACKAGES for file in sorted((PROJECT / package).rglob("*.py"))]
    return {
        "version of irb-twin": __version__,
        **{f"version of {name}": number for name, number in library_versions().items()},
        "processor": f"{platform.machine()} {get_host_cpu_name()}",
        **{file.relative_to(PROJECT).as_posix(): _digest(file.read_bytes()) for file in files},
    }


def dependencies(trial: Trial) -> dict[str, str]:
    """Return digests of all that a sweep's figures depend on: surroundings, the user's code, nominal trial.

    Args:
        trial: the trial with nominal values, just made, so that the user's code is loaded.
    """
    law: Any = trial.controller
    parts = {
        f"robot {trial.plant.name}": trial.plant,
        "model of the controller": getattr(law, "robot", None),
        "numbers of the controller": getattr(law, "parameters", None),
        "reference": tuple(trial.reference),
        "environment": trial.environment,
    }
    code = {f"code {'/'.join(file.parts[-2:])}": file.read_bytes() for file in user_files()}
    contents = code | {name: _content(part) for name, part in parts.items()}
    return surroundings() | {name: _digest(content) for name, content in contents.items()}


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return the names of entries that differ, at most `MOST_NAMED` of them; empty if there are none."""
    names = [name for name in {**now, **then} if then.get(name) != now.get(name)]
    parts = [
        f"{name} (was {then.get(name)}, is {now.get(name)})" if name.startswith("version") else name
        for name in names[:MOST_NAMED]
    ]
    return ", ".join(parts) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def _content(value: Any) -> bytes:
    """Return the bytes of arrays and texts, the same in every process."""
    if isinstance(value, np.ndarray):
        return repr((value.shape, value.dtype.str)).encode() + value.tobytes()
    if is_dataclass(value):
        value = {item.name: getattr(value, item.name) for item in fields(value) if item.name not in PATHS}
    if isinstance(value, Mapping):
        value = tuple(value.items())
    if isinstance(value, (tuple, list)):
        return b"(%s)" % b",".join(map(_content, value))
    return repr(value).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


OUTCOME = np.dtype(
    [
        ("passes", "?"),
        ("trouble", "i1"),
        ("duration", "f8"),
        ("joint_error", "f8"),
        ("joint_error_joint", "i1"),
        ("joint_error_time", "f8"),
        ("rms_error", "f8"),
        ("tool_error", "f8"),
        ("tool_error_time", "f8"),
        ("rms_torque", "f8"),
        ("cubic_torque", "f8"),
        *((name, "f8") for name in LOADS),
        ("beyond_range", "f8"),
        ("speed_ratio", "f8"),
        ("saturated", "i8"),
        ("check", "U48"),
    ]
)
"""Row of a trial.

- passes: whether the trial met every limit.
- trouble: 0, or what ended the trial early, as an index of `TROUBLES`; its errors are infinite then.
- duration: duration of the run, in [s].
- joint_error, joint_error_joint, joint_error_time: largest `|q_ref - q|` of a joint, in [rad]; the
  joint, from 1; and the time, in [s].
- rms_error: root mean square of `q_ref - q` over joints and samples, in [rad].
- tool_error, tool_error_time: largest position error of the tool, in [m], and its time; NaN if not computed.
- rms_torque: root mean square over joints and samples of torque over its limit at standstill.
- cubic_torque: cubic mean of the same ratio, with which the life of gears falls.
- base_force_xy, ..., pin_force: largest loads, see `twin.logs.figures.LOADS`. They and `cubic_torque` are NaN
  unless `Trial.loads` is set.
- beyond_range: largest excess of a joint over its range, in [rad]; 0 if there is none.
- speed_ratio: largest speed over its limit.
- saturated: number of samples and joints at which a drive saturated.
- check: name of the first check of the scenario that fails, at most 48 characters, see `Trial.judge`.
"""


def outcome_type(metrics: Sequence[str]) -> np.dtype:
    """Return the type of a row: `OUTCOME`, then a number for each further figure, NaN if not computed."""
    return np.dtype([*OUTCOME.descr, *((name, "f8") for name in metrics)])


TROUBLES = ("", "ran away", "torque not finite", "loop folded", "cannot be made")
"""Reasons why a trial ended early, by the number in the table; the last one: the trial cannot be made."""

FIGURES = (
    "joint_error", "rms_error", "tool_error", "rms_torque", "cubic_torque", *LOADS, "beyond_range",
    "speed_ratio", "saturated",
)  # fmt: skip
"""Figures that can have a limit."""
LOAD_FIGURES = ("cubic_torque", *LOADS)
"""Figures that are computed if `Trial.loads` is set."""
