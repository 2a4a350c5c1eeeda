"""Protobuf schema of the EGM messages: field numbers, types and units.

The module builds the message classes from the table on first import, in a separate descriptor pool.  Public
Python clients register a file `egm.proto` in the process-wide default pool, where a second registration
fails.  The wire format contains no names, so the names here may differ from ABB's.

Source: ABB, Application manual Externally Guided Motion, 3HAC073318-001 Rev K, and the field numbers of
public clients; `tests/twin/abb/egm/test_schema.py` compares them.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "irb_twin.egm"

ENUMS = {
    "MessageType": ("UNDEFINED", "COMMAND", "DATA", "CORRECTION", "PATH_CORRECTION"),
    "MotorsAre": ("UNDEFINED", "ON", "OFF"),
    "MotionIs": ("UNDEFINED", "ERROR", "STOPPED", "RUNNING"),
    "ProgramIs": ("UNDEFINED", "STOPPED", "RUNNING"),
}
"""Values of each enumeration, numbered from 0."""

_FEEDBACK = """
    1 optional Joints joints
    2 optional Pose cartesian
    3 optional Joints externalJoints
    4 optional Clock time
    5 optional Timestamp timeStamp
"""

MESSAGES = {
    "Header": """
        1 optional uint32 seqno
        2 optional uint32 tm            # ms
        3 optional MessageType mtype
    """,
    "Cartesian": """
        1 required double x             # mm
        2 required double y
        3 required double z
    """,
    "Quaternion": """
        1 required double u0            # the scalar
        2 required double u1
        3 required double u2
        4 required double u3
    """,
    "Euler": """
        1 required double x             # deg
        2 required double y
        3 required double z
    """,
    "Clock": """
        1 required uint64 sec
        2 required uint64 usec
    """,
    "Timestamp": """
        1 optional uint64 sec
        2 optional uint64 nsec
    """,
    "Pose": """
        1 optional Cartesian pos
        2 optional Quaternion orient
        3 optional Euler euler          # takes precedence over orient
    """,
    "CartesianSpeed": """
        1 repeated double value         # mm/s, deg/s
    """,
    "Joints": """
        1 repeated double joints        # deg; of speeds deg/s, of torques N m
    """,
    "FeedBack": _FEEDBACK,
    "Planned": _FEEDBACK,
    "SpeedRef": """
        1 optional Joints joints
        2 optional CartesianSpeed cartesians
        3 optional Joints externalJoints
    """,
    "PathCorr": """
        1 required Cartesian pos
        2 required uint32 age           # ms
    """,
    "MotorState": """
        1 required MotorsAre state
    """,
    "MCIState": """
        1 required MotionIs state
    """,
    "RapidCtrlExecState": """
        1 required ProgramIs state
    """,
    "TestSignals": """
        1 repeated double signals
    """,
    "MeasuredForce": """
        1 optional bool fcActive        # in early versions force is number 1
        2 repeated double force         # N, N m
    """,
    "CollisionInfo": """
        1 optional bool collsionTriggered
        2 repeated double collDetQuota
    """,
    "RAPIDdata": """
        1 optional bool digVal
        2 repeated double dnum
    """,
    "Robot": """
        1 optional Header header
        2 optional FeedBack feedBack
        3 optional Planned planned
        4 optional MotorState motorState
        5 optional MCIState mciState
        6 optional bool mciConvergenceMet
        7 optional TestSignals testSignals
        8 optional RapidCtrlExecState rapidExecState
        9 optional MeasuredForce measuredForce
        10 optional double utilizationRate      # %
        11 optional uint32 moveIndex
        12 optional CollisionInfo CollisionInfo
        13 optional RAPIDdata RAPIDfromRobot
        14 optional Joints torqueRef
    """,
    "Sensor": """
        1 optional Header header
        2 optional Planned planned
        3 optional SpeedRef speedRef
        4 optional RAPIDdata RAPIDtoRobot
    """,
    "SensorPathCorr": """
        1 optional Header header
        2 optional PathCorr pathCorr
    """,
}
"""Number, label, type and name of every field.  ABB's names of the messages have the prefix `Egm`."""


def _file() -> descriptor_pb2.FileDescriptorProto:
    """Return the table as a protobuf file descriptor, in proto2, which does not pack repeated numbers."""
    file = descriptor_pb2.FileDescriptorProto(name="irb_twin_egm.proto", package=PACKAGE, syntax="proto2")
    for enum, values in ENUMS.items():
        described = file.enum_type.add(name=enum)
        for number, value in enumerate(values):
            described.value.add(name=f"{enum}_{value}", number=number)
    for message, table in MESSAGES.items():
        described = file.message_type.add(name=message)
        for line in table.strip().splitlines():
            number, label, kind, name = line.partition("#")[0].split()
            field = described.field.add(name=name, number=int(number))
            field.label = getattr(descriptor_pb2.FieldDescriptorProto, f"LABEL_{label.upper()}")
            if kind in MESSAGES or kind in ENUMS:
                field.type_name = f".{PACKAGE}.{kind}"
            plain = "MESSAGE" if kind in MESSAGES else "ENUM" if kind in ENUMS else kind.upper()
            field.type = getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{plain}")
    return file


_pool = descriptor_pool.DescriptorPool()
_pool.AddSerializedFile(_file().SerializeToString())


def message_class(name: str) -> Any:
    """Return the protobuf class of a message in the table."""
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))


Robot = message_class("Robot")
Sensor = message_class("Sensor")
SensorPathCorr = message_class("SensorPathCorr")
