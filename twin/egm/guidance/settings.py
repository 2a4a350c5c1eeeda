"""The arguments of the RAPID instructions that guide a robot, in the units that they have there.

`EGMSetupUC`, `EGMActJoint`, `EGMActPose`, `EGMActMove`, `EGMRunJoint`, `EGMRunPose`, and the system
parameters behind them; a default is the manual's where it prints one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

MODES = ("joint", "pose", "path")
STOPS = ("hold", "ramp_down")
FRAMES = ("base", "world", "wobj", "tool")
TORQUES = ("level_0", "always")
CYCLE = 4
"""Of the robot's controller, in [ms]."""


def argument(default: Any, help: str, choices: tuple[str, ...] = ()) -> Any:
    """A field that is an option of the command line, with its help text and, if few, its values."""
    return field(default=default, metadata={"help": help, "choices": choices})


@dataclass(frozen=True)
class GuidanceSettings:
    """How a robot is guided.

    Raises:
        EgmError: naming the setting, its value and what is valid.
    """

    mode: str = argument("joint", "guide joints, the tool's pose, or corrections of a path", MODES)
    level: int = argument(1, "0: raw, 1: filtered, 2: path corrections")
    position_gain: float = argument(5.0, "Default Proportional Position Gain, 0 to 20, in 1/s")
    pos_corr_gain: float = argument(1.0, "PosCorrGain, 0 to 1: the share of it; 0 follows speeds alone")
    lp_filter: float | None = argument(
        None, "LpFilter: bandwidth of the low-pass filter of the speed, in Hz (default 20)"
    )
    sample_rate: int | None = argument(
        None, "SampleRate: time between two messages, in ms (default 4; path 48)"
    )
    max_pos_deviation: float = argument(1000.0, "MaxPosDeviation: of a joint from the start, in deg")
    max_speed_deviation: float = argument(1.0, "MaxSpeedDeviation: speed of a joint, in deg/s")
    cond_window: float = argument(
        0.5, "convergence window of every joint, +- deg; in pose mode of the orientation"
    )
    cond_window_mm: float = argument(1.0, "convergence window of the position in pose mode, +- mm")
    cond_time: float = argument(
        1.0, "CondTime: how long the window must hold before the instruction ends, in s"
    )
    no_wait_cond: bool = argument(False, "NoWaitCond: the instruction ends at once, guidance goes on")
    ramp_in_time: float | None = argument(
        None, "RampInTime: from rest to full speed, in s (default ramp time)"
    )
    ramp_out_time: float | None = argument(None, "RampOutTime: of the stop, in s (default ramp time)")
    ramp_time: float = argument(0.5, "Default Ramp Time, 0.005 to 10, in s")
    stop: str = argument("hold", "how the instruction ends: stay, or go back to where it began", STOPS)
    comm_timeout: float = argument(
        2.0, "CommTimeout: without a message for so long is an error, in s (our default)"
    )
    axes: str | None = argument(
        None, "what is guided: 1,3 of the joints; x,z,rz in pose mode (default all of them)"
    )
    corr_frame: str | None = argument(None, "CorrFrame: x,y,z,a,b,c,d, m and a unit quaternion; or x,y,z")
    corr_frame_type: str = argument("base", "what CorrFrame is told in", FRAMES)
    sensor_frame: str | None = argument(None, "SensorFrame, in the same form (default CorrFrame)")
    sensor_frame_type: str | None = argument(
        None, "what SensorFrame is told in (default as CorrFrame)", FRAMES
    )
    wobj: str | None = argument(None, "work object, in the base frame, in the same form (default the base)")
    torque: str = argument(
        "level_0", "send torqueRef at level 0 alone, as the manual says, or always", TORQUES
    )
    force: bool = argument(False, "send measuredForce, which clients of early versions cannot read")

    @property
    def cycle(self) -> float:
        """Time between two messages, in [s]."""
        default = 48 if self.mode == "path" else CYCLE
        return 1e-3 * (default if self.sample_rate is None else self.sample_rate)

    @property
    def gain(self) -> float:
        """Of the position error, in [1/s]."""
        return self.position_gain * self.pos_corr_gain

    @property
    def bandwidth(self) -> float | None:
        """Of the low-pass filter, in [Hz]; `None` where there is none, as at level 0."""
        bandwidth = 20.0 if self.lp_filter is None else self.lp_filter
        return bandwidth if self.level > 0 and bandwidth > 0.0 else None

    @property
    def speed_limit(self) -> float:
        """Largest speed of a joint that guidance may ask for, in [rad/s]."""
        return math.radians(self.max_speed_deviation)

    @property
    def position_limit(self) -> float:
        """Largest distance of a joint's reference from the start, in [rad]."""
        return math.radians(self.max_pos_deviation)

    @property
    def ramp_in(self) -> float:
        """From rest to full speed, in [s]."""
        return self.ramp_time if self.ramp_in_time is None else self.ramp_in_time

    @property
    def ramp_out(self) -> float:
        """From the stop to rest, in [s]."""
        return self.ramp_time if self.ramp_out_time is None else self.ramp_out_time
