"""A robot's time on the wire: a message each cycle, one instruction after another that guides the arm.

    EGM_STATE_DISCONNECTED    before the first message, and after the last
    EGM_STATE_CONNECTED       messages are sent, and nothing guides the arm, which stands
    EGM_STATE_RUNNING         an instruction waits for its first answer, guides, or comes to its end

as `EGMGetState` has them in RAPID.  Messages are sent at the sample rate from set-up to reset; what guides is
told by `mciState`: RUNNING during an instruction, ERROR after a fault until the next one begins, else STOPPED.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from twin.arrays import Floats
from twin.egm.guidance.frames import work_object
from twin.egm.guidance.guidance import Fault, Guidance
from twin.egm.guidance.run import Phase, Run
from twin.egm.guidance.settings import CYCLE, GuidanceSettings
from twin.egm.robot_side.channel import Channel
from twin.egm.robot_side.events import Event, Events
from twin.egm.robot_side.guided_arm import GuidedArm, standing
from twin.egm.robot_side.inbox import Inbox
from twin.egm.robot_side.pace import Pace
from twin.egm.robot_side.stream_record import StreamRecord
from twin.egm.wire.messages import MotionState, RobotMessage, SensorMessage
from twin.egm.wire.robot_message import encode_robot
from twin.errors import DivergenceError, EgmError

FOLLOWING_ERROR = np.deg2rad(5.0)
"""In [rad] of a joint, between where the arm is and where it was commanded: more, and its motion supervision
stops it.  The manual tells no figure; ours."""
