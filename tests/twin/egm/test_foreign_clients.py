"""Guidance of the simulated robot by unchanged third-party clients, in separate processes and in lockstep."""

import numpy as np
import pytest

import controllers
import twin
from tests.support.foreign_egm_client import CLIENTS, Client
from twin.egm import EgmRobot, GuidanceSettings, Plan, virtual_time
from twin.rotations.rotations import pose_matrix, pose_vector

ONE_RUN = Plan(runs=1, pause=0.0)
BENT = np.radians([10.0, 5.0, -5.0, 15.0, 40.0, -20.0])
QUICK = {"max_speed_deviation": 90.0, "ramp_time": 0.02, "cond_time": 0.1, "position_gain": 20.0}
WINDOW = 0.5
"""Default convergence window, in [deg]."""

CYCLE = 4
"""Control periods in a cycle."""


@pytest.fixture(scope="module", params=CLIENTS)
def client(request):
    """Provide each of the clients."""
    with Client(request.param) as client:
        yield client


@pytest.fixture(scope="module")
def robot():
    return twin.load("irb140")


def guided(client, robot, method, stream, settings, plan, **more):
    """Guide a robot by a client; return its result, and what the client received and sent."""
    port = client.listen(method, stream)
    law = controllers.make("computed_torque", robot, bandwidth=20.0, period=1e-3)
    with virtual_time(limit=30.0):
        arm = EgmRobot(robot, law, settings, plan, to=("127.0.0.1", port), **more)
    result = arm.run()
    exchange = client.over()
    cycles = len(result.log.arrays["egm_t"])
    exchange["received"] = {
        name: values[:cycles] for name, values in exchange["received"].items()
    }  # without the final empty message
    assert exchange["found"]
    assert not result.faults
    assert result.counts.broken == result.counts.old == result.counts.again == 0
    assert cycles == len(exchange["received"]["joints"])
    return result, exchange


def taken(result, name="egm_reference"):
    """Return the answers that the robot took."""
    arrays = result.log.arrays
    return arrays[name][arrays["egm_taken"]]


def sent(exchange, name, rows):
    """Return the first values that the client sent."""
    assert len(exchange["sent"]) >= rows
    return np.array([message[name] for message in exchange["sent"][:rows]])


def test_foreign_client_guides_joints_and_reads_torques(client, robot):
    target = np.degrees(BENT) + np.array([12.0, -8.0, 6.0, 20.0, -10.0, 30.0])
    way = np.linspace(np.degrees(BENT), target, 40)
    stream = [{"joint_angles": q.tolist()} for q in way]
    settings = GuidanceSettings(torque="always", **QUICK)
    result, exchange = guided(client, robot, "send_to_robot", stream, settings, ONE_RUN, start=BENT)
    took = taken(result)
    np.testing.assert_array_equal(took, np.radians(sent(exchange, "joint_angles", len(took))))
    assert len(took) > len(way)
    received, log = exchange["received"], result.log
    assert np.max(np.abs(np.degrees(log.q[-1]) - target)) < WINDOW
    assert received["converged"][-1]
    np.testing.assert_allclose(np.radians(received["joints"]), log.q[::CYCLE], rtol=0, atol=1e-14)
    np.testing.assert_allclose(np.radians(received["planned"]), log.q_ref[::CYCLE], rtol=0, atol=1e-14)
    if received["torque"][0] is not None:
        assert np.ptp(received["torque"], axis=0)[0] > 1.0, "it moved"
        means = log.tau.reshape(-1, CYCLE, 6).mean(axis=1)
        np.testing.assert_allclose(received["torque"][1:], means[:-1], rtol=0, atol=1e-12)


