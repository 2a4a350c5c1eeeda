"""The messages match EGM in numbers, types and labels, and coexist with either public client.

A process can import only one of the two clients, so subprocesses return the descriptors.
"""

import subprocess
import sys

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

from twin.egm.wire import schema

CLIENTS = {
    "abb_robot_client": "import twin.egm.wire.schema\nfrom abb_robot_client.egm import egm_pb2\n",
    "ABBRobotEGM": "from ABBRobotEGM.egm import egm_pb2\nimport twin.egm.wire.schema\n",
}
HAND_OVER = "import sys; sys.stdout.buffer.write(egm_pb2.DESCRIPTOR.serialized_pb)"
NEWER = {
    "abb_robot_client": {"Timestamp", "FeedBack.timeStamp", "Planned.timeStamp", "Robot.torqueRef"},
    "ABBRobotEGM": set(),
}
"""Fields that the client does not have yet."""


@pytest.fixture(scope="module")
def files():
    """Return the file descriptor of each client, imported after or before `schema`."""
    started = {
        name: subprocess.Popen([sys.executable, "-c", imports + HAND_OVER], stdout=subprocess.PIPE)
        for name, imports in CLIENTS.items()
    }
    found = {}
    for name, process in started.items():
        data, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        found[name] = descriptor_pb2.FileDescriptorProto.FromString(data)
    return found


def messages_of(file, prefix=""):
    """Return number, label and type of the fields of every message, by names without prefix."""
    return {
        message.name.removeprefix(prefix): {
            field.name: (field.number, field.label, field.type, kind_of(field, prefix))
            for field in message.field
        }
        for message in file.message_type
    }


def kind_of(field, prefix):
    """Return the message type of a field; enumerations are compared separately."""
    if field.type != field.TYPE_MESSAGE:
        return ""
    return field.type_name.rpartition(".")[2].removeprefix(prefix)


def test_default_protobuf_pool_is_unchanged():
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName(schema.Robot.DESCRIPTOR.full_name)


@pytest.mark.parametrize("client", CLIENTS)
def test_fields_match_those_of_the_client(client, files):
    theirs, ours = messages_of(files[client], "Egm"), messages_of(schema._file())
    theirs.pop("ExternalJoints")  # not used by any message
    assert set(ours) - set(theirs) == {name for name in NEWER[client] if "." not in name}
    for name, fields in theirs.items():
        missing = {f"{name}.{field}" for field in set(ours[name]) - set(fields)}
        assert missing <= NEWER[client]
        assert fields == {field: ours[name][field] for field in fields}, name
    assert not any(field.options.packed for message in files[client].message_type for field in message.field)


@pytest.mark.parametrize("client", CLIENTS)
def test_enumerations_match_those_of_the_client(client, files):
    theirs = {
        enum.name: {value.number: value.name for value in enum.value}
        for message in files[client].message_type
        for enum in message.enum_type
    }
    found = {"MessageType": "MSGTYPE", "MotorsAre": "MOTORS", "MotionIs": "MCI", "ProgramIs": "RAPID"}
    of = {"MotorsAre": "MotorStateType", "MotionIs": "MCIStateType", "ProgramIs": "RapidCtrlExecStateType"}
    for enum, values in schema.ENUMS.items():
        ours = {number: f"{found[enum]}_{value}" for number, value in enumerate(values)}
        assert ours == theirs[of.get(enum, enum)]
