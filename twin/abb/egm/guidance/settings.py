"""Arguments of the RAPID instructions for EGM, in the units of RAPID.

The settings combine the arguments of `EGMSetupUC`, `EGMActJoint`, `EGMActPose`, `EGMActMove`, `EGMRunJoint`
and `EGMRunPose` with the system parameters behind them.  Defaults are those of the manual where it prints
one. The manual states ranges of gain, filter and ramp times for the system parameters.  Here these ranges
also apply to the arguments that override them.
"""

import math
import re
from dataclasses import Field, dataclass, field, fields
from numbers import Integral, Real
from types import NoneType
from typing import Any, get_args, get_type_hints

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import EgmError, printable

MODES = ("joint", "pose", "path")
STOPS = ("hold", "ramp_down")
FRAMES = ("base", "world", "wobj", "tool")
TORQUES = ("level_0", "always")
AXES = {"pose": ("x", "y", "z", "rx", "ry", "rz"), "path": ("y", "z")}
"""Names of the axes that can be guided in pose and path mode; in joint mode the axes are joint numbers."""

CYCLE = 4
"""Cycle of the robot controller, in [ms]."""
PATH_CYCLE = 24
"""Cycle of path corrections, in [ms]."""
LONGEST_CYCLE = 1000
"""Longest cycle, in [ms] (ours; the manual prints no bound)."""
BANDWIDTH = 20.0
"""Default Low Pass Filter Bandwidth, in [Hz]."""
JOINT = re.compile("[1-9][0-9]?")
ENOUGH = 1e9
"""Upper bound of settings for which the manual prints none, in the unit of the setting."""


def argument(default: Any, help: str, choices: tuple[str, ...] = (), within: tuple[float, ...] = ()) -> Any:
    """Return a dataclass field that is also an option of the command line.

    Args:
        default: default value.
        help: help text of the option.
        choices: valid values of a text setting; empty if any text is valid.
        within: smallest and largest valid value of a number.
    """
    return field(default=default, metadata={"help": help, "choices": choices, "within": within})


LAG = 12.0
"""Default delay until an answer acts, in [ms]: real controllers take 10 to 50 ms by reports of users."""


