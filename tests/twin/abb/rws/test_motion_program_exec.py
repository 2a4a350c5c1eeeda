"""abb-motion-program-exec 0.7.4, unchanged, with its own RAPID in three tasks."""

from contextlib import closing

import numpy as np
import pytest
from abb_motion_program_exec import abb_motion_program_exec_client as exec_client
from abb_motion_program_exec.commands.rapid_types import confdata, fine, jointtarget, robtarget, v500, z50
from abb_robot_client.egm import EGM

from tests.support.shared_data import shared_folder
from tests.support.web_services import WebServices, wait_until
from twin.abb.controller.egm import EgmDevices
from twin.abb.controller.execution import TaskSettings
from twin.abb.rapid.language import read_source
from twin.abb.rapid.signals import Signals

pytestmark = pytest.mark.shared

ANALOG = """preempt preempt_current preempt_cmd_num current_cmd_num queued_cmd_num seqno seqno_command
    seqno_started seqno_complete"""
DIGITAL = "stop_egm log_motion driver_abort executing error"


def modules(*names):
    folder = shared_folder() / "rapid" / "rpiRobotics_abb_motion_program_exec"
    files = [folder / f"robot_HOME_{name}" for name in (*names, "motion_program_shared.sys")]
    return [module for file in files for module in read_source(file).modules]


def targets(*degrees):
    return jointtarget(list(degrees), [0] * 6)


@pytest.fixture(scope="module")
def served(abb_robot, tmp_path_factory):
    settings = [
        TaskSettings(
            "T_ROB1", modules("motion_program_exec.mod", "motion_program_exec_egm.mod"),
            entry="motion_program_main", moves=True,
        ),
        TaskSettings(
            "logger", modules("motion_program_logger.mod"), "SEMISTATIC", entry="motion_program_logger_main"
        ),
        TaskSettings("error_reporter", modules("error_reporter.mod"), "SEMISTATIC"),
    ]  # fmt: skip
    types = {f"motion_program_{name}": "AO" for name in ANALOG.split()}
    types |= {f"motion_program_{name}": "DO" for name in DIGITAL.split()}
    outputs = {"motion_program_executing": "TaskExecuting", "motion_program_error": "ExecutionError"}
    with closing(EGM(0)) as egm:
        devices = EgmDevices(("127.0.0.1", egm.socket.getsockname()[1]))
        with WebServices(
            abb_robot, tmp_path_factory.mktemp("cell"), settings=settings, outputs=outputs, egm=devices,
            signals=Signals({}, declared=types),
        ) as made:  # fmt: skip
            made.egm = egm
            yield made


@pytest.fixture
def client(served):
    made = exec_client.MotionProgramExecClient(served.url)
    yield made
    made.abb_client.close()


def test_a_program_is_executed_and_its_log_read(served, client):
    program = exec_client.MotionProgram()
    program.MoveAbsJ(targets(10, 0, 0, 0, 30, 0), v500, fine)
    program.MoveAbsJ(targets(-5, 5, -5, 0, 30, 0), v500, z50)
    program.MoveAbsJ(targets(0, 0, 0, 0, 30, 0), v500, fine)
    program.WaitTime(0.05)
    client.enable_motion_logging()
    log = client.execute_motion_program(program)
    assert log.timestamp == program.get_timestamp()
    assert log.column_headers == ["timestamp", "cmdnum", *(f"J{k}" for k in range(1, 7))]
    assert log.data[:, 2].max() == pytest.approx(10.0, abs=0.1)
    assert -5.2 < log.data[:, 2].min() < -3.0
    assert np.all(np.diff(log.data[:, 0]) >= 0)  # two lines in one cycle have its time
    assert {*log.data[:, 1]} == {-1, 4}  # their RAPID counts waits and moves of the tool
    assert not list(served.home.glob("log*"))  # the client has removed it


def test_a_target_out_of_reach_is_reported_and_the_next_program_runs(served, client):
    bad = exec_client.MotionProgram()
    bad.MoveAbsJ(targets(1, 0, 0, 0, 30, 0), v500, fine)
    bad.MoveL(robtarget([5000, 0, 0], [1, 0, 0, 0], confdata(0, 0, 0, 0), [0] * 6), v500, fine)
    with pytest.raises(Exception, match="Motion Program Failed at command number"):
        client.execute_motion_program(bad)
    faults = [one for one in client.abb_client.read_event_log() if one.msgtype == 3]
    assert "motion_program_exec.mod line 340" in faults[0].desc
    good = exec_client.MotionProgram()
    good.MoveAbsJ(targets(2, 0, 0, 0, 30, 0), v500, fine)
    client.execute_motion_program(good)
    assert client.abb_client.get_jointtarget().robax[0] == pytest.approx(2.0, abs=1e-3)


def test_egm_guides_the_arm_within_a_program(served, client):
    far = exec_client.egm_minmax(-1e-3, 1e-3)
    config = exec_client.EGMJointTargetConfig(far, far, far, far, far, far, 1000, 1000)
    program = exec_client.MotionProgram(egm_config=config)
    program.MoveAbsJ(targets(0, 0, 0, 0, 30, 0), v500, fine)
    program.EGMRunJoint(10, 0.05, 0.05)
    before = client.execute_motion_program(program, wait=False)
    goal = np.array([3.0, 2, 0, 0, 30, 0])

    def guided():
        received, state = served.egm.receive_from_robot(timeout=0.1)
        if received:
            served.egm.send_to_robot(goal)
        return received and np.abs(state.joint_angles - goal).max() < 0.05

    wait_until(guided, 30.0)
    client.stop_egm()
    client.wait_motion_program_complete()
    client.read_motion_program_result_log(before)
    assert client.abb_client.get_jointtarget().robax[:2] == pytest.approx(goal[:2], abs=0.1)