def test_foreign_client_guides_joint_speeds(client, robot):
    """Without position gain and filter the position is the integral of the sent speeds."""
    speed = np.outer(np.sin(np.linspace(0.0, 2.0 * np.pi, 100)), [20.0, -10.0, 15.0, 30.0, 5.0, -40.0])
    speed[:5] = 0.0  # until the ramp has ended
    stream = [{"joint_angles": None, "speed_ref": v.tolist()} for v in speed]
    settings = GuidanceSettings(**{**QUICK, "pos_corr_gain": 0.0, "level": 0, "ramp_time": 0.005})
    result, exchange = guided(
        client, robot, "send_to_robot", stream, settings, Plan(pause=0.0, duration=0.4), start=BENT
    )
    took = taken(result, "egm_speed")
    np.testing.assert_array_equal(took, np.radians(sent(exchange, "speed_ref", len(took))))
    assert np.isnan(taken(result)).all()
    log = result.log
    moved = np.repeat(took, CYCLE, axis=0)  # an answer acts from the cycle in which it was taken
    first = len(log.t) - len(moved)
    assert 0 < first <= 2 * CYCLE
    way = BENT + 1e-3 * np.cumsum(moved, axis=0)[:-1]
    assert np.max(np.abs(way - BENT)) > np.radians(3.0)
    np.testing.assert_allclose(log.q_ref[first + 1 :], way, rtol=0, atol=1e-12)
    np.testing.assert_allclose(log.q, log.q_ref, rtol=0, atol=1e-10)


def test_foreign_client_guides_the_tool_pose(client, robot):
    begin = twin.forward_kinematics(robot, BENT)
    target = begin.copy()
    target[:3, 3] += [0.03, -0.04, 0.02]
    turn = pose_matrix(np.array([0.0, 0.0, 0.0, np.cos(0.05), 0.0, np.sin(0.05), 0.0]))
    target[:3, :3] = target[:3, :3] @ turn[:3, :3]
    goal = pose_vector(target)
    stream = [{"pos": (1e3 * goal[:3]).tolist(), "orient": goal[3:].tolist()}]
    settings = GuidanceSettings(mode="pose", **QUICK)
    result, exchange = guided(client, robot, "send_to_robot_cart", stream, settings, ONE_RUN, start=BENT)
    took = taken(result)
    np.testing.assert_array_equal(took[:, :3], sent(exchange, "pos", len(took)) / 1e3)
    np.testing.assert_allclose(took[:, 3:], sent(exchange, "orient", len(took)), rtol=0, atol=1e-15)
    reached = twin.forward_kinematics(robot, result.log.q[-1])
    assert 1e3 * np.linalg.norm(reached[:3, 3] - target[:3, 3]) < settings.cond_window_mm
    turned = np.arccos((np.trace(reached[:3, :3].T @ target[:3, :3]) - 1.0) / 2.0)
    assert np.degrees(turned) < WINDOW
    assert exchange["received"]["converged"][-1]
    at = twin.forward_kinematics(robot, result.log.q[::CYCLE])[:, :3, 3]
    np.testing.assert_allclose(exchange["received"]["position"], 1e3 * at, rtol=0, atol=1e-10)


def test_foreign_client_corrects_a_path(client, robot, tmp_path):
    """The path is straight along y; the tool ends at the corrected offset in the path frame."""
    begin = twin.forward_kinematics(robot, BENT)
    t = np.linspace(0.0, 1.0, 51)
    share = t**3 * (10.0 - 15.0 * t + 6.0 * t**2)
    poses = np.tile(pose_vector(begin), (len(t), 1))
    poses[:, 1] += 0.1 * share
    path = tmp_path / "path.csv"
    rows = np.column_stack([t, poses])
    np.savetxt(path, rows, delimiter=",", header="t,x,y,z,a,b,c,d", comments="", fmt="%.17g")
    stream = [{"pos": [0.0, 3.0, -2.0], "age": 4}]
    settings = GuidanceSettings(mode="path", **QUICK)
    result, exchange = guided(
        client, robot, "send_to_robot_path_corr", stream, settings, ONE_RUN, path=path, start=BENT
    )
    took = taken(result)
    np.testing.assert_array_equal(took, sent(exchange, "pos", len(took)) / 1e3)
    assert len(took) == pytest.approx(1.0 / settings.cycle, abs=3)
    x = np.array([0.0, 1.0, 0.0])
    y = np.cross(x, begin[:3, 2])
    y /= np.linalg.norm(y)
    wanted = poses[-1, :3] + 3e-3 * y - 2e-3 * np.cross(x, y)
    reached = twin.forward_kinematics(robot, result.log.q[-1])[:3, 3]
    assert 1e3 * np.linalg.norm(reached - wanted) < settings.cond_window_mm
    assert np.linalg.norm(reached - poses[-1, :3]) > 2e-3
