from .client.client import (
    EgmClient as EgmClient,
)
from .client.replay import (
    Replayed as Replayed,
)
from .client.replay import (
    replay as replay,
)
from .guidance.guidance import (
    Fault as Fault,
)
from .guidance.settings import (
    GuidanceSettings as GuidanceSettings,
)
from .mirror.mirror import (
    Mirror as Mirror,
)
from .mirror.recording import (
    Recording as Recording,
)
from .mirror.stream_log import (
    StreamLog as StreamLog,
)
from .robot_side.events import (
    Event as Event,
)
from .robot_side.lateness import (
    Lateness as Lateness,
)
from .robot_side.pace import (
    virtual_time as virtual_time,
)
from .robot_side.robot import (
    EgmResult as EgmResult,
)
from .robot_side.robot import (
    EgmRobot as EgmRobot,
)
from .robot_side.state import (
    EgmState as EgmState,
)
from .wire.messages import (
    MotionState as MotionState,
)
from .wire.messages import (
    RobotMessage as RobotMessage,
)
from .wire.messages import (
    SensorMessage as SensorMessage,
)
from .wire.robot_message import (
    decode_robot as decode_robot,
)
from .wire.robot_message import (
    encode_robot as encode_robot,
)
from .wire.sensor_message import (
    decode_sensor as decode_sensor,
)
from .wire.sensor_message import (
    encode_sensor as encode_sensor,
)

__all__ = [
    "EgmClient",
    "EgmResult",
    "EgmRobot",
    "EgmState",
    "Event",
    "Fault",
    "GuidanceSettings",
    "Lateness",
    "Mirror",
    "MotionState",
    "Recording",
    "Replayed",
    "RobotMessage",
    "SensorMessage",
    "StreamLog",
    "decode_robot",
    "decode_sensor",
    "encode_robot",
    "encode_sensor",
    "replay",
    "virtual_time",
]
