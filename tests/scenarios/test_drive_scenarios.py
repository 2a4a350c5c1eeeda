"""Drives in the scenarios: settings, what is claimed of runs with them, drive_check."""

import dataclasses
import json

import numpy as np
import pytest

import twin
from scenarios.drive_check import DriveCheck
from scenarios.judging import bounds
from scenarios.judging.bounds import position_rounding, whole_run_limit, with_spans
from scenarios.judging.drive_load import drive_load, friction_metrics, known_drives, with_rated_payload
from scenarios.judging.following import follow
from scenarios.judging.motion_range import cosines, random_positions
from scenarios.judging.run import TrackingRun
from scenarios.judging.tracking import tracking_metrics
from scenarios.report.results import describe
from scenarios.running.runs import Run
from scenarios.setup import Sampling, Setup
from scenarios.shell.command_line import main
from tests.support.changed_runs import with_rounding
from tests.support.example_logs import made_up_task
from tests.support.processor_times import shared
from tests.support.sample_drives import FORMER, uncoupled
from tests.support.scenario_cases import full_run
from twin.base.errors import RobotError
from twin.data.logs.figures import joint_error
from twin.physics.trajectories.joint_trajectories import hold, quintic, sequence, sines

SWING = sines(np.zeros(6), np.full(6, 0.05), np.full(6, 2.0), 0.6)
FRICTION = ("coulomb", "static", "viscous")


@shared
def swung(robot="irb140", **settings):
    """Simulate a swing of all joints with the rated payload and two reversals."""
    setup = Setup(robot=robot, **settings)
    return follow(setup, setup.sampling().sampled(SWING), with_rated_payload(setup.load_robot()))


def named(metrics):
    return {metric.name: metric for metric in metrics}


def test_computed_torque_is_exact_with_rigid_drives():
    run = swung("irb1400", drives="rigid")
    assert bounds.is_exact(run)
    assert np.abs(joint_error(run.log)).max() <= 1e-13
    assert all(metric.passes for metric in tracking_metrics(run))
    assert np.abs(run.log.tau - run.log.tau_joint).max() > 10.0


@pytest.mark.parametrize(
    ("settings", "exact", "bounded"),
    [
        ({}, True, False), ({"controller": "cascade"}, True, False),
        ({"controller": "cascade", "reference": "continuous"}, False, False),
        ({"controller": "pid"}, False, True), ({"controller": "pid", "noise": 1e-9}, False, False),
        ({"reference": "continuous"}, False, True), ({"encoder": True}, False, False),
        ({"delay": 1}, False, False), ({"drives": "rigid"}, True, False),
        ({"drives": "rigid", "steps_per_period": 2}, False, False),
        ({"drives": "rigid", "model_drives": "ideal"}, False, False),
        ({"drives": "rigid", "controller": "cascade"}, False, True),
        ({"drives": "rigid", "controller": "pid"}, False, True),
        ({"drives": "rigid", "controller": "pid", "delay": 1}, False, False),
        ({"drives": "rigid", "controller": "pd", "model_drives": "ideal"}, False, False),
        ({"model_drives": "rigid"}, False, False), ({"drives": "elastic"}, False, False),
    ],
)  # fmt: skip
def test_error_limits_match_settings(settings, exact, bounded):
    """A limit where only rounding is left, a bound where its derivation holds, a figure elsewhere."""
    run = swung(**settings)
    assert (bounds.is_exact(run), bounds.has_bound(run)) == (exact, bounded)
    metrics = named(tracking_metrics(run))
    assert (metrics["largest joint error"].limit is not None) == exact
    assert ("joint error / its bound" in metrics) == bounded
    assert ("largest motor error" in metrics) == (settings.get("drives") == "elastic")
    assert all(metric.passes for metric in metrics.values())


def test_controller_model_has_drives_of_settings_and_report_names_them():
    for settings, believed, told in (
        ({}, "ideal", "ideal drives (no friction; see --drives),"),
        ({"drives": "rigid"}, "rigid", "rigid drives,"),
        ({"drives": "elastic"}, "rigid", "elastic drives (rigid drives in the model)"),
        ({"drives": "rigid", "model_drives": "ideal"}, "ideal", "rigid drives (ideal drives in the model)"),
        ({"model_drives": "rigid"}, "rigid", "ideal drives (rigid drives in the model)"),
    ):
        task, log = made_up_task(**settings), swung(**settings).log
        setup = task.setup
        assert setup.load_robot().drive_mode == settings.get("drives", "ideal")
        assert setup.controller_model(setup.load_robot()).drive_mode == log.model_drives == believed
        heading = describe(Run(task, log, (), 0.1))
        assert told in heading + ","
        assert "drives rigid" not in heading


def test_elastic_joints_report_errors_on_both_sides_of_springs():
    run = swung(drives="elastic")
    log, metrics = run.log, named(tracking_metrics(run))
    assert metrics["largest joint error"].value == np.abs(log.q_ref - log.q).max()
    assert metrics["largest motor error"].value == np.abs(log.q_ref - log.q_motor).max()
    assert metrics["largest joint error"].value > 1.2 * metrics["largest motor error"].value


