"""One guided instruction: whatever it is told, the arm keeps its limits; how it stops, ends and goes back."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc

import twin
from twin.egm.guidance.guidance import Fault, GuidanceStop
from twin.egm.guidance.joint_guidance import JointGuidance
from twin.egm.guidance.limits import BRAKING_TIME, Ranges
from twin.egm.guidance.ramps import WayBack
from twin.egm.guidance.run import Phase, Run
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.wire.messages import SensorMessage

DT = 1e-3
FAST = {"max_speed_deviation": 1000.0, "ramp_time": 0.005}
LOST = Fault(41822, "No data from the UdpUc device", "no message for 2 s")
EXACT = {"rtol": 0.0, "atol": 1e-13}
HOME = np.deg2rad([10.0, -20.0, 30.0, -40.0, 50.0, 60.0])


def run_of(robot, q=HOME, period=DT, **arguments):
    chosen = GuidanceSettings(**arguments)
    return Run(robot, chosen, JointGuidance(robot, chosen), q, period)


def to_the_end(run, cycles=5000):
    """The samples to the end of a run whose arm is where it is commanded, and after it."""
    parts = []
    for _ in range(cycles):
        run.measured(run.q, 0.004)
        parts.append(run.samples(4))
        if run.phase is Phase.FINISHED:
            break
    return [np.concatenate(series) for series in zip(*parts, strict=True)]


# ---------------------------------------------------------------- whatever it is told

EXTREME = st.sampled_from([0.0, 1e-320, -1e-9, 1.0, -3.0, 1e3, -1e17, 1e300, -1.7e308])
SPEEDS = st.lists(st.one_of(st.floats(-6.0, 6.0), EXTREME), min_size=6, max_size=6).map(np.array)
SHARES = st.lists(st.floats(0.0, 1.0), min_size=6, max_size=6).map(np.array)
TOLD = st.one_of(
    st.tuples(st.just("q"), SHARES, SPEEDS),
    st.tuples(st.just("qd"), SHARES, SPEEDS),
    st.tuples(st.just("both"), SHARES, SPEEDS),
    st.tuples(st.sampled_from(["stop", "fault", "anywhere", "nothing"]), SHARES, SPEEDS),
)


def at_shares(robot, shares):
    """Joint angles within the ranges of a robot, those of its passive joints too."""
    q = robot.q_min + shares * (robot.q_max - robot.q_min)
    while robot.passive and not np.all(
        (robot.passive_angles(q) <= robot.passive_max) & (robot.passive_angles(q) >= robot.passive_min)
    ):
        q = 0.9 * q
    return q


def tell(run, what, q, qd):
    """Tell a run one thing."""
    if what == "stop":
        run.stop()
    elif what == "fault":
        run.stop(LOST)
    elif what == "anywhere":
        run.take(SensorMessage(q=qd))
    elif what != "nothing":
        run.take(SensorMessage(q=q if what != "qd" else None, qd=qd if what != "q" else None))


@pytest.mark.parametrize("name", ["irb140", "irb1400"])
@given(
    begin=SHARES,
    events=st.lists(st.tuples(TOLD, st.integers(1, 60)), max_size=6),
    period=st.sampled_from([1e-3, 4e-3]),
    level=st.integers(0, 1),
    gain=st.sampled_from([0.0, 5.0, 20.0]),
    deviation=st.sampled_from([1.0, 100.0, 1e9]),
    ramp=st.sampled_from([0.005, 0.1]),
    end=st.sampled_from(["hold", "ramp_down"]),
    lp_filter=st.sampled_from([0.5, 20.0]),
)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_it_keeps_its_limits_and_its_steps(
    name, request, begin, events, period, level, gain, deviation, ramp, end, lp_filter
):
    robot = request.getfixturevalue(name)
    run = run_of(
        robot, at_shares(robot, begin), period, level=level, position_gain=gain, ramp_time=ramp, stop=end,
        max_speed_deviation=deviation, lp_filter=lp_filter, cond_time=0.1,
    )  # fmt: skip
    parts = []
    for (what, shares, speeds), count in events:
        tell(run, what, at_shares(robot, shares), speeds)
        run.measured(run.q, count * period)
        parts.append(run.samples(count))
    run.stop()
    parts.append(run.samples(round(ramp / period) + 2))
    t, q, qd, qdd = (np.concatenate(series) for series in zip(*parts, strict=True))
    np.testing.assert_array_equal(q[1:], q[:-1] + period * qd[1:])
    np.testing.assert_allclose(qd[1:], qd[:-1] + period * qdd[:-1], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(t, period * np.arange(len(t)), rtol=1e-12)
    assert np.all((q >= robot.q_min - 1e-12) & (q <= robot.q_max + 1e-12))
    assert np.all(np.abs(qd) <= robot.qd_max * (1.0 + 1e-12))
    assert np.all(np.abs(qd) <= np.deg2rad(deviation) * (1.0 + 1e-12))
    passive = robot.passive_angles(q)
    assert np.all((passive >= robot.passive_min - 1e-12) & (passive <= robot.passive_max + 1e-12))
    if run.phase is not Phase.RETURNING:
        assert run.phase is Phase.FINISHED
        assert qd[-1].tolist() == run.qd.tolist() == [0.0] * 6


@given(
    shares=SHARES,
    speeds=st.lists(st.floats(-8.0, 8.0), min_size=6, max_size=6).map(np.array),
    rows=st.lists(st.lists(st.integers(-2, 2), min_size=6, max_size=6), min_size=2, max_size=2),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_ranges_between_several_joints_hold_together(irb1400, shares, speeds, rows):
    """Two passive joints that share joints, which brake for the one and must not run into the other."""
    embedding = irb1400.embedding.copy()
    embedding[list(irb1400.passive)] = rows
    arm = replace(irb1400, embedding=embedding, embedding_offset=np.zeros(8))
    q = at_shares(arm, shares)
    ranges = Ranges(arm, 0.02, arm.q_min, arm.q_max)
    for _ in range(40):
        q = q + 0.02 * ranges.braked(q, speeds)
        passive = arm.passive_angles(q)
        assert np.all((passive >= arm.passive_min - 1e-12) & (passive <= arm.passive_max + 1e-12))
        assert np.all((q >= arm.q_min - 1e-12) & (q <= arm.q_max + 1e-12))


# ---------------------------------------------------------------- ends of ranges


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_a_speed_towards_the_end_is_braked_in_time_and_then_a_fault(irb140, way):
    run = run_of(irb140, -way * np.array([0, 0.5, 0, 0, 0, 0]), pos_corr_gain=0.0, **FAST)
    run.take(SensorMessage(qd=way * irb140.qd_max * np.array([0, 1.0, 0, 0, 0.01, 0])))
    _, _, qd, _ = to_the_end(run)
    end = irb140.q_max[1] if way > 0 else irb140.q_min[1]
    assert abs(run.q[1] - end) < 1e-12
    assert (run.fault.number, run.phase) == (50027, Phase.FINISHED)
    assert f"joint_2 is at the end of its range, {np.rad2deg(end):.6g} deg" in run.fault.sentence
    assert "valid is -90 to 110 deg" in run.fault.sentence
    speed = way * qd[:, 1]
    top = int(np.argmax(speed))
    assert speed[top] == pytest.approx(irb140.qd_max[1], rel=1e-9)
    braking = np.diff(speed)[np.argmax(np.diff(speed) < -1e-9) :]
    most = irb140.qd_max[1] / BRAKING_TIME * DT
    assert braking.min() >= -most * (1.0 + 1e-9)
    assert np.mean(braking[braking < -1e-9]) < -0.99 * most  # and no earlier than it has to
    assert np.abs(np.diff(qd[:, 4])).max() < 0.02 * irb140.qd_max[4]  # the others go on


@pytest.mark.parametrize("name", ["irb140", "irb1400", "irb1600"])
def test_the_drives_can_brake_a_joint_from_its_largest_speed_in_any_pose(name, rng):
    """Each joint alone, both ways: else the arm would leave its range, though not its command."""
    robot = twin.load(name)
    speeds = np.concatenate([np.diag(robot.qd_max), -np.diag(robot.qd_max)])[:, None]
    q = rng.uniform(robot.q_min, robot.q_max, (300, 6))
    tau = twin.inverse_dynamics(robot, q + 0.0 * speeds, speeds + 0.0 * q, -speeds / BRAKING_TIME + 0.0 * q)
    assert 0.1 < np.max(np.abs(tau) / robot.tau_max) < 0.95


def test_a_parallelogram_is_braked_before_it_folds(irb1400):
    run = run_of(irb1400, np.zeros(6), pos_corr_gain=0.0, **FAST)
    run.take(SensorMessage(qd=np.array([0.3, 2.0, -1.0, 0, 0, 0])))
    _, q, qd, _ = to_the_end(run)
    assert abs(irb1400.passive_angles(q[-1])[0] - irb1400.passive_min[0]) < 1e-12
    assert np.diff(qd[:, 2] - qd[:, 1])[200:].max() < DT * irb1400.qd_max[1] / BRAKING_TIME * (1.0 + 1e-9)
    assert q[-1, 1] < irb1400.q_max[1] - 0.1
    assert run.fault.number == 50027
    assert "joint_elbow is at the end of its range, -75 deg" in run.fault.sentence


def test_joints_that_run_into_each_other_at_different_speeds_brake_as_little_as_they_must(irb1400):
    """Both joints move up; the faster one is held back to the speed of the other, which goes on."""
    ranges = Ranges(irb1400, DT, irb1400.q_min, irb1400.q_max)
    q = np.deg2rad([0, 40.0, -35.0, 0, 0, 0])  # q2 - q3 at its end
    speeds = ranges.braked(q, np.array([1.0, 2.0, 0.5, 0, 0, 3.0]))
    np.testing.assert_allclose(speeds, [1.0, 0.5, 0.5, 0, 0, 3.0], atol=1e-12)


def test_round_off_beyond_an_end_is_no_fault(irb140):
    ranges = Ranges(irb140, DT, irb140.q_min, irb140.q_max)
    asked = np.array([0, 0, 1e-8, 0, 0, 0])
    assert ranges.at_end(irb140.q_max, np.zeros(6), asked) is None
    assert "joint_3" in ranges.at_end(irb140.q_max, np.zeros(6), 1e3 * asked)


@pytest.mark.parametrize("lp_filter", [20.0, 3.0])
def test_a_reference_on_the_end_itself_is_no_fault(irb140, lp_filter):
    """Also where the filter is so slow that the law would overshoot it."""
    run = run_of(irb140, position_gain=20.0, lp_filter=lp_filter, cond_time=1.0, **FAST)
    run.take(SensorMessage(q=irb140.q_max))
    to_the_end(run)
    assert run.fault is None
    np.testing.assert_allclose(run.q, irb140.q_max, rtol=0.0, atol=1e-6)


def test_an_arm_that_stands_beyond_its_range_comes_back(irb140):
    """As after a stop in which it was pushed: outwards it does not move, inwards it does."""
    beyond = HOME.copy()
    beyond[1] = irb140.q_max[1] + 0.01
    run = run_of(irb140, beyond, pos_corr_gain=0.0, **FAST)
    run.take(SensorMessage(qd=np.full(6, -0.5)))
    assert run.samples(100).q[:, 1].max() == beyond[1]
    assert run.q[1] < beyond[1] - 0.03
    run = run_of(irb140, beyond, pos_corr_gain=0.0, **FAST)
    run.take(SensorMessage(qd=np.full(6, 0.5)))
    run.samples(100)
    assert run.q[1] == beyond[1]
    assert run.fault.number == 50027


# ---------------------------------------------------------------- speeds


def test_speeds_beyond_the_robot_s_are_shared_out(irb140):
    """All joints slow down by one factor; how much is asked for is told."""
    run = run_of(irb140, level=0, pos_corr_gain=0.0, **FAST)
    run.take(SensorMessage(qd=irb140.qd_max * np.array([0.5, -1.0, -2.0, 0.0, 1.0, 1.6])))
    run.samples(20)
    np.testing.assert_allclose(run.qd / irb140.qd_max, [0.25, -0.5, -1.0, 0.0, 0.5, 0.8], rtol=1e-12)
    assert run.utilization == pytest.approx(200.0, rel=1e-12)


class Programmed:
    """A guidance whose program moves joint 1, with a deviation that moves joint 2."""

    def __init__(self, program, deviation, periods=10**9):
        self.program, self.deviation, self.left, self.told = program, deviation, periods, []

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
        self.told.append(qd)


def programmed(robot, deviation, periods=10**9, speed=0.5, **arguments):
    program = np.array([speed, 0, 0, 0, 0, 0])
    guidance = Programmed(program, np.array([0, deviation, 0, 0, 0, 0]), periods)
    return Run(robot, GuidanceSettings(mode="path", **arguments), guidance, HOME, DT), guidance


def test_limits_and_ramps_act_on_what_is_not_programmed(irb140):
    run, guidance = programmed(
        irb140, 0.3, max_speed_deviation=np.rad2deg(0.1), ramp_in_time=0.1, max_pos_deviation=1.0
    )
    run.take(SensorMessage(path_correction=np.zeros(3)))
    qd = run.samples(202).qd[1:]
    assert qd[:, 0].tolist() == [0.5] * 201
    expected = 0.1 * np.minimum(np.arange(1, 202) / 100, 1.0)
    np.testing.assert_allclose(qd[:, 1], expected, rtol=1e-12)
    np.testing.assert_allclose(np.array(guidance.told)[:, 1], 0.1, rtol=1e-12)  # without the ramp


def test_a_program_that_is_too_fast_is_slowed_down_with_what_deviates(irb140):
    run, guidance = programmed(
        irb140, 0.3, speed=2.0 * irb140.qd_max[0], max_speed_deviation=1e3, ramp_in_time=0.1
    )
    run.take(SensorMessage(path_correction=np.zeros(3)))
    qd = run.samples(202).qd[1:]
    np.testing.assert_allclose(qd[:, 0], irb140.qd_max[0], rtol=1e-12)
    np.testing.assert_allclose(qd[100:, 1], 0.15, rtol=1e-12)
    guidance.deviation = np.array([-1.5 * irb140.qd_max[0], 0, 0, 0, 0, 0])  # on the ramp it is not all there
    run = Run(irb140, run.settings, guidance, HOME, DT)
    run.take(SensorMessage(path_correction=np.zeros(3)))
    assert run.samples(90).qd.max() <= irb140.qd_max[0] * (1.0 + 1e-12)


def test_a_program_at_its_end_stops(irb140):
    run, _ = programmed(irb140, 0.0, periods=50, ramp_out_time=0.02)
    run.take(SensorMessage(path_correction=np.zeros(3)))
    for _ in range(10):
        run.measured(run.q, 10.0)  # a path does not end by converging
        run.samples(5)
    assert run.phase is Phase.GUIDED
    qd = run.samples(30).qd[:, 0]
    np.testing.assert_allclose(qd[:22], 0.5 * np.append(1.0 - np.arange(21) / 20, 0.0), atol=1e-15)
    assert (run.phase, run.fault) == (Phase.FINISHED, None)


def test_guidance_that_cannot_go_on_stops_with_its_fault(irb140):
    run, guidance = programmed(irb140, 0.0)
    run.take(SensorMessage(path_correction=np.zeros(3)))
    run.samples(20)
    guidance.left = -1
    run.samples(600)
    assert (run.fault.number, run.phase, run.qd.any()) == (50026, Phase.FINISHED, False)


@pytest.mark.parametrize("speed", [np.inf, np.nan])
def test_speeds_that_are_not_finite_are_a_fault(irb140, speed):
    run, guidance = programmed(irb140, 0.0)
    run.take(SensorMessage(path_correction=np.zeros(3)))
    run.samples(20)
    guidance.deviation = np.full(6, speed)
    assert np.isfinite(run.samples(600).q).all()
    assert (run.phase, run.fault.sentence) == (Phase.FINISHED, "guidance asks for speeds that are not finite")


# ---------------------------------------------------------------- stops


def test_it_waits_at_rest_for_the_first_answer(irb140):
    run = run_of(irb140, cond_time=0.0)
    run.measured(run.q, 1.0)
    assert run.samples(40).qd.any() is np.False_
    assert (run.phase, run.converged) == (Phase.WAITING, False)
    run.stop()
    assert run.phase is Phase.FINISHED


@pytest.mark.parametrize("ramp_out", [0.005, 0.3])
def test_a_stop_is_linear_and_takes_the_ramp_s_time(irb140, ramp_out):
    run = run_of(irb140, level=0, max_speed_deviation=30.0, ramp_out_time=ramp_out)
    run.take(SensorMessage(q=HOME - 0.9))
    run.samples(700)
    speed, N = run.qd, round(ramp_out / DT)
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


def test_a_stop_near_the_end_of_a_range_is_faster(irb140):
    run = run_of(irb140, pos_corr_gain=0.0, max_speed_deviation=1000.0, ramp_in_time=0.005, ramp_out_time=2.0)
    run.take(SensorMessage(qd=np.array([0, 2.0, 0, 0, 0, 0])))
    run.samples(1000)
    run.stop()
    q = run.samples(2100).q[:, 1]
    assert irb140.q_max[1] - 1e-3 < q[-1] <= irb140.q_max[1] + 1e-12


@pytest.mark.parametrize(("inside", "ends"), [(0.49, True), (0.51, False)])
def test_it_ends_when_the_arm_was_within_its_window_for_the_time_of_the_condition(irb140, inside, ends):
    """Here on the command; the measured angles are what counts."""
    run = run_of(irb140, cond_time=0.2, max_speed_deviation=1000.0)
    run.take(SensorMessage(q=HOME + 0.1))
    measured = HOME + 0.1 + np.deg2rad(inside) * np.array([1, -1, 1, 0, 0, 1])
    for cycle in range(80):
        run.measured(HOME if cycle == 20 else measured, 0.004)  # once it is outside
        run.samples(4)
        if run.phase is not Phase.GUIDED:
            break
    assert run.converged is ends
    assert cycle == (70 if ends else 79)
    assert run.phase is (Phase.STOPPING if ends else Phase.GUIDED)


def test_windows_hold_joint_by_joint_and_for_guided_ones_alone(irb140):
    away = np.deg2rad([0.9, 1.9, 0, 0, 0, 0])
    for window, axes, expected in (
        ("1,2,1,1,1,1", None, True),
        ("2,1,1,1,1,1", None, False),
        ("1", "1", True),
    ):
        run = run_of(irb140, cond_window=window, axes=axes)
        run.take(SensorMessage(q=HOME))
        run.measured(HOME + away, 0.004)
        assert run.converged is expected


def test_without_waiting_for_the_condition_it_never_ends(irb140):
    run = run_of(irb140, cond_time=0.01, no_wait_cond=True)
    run.take(SensorMessage(q=HOME))
    to_the_end(run, 200)
    assert (run.phase, run.converged) == (Phase.GUIDED, True)
    run.stop()
    assert run.phase is Phase.FINISHED


def test_ramp_down_goes_back_to_where_it_began(irb140):
    """Along a line of the joints, smoothly, within the limits of speed and of braking."""
    run = run_of(irb140, stop="ramp_down", cond_time=0.1, max_speed_deviation=40.0, ramp_time=0.1)
    goal = HOME + np.deg2rad([20.0, -10.0, 5.0, 0.0, 1.0, -20.0])
    run.take(SensorMessage(q=goal))
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


def test_the_way_back_takes_as_long_as_its_longest_demand():
    """Peaks of 10 x^3 - 15 x^4 + 6 x^5: the speed is 15/8, the acceleration 10 / sqrt(3)."""
    ones, start = np.ones(2), np.array([0.3, -0.6])
    assert WayBack(np.zeros(2), start, 2.0, ones, 9.0 * ones, DT).count == 2000
    assert WayBack(np.zeros(2), start, 0.1, ones, 9.0 * ones, DT).count == 1125  # 15/8 0.6
    slow = WayBack(np.zeros(2), start, 0.1, ones, 0.5 * ones, DT)
    motion = np.array([slow(k)[1] for k in range(slow.count + 1)])
    assert np.abs(np.diff(motion, 2)).max() / DT**2 == pytest.approx(0.5, rel=1e-3)


def test_after_a_fault_it_stays_and_on_its_way_back_a_fault_stops_it(irb140):
    run = run_of(irb140, stop="ramp_down", **FAST)
    run.take(SensorMessage(q=HOME + 0.2))
    run.samples(200)
    run.stop(LOST)
    run.samples(10)
    assert run.phase is Phase.FINISHED
    assert np.abs(run.q - HOME).min() > 0.01
    run = run_of(irb140, stop="ramp_down", **FAST)
    run.take(SensorMessage(q=HOME + 0.2))
    run.samples(200)
    run.stop()
    run.samples(60)
    assert run.phase is Phase.RETURNING
    run.stop()
    assert run.phase is Phase.RETURNING
    run.stop(LOST)
    run.samples(10)
    assert (run.phase, run.fault, run.qd.any()) == (Phase.FINISHED, LOST, False)


def test_a_stop_at_rest_is_at_once(irb140):
    run = run_of(irb140, stop="ramp_down")
    run.take(SensorMessage(T=np.eye(4)))
    assert (run.phase, run.fault.number) == (Phase.FINISHED, 41826)
