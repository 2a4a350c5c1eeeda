"""Unchanged third-party clients: the messages match theirs, and they guide the simulated robot.

A process can import only one of the two clients, so they run in processes of their own.
"""

import subprocess
import sys

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool
from scipy.spatial.transform import Rotation

import controllers
import twin
from tests.support.foreign_egm_client import CLIENTS, Client
from twin.abb.egm import EgmRobot, GuidanceSettings, SessionPlan, virtual_time
from twin.abb.egm.wire import schema

BENT = np.radians([10.0, 5.0, -5.0, 15.0, 40.0, -20.0])
QUICK = {"max_speed_deviation": 90.0, "ramp_time": 0.02, "cond_time": 0.1, "position_gain": 20.0}
ONE_RUN = SessionPlan(runs=1, pause=0.0)
WINDOW = 0.5
"""Default convergence window, in [deg]."""


@pytest.fixture(scope="module", params=CLIENTS)
def client(request):
    """Provide each of the clients."""
    with Client(request.param) as client:
        yield client


@pytest.fixture(scope="module")
def robot():
    return twin.load("irb140")


def guided(client, robot, method, stream, settings, **more):
    """Guide a robot by the stream of arguments of a client's method.

    Returns:
        the robot's log, what the client received, and the references that the robot took and the client sent.
    """
    port = client.listen(method, stream)
    law = controllers.make("computed_torque", robot, bandwidth=20.0, period=1e-3)
    with virtual_time(limit=30.0):
        arm = EgmRobot(robot, law, settings, ONE_RUN, to=("127.0.0.1", port), start=BENT, **more)
    result, exchange = arm.run(), client.over()
    arrays = result.log.arrays
    cycles = len(arrays["egm_t"])
    received = {name: values[:cycles] for name, values in exchange["received"].items()}  # all but the last
    assert exchange["found"]
    assert not result.faults
    assert result.counts.broken == result.counts.old == result.counts.again == 0
    assert cycles == len(received["joints"])
    assert received["converged"][-1]
    took = arrays["egm_reference"][arrays["egm_taken"]]
    assert len(exchange["sent"]) >= len(took)
    return result.log, received, took, exchange["sent"][: len(took)]


def test_foreign_client_guides_joints_and_reads_torques(client, robot):
    target = np.degrees(BENT) + np.array([12.0, -8.0, 6.0, 20.0, -10.0, 30.0])
    stream = [{"joint_angles": q.tolist()} for q in np.linspace(np.degrees(BENT), target, 40)]
    settings = GuidanceSettings(torque="always", **QUICK)
    log, received, took, sent = guided(client, robot, "send_to_robot", stream, settings)
    np.testing.assert_array_equal(took, np.radians([message["joint_angles"] for message in sent]))
    assert np.max(np.abs(np.degrees(log.q[-1]) - target)) < WINDOW
    np.testing.assert_allclose(np.radians(received["joints"]), log.q[::4], rtol=0, atol=1e-14)
    np.testing.assert_allclose(np.radians(received["planned"]), log.q_ref[::4], rtol=0, atol=1e-14)
    if received["torque"][0] is not None:
        means = log.tau.reshape(-1, 4, 6).mean(axis=1)
        np.testing.assert_allclose(received["torque"][1:], means[:-1], rtol=0, atol=1e-12)


def test_foreign_client_guides_the_tool_pose(client, robot):
    target = twin.forward_kinematics(robot, BENT)
    target[:3, 3] += [0.03, -0.04, 0.02]
    target[:3, :3] = target[:3, :3] @ Rotation.from_rotvec([0.0, 0.1, 0.0]).as_matrix()
    goal = twin.pose_vector(target)
    stream = [{"pos": (1e3 * goal[:3]).tolist(), "orient": goal[3:].tolist()}]
    settings = GuidanceSettings(mode="pose", **QUICK)
    log, received, took, sent = guided(client, robot, "send_to_robot_cart", stream, settings)
    np.testing.assert_array_equal(took[:, :3], np.array([message["pos"] for message in sent]) / 1e3)
    np.testing.assert_allclose(took[:, 3:], [message["orient"] for message in sent], rtol=0, atol=1e-15)
    reached = twin.forward_kinematics(robot, log.q[-1])
    assert 1e3 * np.linalg.norm(reached[:3, 3] - target[:3, 3]) < settings.cond_window_mm
    turned = Rotation.from_matrix(reached[:3, :3].T @ target[:3, :3])
    assert np.degrees(turned.magnitude()) < WINDOW
    at = twin.forward_kinematics(robot, log.q[::4])[:, :3, 3]
    np.testing.assert_allclose(received["position"], 1e3 * at, rtol=0, atol=1e-10)


IMPORTS = {
    "abb_robot_client": "import twin.abb.egm.wire.schema\nfrom abb_robot_client.egm import egm_pb2\n",
    "ABBRobotEGM": "from ABBRobotEGM.egm import egm_pb2\nimport twin.abb.egm.wire.schema\n",
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
    return {
        name: descriptor_pb2.FileDescriptorProto.FromString(
            subprocess.check_output([sys.executable, "-c", imports + HAND_OVER], timeout=60)
        )
        for name, imports in IMPORTS.items()
    }


def messages_of(file, prefix=""):
    """Return number, label, type and message type of the fields of every message, by names without prefix."""
    return {
        message.name.removeprefix(prefix): {
            field.name: (
                field.number, field.label, field.type,
                field.type == field.TYPE_MESSAGE and field.type_name.rpartition(".")[2].removeprefix(prefix),
            )
            for field in message.field
        }
        for message in file.message_type
    }  # fmt: skip


def test_default_protobuf_pool_is_unchanged():
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName(schema.Robot.DESCRIPTOR.full_name)


@pytest.mark.parametrize("client", IMPORTS)
def test_fields_match_those_of_the_client(client, files):
    theirs, ours = messages_of(files[client], "Egm"), messages_of(schema._file())
    theirs.pop("ExternalJoints")  # not used by any message
    assert set(ours) - set(theirs) == {name for name in NEWER[client] if "." not in name}
    for name, fields in theirs.items():
        missing = {f"{name}.{field}" for field in set(ours[name]) - set(fields)}
        assert missing <= NEWER[client]
        assert fields == {field: ours[name][field] for field in fields}, name
    assert not any(field.options.packed for message in files[client].message_type for field in message.field)


@pytest.mark.parametrize("client", IMPORTS)
def test_enumerations_match_those_of_the_client(client, files):
    theirs = {
        enum.name: {value.number: value.name for value in enum.value}
        for message in files[client].message_type
        for enum in message.enum_type
    }
    for ours, name, prefix in (
        ("MessageType", "MessageType", "MSGTYPE"),
        ("MotorsAre", "MotorStateType", "MOTORS"),
        ("MotionIs", "MCIStateType", "MCI"),
        ("ProgramIs", "RapidCtrlExecStateType", "RAPID"),
    ):
        values = {number: f"{prefix}_{value}" for number, value in enumerate(schema.ENUMS[ours])}
        assert values == theirs[name]
    assert len(schema.ENUMS) == 4
