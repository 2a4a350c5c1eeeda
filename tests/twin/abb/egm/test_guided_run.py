"""One guidance instruction: speeds, programs, ramps, stops, the return motion, and joint ranges."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import betainc

import twin
from tests.support.guided_runs import DT, EXACT, FAST, HOME, LOST, run_of, to_the_end
from twin.abb.egm import GuidanceSettings, SensorMessage
from twin.abb.egm.guidance.guidance import Fault, GuidanceStop
from twin.abb.egm.guidance.run import BRAKING_TIME, Phase, Ranges, ReturnMotion, Run

CORRECTION = SensorMessage(path_correction=np.zeros(3))


class Programmed:
    """Guidance whose program moves joint 1 and whose deviation moves joint 2."""

    def __init__(self, program, deviation, periods=10**9):
        self.program, self.deviation, self.left, self.limited = program, deviation, periods, []

    def begin(self, q, period):
        self.period = period

    def take(self, message, q):
        pass

    def speed(self, q):
        if self.left < 0:
            raise GuidanceStop(Fault(50026, "Close to singularity", "there"))
        self.left -= 1
        return self.program + self.deviation

    def programmed(self):
        return self.program

    def ended(self):
        return self.left == 0

    def converged(self, q):
        return True

    def follow(self, qd):
        self.limited.append(qd)


def taken(robot, message=CORRECTION, **arguments):
    """Return a run of joint guidance that has taken a message."""
    run = run_of(robot, **arguments)
    run.take(message)
    return run


def programmed(robot, deviation, periods=10**9, speed=0.5, **arguments):
    """Return a run that has taken a message, of a robot without torque limits, and its guidance."""
    robot = replace(robot, tau_max=np.full(6, np.inf))
    program = np.array([speed, 0, 0, 0, 0, 0])
    guidance = Programmed(program, np.array([0, deviation, 0, 0, 0, 0]), periods)
    run = Run(robot, GuidanceSettings(mode="path", **arguments), guidance, HOME, DT)
    run.take(CORRECTION)
    return run, guidance


def test_excessive_speeds_are_scaled_by_one_factor(irb140):
    """One factor slows all joints down, and the utilization is reported."""
    asked = SensorMessage(qd=irb140.qd_max * np.array([0.5, -1.0, -2.0, 0.0, 1.0, 1.6]))
    run = taken(irb140, asked, level=0, pos_corr_gain=0.0, **FAST)
    run.samples(20)
    np.testing.assert_allclose(run.qd / irb140.qd_max, [0.25, -0.5, -1.0, 0.0, 0.5, 0.8], rtol=1e-12)
    assert run.utilization == pytest.approx(200.0, rel=1e-12)


def test_limits_and_ramps_act_on_the_deviation_from_the_program(irb140):
    limits = {"max_speed_deviation": np.rad2deg(0.1), "ramp_in_time": 0.1, "max_pos_deviation": 1.0}
    run, guidance = programmed(irb140, 0.3, **limits)
    qd = run.samples(202).qd[1:]
    assert qd[:, 0].tolist() == [0.5] * 201
    expected = 0.1 * np.minimum(np.arange(1, 202) / 100, 1.0)
    np.testing.assert_allclose(qd[:, 1], expected, rtol=1e-12)
    np.testing.assert_allclose(np.array(guidance.limited)[:, 1], 0.1, rtol=1e-12)  # without the ramp


def test_too_fast_program_is_scaled_with_its_deviation(irb140):
    top = irb140.qd_max[0]
    run, guidance = programmed(irb140, 0.3, speed=2.0 * top, max_speed_deviation=1e3, ramp_in_time=0.1)
    qd = run.samples(202).qd[1:]
    np.testing.assert_allclose(qd[:, 0], top, rtol=1e-12)
    np.testing.assert_allclose(qd[100:, 1], 0.15, rtol=1e-12)
    guidance.deviation = np.array([-1.5 * top, 0, 0, 0, 0, 0])  # the ramp reduces the deviation
    run = Run(irb140, run.settings, guidance, HOME, DT)
    run.take(CORRECTION)
    assert run.samples(90).qd.max() <= top * (1.0 + 1e-12)


def test_run_stops_at_the_end_of_its_program(irb140):
    run, _ = programmed(irb140, 0.0, periods=50, ramp_out_time=0.02)
    for _ in range(10):
        run.measured(run.q, 10.0)  # convergence does not end a path
        run.samples(5)
    assert run.phase is Phase.GUIDED
    qd = run.samples(30).qd[:, 0]
    np.testing.assert_allclose(qd[:22], 0.5 * np.append(1.0 - np.arange(21) / 20, 0.0), atol=1e-15)
    assert (run.phase, run.fault) == (Phase.FINISHED, None)


INFINITE = "guidance expected finite joint speeds, the references require infinite ones"


def test_stop_of_the_guidance_or_non_finite_speeds_are_a_fault(irb140):
    for changes, sentence in (
        ({"left": -1}, "there"),
        ({"deviation": np.full(6, np.inf)}, INFINITE),
        ({"deviation": np.full(6, np.nan)}, INFINITE),
    ):
        run, guidance = programmed(irb140, 0.0)
        run.samples(20)
        vars(guidance).update(changes)
        assert np.isfinite(run.samples(600).q).all()
        assert (run.phase, run.fault.sentence, run.qd.any()) == (Phase.FINISHED, sentence, False)


def test_run_waits_at_rest_for_the_first_answer(irb140):
    run = run_of(irb140, cond_time=0.0)
    run.measured(run.q, 1.0)
    assert not run.samples(40).qd.any()
    assert (run.phase, run.converged) == (Phase.WAITING, False)
    run.stop()
    assert run.phase is Phase.FINISHED
    run = taken(irb140, SensorMessage(T=np.eye(4)), stop="ramp_down")
    assert (run.phase, run.fault.number) == (Phase.FINISHED, 41826)


def test_stop_is_linear_and_takes_the_ramp_time(irb140):
    settings = {"level": 0, "max_speed_deviation": 30.0, "ramp_out_time": 0.3}
    run = taken(irb140, SensorMessage(q=HOME - 0.9), **settings)
    run.samples(700)
    speed, N = run.qd, 300
    run.stop(LOST)
    first = run.samples(3).qd
    run.stop(Fault(0, "another", "later"))
    qd = np.concatenate([first, run.samples(N + 2).qd])
    expected = np.maximum(1.0 - np.arange(N + 5) / N, 0.0)[:, None] * speed
    np.testing.assert_allclose(qd, expected, rtol=1e-12, atol=0.0)
    assert np.abs(speed).max() == np.deg2rad(30.0)
    assert (run.phase, run.fault) == (Phase.FINISHED, LOST)
    run.take(SensorMessage(q=HOME))
    assert not run.samples(4).qd.any()


@pytest.mark.parametrize(("inside", "ends"), [(0.49, True), (0.51, False)])
def test_run_ends_after_cond_time_within_the_window(irb140, inside, ends):
    """The measured angles decide, not the commanded ones."""
    run = taken(irb140, SensorMessage(q=HOME + 0.1), cond_time=0.2, max_speed_deviation=1000.0)
    measured = HOME + 0.1 + np.deg2rad(inside) * np.array([1, -1, 1, 0, 0, 1])
    for cycle in range(80):
        run.measured(HOME if cycle == 20 else measured, 0.004)  # outside the window once
        run.samples(4)
        if run.phase is not Phase.GUIDED:
            break
    assert (run.converged, cycle) == (ends, 70 if ends else 79)
    assert run.phase is (Phase.STOPPING if ends else Phase.GUIDED)


def test_windows_apply_per_joint_and_only_to_guided_joints(irb140):
    away = np.deg2rad([0.9, 1.9, 0, 0, 0, 0])
    endless = {"cond_time": 0.01, "no_wait_cond": True}
    for window, axes, within in (("1,2,1,1,1,1", None, True), ("2,1,1,1,1,1", None, False), ("1", "1", True)):
        run = taken(irb140, SensorMessage(q=HOME), cond_window=window, axes=axes, **endless)
        for _ in range(10):
            run.measured(HOME + away, 0.004)
            run.samples(4)
        assert (run.phase, run.converged) == (Phase.GUIDED, within), "NoWaitCond: it does not end"


def test_ramp_down_returns_to_the_start(irb140):
    """The return is a smooth straight line in joint space within speed and deceleration limits."""
    goal = HOME + np.deg2rad([20.0, -10.0, 5.0, 0.0, 1.0, -20.0])
    settings = {"cond_time": 0.1, "max_speed_deviation": 40.0, "ramp_time": 0.1}
    run = taken(irb140, SensorMessage(q=goal), stop="ramp_down", **settings)
    _, q, qd, _ = to_the_end(run)
    assert run.fault is None
    assert (run.q.tolist(), run.qd.tolist()) == (HOME.tolist(), [0.0] * 6)
    first = int(np.flatnonzero(~qd.any(axis=1) & (np.abs(q - goal).max(axis=1) < np.deg2rad(0.5)))[0])
    way = HOME - q[first]
    N = int(np.ceil(1.875 * np.abs(way).max() / np.deg2rad(40.0) / DT))
    time = np.minimum(np.arange(len(q) - first) / N, 1.0)
    np.testing.assert_allclose(q[first:], q[first] + betainc(3, 3, time)[:, None] * way, **EXACT)
    assert np.abs(qd[first:]).max() == pytest.approx(np.deg2rad(40.0), rel=1e-3)
    assert np.abs(qd[first:]).max() <= np.deg2rad(40.0)


def test_return_motion_takes_the_longest_required_duration():
    """The peak speed of 10 x^3 - 15 x^4 + 6 x^5 is 15/8, its peak acceleration 10 / sqrt(3)."""
    q = np.zeros(2), np.array([0.3, -0.6])
    # As set, 15/8 0.6 s, and sqrt(10 / sqrt(3) 0.6 / 0.5) s.
    counts = {(2.0, 9.0): 2000, (0.1, 9.0): 1125, (0.1, 0.5): 2633}
    for (duration, deceleration), count in counts.items():
        back = ReturnMotion(*q, duration, np.ones(2), np.full(2, deceleration), DT)
        assert back.count == count
    motion = np.array([back(k)[1] for k in range(back.count + 1)])
    assert np.abs(np.diff(motion, 2)).max() / DT**2 == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("stops", [0, 2])
def test_fault_prevents_or_stops_the_return_motion(irb140, stops):
    run = taken(irb140, SensorMessage(q=HOME + 0.2), stop="ramp_down", **FAST)
    run.samples(200)
    for _ in range(stops):
        run.stop()
        run.samples(60)
    assert run.phase is (Phase.RETURNING if stops else Phase.GUIDED)
    run.stop(LOST)
    run.samples(10)
    assert (run.phase, run.fault, run.qd.any()) == (Phase.FINISHED, LOST, False)
    assert np.abs(run.q - HOME).min() > 0.01


EXTREME = st.sampled_from([0.0, 1e-320, -1e-9, 1.0, -3.0, 1e3, -1e17, 1e300, -1.7e308])
SPEEDS = arrays(float, 6, elements=st.floats(-6.0, 6.0) | EXTREME)
SHARES = arrays(float, 6, elements=st.floats(0.0, 1.0))
WHAT = st.sampled_from(["q", "qd", "both", "stop", "fault", "anywhere", "nothing"])
SETTINGS = st.fixed_dictionaries(
    {
        "level": st.integers(0, 1), "position_gain": st.sampled_from([0.0, 5.0, 20.0]),
        "max_speed_deviation": st.sampled_from([1.0, 100.0, 1e9]), "ramp_time": st.sampled_from([0.005, 0.1]),
        "stop": st.sampled_from(["hold", "ramp_down"]), "lp_filter": st.sampled_from([0.5, 20.0]),
    }
)  # fmt: skip


def in_range(robot, q, beyond=0.0):
    """Return whether all joints are within their ranges, including the passive ones."""
    p = robot.passive_angles(q)
    active = (q >= robot.q_min - beyond) & (q <= robot.q_max + beyond)
    passive = (p >= robot.passive_min - beyond) & (p <= robot.passive_max + beyond)
    return np.all(active) and np.all(passive)


def at_shares(robot, shares):
    """Return joint angles within the ranges of a robot."""
    q = robot.q_min + shares * (robot.q_max - robot.q_min)
    while robot.passive and not in_range(robot, q):
        q = 0.9 * q
    return q


def apply_command(run, what, q, qd):
    """Apply one command to a run."""
    if what in ("stop", "fault"):
        run.stop(LOST if what == "fault" else None)
    elif what == "anywhere":
        run.take(SensorMessage(q=qd))
    elif what != "nothing":
        run.take(SensorMessage(q=q if what != "qd" else None, qd=qd if what != "q" else None))


@pytest.mark.parametrize("name", ["irb140", "irb1400"])
@given(
    begin=SHARES,
    events=st.lists(st.tuples(WHAT, SHARES, SPEEDS, st.integers(1, 60)), max_size=6),
    period=st.sampled_from([1e-3, 4e-3]),
    chosen=SETTINGS,
)
@settings(max_examples=15, deadline=None, derandomize=True)
def test_arbitrary_commands_respect_limits_and_recursion(name, request, begin, events, period, chosen):
    robot = request.getfixturevalue(name)
    run, parts = run_of(robot, at_shares(robot, begin), period, cond_time=0.1, **chosen), []
    for what, shares, speeds, count in events:
        apply_command(run, what, at_shares(robot, shares), speeds)
        run.measured(run.q, count * period)
        parts.append(run.samples(count))
    run.stop()
    parts.append(run.samples(round((chosen["ramp_time"] + BRAKING_TIME) / period) + 2))
    t, q, qd, qdd = (np.concatenate(series) for series in zip(*parts, strict=True))
    np.testing.assert_array_equal(q[1:], q[:-1] + period * qd[1:])
    np.testing.assert_allclose(qd[1:], qd[:-1] + period * qdd[:-1], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(t, period * np.arange(len(t)), rtol=1e-12)
    assert in_range(robot, q, 1e-12)
    limits = np.minimum(robot.qd_max, np.deg2rad(chosen["max_speed_deviation"]))
    assert np.all(np.abs(qd) <= limits * (1.0 + 1e-12))
    if run.phase is not Phase.RETURNING:
        assert run.phase is Phase.FINISHED
        assert qd[-1].tolist() == run.qd.tolist() == [0.0] * 6


@given(
    shares=SHARES,
    speeds=arrays(float, 6, elements=st.floats(-8.0, 8.0)),
    rows=arrays(int, (2, 6), elements=st.integers(-2, 2)).filter(lambda rows: rows.any(axis=1).all()),
)
@settings(max_examples=20, deadline=None, derandomize=True)
def test_coupled_passive_ranges_hold_simultaneously(irb1400, shares, speeds, rows):
    """Two passive joints depend on the same joints: braking for one must not violate the other."""
    embedding = irb1400.embedding.copy()
    embedding[list(irb1400.passive)] = rows
    arm = replace(irb1400, embedding=embedding, embedding_offset=np.zeros(8))
    q = at_shares(arm, shares)
    ranges = Ranges(arm, 0.02, arm.q_min, arm.q_max)
    for _ in range(40):
        q = q + 0.02 * ranges.braked(q, speeds)
        assert in_range(arm, q, 1e-12)


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_speed_towards_range_end_is_braked_then_faults(irb140, way):
    run = run_of(irb140, -way * np.array([0, 0.5, 0, 0, 0, 0]), pos_corr_gain=0.0, **FAST)
    run.take(SensorMessage(qd=way * irb140.qd_max * np.array([0, 1.0, 0, 0, 0.01, 0])))
    _, _, qd, _ = to_the_end(run)
    end = irb140.q_max[1] if way > 0 else irb140.q_min[1]
    assert abs(run.q[1] - end) < 1e-12
    assert (run.fault.number, run.phase) == (50027, Phase.FINISHED)
    assert f"joint_2 is at the end of its range, {np.rad2deg(end):.6g} deg" in run.fault.sentence
    assert "valid are -90 to 110 deg" in run.fault.sentence
    speed = way * qd[:, 1]
    top = int(np.argmax(speed))
    assert speed[top] == pytest.approx(irb140.qd_max[1], rel=1e-9)
    braking = np.diff(speed)[np.argmax(np.diff(speed) < -1e-9) :]
    most = irb140.qd_max[1] / BRAKING_TIME * DT
    assert braking.min() >= -most * (1.0 + 1e-9)
    assert np.mean(braking[braking < -1e-9]) < -0.99 * most  # and no earlier than necessary
    assert np.abs(np.diff(qd[:, 4])).max() < 0.02 * irb140.qd_max[4]  # the others continue


@pytest.mark.parametrize("name", ["irb140", "irb1400", "irb1600"])
def test_drives_can_brake_a_joint_from_its_speed_limit(name, rng):
    """Each joint brakes alone in both directions; otherwise the arm would leave its range."""
    robot = twin.load(name)
    speeds = np.concatenate([np.diag(robot.qd_max), -np.diag(robot.qd_max)])[:, None]
    q = rng.uniform(robot.q_min, robot.q_max, (300, 6))
    tau = twin.inverse_dynamics(robot, q + 0.0 * speeds, speeds + 0.0 * q, -speeds / BRAKING_TIME + 0.0 * q)
    assert 0.1 < np.max(np.abs(tau) / robot.tau_max) < 0.95


def test_parallelogram_brakes_before_its_range_end(irb1400):
    run = run_of(irb1400, np.zeros(6), pos_corr_gain=0.0, **FAST)
    run.take(SensorMessage(qd=np.array([0.3, 2.0, -1.0, 0, 0, 0])))
    _, q, qd, _ = to_the_end(run)
    assert abs(irb1400.passive_angles(q[-1])[0] - irb1400.passive_min[0]) < 1e-12
    assert np.diff(qd[:, 2] - qd[:, 1])[200:].max() < DT * irb1400.qd_max[1] / BRAKING_TIME * (1.0 + 1e-9)
    assert q[-1, 1] < irb1400.q_max[1] - 0.1
    assert run.fault.number == 50027
    assert "joint_elbow is at the end of its range, -75 deg" in run.fault.sentence


def test_coupled_joints_brake_no_more_than_necessary(irb1400):
    """Both joints move up; the faster one slows to the speed of the other, which continues."""
    ranges = Ranges(irb1400, DT, irb1400.q_min, irb1400.q_max)
    q = np.deg2rad([0, 40.0, -35.0, 0, 0, 0])  # q2 - q3 is at the end of its range
    speeds = ranges.braked(q, np.array([1.0, 2.0, 0.5, 0, 0, 3.0]))
    np.testing.assert_allclose(speeds, [1.0, 0.5, 0.5, 0, 0, 3.0], atol=1e-12)


def test_reference_at_range_end_is_no_fault(irb140):
    """This holds also for a slow filter with overshoot."""
    run = run_of(irb140, position_gain=20.0, lp_filter=3.0, cond_time=1.0, **FAST)
    run.take(SensorMessage(q=irb140.q_max))
    to_the_end(run)
    assert run.fault is None
    np.testing.assert_allclose(run.q, irb140.q_max, rtol=0.0, atol=1e-6)


def test_arm_beyond_its_range_moves_only_inwards(irb140):
    """The arm was pushed beyond its range."""
    beyond = HOME.copy()
    beyond[1] = irb140.q_max[1] + 0.01
    for speed in (-0.5, 0.5):
        run = run_of(irb140, beyond, pos_corr_gain=0.0, **FAST)
        run.take(SensorMessage(qd=np.full(6, speed)))
        assert run.samples(100).q[:, 1].max() == beyond[1]
        assert run.q[1] < beyond[1] - 0.03 if speed < 0.0 else run.q[1] == beyond[1]
    assert run.fault.number == 50027
