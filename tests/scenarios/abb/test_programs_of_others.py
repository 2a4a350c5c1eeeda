"""Programs of others, unchanged: abb_driver of ros-industrial, abb_motion_program_exec, and open_abb."""

import json
import math
import select
import socket
import struct

import numpy as np
import pytest

import twin
from scenarios.abb.station import Station
from tests.support.abb_driver_client import DriverClient
from tests.support.shared_data import shared_folder
from tests.support.virtual_cell import VirtualCell, titles_of_tasks
from twin.abb.rapid.frames import frame_of
from twin.abb.rapid.targets import Arm
from twin.abb.rapid.values import PREDEFINED

pytestmark = pytest.mark.shared


@pytest.fixture
def cell_of(tmp_path):
    """Return a function that starts a cell of a station with programs of the shared data."""
    made = []

    def start(text, folder, inputs=None, **more):
        (tmp_path / "station.toml").write_text(text.replace("@", f"{shared_folder()}/rapid/{folder}"))
        station = Station.read(tmp_path / "station.toml")
        made.append(VirtualCell(
            twin.load("irb140").with_drives("rigid"), station.task_settings(), start=np.zeros(6),
            signals=station.cell_signals(inputs or {}), outputs=station.outputs,
            network=station.network(None, ()), **more,
        ))  # fmt: skip
        return made[0]

    yield start
    made[0].__exit__()


def ports_of(cell):
    """Return the newest port that each task listens on, by the task's name."""
    lines = (line for line in cell.lines if "is 127" in line.sentence)
    return {line.task: int(line.sentence.rpartition(":")[2]) for line in lines}


# abb_driver, with a client that speaks its protocol.


DRIVER = """
[tasks.T_ROB1]
modules = ["@ROS_common.sys", "@ROS_motion.mod"]
[tasks.T_STATE]
kind = "SEMISTATIC"
modules = ["@ROS_common.sys", "@ROS_messages.sys", "@ROS_socket.sys", "@ROS_stateServer.mod"]
[tasks.T_SERVER]
kind = "SEMISTATIC"
modules = ["@ROS_common.sys", "@ROS_messages.sys", "@ROS_socket.sys", "@ROS_motionServer.mod"]
[signals]
signalRobotEStop = {type = "DO", state = "EmergencyStop"}
signalMotorOn = {type = "DO", state = "MotorOn"}
signalExecutionError = {type = "DO", state = "ExecutionError"}
signalRobotNotMoving = {type = "DO", state = "RobotNotMoving"}
signalMotionPossible = {type = "DO", state = "MotionPossible"}
signalRobotActive = {type = "DO", state = "AutoOn"}
signalRosMotionTaskExecuting = {type = "DO", state = "TaskExecuting"}
[ports]
11000 = 0
11002 = 0
"""


def client_of(cell):
    ports = ports_of(cell)
    return DriverClient(cell.controller.cycle, lambda: cell.controller.t, ports["T_SERVER"], ports["T_STATE"])


@pytest.fixture
def driver(cell_of):
    """Return a running station with the three tasks of the driver, and a client."""
    cell = cell_of(DRIVER, "ros-industrial_abb_driver/rapid_", forever=True)
    cell.run(0.1)
    client = client_of(cell)
    client.run(0.2)
    yield cell, client
    client.close()


def swing(t):
    """Return joint angles (6,) on a motion that reaches 11 deg/s, in [rad]."""
    return [0.48 * math.sin(0.4 * t), 0.2 * math.sin(0.4 * t), 0.0, 0.0, 0.0, 0.0]


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


def test_a_client_that_leaves_and_comes_back_is_served(driver):
    cell, client = driver
    client.close()
    cell.run(0.5)
    assert sum("Waiting for connection" in line.sentence for line in cell.lines) == 4
    again = client_of(cell)
    again.run(0.5)
    assert len(again.joints) >= 3
    again.send_trajectory([[0.0] * 6, [0.1] * 6], 0.5)
    again.run(1.5)
    assert again.joints[-1][1] == pytest.approx([0.1] * 6, abs=1e-5)
    again.close()


# abb_motion_program_exec: three tasks, with program files of our own.


