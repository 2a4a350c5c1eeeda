"""One guidance instruction: joint ranges and the recursion hold for arbitrary commands."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import twin
from tests.support.guided_runs import DT, FAST, HOME, LOST, run_of, to_the_end
from twin.egm.guidance.limits import BRAKING_TIME, Ranges
from twin.egm.guidance.run import Phase
from twin.egm.wire.messages import SensorMessage

EXTREME = st.sampled_from([0.0, 1e-320, -1e-9, 1.0, -3.0, 1e3, -1e17, 1e300, -1.7e308])


def of_six(numbers):
    return st.lists(numbers, min_size=6, max_size=6)


SPEEDS, SHARES = (
    of_six(st.floats(-6.0, 6.0) | EXTREME).map(np.array),
    of_six(st.floats(0.0, 1.0)).map(np.array),
)
WHAT = st.sampled_from(["q", "qd", "both", "stop", "fault", "anywhere", "nothing"])


def at_shares(robot, shares):
    """Return joint angles within the ranges of a robot, including those of passive joints."""
    q = robot.q_min + shares * (robot.q_max - robot.q_min)
    while robot.passive and not np.all(
        (robot.passive_angles(q) <= robot.passive_max) & (robot.passive_angles(q) >= robot.passive_min)
    ):
        q = 0.9 * q
    return q


def apply_command(run, what, q, qd):
    """Apply one command to a run."""
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
    events=st.lists(st.tuples(WHAT, SHARES, SPEEDS, st.integers(1, 60)), max_size=6),
    period=st.sampled_from([1e-3, 4e-3]),
    level=st.integers(0, 1),
    gain=st.sampled_from([0.0, 5.0, 20.0]),
    deviation=st.sampled_from([1.0, 100.0, 1e9]),
    ramp=st.sampled_from([0.005, 0.1]),
    end=st.sampled_from(["hold", "ramp_down"]),
    lp_filter=st.sampled_from([0.5, 20.0]),
)
@settings(max_examples=30, deadline=None, derandomize=True)
def test_arbitrary_commands_respect_limits_and_recursion(
    name, request, begin, events, period, level, gain, deviation, ramp, end, lp_filter
):
    robot = request.getfixturevalue(name)
    run = run_of(
        robot, at_shares(robot, begin), period, level=level, position_gain=gain, ramp_time=ramp, stop=end,
        max_speed_deviation=deviation, lp_filter=lp_filter, cond_time=0.1,
    )  # fmt: skip
    parts = []
    for what, shares, speeds, count in events:
        apply_command(run, what, at_shares(robot, shares), speeds)
        run.measured(run.q, count * period)
        parts.append(run.samples(count))
    run.stop()
    parts.append(run.samples(round((ramp + BRAKING_TIME) / period) + 2))
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
    speeds=of_six(st.floats(-8.0, 8.0)).map(np.array),
    rows=st.lists(of_six(st.integers(-2, 2)), min_size=2, max_size=2),
)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_coupled_passive_ranges_hold_simultaneously(irb1400, shares, speeds, rows):
    """Two passive joints depend on the same joints: braking for one must not violate the other."""
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


def test_round_off_beyond_range_end_is_no_fault(irb140):
    ranges = Ranges(irb140, DT, irb140.q_min, irb140.q_max)
    asked = np.array([0, 0, 1e-8, 0, 0, 0])
    assert ranges.at_end(irb140.q_max, np.zeros(6), asked) is None
    assert "joint_3" in ranges.at_end(irb140.q_max, np.zeros(6), 1e3 * asked)


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
