from .client import EgmClient as EgmClient
from .guidance.guidance import Fault as Fault
from .guidance.settings import GuidanceSettings as GuidanceSettings
from .log_replay import Replayed as Replayed
from .log_replay import replay as replay
from .mirror.mirror import Mirror as Mirror
from .mirror.recording import Recording as Recording
from .mirror.recording import StreamLog as StreamLog
from .robot.pace import Lateness as Lateness
from .robot.pace import virtual_time as virtual_time
from .robot.program import GuidedProgram as GuidedProgram
from .robot.robot import EgmRobot as EgmRobot
from .robot.session import EgmResult as EgmResult
from .robot.session import EgmState as EgmState
from .robot.session import Event as Event
from .robot.session import SessionPlan as SessionPlan
from .wire.encoding import decode_robot as decode_robot
from .wire.encoding import decode_sensor as decode_sensor
from .wire.encoding import encode_robot as encode_robot
from .wire.encoding import encode_sensor as encode_sensor
from .wire.messages import MotionState as MotionState
from .wire.messages import RobotMessage as RobotMessage
from .wire.messages import SensorMessage as SensorMessage

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
    "SessionPlan",
    "StreamLog",
    "decode_robot",
    "decode_sensor",
    "encode_robot",
    "encode_sensor",
    "replay",
    "virtual_time",
]
