"""drive_check: what it finds of every axis, and what it says of motors that are too weak or too slow."""

import dataclasses
import json

import numpy as np
import pytest

import twin
from scenarios import drive_check
from scenarios.checks.drive_load import drive_load, known_drives, with_rated_payload
from scenarios.checks.motion_range import random_positions
from scenarios.cli.command_line import main
from tests.support.scenario_cases import full_run
from twin.errors import RobotError


@pytest.mark.parametrize(
    ("robot", "gravity", "use", "worst", "median"),
    [
        (
            "irb140", [0, 175, 48, 9.8, 9.8, 4.9], [15, 38, 29, 46, 40, 36],
            [0.21, 0.13, 0.08, 0.07, 0.05, 0.03], [0.085, 0.09, 0.07, 0.04, 0.04, 0.03],
        ),
        (
            "irb1400", [0, 355, 121, 9.3, 9.0, 4.1], [15, 54, 39, 50, 47, 39],
            [0.24, 0.16, 0.09, 0.08, 0.06, 0.02], [0.07, 0.12, 0.08, 0.05, 0.04, 0.02],
        ),
    ],
)  # fmt: skip
def test_drive_load_agrees_with_independent_estimates(robot, gravity, use, worst, median):
    """Another program, other samples: in N m, percent and s, as far as its figures go."""
    load = drive_load(with_rated_payload(twin.load(robot).with_drives("rigid")), seed=3, states=20_000)
    np.testing.assert_allclose(load.gravity, gravity, atol=0.6)
    np.testing.assert_allclose(100 * load.use, use, atol=0.6)
    np.testing.assert_allclose(load.time, [worst, median], atol=0.0075)


def test_drive_load_agrees_with_inverse_dynamics(irb140):
    """By the whole: the torque of the axis at its speed limit in its worst pose, from inverse dynamics."""
    robot = with_rated_payload(irb140.with_drives("rigid"))
    load = drive_load(robot, seed=1, states=200)
    poses = random_positions(robot, np.random.default_rng(1), 200)
    for axis in range(6):
        qd = robot.qd_max[axis] * np.eye(6)[axis]
        for sign in (1.0, -1.0):
            tau = twin.inverse_dynamics(robot, poses, sign * np.tile(qd, (200, 1)), np.zeros((200, 6)))
            assert np.abs(tau[:, axis]).max() <= load.use[axis] * load.torque_max[axis] * (1 + 1e-12)
        rest = np.abs(twin.gravity_torque(robot, poses)[:, axis]).max()
        assert load.gravity[axis] == pytest.approx(rest, rel=1e-12, abs=1e-9)
    np.testing.assert_allclose(load.speed, np.array([100, 100, 80, 60, 60, 40]) * robot.qd_max / 419.0)


def test_weak_motor_and_slow_motor_fail():
    """A motor beyond its maximum speed has no torque, either."""
    drives = known_drives(twin.load("irb140"))
    log, metrics = full_run("drive_check", "computed_torque")
    assert all(metric.passes for metric in metrics)
    torque, speed = "torque at a speed limit / motor's", "motor speed at a speed limit / its maximum"
    weak = dataclasses.replace(drives, motor_torque_max=0.45 * drives.motor_torque_max)
    slow = 0.85 * drives.motor_speed_max
    slow = dataclasses.replace(drives, motor_speed_max=slow, motor_speed_rated=slow)
    for changed, expected in ((weak, [torque]), (slow, [torque, speed])):
        load = drive_load(with_rated_payload(log.robot.with_drives("rigid", changed)), 0, 2000)
        judged = drive_check.metrics(dataclasses.replace(log, arrays={**log.arrays, **load._asdict()}))
        broken = [metric for metric in judged if not metric.passes]
        assert [metric.name for metric in broken] == expected
        assert all(metric.where.startswith("of joint_") for metric in broken)


def test_arm_too_heavy_for_its_motors_raises(irb140):
    weak = dataclasses.replace(irb140.drives, motor_torque_max=0.2 * irb140.drives.motor_torque_max)
    robot = with_rated_payload(irb140.with_drives("rigid", weak))
    with pytest.raises(RobotError, match=r"'irb140': its motors need more than 75% of their torque to move"):
        drive_check.fastest_swings(robot, drive_check.Config(duration=0.3))


def test_torque_limit_decreases_above_rated_speed(irb140):
    """From the rated speed on the limit falls in a straight line."""
    drives = dataclasses.replace(irb140.drives, motor_speed_rated=0.5 * irb140.drives.motor_speed_max)
    robot = with_rated_payload(irb140.with_drives("rigid", drives))
    load, speed = drive_load(robot, 0, 100), irb140.drives.ratio * irb140.qd_max / 419.0
    np.testing.assert_allclose(load.torque_max, irb140.drives.torque_max * (1 - speed) / 0.5, rtol=1e-12)


def test_drive_check_reports_each_axis_and_draws_picture(tmp_path, capsys):
    picture, results = tmp_path / "a.png", tmp_path / "a.json"
    words = ["--duration", "0.3", "--states", "50", "--picture", str(picture), "--json", str(results)]
    assert main(["run", "drive_check", *words]) == 0
    printed = capsys.readouterr().out
    assert "Each axis alone at its speed limit" in printed
    assert picture.read_bytes().startswith(b"\x89PNG")
    (run,) = json.loads(results.read_text(encoding="utf-8"))["runs"]
    assert (run["drives"], run["model_drives"]) == ("rigid", "rigid")
    assert [row[0] for row in run["table"]["rows"][1:]] == [f"joint_{k}" for k in range(1, 7)]
    np.testing.assert_allclose(run["joints"]["torque_limit_N_m"], [300, 760, 336, 45, 60, 40])