@dataclass(frozen=True)
class GuidanceSettings:
    """Guidance settings of a robot.

    Raises:
        EgmError: a setting is invalid; the message names the setting, its value and the valid values.
    """

    mode: str = argument("joint", "guide the joints, the tool pose, or corrections of a path", MODES)
    level: int = argument(
        1, "filter level: 0 unfiltered, 1 filtered, 2 (for path corrections) the same as 1", within=(0, 2)
    )
    position_gain: float = argument(
        5.0, "Default Proportional Position Gain, 0 to 20, in 1/s", within=(0.0, 20.0)
    )
    pos_corr_gain: float = argument(
        1.0, "PosCorrGain, 0 to 1: factor of the position gain; 0 uses speeds only", within=(0.0, 1.0)
    )
    lp_filter: float | None = argument(
        None,
        "LpFilter: bandwidth of the speed's low-pass filter, up to 100 Hz; 0 disables it (default 20)",
        within=(0.0, 100.0),
    )
    sample_rate: int | None = argument(
        None, "SampleRate: time between two messages, in ms (default 4; path 48)", within=(4, LONGEST_CYCLE)
    )
    max_pos_deviation: float = argument(
        1000.0, "MaxPosDeviation: largest distance of a joint from the start, in deg", within=(0.0, ENOUGH)
    )
    max_speed_deviation: float = argument(
        1.0, "MaxSpeedDeviation: largest speed of a joint, in deg/s", within=(1e-6, ENOUGH)
    )
    cond_window: str = argument(
        "0.5",
        "convergence window, +- deg: one value for all joints, or one per joint (0.5,0.5,1,1,1,2); "
        "in pose mode for the orientation",
    )
    cond_window_mm: float = argument(
        1.0, "convergence window of the position in pose and path mode, +- mm", within=(0.0, ENOUGH)
    )
    cond_time: float = argument(
        1.0,
        "CondTime: time within the convergence window after which the instruction ends, in s",
        within=(0.0, ENOUGH),
    )
    no_wait_cond: bool = argument(
        False, "NoWaitCond: do not wait for convergence; guidance continues without end"
    )
    ramp_in_time: float | None = argument(
        None, "RampInTime: time from rest to full speed, in s (default --ramp-time)", within=(0.005, 10.0)
    )
    ramp_out_time: float | None = argument(
        None, "RampOutTime: time of the stopping ramp, in s (default --ramp-time)", within=(0.005, 10.0)
    )
    ramp_time: float = argument(0.5, "Default Ramp Time, 0.005 to 10, in s", within=(0.005, 10.0))
    stop: str = argument("hold", "end of an instruction: hold the position, or return to the start", STOPS)
    comm_timeout: float = argument(
        2.0,
        "CommTimeout: longest time without an answer before guidance stops with an error, in s "
        "(the manual prints no default)",
        within=(1e-3, ENOUGH),
    )
    axes: str | None = argument(
        None, "guided axes: joint numbers as 1,3; in pose mode as x,z,rz (default all of them)"
    )
    corr_frame: str | None = argument(
        None,
        "CorrFrame as x,y,z,a,b,c,d in m and a unit quaternion, or as x,y,z (default the reference frame)",
    )
    corr_frame_type: str = argument("base", "reference frame of CorrFrame", FRAMES)
    sensor_frame: str | None = argument(None, "SensorFrame, in the same form (default CorrFrame)")
    sensor_frame_type: str | None = argument(
        None, "reference frame of SensorFrame (default that of CorrFrame)", FRAMES
    )
    wobj: str | None = argument(
        None, "work object in the base frame, in the same form (default the base frame)"
    )
    torque: str = argument("level_0", "send torqueRef at level 0 only, as in the manual, or always", TORQUES)
    force: bool = argument(False, "send measuredForce, which clients of early EGM versions cannot read")

    def __post_init__(self) -> None:
        if isinstance(self.cond_window, Real) and not isinstance(self.cond_window, bool):
            object.__setattr__(self, "cond_window", str(self.cond_window))
        kinds = get_type_hints(GuidanceSettings)
        for item in fields(self):
            _check(item, kinds[item.name], getattr(self, item.name))
        step = PATH_CYCLE if self.mode == "path" else CYCLE
        if self.sample_rate is not None and self.sample_rate % step:
            raise EgmError(
                f"sample_rate is {self.sample_rate}: in {self.mode} mode valid are multiples of {step} ms "
                f"up to {LONGEST_CYCLE // step * step} ms"
            )
        if self.mode == "path" and self.stop != "hold":
            raise EgmError(f"stop is {self.stop!r}: in path mode valid is 'hold'")
        windows = _numbers("cond_window", self.cond_window)
        if self.mode != "joint" and len(windows) != 1:
            raise EgmError(f"cond_window is {self.cond_window!r}: in {self.mode} mode valid is one number")
        for name in ("corr_frame", "sensor_frame"):
            if self.mode != "pose" and getattr(self, name) is not None:
                raise EgmError(f"{name} is valid only in pose mode, the mode is {self.mode}")
        self._check_axes()

    def _check_axes(self) -> None:
        """Raise `EgmError` unless axes are distinct joint numbers, or distinct axis names of the mode."""
        if self.axes is None:
            return
        names = self.axis_names
        known = AXES.get(self.mode, ())
        valid_names = all(name in known for name in names) if known else all(map(JOINT.fullmatch, names))
        if not valid_names or len(set(names)) != len(names):
            valid = f"some of {','.join(known)}" if known else "joint numbers from 1, as 1,3"
            raise EgmError(
                f"axes is {printable(self.axes)!r}: in {self.mode} mode valid are {valid}, each once"
            )

    @property
    def cycle(self) -> float:
        """Time between two messages, in [s]."""
        default = 2 * PATH_CYCLE if self.mode == "path" else CYCLE
        return (default if self.sample_rate is None else self.sample_rate) / 1000

    @property
    def gain(self) -> float:
        """Gain of the position error, in [1/s]."""
        return self.position_gain * self.pos_corr_gain

    @property
    def bandwidth(self) -> float | None:
        """Bandwidth of the low-pass filter, in [Hz]; `None` without a filter, as at level 0."""
        bandwidth = BANDWIDTH if self.lp_filter is None else self.lp_filter
        return bandwidth if self.level > 0 and bandwidth > 0.0 else None

    @property
    def speed_limit(self) -> float:
        """Largest joint speed that guidance may request, in [rad/s]."""
        return math.radians(self.max_speed_deviation)

    @property
    def position_limit(self) -> float:
        """Largest distance of a joint from the start, in [rad]."""
        return math.radians(self.max_pos_deviation)

    @property
    def ramp_in(self) -> float:
        """Time from rest to full speed, in [s]."""
        return self.ramp_time if self.ramp_in_time is None else self.ramp_in_time

    @property
    def ramp_out(self) -> float:
        """Time of the stopping ramp, in [s]."""
        return self.ramp_time if self.ramp_out_time is None else self.ramp_out_time

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Names of the guided axes; empty for all axes."""
        return () if self.axes is None else tuple(name.strip() for name in self.axes.split(","))

    def joints(self, n: int) -> tuple[int, ...]:
        """Return the indices of the guided joints of a robot with n joints, counted from 0.

        Raises:
            EgmError: a joint does not exist.
        """
        chosen = tuple(int(name) - 1 for name in self.axis_names)
        if chosen and max(chosen) >= n:
            raise EgmError(f"axes is {self.axes!r}: the robot has {n} joints, valid are 1 to {n}")
        return chosen or tuple(range(n))

    def window(self, n: int) -> Floats:
        """Return the convergence window (n,) of a robot with n joints, in [rad].

        Raises:
            EgmError: the setting has another number of joints.
        """
        degrees = _numbers("cond_window", self.cond_window)
        if len(degrees) not in (1, n):
            raise EgmError(
                f"cond_window is {self.cond_window!r}: valid is one number, or one number per joint ({n})"
            )
        return np.deg2rad(np.broadcast_to(np.array(degrees), n))


def _check(item: Field[Any], kind: Any, value: Any) -> None:
    """Raise `EgmError` unless a setting has the type `kind` and lies in its range."""
    what = f"{item.name} is {value!r}" if len(repr(value)) < 60 else f"{item.name} is too long"
    if value is None and NoneType in get_args(kind):
        return
    kind = next(iter(get_args(kind)), kind)  # the type beside None
    if kind is str:
        choices = item.metadata["choices"]
        if not isinstance(value, str) or (choices and value not in choices):
            raise EgmError(f"{what}: valid is {' or '.join(map(repr, choices)) or 'a text'}")
        return
    if kind is bool:
        if not isinstance(value, (bool, np.bool_)):
            raise EgmError(f"{what}: valid is True or False")
        return
    least, greatest = item.metadata["within"]
    whole = "a whole number" if kind is int else "a number"
    numeric = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    if not (numeric and least <= value <= greatest):
        raise EgmError(f"{what}: valid is {whole} from {least:g} to {greatest:g}")


def _numbers(name: str, text: str) -> list[float]:
    """Parse comma-separated, non-negative numbers.

    Raises:
        EgmError: the text contains anything else.
    """
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(0.0 <= number <= ENOUGH for number in numbers):
        raise EgmError(
            f"{name} is {printable(text)[:60]!r}: valid is a non-negative number, or several as 0.5,1"
        )
    return numbers
