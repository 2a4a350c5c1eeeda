"""Plans keep speeds and torques, are as fast as they can be, and change with load, zone and friction."""

import re

import numpy as np
import pytest

import twin
from tests.support import rapid_programs
from twin.abb.rapid.fitting import Measured, fit, stop_times
from twin.abb.rapid.language import parse
from twin.abb.rapid.planning import Limits
from twin.abb.rapid.programs import check, export, interpret
from twin.base.errors import RapidError

pytestmark = pytest.mark.slow("plans programs")

ROBOT = twin.load("irb140").with_drives("rigid")
EXT = "[9E9,9E9,9E9,9E9,9E9,9E9]"
START = f"MoveAbsJ [[0,20,-20,0,60,0],{EXT}],v500,fine,tool0;\nConfL \\Off;\n"


def planned(body, robot=ROBOT, limits=None, before=""):
    made = rapid_programs.program(body, robot, before)
    assert made.fault is None, made.fault
    return check(made, robot, limits)


def torque_shares(robot, q, qd, qdd):
    """Return the torques of the drives in parts of the largest ones, from the inverse dynamics."""
    tau = twin.inverse_dynamics(robot, q, qd, qdd)
    return np.abs(np.linalg.solve(robot.drives.coupling.T, tau.T).T / robot.drives.torque_max)


@pytest.mark.parametrize(
    ("name", "share", "most"), [("irb140", 1.0, 1.03), ("irb1400", 0.9, 0.97), ("irb1600", 1.0, 1.03)]
)
def test_samples_of_the_motion_keep_torques_and_speeds(name, share, most):
    """The torques of samples at 1 kHz come from the inverse dynamics of arm and drives."""
    robot = twin.load(name).with_drives("rigid")
    rng = np.random.default_rng(1)
    q = rng.uniform(-0.5, 0.5, (6, 6)) + np.array([0, 0.2, -0.2, 0, 0.6, 0])
    q = np.clip(q, robot.q_min, robot.q_max)
    for zone in ("fine", "z50"):
        made = interpret(parse(export(robot, q, speed="v7000", zone=zone)), robot, start=q[0])
        plan, fault = check(made, robot, Limits(share=share))
        assert fault is None
        t = np.arange(0.0, plan.motion.duration, 1e-3)
        samples, qd, qdd = plan.motion(t)
        used = torque_shares(robot, samples, qd, qdd).max()
        assert 0.8 * share < used <= most
        assert np.abs(qd / robot.qd_max).max() <= 1.0
        assert plan.time == pytest.approx(sum(one.time for one in plan.moves), abs=1e-12)
        assert max(one.torque[0] for one in plan.moves) == pytest.approx(used, abs=0.05)


def test_an_arm_that_cannot_hold_its_load_is_named():
    heavy = "CONST loaddata part := [200,[0,0,100],[1,0,0,0],0,0,0];"
    move = f"MoveAbsJ [[0,60,-20,0,60,0],{EXT}],v100,fine,tool0;"
    plan, fault = planned(START + "GripLoad part;\n" + move, before=heavy)
    assert len(plan.moves) == 1
    assert fault.kind == "time"
    assert re.search(r"line \d+: MoveAbsJ: joint_\d needs \d+ N m at rest, its drive gives", str(fault))


def test_a_zone_saves_time_and_is_cut_to_half_of_the_neighbours():
    for first, last in ((100, 60), (60, 100)):  # half of the shorter one is 30 mm
        corner = START + f"MoveL Offs(CRobT(),0,{first},0), v500, {{}}, tool0;\n"
        corner += f"MoveL Offs(CRobT(),0,0,{-last}), v500, fine, tool0;"
        plans = [planned(corner.format(zone))[0] for zone in ("fine", "z5", "z20", "z30", "z200")]
        times = [plan.bound for plan in plans]
        assert times[0] > times[1] > times[2] > times[3] > 0.5 * times[0]
        assert times[3] == pytest.approx(times[4], rel=1e-6)
        assert [round(move.length) for move in plans[-1].moves[1:]] == [first, last]


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
    """Also behind a corner, where the speed does not jump."""
    line = "MoveL Offs(CRobT(),0,100,0), v100, {}, tool0;\n"
    timed = "MoveL Offs(CRobT(),0,0,-80), v10 \\T:={}, fine, tool0;"
    for zone, seconds in (("fine", 1.5), ("z20", 2)):
        plan, fault = planned(START + line.format(zone) + timed.format(seconds))
        assert fault is None
        assert plan.moves[-1].time == pytest.approx(seconds, rel=1e-4)
        assert plan.motion.duration == pytest.approx(plan.time)
        qd = plan.motion(np.arange(0, plan.time, 1e-3))[1]
        assert np.abs(np.diff(qd, axis=0)).max() < 0.5
    _, fault = planned(START + timed.format(0.01))
    assert fault.kind == "time"
    assert "MoveL \\T:=0.01: expected at least 0." in str(fault)


def test_pauses_and_rests_are_part_of_the_motion():
    body = START + "WaitTime 0.5;\n" + f"MoveAbsJ [[30,20,-20,0,60,0],{EXT}],v500,z50,tool0;\nWaitTime 0.25;"
    plan, _ = planned(body, limits=Limits(settling=0.1))
    moving = sum(one.time for one in plan.moves)
    assert plan.time == pytest.approx(moving + 0.75 + 0.2)
    assert plan.bound == pytest.approx(sum(one.bound for one in plan.moves) + 0.75)
    assert not plan.motion(plan.moves[0].time + 0.3)[1].any()


