"""The programs of ros-industrial's abb_driver, unchanged, with a client that speaks their protocol."""

import math

import numpy as np
import pytest

import twin
from scenarios.abb.station import Station
from tests.support.abb_driver_client import DriverClient
from tests.support.shared_data import shared_folder
from tests.support.virtual_cell import VirtualCell

STATION = """
[tasks.T_ROB1]
modules = ["{0}ROS_common.sys", "{0}ROS_motion.mod"]
[tasks.T_STATE]
kind = "SEMISTATIC"
modules = ["{0}ROS_common.sys", "{0}ROS_messages.sys", "{0}ROS_socket.sys", "{0}ROS_stateServer.mod"]
[tasks.T_SERVER]
kind = "SEMISTATIC"
modules = ["{0}ROS_common.sys", "{0}ROS_messages.sys", "{0}ROS_socket.sys", "{0}ROS_motionServer.mod"]
[signals]
signalRobotEStop = {{type = "DO", state = "EmergencyStop"}}
signalMotorOn = {{type = "DO", state = "MotorOn"}}
signalExecutionError = {{type = "DO", state = "ExecutionError"}}
signalRobotNotMoving = {{type = "DO", state = "RobotNotMoving"}}
signalMotionPossible = {{type = "DO", state = "MotionPossible"}}
signalRobotActive = {{type = "DO", state = "AutoOn"}}
signalRosMotionTaskExecuting = {{type = "DO", state = "TaskExecuting"}}
[ports]
11000 = 0
11002 = 0
"""


@pytest.fixture
def driver(tmp_path):
    """Return a running station with the three tasks of the driver, and a client."""
    folder = shared_folder()
    assert folder is not None
    (tmp_path / "station.toml").write_text(STATION.format(f"{folder}/rapid/ros-industrial_abb_driver/rapid_"))
    station = Station.read(tmp_path / "station.toml")
    robot = twin.load("irb140").with_drives("rigid")
    cell = VirtualCell(
        robot, station.task_settings(), start=np.zeros(6), forever=True, signals=station.cell_signals({}),
        outputs=station.outputs, network=station.network(None, ()),
    )  # fmt: skip
    cell.run(0.1)
    ports = {
        line.task: int(line.sentence.rpartition(":")[2]) for line in cell.lines if "is 127" in line.sentence
    }
    client = DriverClient(
        cell.controller.cycle, lambda: cell.controller.t, ports["T_SERVER"], ports["T_STATE"]
    )
    client.run(0.2)
    yield cell, client
    client.close()
    cell.__exit__()


def swing(t):
    """Return joint angles (6,) on a motion that reaches 11 deg/s, in [rad]."""
    return [0.48 * math.sin(0.4 * t), 0.2 * math.sin(0.4 * t), 0.0, 0.0, 0.0, 0.0]


@pytest.mark.shared
def test_the_driver_reports_the_state_ten_times_a_second_and_follows_a_trajectory_in_its_time(driver):
    cell, client = driver
    client.joints.clear()
    client.run(1.0)
    assert len(client.joints) in (9, 10)
    assert client.status == (1, 0, 0, 0, 0, 2, 1)
    points = [swing(0.2 * k) for k in range(16)]
    client.send_trajectory(points, 0.2)
    begin = cell.controller.t
    client.joints.clear()
    client.run(1.0)
    assert len({q for _, q in client.joints}) in (9, 10)  # ten different states a second while the arm moves
    assert client.status.in_motion == 1
    client.run(3.0)
    log = cell.log
    still = np.flatnonzero(np.abs(log.qd).max(axis=1) > 1e-6)[-1] * 1e-3
    assert still - begin == pytest.approx(3.0, abs=0.1)  # the first point is where the arm is
    assert client.status.in_motion == 0
    assert client.joints[-1][1] == pytest.approx(points[-1], abs=1e-5)
    assert cell.controller.faults == []


@pytest.mark.shared
def test_stop_ends_the_motion_within_one_and_a_half_degrees(driver):
    cell, client = driver
    client.send_trajectory([swing(0.2 * k) for k in range(40)], 0.2)
    client.run(1.0)
    speed, q = np.degrees(np.abs(cell.log.qd[-1]).max()), cell.controller.arm.q.copy()
    assert speed == pytest.approx(10.5, abs=1.0)
    client.stop()
    client.run(0.4)
    assert np.degrees(np.abs(cell.controller.arm.q - q).max()) < 1.5
    assert np.abs(cell.log.qd[-1]).max() < 1e-6
    client.run(1.0)
    assert client.status.in_motion == 0
    client.send_trajectory([cell.controller.arm.q.tolist(), [0.0] * 6], 1.5)
    client.run(2.5)
    assert client.joints[-1][1] == pytest.approx([0.0] * 6, abs=1e-5)
    assert cell.controller.faults == []


@pytest.mark.shared
def test_a_client_that_leaves_and_comes_back_is_served(driver):
    cell, client = driver
    client.close()
    cell.run(0.5)
    assert sum("Waiting for connection" in line.sentence for line in cell.lines) == 4
    ports = [line for line in cell.lines if "is 127" in line.sentence]
    again = DriverClient(
        cell.controller.cycle, lambda: cell.controller.t,
        *(int(line.sentence.rpartition(":")[2]) for task in ("T_SERVER", "T_STATE")
          for line in [[one for one in ports if one.task == task][-1]]),
    )  # fmt: skip
    again.run(0.5)
    assert len(again.joints) >= 3
    again.send_trajectory([[0.0] * 6, [0.1] * 6], 0.5)
    again.run(1.5)
    assert again.joints[-1][1] == pytest.approx([0.1] * 6, abs=1e-5)
    again.close()