@pytest.mark.parametrize(("robot", "drives"), [("irb140", "rigid"), ("irb1400", "elastic")])
def test_drive_parameters_wrong_by_a_millionth_fail_friction_check(robot, drives):
    """The check needs the logged steps alone: the solver may be wrong in engine and model alike."""
    log = swung(robot, drives=drives, controller="cascade").log
    (holding,) = friction_metrics(log)
    assert holding.passes
    known = known_drives(log.robot)
    parts = ["coulomb", "static", "viscous", "stribeck_speed", "rotor_inertia"]
    for part in parts + ["stiffness", "damping"] * (drives == "elastic"):
        other = dataclasses.replace(known, **{part: getattr(known, part) * (1 + 1e-6)})
        (metric,) = friction_metrics(dataclasses.replace(log, robot=log.robot.with_drives(drives, other)))
        assert not metric.passes, part
    turned = dataclasses.replace(log, qd=np.abs(log.qd), qd_motor=np.abs(log.qd_motor))
    assert not friction_metrics(turned)[0].passes
    loaded = dataclasses.replace(log, robot=log.robot.with_payload(twin.Payload(1e-4)))
    assert not friction_metrics(loaded)[0].passes, "springs and motors carry less than this arm weighs"


def test_joint_at_rest_beyond_static_friction_fails_friction_check():
    setup = Setup(controller="pd_gravity", drives="rigid")
    robot = setup.load_robot()
    log = follow(setup, setup.sampling().sampled(hold(robot.poses["test_3"], 0.02)), robot).log
    static = known_drives(robot).static
    assert not np.any(log.qd)
    for share, holds in ((0.99, True), (1.01, False)):
        pushed = dataclasses.replace(log, tau=log.tau_joint + share * static * [1, 0, 0, 0, 0, 0])
        assert friction_metrics(pushed)[0].passes == holds


def test_whole_run_limit_with_drives_follows_the_loop():
    for robot, drives in (("irb140", "rigid"), ("irb1400", "elastic")):
        run = swung(robot, drives=drives, controller="pid")
        log, rounding = run.log, run.prediction.rounding
        seen = np.abs(log.q - run.prediction.q).max()
        assert seen <= whole_run_limit(log, rounding) <= 1e-11
        assert 0.1 * seen <= np.max(rounding.spread) or seen <= position_rounding(log)


def test_rounding_decides_path_at_stribeck_friction(tmp_path):
    """The cascade's torque falls as the reference gets faster, whether or not the joint broke away."""
    setup = Setup(controller="cascade", drives="rigid")
    robot = with_rated_payload(setup.load_robot())
    start = robot.poses["test_3"]
    path = sequence(hold(start, 0.1), quintic(start, start + 0.2, 0.5))
    run = follow(setup, setup.sampling().sampled(path), robot)
    rounding = run.prediction.rounding
    began = rounding.undetermined_from
    assert 0.1 < began < 0.6
    metrics = named(with_spans(tracking_metrics(run), run, tracking_metrics))
    whole = metrics["engine - model, whole run"]
    assert whole.passes
    assert whole.limit < 1e-5
    assert f"from {began:.6g} s on rounding decides" in whole.why
    for name in ("engine - model, one step", "engine - model, every state / its limit"):
        assert metrics[name].passes
        assert metrics[name].span is None
    error = metrics["largest joint error"]
    low, high = error.span
    assert low < error.value < high or error.value in (low, high)
    assert high - low > 1e-6
    for limit, outcome in (
        (0.9 * low, "fails"),
        (0.5 * (low + high), "undetermined"),
        (1.1 * high, "passes"),
    ):
        assert dataclasses.replace(error, limit=limit).outcome == outcome
    run.save(tmp_path / "a.npz")
    loaded = TrackingRun.load(tmp_path / "a.npz")
    assert named(with_spans(tracking_metrics(loaded), loaded, tracking_metrics)) == metrics
    for lost in (slice(3, 4), slice(0, 8)):  # kicked runs that ran away
        q = rounding.kicked["q"].copy()
        q[lost, -1] = np.nan
        away = with_rounding(run, kicked={**rounding.kicked, "q": q})
        judged = named(with_spans(tracking_metrics(away), away, tracking_metrics))
        assert judged["largest joint error"].span[1] == np.inf
        assert judged["engine - model, one step"].outcome == "passes"
    slack = dataclasses.replace(setup, changes=(("model.drives.coulomb", 0.99),))
    decided = follow(slack, slack.sampling().sampled(path), robot).prediction.rounding
    assert decided.undetermined_from is None
    assert not decided.kicked


# What parts of the drives that the controller's model lacks cost.


PARTS = {
    "no friction": {"changes": tuple((f"model.drives.{name}", 0.0) for name in FRICTION)},
    "no rotors": {"changes": (("model.drives.rotor_inertia", 0.0),)},
    "nothing": {"model_drives": "ideal"},
}


