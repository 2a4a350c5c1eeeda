"""The modules of abb_motion_program_exec, unchanged, in their three tasks, with program files of our own."""

import json
import struct

import numpy as np
import pytest

import twin
from scenarios.abb.station import Station
from tests.support.shared_data import shared_folder
from tests.support.virtual_cell import VirtualCell, titles_of_tasks
from twin.rapid.frames import frame_of
from twin.rapid.targets import Arm
from twin.rapid.values import PREDEFINED

AO = (
    "preempt", "preempt_current", "preempt_cmd_num", "current_cmd_num", "queued_cmd_num", "seqno",
    "seqno_command", "seqno_started", "seqno_complete", "driver_abort", "log_motion",
)  # fmt: skip
STATION = """
[tasks.T_ROB1]
entry = "motion_program_main"
modules = ["{0}exec.mod", "{0}shared.sys"]
[tasks.logger]
kind = "SEMISTATIC"
entry = "motion_program_logger_main"
modules = ["{0}logger.mod", "{0}shared.sys"]
[tasks.error_reporter]
kind = "SEMISTATIC"
modules = ["{1}", "{0}shared.sys"]
[signals]
motion_program_stop_egm = {{ type = "DO" }}
motion_program_executing = {{ type = "DO", state = "TaskExecuting" }}
""" + "".join(f'motion_program_{name} = {{{{ type = "AO" }}}}\n' for name in AO)

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
def executor(tmp_path):
    """Return a function that starts the three tasks with a program."""
    made = []

    def start(content):
        folder = shared_folder()
        assert folder is not None
        parts = f"{folder}/rapid/rpiRobotics_abb_motion_program_exec/robot_HOME_"
        (tmp_path / "station.toml").write_text(
            STATION.format(f"{parts}motion_program_", f"{parts}error_reporter.mod")
        )
        home = tmp_path / "home"
        home.mkdir()
        (home / "motion_program.bin").write_bytes(content)
        station = Station.read(tmp_path / "station.toml")
        signals = station.cell_signals({"motion_program_log_motion": 1.0})
        cell = VirtualCell(
            twin.load("irb140").with_drives("rigid"), station.task_settings(), start=np.zeros(6),
            signals=signals, outputs=station.outputs, home=home,
        )  # fmt: skip
        made.append(cell)
        return cell, home

    yield start
    for one in made:
        one.__exit__()


@pytest.mark.shared
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


@pytest.mark.shared
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


@pytest.mark.shared
def test_a_file_of_another_version_raises_their_error(executor):
    cell, _ = executor(numbers(10010.0) + program()[4:])
    cell.run(1.0)
    assert "ERR_INVALID_MP_VERSION has no handler" in str(cell.controller.faults[0][1])
