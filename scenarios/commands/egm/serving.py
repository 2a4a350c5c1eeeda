"""One robot on the wire, as the command was told: what it is made of, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Event as Flag
from typing import TYPE_CHECKING

import numpy as np

from twin.egm.guidance.settings import GuidanceSettings
from twin.errors import TwinError
from twin.faults import told

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scenarios.base import Config
    from twin.egm.robot_side.channel import Address
    from twin.egm.robot_side.events import Event
    from twin.egm.robot_side.inbox import Counts
    from twin.egm.robot_side.lateness import Lateness
    from twin.egm.robot_side.robot import EgmRobot
    from twin.logs.log import Log
    from twin.robot.robot import Robot


@dataclass(frozen=True)
class Job:
    """A robot that is to be served.

    Attributes:
        config: robot, control law, drives, tool, payload.
        settings: how it is guided.
        to: where its messages go.
        bind: where it is answered; `None` for any free port of loopback.
        start: named pose where it begins; `None` for the default of the mode.
        path: that is corrected, in mode path.
        duration, wait: in [s]; `None` for no end.
        runs: instructions; `None` for no end.
        pause: between two of them, in [s].
        lag: of answers, in [ms].
        limit: of real time for an answer in lockstep, in [s]; `None` by the clock.
        log: file of motion and stream.
    """

    config: Config
    settings: GuidanceSettings
    to: Address
    bind: Address | None = None
    start: str | None = None
    path: Path | None = None
    duration: float | None = None
    wait: float | None = None
    runs: int | None = None
    pause: float = 1.0
    lag: float = 0.0
    limit: float | None = None
    log: Path | None = None


@dataclass(frozen=True, eq=False)
class Served:
    """What came of a robot on the wire.

    Attributes:
        error: why it ended before its time, as when no client answered; empty if it did not.
        refused: whether that is wrong use, and not a fault of ours.
    """

    error: str = ""
    refused: bool = False