@shared
def reversed_once(**settings):
    """Simulate cosines of all joints with the rated payload; each joint reverses."""
    setup = Setup(drives="rigid", **settings)
    robot = with_rated_payload(setup.load_robot())
    return follow(setup, setup.sampling().sampled(cosines(robot, 0.4, 0.2, 0.6, 1.1)), robot)


def test_error_grows_with_missing_parts_of_drive_model():
    """The figures in rad: all, no friction, no rotors, nothing."""

    def errors(law):
        runs = (reversed_once(controller=law, **settings) for settings in ({}, *PARTS.values()))
        return [float(np.abs(joint_error(run.log)).max()) for run in runs]

    everything, no_friction, no_rotors, nothing = errors("computed_torque")
    assert everything <= 1e-14
    assert min(no_friction, no_rotors) > 0.02
    assert nothing > max(no_friction, no_rotors)
    everything, no_friction, no_rotors, nothing = errors("pid")
    assert everything == no_friction, "friction is in no model of its own"
    assert no_rotors == nothing > everything, "its gains come from the inertia"
    everything, no_friction, *_ = errors("cascade")
    assert everything < 1e-3 < no_friction


def test_engine_agrees_with_model_whatever_the_controller_knows():
    for part, settings in PARTS.items():
        run = reversed_once(controller="computed_torque", **settings)
        assert np.abs(run.log.q - run.prediction.q).max() <= 1e-13
        metrics = named(tracking_metrics(run))
        assert metrics["largest joint error"].limit is None
        assert metrics["engine - model, whole run"].passes
        assert not run.loop.known_law or part == "nothing"


# drive_check: what it finds of every axis, and what it says of motors that are too weak or too slow.


ESTIMATES = {
    "irb140": (
        [0, 175, 48, 9.8, 9.8, 4.9], [15, 38, 29, 46, 40, 36],
        [0.21, 0.13, 0.08, 0.07, 0.05, 0.03], [0.085, 0.09, 0.07, 0.04, 0.04, 0.03],
    ),
    "irb1400": (
        [0, 355, 121, 9.3, 9.0, 4.1], [15, 54, 39, 50, 47, 39],
        [0.24, 0.16, 0.09, 0.08, 0.06, 0.02], [0.07, 0.12, 0.08, 0.05, 0.04, 0.02],
    ),
}  # fmt: skip
"""Torque of gravity in [N m], use of torque in percent, worst and median time in [s], of another program."""


@pytest.mark.parametrize("robot", ESTIMATES)
def test_drive_load_agrees_with_independent_estimates(robot):
    gravity, use, *times = ESTIMATES[robot]
    arm = twin.load(robot)
    arm = arm.with_drives("rigid", dataclasses.replace(arm.drives, **(FORMER if robot == "irb140" else {})))
    load = drive_load(with_rated_payload(arm), seed=3, states=20_000)
    np.testing.assert_allclose(load.gravity, gravity, atol=0.6)
    np.testing.assert_allclose(100 * load.use, use, atol=0.6)
    np.testing.assert_allclose(load.time, times, atol=0.0075)


def test_drive_load_agrees_with_inverse_dynamics(irb140):
    """By the whole: the torque of the axis at its speed limit in its worst pose, from inverse dynamics."""
    robot = with_rated_payload(uncoupled(irb140).with_drives("rigid"))
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
    run, metrics = full_run("drive_check", "computed_torque")
    assert all(metric.passes for metric in metrics)
    torque, speed = "torque at a speed limit / motor's", "motor speed at a speed limit / its maximum"
    weak = dataclasses.replace(drives, motor_torque_max=0.45 * drives.motor_torque_max)
    slow = 0.85 * drives.motor_speed_max
    slow = dataclasses.replace(drives, motor_speed_max=slow, motor_speed_rated=slow)
    for changed, expected in ((weak, [torque]), (slow, [torque, speed])):
        load = drive_load(with_rated_payload(run.log.robot.with_drives("rigid", changed)), 0, 2000)
        judged = DriveCheck().metrics(dataclasses.replace(run, load=load))
        broken = [metric for metric in judged if not metric.passes]
        assert [metric.name for metric in broken] == expected
        assert all(metric.where.startswith("of joint_") for metric in broken)


def test_torque_limit_falls_above_rated_speed_and_an_arm_too_heavy_for_its_motors_raises(irb140):
    """From the rated speed on the limit falls in a straight line."""
    drives = dataclasses.replace(irb140.drives, motor_speed_rated=0.5 * irb140.drives.motor_speed_max)
    robot = with_rated_payload(irb140.with_drives("rigid", drives))
    load, speed = drive_load(robot, 0, 100), irb140.drives.ratio * irb140.qd_max / 419.0
    np.testing.assert_allclose(load.torque_max, irb140.drives.torque_max * (1 - speed) / 0.5, rtol=1e-12)
    weak = dataclasses.replace(irb140.drives, motor_torque_max=0.2 * irb140.drives.motor_torque_max)
    robot = with_rated_payload(irb140.with_drives("rigid", weak))
    with pytest.raises(RobotError, match=r"'irb140': its motors need more than 75% of their torque to move"):
        DriveCheck(duration=0.3).reference(robot, Sampling())


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
