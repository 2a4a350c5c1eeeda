from .loads import log_wrenches as log_wrenches
from .loads import torque_residual as torque_residual
from .recordings.recording import joint_recording as joint_recording
from .recordings.recording import tool_recording as tool_recording
from .recordings.torque_recording import TableForm as TableForm
from .recordings.torque_recording import TorqueRecording as TorqueRecording
from .recordings.torque_recording import read_torque_recording as read_torque_recording
from .recordings.torque_recording import torque_recording as torque_recording
