"""Units of joints: a sliding one is in metres and newtons, and for people in millimetres, everywhere."""

import dataclasses

import numpy as np
import pytest

import twin
from scenarios.report.page import _arm, _joints
from scenarios.report.report import scenario_report
from scenarios.running.runs import Run
from scenarios.studies.sweeps.plan import WorstCase
from tests.support.example_logs import made_log, made_up_task, rendered
from tests.support.small_robots import SOUND
from twin.abb.egm.mirror.mirror import Mirror
from twin.abb.egm.mirror.recording import StreamLog
from twin.abb.egm.robot.session import EgmRobot
from twin.base.errors import EgmError, LimitError
from twin.physics.control.signals import divergence_message
from twin.physics.robot.limits import check_position, violations
from twin.physics.robot.units import caption_unit, position_text, shown
from twin.physics.trajectories.sampling import Samples, check_limits
from twin.studies.views.browser import Logged


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """A joint that turns within 1 rad, and one that slides from 0 to 0.2 m."""
    path = tmp_path_factory.mktemp("slide") / "arm.urdf"
    path.write_text(SOUND, encoding="utf-8")
    return twin.load(path)


def test_texts():
    assert position_text(0.0478, "prismatic") == "47.8 mm (0.0478 m)"
    assert position_text(0.5 * np.pi, "revolute", "/s") == "90 deg/s (1.5708 rad/s)"
    assert shown(0.0478, "prismatic", 2) == "48 mm"
    assert caption_unit(["revolute", "prismatic"]) == "rad (sliding joints: m)"
    assert caption_unit(["prismatic"], "{torque} s/{position}") == "N s/m"
    assert caption_unit(["revolute"] * 2, "{torque}") == "N m"


def test_a_position_beyond_its_range(arm):
    slide = arm.joint_names[1]
    for position, told in (
        (
            [0.0, 0.25],
            rf"^{slide} would be at 250 mm \(0.25 m\), its range is 0 mm \(0 m\) to 200 mm \(0.2 m\)$",
        ),
        ([0.0, 47.8], r"positions are in metres, are these millimetres\?$"),
        ([40.0, 0.1], r"57\.2958 deg \(1 rad\); angles are in radians, are these degrees\?$"),
    ):
        with pytest.raises(LimitError, match=told):
            check_position(arm, np.array(position))


def test_a_speed_beyond_its_limit(arm):
    fast = np.array([0.0, 2.0 * arm.qd_max[1]])
    t, q, qd = 1e-3 * np.arange(3), np.tile([0.0, 0.1], (3, 1)), np.tile(fast, (3, 1))
    with pytest.raises(LimitError, match=rf"would move at {2e3 * arm.qd_max[1]:g} mm/s \("):
        check_limits(arm, Samples(t, q, qd, np.zeros_like(q)))
    (found,) = violations(arm, t, q, qd)
    assert f"moves at {2e3 * arm.qd_max[1]:g} mm/s ({fast[1]:g} m/s)" in str(found)


def test_an_arm_that_diverges(arm):
    assert divergence_message(arm, np.array([0.0, np.nan]), np.zeros(2)).endswith("is at nan m with 0.0 m/s")


def test_the_captions_of_a_report_and_a_page():
    robot = twin.load("figure_7_1")  # one joint turns, two slide
    run = Run(made_up_task(controller="pd"), made_log(robot, np.zeros((3, 3))), (), 0.5)
    text = rendered(scenario_report("A swing.", [run], 100))
    assert "Tracking error, RMS / largest; joints in rad (sliding joints: m), tool" in text
    assert "Peak torque in N m (sliding joints: N), and number" in text
    page = f"{_joints(Logged(run.log, 'pd', 'red'))}{_arm(robot)}"
    lengths, forces = "rad (sliding joints: m)", "N m (sliding joints: N)"
    for caption in (
        f"RMS error [{lengths}]", f"largest error [{lengths}]", f"peak torque [{forces}]",
        f"torque limit at standstill [{forces}]",
    ):  # fmt: skip
        assert caption in page
    assert "speed limit [rad/s (sliding joints: m/s)]" in page


def test_a_case_of_a_sweep(arm):
    class Run:
        figures = None

    case = WorstCase(0, {"joint_error_joint": 2}, "", Run(), 0.0, 0.0, 0.0)
    assert case.unit == "rad"
    Run.figures = type("Figures", (), {"joint_kinds": arm.joint_kinds})
    assert case.unit == "m"


def test_egm_refuses_a_sliding_joint(arm):
    """EGM would send its metres as radians, and read its millimetres as degrees."""
    slide = arm.joint_names[1]
    for make in (Mirror, StreamLog, lambda robot: EgmRobot(robot, None)):
        with pytest.raises(EgmError, match=rf"'arm' cannot use EGM: joint {slide} is prismatic"):
            make(arm)


def test_torques_of_coupled_motors_stand_beside_those_of_the_joints(irb140):
    """Motor 5 turns joint 6, too: at the joints 63.5 and -15 N m, at the motor 56 N m of its limit."""
    coupling = np.eye(6)
    coupling[4, 5] = 0.5
    arm = irb140.with_drives("rigid", dataclasses.replace(irb140.drives, coupling=coupling))
    log = made_log(arm, np.zeros((3, 6)))
    tau = np.zeros((3, 6))
    tau[1, 4:] = 63.5, -15.0
    run = Run(made_up_task(controller="pd"), dataclasses.replace(log, tau=tau), (), 0.5)
    at_motors = np.linalg.solve(coupling.T, tau[1])  # tau = coupling^T tau_m
    lines = rendered(scenario_report("A swing.", [run], 100)).splitlines()
    assert any("Peak torque in N m, and its motor's where motors are coupled" in line for line in lines)
    for k in (4, 5):
        row = next(line for line in lines if line.strip().startswith(f"joint_{k + 1} (")).split()
        assert row[-3:] == [f"{abs(tau[1, k]):.3g}", "/", f"{abs(at_motors[k]):.3g}"]
        assert row[1] == f"({arm.drive_torque_max[k]:.3g})"
    np.testing.assert_allclose(run.figures.peak_motor_torque, np.abs(at_motors), rtol=1e-14)
    np.testing.assert_array_equal(run.figures.peak_torque, np.abs(tau[1]))
