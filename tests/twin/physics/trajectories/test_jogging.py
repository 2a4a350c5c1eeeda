"""Jogging: the reference obeys its limits, comes to rest on its target, and can be tracked exactly."""

import numpy as np
import pytest

import twin
from twin.physics.trajectories.jogging import TOOL_SPEED, Follower, ToolJog
from twin.physics.trajectories.sampling import Samples

PERIOD = 1e-3
BENT = np.array([0.0, 0.3, 0.2, 0.0, 0.5, 0.0])


def path(follower, targets, samples_each):
    """Return a fixed number of samples towards each target, even if they do not reach it."""
    parts = []
    for target in targets:
        follower.target = target
        parts += [follower.samples(50) for _ in range(samples_each // 50)]
    return Samples(*(np.concatenate(series) for series in zip(*parts, strict=True)))


def test_follower_obeys_limits_and_engine_recursion(irb140, rng):
    follower = Follower.of(irb140, np.zeros(6), PERIOD)
    targets = rng.uniform(irb140.q_min, irb140.q_max, (6, 6))
    t, q, qd, qdd = path(follower, targets, 350)
    np.testing.assert_array_equal(qd[1:], qd[:-1] + PERIOD * qdd[:-1])
    np.testing.assert_array_equal(q[1:], q[:-1] + PERIOD * qd[1:])
    assert np.abs(np.diff(t) - PERIOD).max() < 1e-12
    for series, most in ((qd, follower.qd_max), (qdd, follower.qdd_max)):
        peaks = np.abs(series).max(axis=0) / most
        assert peaks.max() <= 1.0 + 1e-12
        assert peaks.min() > 0.99


def test_follower_reaches_target_without_overshoot(irb140):
    follower = Follower.of(irb140, np.zeros(6), PERIOD)
    target = np.array([0.3, 1e-7, -0.5, 1e-3, 0.02, -2.0])
    samples = path(follower, [target], 4000)
    assert follower.at_rest
    np.testing.assert_allclose(follower.q, target, rtol=0, atol=1e-14)
    assert (np.sign(target) * samples.q - np.abs(target)).max() < 1e-14
    arrived = samples.t[np.argmax(np.abs(samples.q - target) < 1e-12, axis=0)]
    speed, acceleration = follower.qd_max, follower.qdd_max
    far = np.abs(target) > speed**2 / acceleration
    assert far[[0, 2, 5]].all()
    length = np.abs(target)
    soonest = np.where(far, length / speed + speed / acceleration, 2.0 * np.sqrt(length / acceleration))
    assert np.abs(arrived - soonest).max() < 3 * PERIOD


def test_follower_stops_at_maximum_deceleration(irb140):
    follower = Follower.of(irb140, np.zeros(6), PERIOD)
    path(follower, [np.full(6, -1.0)], 400)
    braking = follower.qd**2 / (2.0 * follower.qdd_max)
    begun = follower.q.copy()
    follower.stop()
    for _ in range(20):
        follower.samples(50)
    assert follower.at_rest
    np.testing.assert_allclose(begun - follower.q, braking, rtol=0.02)


@pytest.mark.parametrize("in_tool_axes", [False, True])
def test_tool_moves_along_axes_at_jogging_speed(irb140, in_tool_axes):
    T_flange_tool = np.eye(4)
    T_flange_tool[:3, 3] = 0.0, 0.0, 0.1
    jog = ToolJog.begin(irb140, BENT, T_flange_tool, in_tool_axes)
    jog.desired = np.array([-0.05, 0.02, 0.04, 0.0, 0.0, 0.3])
    near, seconds = BENT, 0.0
    while not np.array_equal(jog.offset, jog.desired):
        before, near = jog.offset[:3].copy(), jog.advance(0.05, near)
        assert near is not None
        assert np.linalg.norm(jog.offset[:3] - before) <= 1.0001 * TOOL_SPEED * 0.05
        seconds += 0.05
    assert seconds == pytest.approx(0.6)  # 0.3 rad at 0.5 rad/s takes longer than the translation
    T = twin.forward_kinematics(irb140, near, T_flange_tool)
    R_start, moved = jog.T_start[:3, :3], T[:3, 3] - jog.T_start[:3, 3]
    along = R_start.T @ moved if in_tool_axes else moved
    np.testing.assert_allclose(along, jog.desired[:3], atol=1e-12)
    turn = R_start.T @ T[:3, :3] if in_tool_axes else T[:3, :3] @ R_start.T
    np.testing.assert_allclose(turn[0, :2], [np.cos(0.3), -np.sin(0.3)], atol=1e-12)


def test_tool_stops_at_the_end_of_its_workspace_and_before_another_branch(irb140, monkeypatch):
    jog = ToolJog.begin(irb140, BENT, np.eye(4), False)
    jog.desired = np.array([2.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    near = BENT
    while (q := jog.advance(0.05, near)) is not None:
        near = q
    assert 0.0 < jog.offset[0] < 0.5
    np.testing.assert_array_equal(jog.desired, jog.offset)
    reached = jog.offset.copy()
    jog.desired = np.zeros(6)
    other = near + np.array([0.0, 0.0, 0.0, np.pi, 0.0, -np.pi])
    monkeypatch.setattr("twin.physics.trajectories.jogging.nearest", lambda *_: other)
    assert jog.advance(0.05, near) is None
    np.testing.assert_array_equal(jog.desired, reached)