AO = (
    "preempt", "preempt_current", "preempt_cmd_num", "current_cmd_num", "queued_cmd_num", "seqno",
    "seqno_command", "seqno_started", "seqno_complete", "driver_abort", "log_motion",
)  # fmt: skip
EXECUTOR = """
[tasks.T_ROB1]
entry = "motion_program_main"
modules = ["@motion_program_exec.mod", "@motion_program_shared.sys"]
[tasks.logger]
kind = "SEMISTATIC"
entry = "motion_program_logger_main"
modules = ["@motion_program_logger.mod", "@motion_program_shared.sys"]
[tasks.error_reporter]
kind = "SEMISTATIC"
modules = ["@error_reporter.mod", "@motion_program_shared.sys"]
[signals]
motion_program_stop_egm = { type = "DO" }
motion_program_executing = { type = "DO", state = "TaskExecuting" }
""" + "".join(f'motion_program_{name} = {{ type = "AO" }}\n' for name in AO)

IDENTITY = [0, 0, 0, 1, 0, 0, 0]
NO_LOAD = [0.001, 0, 0, 0.001, 1, 0, 0, 0, 0, 0, 0]
V, FINE, Z10 = [200, 500, 5000, 1000], [1, 0, 0, 0, 0, 0, 0], [0, 10, 15, 15, 1.5, 15, 1.5]
EXTERNAL = [0.0] * 6


def text(value):
    """Return a text in 32 bytes behind its length."""
    return struct.pack("<f", len(value)) + value.encode().ljust(32)


def numbers(*values):
    return struct.pack(f"<{len(values)}f", *values)


def program(*commands, seqno=3.0):
    """Return the file of a program: version, tool, work object, load, time stamp, number, EGM, commands."""
    head = (
        numbers(10011, 1, *IDENTITY, *NO_LOAD), numbers(0, 1) + text("") + numbers(*IDENTITY, *IDENTITY),
        numbers(*NO_LOAD), text("2026-11-26-10-00-00.0000"), numbers(seqno, 0),
    )  # fmt: skip
    return b"".join(head) + b"".join(numbers(k, *one) for k, one in enumerate(commands))


def target_at(robot, *degrees):
    """Return a robtarget at joint angles as numbers."""
    target = Arm(robot, np.radians(degrees)).target(
        PREDEFINED["tool0"].value, PREDEFINED["wobj0"].value, np.radians(degrees)
    )
    return target.numbers()[:11] + EXTERNAL, frame_of(target)


@pytest.fixture
def executor(cell_of, tmp_path):
    """Return a function that starts the three tasks with a program."""

    def start(content):
        home = tmp_path / "home"
        home.mkdir()
        (home / "motion_program.bin").write_bytes(content)
        folder = "rpiRobotics_abb_motion_program_exec/robot_HOME_"
        return cell_of(EXECUTOR, folder, {"motion_program_log_motion": 1.0}, home=home), home

    return start


def test_a_program_file_moves_the_arm_and_leaves_its_log(executor):
    robot = twin.load("irb140")
    a, _ = target_at(robot, 10, 10, -10, 0, 40, 0)
    b, T_b = target_at(robot, 20, 5, -5, 0, 40, 10)
    via, _ = target_at(robot, 13, 6, -8, 0, 45, 5)
    cell, home = executor(program(
        [1, 5, 0, 0, 0, 30, 0, *EXTERNAL, *V, FINE[0], *FINE[1:]], [2, *a, *V, *Z10], [3, *b, *V, *FINE],
        [5, 0.2], [6, 1], [4, *via, *a, *V, *Z10], [3, *b, *V, *FINE],
    ))  # fmt: skip
    history = {}
    signals = cell.controller.signals.values

    def watch():
        history.setdefault(signals.get("motion_program_current_cmd_num"), cell.controller.t)
        return False

    cell.run(20.0, until=watch)
    assert cell.controller.faults == []
    assert cell.controller.tasks["t_rob1"].state == "ended"
    # Command 0 has no trigger; 5 sets no signal before the next begins.
    assert [k for k in history if k is not None and k >= 0] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert history[3.0] - history[2.0] > 0.3
    assert history[5.0] - history[3.0] >= 0.2
    T = twin.forward_kinematics(robot, cell.controller.arm.q)
    assert np.abs(T[:3, 3] - T_b[:3, 3]).max() < 1e-6
    titles = titles_of_tasks(cell.controller)
    assert titles[0] == "Motion Program Begin"
    assert "Motion Program Log File Opened" in titles
    assert "Motion Program Complete" in titles
    for _ in range(10):
        cell.controller.cycle()
    log = (home / "log-2026-11-26-10-00-00.0000.bin").read_bytes()
    version, size = struct.unpack("<2f", log[:8])
    assert (version, log[8 : 8 + int(size)]) == (10011, b"2026-11-26-10-00-00.0000")
    begin = 12 + int(size)
    columns = int(struct.unpack("<f", log[begin - 4 : begin])[0])
    assert log[begin : begin + columns] == b"timestamp,cmdnum,J1,J2,J3,J4,J5,J6"
    rows = np.frombuffer(log[begin + columns :], dtype="<f4").reshape(-1, 8)
    assert np.abs(np.diff(rows[:, 0]) - 0.004).max() < 0.005
    assert 0.9 < len(rows) * 0.004 / (rows[-1, 0] - rows[0, 0]) < 1.1
    assert rows[-1, 2:] == pytest.approx(np.degrees(cell.controller.arm.q), abs=0.5)


