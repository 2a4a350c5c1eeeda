"""A sweep runs trials: a trial is one closed loop, which an experiment makes of numbers with names.

A trial leaves a row of figures and a verdict, never its log.  The digests of all that the figures depend on
are here too, part by part, so that a change is found and named.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from twin.plugins import PACKAGES, PROJECT, user_files
from twin.version import __version__

if TYPE_CHECKING:
    from twin.control.control_law import ControlLaw
    from twin.robot.drives.sensors import Sensors
    from twin.robot.robot import Robot
    from twin.trajectories.sampling import Samples


class Trial(NamedTuple):
    """One closed loop, before it is run.

    Trials that share their reference, and differ in numbers of plant, controller and noise alone, are run at
    once; so an experiment hands out the same `reference` object wherever it is the same.

    Attributes:
        plant: the arm, with its drives and its payload.
        controller: with its own model.
        reference: at every control period; the run starts on the first sample.
        sensors: between motors and controller; `None` where it sees the motors as they are.
        time_step: in [s].
        steps_per_period: steps in a control period.
        T_flange_tool: (4, 4) the tool whose place is compared; `None` where nobody asks, which is faster.
        error_limit: what the largest joint error may be, in [rad], as far as it is known.
        leaves_limits: whether the arm is meant to leave its ranges and speed limits.
    """

    plant: Robot
    controller: ControlLaw
    reference: Samples
    sensors: Sensors | None = None
    time_step: float = 1e-3
    steps_per_period: int = 1
    T_flange_tool: np.ndarray | None = None
    error_limit: float = np.inf
    leaves_limits: bool = False


class Experiment(Protocol):
    """What varies, and the trial that comes of it.

    An experiment travels to other processes, and has to give the same trial there: it holds names and
    numbers, and loads what they stand for where it is asked.
    """

    def nominal(self, name: str) -> float:
        """The value of a quantity where nobody varies it, which scaled variations refer to.

        Raises:
            UnknownNameError: nothing has such a quantity; the message names those that are nearest.
            VariationError: it is no number, or cannot be varied here.
        """
        ...

    def trial(self, values: Mapping[str, float]) -> Trial:
        """The closed loop with these values.

        Args:
            values: by the names of the quantities, each absolute, in its own unit.

        Raises:
            TwinError, ValueError: there is no such arm or loop.
        """
        ...


LIBRARIES = ("numpy", "numba", "pybullet")
PATHS = ("file", "urdf")
"""Fields of a robot that may differ between machines."""

MOST_NAMED = 5


@cache
def surroundings() -> dict[str, str]:
    """Versions, the kind of processor, and a digest of every source file of this project."""
    from llvmlite.binding import get_host_cpu_name

    files = [file for package in PACKAGES for file in sorted((PROJECT / package).rglob("*.py"))]
    return {
        "version of irb-twin": __version__,
        **{f"version of {name}": metadata.version(name) for name in LIBRARIES},
        "processor": f"{platform.machine()} {get_host_cpu_name()}",
        **{file.relative_to(PROJECT).as_posix(): _digest(file.read_bytes()) for file in files},
    }


def dependencies(trial: Trial) -> dict[str, str]:
    """All that a sweep's figures depend on, by name: surroundings, the user's code, and the nominal trial.

    Args:
        trial: with nominal values, made a moment ago, so that the code that it takes is loaded.
    """
    law: Any = trial.controller
    parts = {
        f"robot {trial.plant.name}": trial.plant,
        "model of the controller": getattr(law, "robot", None),
        "numbers of the controller": getattr(law, "parameters", None),
        "reference": tuple(trial.reference),
    }
    code = {f"code {'/'.join(file.parts[-2:])}": file.read_bytes() for file in user_files()}
    contents = code | {name: _content(part) for name, part in parts.items()}
    return surroundings() | {name: _digest(content) for name, content in contents.items()}


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The names of what differs, the first few in words; empty where nothing does."""
    names = [name for name in {**now, **then} if then.get(name) != now.get(name)]
    told = [
        f"{name} (was {then.get(name)}, is {now.get(name)})" if name.startswith("version") else name
        for name in names[:MOST_NAMED]
    ]
    return ", ".join(told) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def _content(value: Any) -> bytes:
    """The bytes of arrays and texts, the same in every process."""
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
        ("beyond_range", "f8"),
        ("speed_ratio", "f8"),
        ("saturated", "i8"),
    ]
)
"""The figures of a trial.

- holds: whether it kept every limit.
- trouble: 0, or what ended it early, an index of `TROUBLES`; its errors are infinite then.
- duration: how long it ran, in [s].
- joint_error, joint_error_joint, joint_error_time: the largest `|q_ref - q|` of a joint, in [rad]; which,
  from 1; and when, in [s].
- rms_error: root of the mean over joints and samples of its square, in [rad].
- tool_error, tool_error_time: the largest distance of the tool from where it should be, in [m], and when; NaN
  where nobody asked.
- rms_torque: root of the mean over joints and samples of the square of torque over its limit at standstill.
- beyond_range: how far a joint was beyond its range, in [rad], 0 where none was.
- speed_ratio: the largest speed over its limit.
- saturated: number of samples and joints at which a drive could not give what was demanded.
"""

TROUBLES = ("", "ran away", "torque not finite", "loop folded", "cannot be made")
"""What may end a trial early, by the number in the table; the last: values of which there is no such arm."""

FIGURES = ("joint_error", "rms_error", "tool_error", "rms_torque", "beyond_range", "speed_ratio", "saturated")
"""Figures that a limit can be put to."""