def test_acc_set_takes_a_share_and_vel_set_limits_the_speed():
    move = f"MoveAbsJ [[60,20,-20,0,60,0],{EXT}],v500,fine,tool0;"
    free, slow, gentle = (
        planned(START + one + move)[0].moves[-1] for one in ("", "VelSet 50, 5000;", "AccSet 30, 100;")
    )
    assert slow.by_speed == pytest.approx(2 * free.by_speed, rel=1e-6)
    assert slow.move.speed[0] == 250
    assert gentle.bound == free.bound
    assert gentle.time > free.time
    assert planned(START + "VelSet 100, 80;" + move)[0].moves[-1].move.speed[0] == 80


def test_a_short_move_of_a_millimetre_needs_few_points():
    """Moves of 1 mm take as long with 3 points each as one line with many."""
    steps = "FOR i FROM 1 TO 60 DO MoveL Offs(CRobT(),0,1,0), v50, z1, tool0; ENDFOR\n"
    steps += "MoveL CRobT(), v50, fine, tool0;"
    line = "MoveL Offs(CRobT(),0,60,0), v50, fine, tool0;"
    many, one = (planned(START + body)[0].bound for body in (steps, line))
    assert many == pytest.approx(one, rel=0.02)


def test_a_fault_ends_the_plan_and_moves_before_it_are_judged():
    move = f"{START}MoveAbsJ [[200,0,0,0,0,0],{EXT}],v100,fine,tool0;"
    made = rapid_programs.program(move, ROBOT)
    plan, fault = check(made, ROBOT)
    assert len(plan.moves) == 1
    assert fault is made.fault


@pytest.mark.parametrize("name", ["irb140", "irb1400"])
def test_export_is_read_back(name):
    robot = twin.load(name)
    q = np.random.default_rng(2).uniform(-0.4, 0.4, (7, 6)) + np.array([0, 0.1, -0.1, 0, 0.5, 0])
    made = interpret(parse(export(robot, q)), robot)
    assert made.fault is None
    found = np.array([segment.q[-1] for segment in made.segments])
    p = [twin.forward_kinematics(robot, one)[:, :3, 3] for one in (q, found)]
    assert np.abs(p[0] - p[1]).max() < 2e-11  # m; half of the last of nine decimals, in degrees, at 1.5 m
    with pytest.raises(ValueError, match="expected predefined speeddata such as v100 or z10, got 'v123'"):
        export(robot, q, speed="v123")


def test_fit_finds_share_and_settling_time():
    rng = np.random.default_rng(0)
    q = rng.uniform(-0.6, 0.6, (13, 6))
    made = interpret(parse(export(ROBOT, q, speed="v7000", zone="fine")), ROBOT)
    exact = stop_times(check(made, ROBOT, Limits(share=0.8))[0], 0.2)
    noisy = [Measured(time * (1 + 0.01 * rng.standard_normal()), line) for line, time in exact.items()]
    found = fit(made, ROBOT, noisy)
    assert found.limits.share == pytest.approx(0.8, rel=0.05)
    assert found.limits.settling == pytest.approx(0.2, rel=0.05)
    assert np.abs(found.residuals).max() < 0.03
    assert abs(found.limits.share - 0.8) < 3 * found.share_deviation
    assert found.at_bounds == ()


def test_deviations_of_a_fit_are_the_spread_of_many():
    """Times with noise of 5 ms, fitted 16 times; both numbers grow together."""
    rng = np.random.default_rng(1)
    bare = twin.dh_robot("bare", ROBOT.dh, q_min=ROBOT.q_min, q_max=ROBOT.q_max, qd_max=ROBOT.qd_max)
    q = rng.uniform(-0.6, 0.6, (6, 6))
    made = interpret(parse(export(bare, q, speed="v7000", zone="fine")), bare)
    top = np.full(6, 20.0)
    exact = stop_times(check(made, bare, Limits(0.6, accelerations=top))[0], 0.1)
    fits = [
        fit(made, bare, [Measured(time + 5e-3 * rng.standard_normal(), line) for line, time in exact.items()],
            accelerations=top)
        for _ in range(16)
    ]  # fmt: skip
    pairs = np.array([(one.limits.share, one.limits.settling) for one in fits])
    assert np.mean([one.share_deviation for one in fits]) == pytest.approx(pairs[:, 0].std(), rel=0.4)
    assert np.mean([one.settling_deviation for one in fits]) == pytest.approx(pairs[:, 1].std(), rel=0.4)
    assert np.mean([one.correlation for one in fits]) == pytest.approx(np.corrcoef(pairs.T)[0, 1], abs=0.15)


def test_times_that_cannot_be_fitted():
    made = interpret(parse(export(ROBOT, np.eye(6)[:4] * 0.3, zone="fine")), ROBOT)
    for times, message in (
        ([0.5, 0.5], "at least 3"), ([0.5, 0.0, 0.5], "line 4 has a time of 0 s, expected"),
        ([0.5, np.inf, 1], "a time of inf s"),
    ):  # fmt: skip
        with pytest.raises(RapidError, match=message):
            fit(made, ROBOT, [Measured(time, line) for line, time in zip((3, 4, 5), times, strict=False)])
