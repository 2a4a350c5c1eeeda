"""Plans keep speeds and torques, are as fast as they can be, and change with load, zone and friction."""

import numpy as np
import pytest

import twin
from twin.rapid.check import check, interpret
from twin.rapid.export import export, fit, stop_times
from twin.rapid.language import parse
from twin.rapid.plan import Limits
from twin.rapid.time_law import fastest, interval_times

ROBOT = twin.load("irb140").with_drives("rigid")
EXT = "[9E9,9E9,9E9,9E9,9E9,9E9]"
START = f"MoveAbsJ [[0,20,-20,0,60,0],{EXT}],v500,fine,tool0;\nConfL \\Off;\n"


def planned(body, robot=ROBOT, limits=None, before=""):
    source = parse(f"MODULE M\n{before}\nPROC main()\n{body}\nENDPROC\nENDMODULE", "a.mod")
    program = interpret(source, robot)
    assert program.fault is None, program.fault
    return check(program, robot, limits)


@pytest.mark.parametrize("N", [50, 2000])
def test_one_axis_with_a_limit_of_acceleration_takes_twice_the_root(N):
    L, most = 1.3, 2.0
    a, b, x = np.ones((N, 2, 1)), np.zeros((N, 2, 1)), np.zeros(N + 1)
    width = np.full(N, L / N)
    assert fastest(width, a, b, -most * a, most * a, np.full(N + 1, 1e9), x) == -1
    assert interval_times(width, x).sum() == pytest.approx(2 * np.sqrt(L / most), abs=1e-11)


def test_the_time_law_agrees_with_another_implementation():
    toppra = pytest.importorskip("toppra")
    from toppra import algorithm, constraint

    rng = np.random.default_rng(3)
    s = np.linspace(0, 1, 6)
    path = toppra.SplineInterpolator(s, rng.uniform(-1, 1, (6, 6)))
    grid = np.linspace(0, 1, 801)
    speed, acceleration = np.full(6, 3.0), np.full(6, 12.0)
    limits = [
        constraint.JointVelocityConstraint(np.stack([-speed, speed], axis=1)),
        constraint.JointAccelerationConstraint(
            np.stack([-acceleration, acceleration], axis=1),
            discretization_scheme=constraint.DiscretizationType.Interpolation,
        ),
    ]
    profile = algorithm.TOPPRA(limits, path, gridpoints=grid).compute_parameterization(0, 0)[1]
    dq, ddq = path(grid, 1), path(grid, 2)
    ends = [np.stack([one[:-1], one[1:]], axis=1) for one in (dq, ddq)]
    top = np.broadcast_to(acceleration, ends[0].shape).copy()
    x = np.zeros(801)
    x_max = ((speed / np.abs(dq)).min(axis=1)) ** 2
    assert fastest(np.diff(grid), *ends, -top, top, x_max, x) == -1
    theirs = interval_times(np.diff(grid), profile**2).sum()
    assert interval_times(np.diff(grid), x).sum() == pytest.approx(theirs, rel=1e-5)


def test_a_long_line_takes_the_time_of_its_speed():
    plan, fault = planned(START + "MoveL Offs(CRobT(), 0, 200, 0), v20, fine, tool0;")
    assert fault is None
    line = plan.moves[-1]
    assert line.length == pytest.approx(200, abs=1e-3)
    assert line.by_speed == pytest.approx(10.0, rel=1e-3)
    assert 10.0 < line.bound < 10.1


@pytest.mark.parametrize("name", ["irb140", "irb1400", "irb1600"])
def test_samples_of_the_plan_keep_the_torques_of_the_drives(name):
    """The motion is sampled anew, and its torques come from the inverse dynamics of arm and drives."""
    from scipy.interpolate import CubicSpline

    robot = twin.load(name).with_drives("rigid")
    rng = np.random.default_rng(1)
    q = np.clip(rng.uniform(-0.5, 0.5, (4, 6)) + [0, 0.2, -0.2, 0, 0.6, 0], robot.q_min, robot.q_max)
    program = interpret(parse(export(robot, q, speed="v7000", zone="fine")), robot, start=q[0])
    for share, most in ((1.0, 1.05), (0.9, 1.0)):
        plan, fault = check(program, robot, Limits(share=share))
        assert fault is None
        spline = CubicSpline(plan.t, plan.q)
        t = np.arange(0, plan.t[-1], 1e-3)
        moving = np.abs(spline(t, 1)).max(axis=1) > 0.05 * robot.qd_max.min()
        tau = twin.drive_inverse_dynamics(robot, spline(t), spline(t, 1), spline(t, 2))
        share_used = np.abs(tau[moving]) / robot.drive_torque_max
        assert np.quantile(share_used.max(axis=1), 0.98) <= most + 0.02
        assert (np.abs(spline(t, 1)) <= 1.01 * robot.qd_max).all()


