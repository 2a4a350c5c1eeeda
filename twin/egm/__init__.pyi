from .guidance.settings import (
    GuidanceSettings as GuidanceSettings,
)
from .wire.messages import (
    RobotMessage as RobotMessage,
)
from .wire.messages import (
    SensorMessage as SensorMessage,
)

__all__ = [
    "GuidanceSettings",
    "RobotMessage",
    "SensorMessage",
]