def test_a_bad_target_is_reported_by_the_task_for_errors(executor):
    cell, home = executor(program([1, 500, 0, 0, 0, 30, 0, *EXTERNAL, *V, *FINE]))
    cell.controller.signals.write("motion_program_seqno_started", 7.0)
    cell.run(1.0)
    for _ in range(10):
        cell.controller.cycle()
    assert len(cell.controller.faults) == 1, cell.controller.faults
    name, fault = cell.controller.faults[0]
    assert name == "T_ROB1"
    assert "exec.mod, line" in str(fault)
    report = json.loads((home / "motion_program_err---seqno-7.json").read_text())
    assert (report["seqno"], report["error_domain"], report["error_number"]) == (7, 5, 50)
    assert report["error_title"] == "Position outside reach"
    assert report["error_string"] == "T_ROB1"
    assert "exec.mod line" in report["error_string2"]
    assert titles_of_tasks(cell.controller)[-1] == "Motion Program Failed"


def test_a_file_of_another_version_raises_their_error(executor):
    cell, _ = executor(numbers(10010.0) + program()[4:])
    cell.run(1.0)
    assert "ERR_INVALID_MP_VERSION has no handler" in str(cell.controller.faults[0][1])


# open_abb: requests as texts, and states while the arm moves.


OPEN_ABB = """
[tasks.T_ROB1]
modules = ["@SERVER.mod"]
[tasks.T_LOG]
kind = "SEMISTATIC"
modules = ["@LOGGER.mod"]
[ports]
5000 = 0
5001 = 0
"""


def test_the_server_answers_and_the_logger_sends_states_while_the_arm_moves(cell_of):
    cell = cell_of(OPEN_ABB, "pevers_rapid/rapid-parser_data_", forever=True)
    cell.run(0.1)
    ports = ports_of(cell)
    server, logger = clients = [
        socket.create_connection(("127.0.0.1", ports[task]), timeout=5.0) for task in ("T_ROB1", "T_LOG")
    ]
    cell.run(1.0)

    def ask(request):
        server.sendall(request)
        cell.run(5.0, until=lambda: bool(select.select([server], [], [], 0.0)[0]))
        return server.recv(200).decode()

    try:
        assert ask(b"00 #") == "0 1 "
        assert ask(b"08 100.0 50.0 50.0 50.0 #") == "8 1 "
        assert ask(b"09 1 0.0 0.0 0.0 #") == "9 1 "  # fine
        logger.recv(100_000)
        assert ask(b"02 20.0 5.0 0.0 0.0 30.0 0.0 #") == "2 1 "
        assert list(map(float, ask(b"04 #").split())) == [4, 1, 20, 5, 0, 0, 30, 0]
        states = [text.split() for text in logger.recv(100_000).decode().split("#") if text.startswith(" 1")]
        angles = [float(one[4]) for one in states]
        assert any(1.0 < angle < 19.0 for angle in angles)
        assert angles == sorted(angles)
    finally:
        for one in clients:
            one.close()
    assert cell.controller.faults == []