def test_a_zone_saves_time_and_is_cut_to_half_of_the_neighbours():
    corner = START + "MoveL Offs(CRobT(),0,100,0), v500, {}, tool0;\nMoveL Offs(CRobT(),0,0,-60), v500, fine, tool0;"
    times = [planned(corner.format(zone))[0].bound for zone in ("fine", "z5", "z20", "z200")]
    assert times[0] > times[1] > times[2] > times[3] > 0.5 * times[0]
    whole = planned(corner.format("z200"))[0].moves
    assert [round(move.length) for move in whole[1:]] == [100, 60]


def test_a_load_in_the_gripper_slows_later_moves_and_no_earlier_one():
    move = "MoveAbsJ [[{},20,-20,0,60,0]," + EXT + "],vmax,fine,tool0;\n"
    before = "CONST loaddata part := [6,[0,0,100],[1,0,0,0],0,0,0];"
    empty, _ = planned(START + move.format(60) + move.format(0))
    loaded, _ = planned(START + move.format(60) + "GripLoad part;\n" + move.format(0), before=before)
    assert loaded.moves[1].bound == empty.moves[1].bound
    assert loaded.moves[2].bound > 1.02 * empty.moves[2].bound


def test_friction_takes_torque():
    """It slows the start of a motion and helps to brake, so the time hardly shows it."""
    smooth = twin.load("irb140").with_drives("rigid", ROBOT.drives.without_friction())
    body = START + f"MoveAbsJ [[80,20,-20,0,60,0],{EXT}],vmax,fine,tool0;"
    limits = Limits(share=0.3)
    with_friction, without = (planned(body, one, limits)[0].moves[-1].torque[0] for one in (ROBOT, smooth))
    assert with_friction > without + 0.02


def test_a_programmed_time_replaces_the_speed():
    body = START + "MoveL Offs(CRobT(),0,100,0), v10 \\T:={}, fine, tool0;"
    plan, fault = planned(body.format(1.5))
    assert fault is None and plan.moves[-1].time == pytest.approx(1.5)
    _, fault = planned(body.format(0.01))
    assert fault.kind == "time" and "expected at least 0." in str(fault)


def test_a_fault_ends_the_plan_and_moves_before_it_are_judged():
    source = parse(f"MODULE M\nPROC main()\n{START}MoveAbsJ [[200,0,0,0,0,0],{EXT}],v100,fine,tool0;\nENDPROC\nENDMODULE")
    program = interpret(source, ROBOT)
    plan, fault = check(program, ROBOT)
    assert len(plan.moves) == 1 and fault is program.fault


def test_a_robot_without_masses_needs_accelerations():
    from dataclasses import replace

    bare = replace(twin.load("irb140"), has_inertia=False)
    program = interpret(parse(f"MODULE M\nPROC main()\n{START}\nENDPROC\nENDMODULE"), bare)
    with pytest.raises(twin.errors.RobotError):
        check(program, bare)
    plan, _ = check(program, bare, Limits(accelerations=np.full(6, 5.0)))
    assert np.isnan(plan.moves[0].torque[0]) and plan.moves[0].bound > 0


@pytest.mark.parametrize("name", ["irb140", "irb1400", "irb1600"])
def test_export_is_read_back(name):
    robot = twin.load(name)
    q = np.random.default_rng(2).uniform(-0.4, 0.4, (7, 6)) + [0, 0.1, -0.1, 0, 0.5, 0]
    program = interpret(parse(export(robot, q)), robot)
    assert program.fault is None
    found = np.array([segment.q[-1] for segment in program.segments])
    p = [twin.forward_kinematics(robot, one)[:, :3, 3] for one in (q, found)]
    assert np.abs(p[0] - p[1]).max() < 2e-11  # m; half of the last of nine decimals, in degrees, at 1.5 m
    with pytest.raises(ValueError, match="expected predefined speeddata such as v100 or z10, got 'v123'"):
        export(robot, q, speed="v123")


def test_fit_finds_share_and_settling_time():
    rng = np.random.default_rng(0)
    q = rng.uniform(-0.6, 0.6, (13, 6))
    program = interpret(parse(export(ROBOT, q, speed="v7000", zone="fine")), ROBOT)
    exact = stop_times(check(program, ROBOT, Limits(share=0.8))[0].moves, 0.2)
    noisy = {line: time * (1 + 0.01 * rng.standard_normal()) for line, time in exact.items()}
    limits, left = fit(program, ROBOT, noisy)
    assert limits.share == pytest.approx(0.8, rel=0.05)
    assert limits.settling == pytest.approx(0.2, rel=0.05)
    assert np.abs(left).max() < 0.03
