"""Violations of ranges and speed limits in closed loops, rollouts and sweeps."""

from dataclasses import replace

import numpy as np
import pytest

import controllers
from scenarios.judging.motion_range import arm_metrics, beyond_passive_range
from tests.support.example_logs import made_log
from twin.data.logs.closed_loop import run_closed_loop
from twin.physics.control.control_law import ControlLaw
from twin.physics.control.plant import AnalyticPlant
from twin.physics.control.rollout import run_rollouts
from twin.physics.robot.limits import violations
from twin.physics.robot.robot import Payload
from twin.physics.trajectories.joint_trajectories import sines
from twin.physics.trajectories.sampling import sample


def swing(robot, amplitude=0.3, duration=0.5):
    return sample(sines(robot.poses["zero"], np.full(6, amplitude), np.full(6, 1.0), duration), 1e-3)


def pulled(state, reference, parameters, memory, model):
    """Return torques that move joint 2 beyond its range and joint 6 beyond its speed limit."""
    tau = np.zeros(len(state.q))
    tau[1], tau[5] = parameters[0, 1], parameters[0, 5]
    return tau


def test_violations_name_largest_excess_of_each_limit(irb140):
    t = np.linspace(0.0, 1.0, 5)
    q, qd = np.zeros((2, 5, 6))
    assert violations(irb140, t, q, qd) == ()
    q[2, 4], q[3, 4], q[1, 0] = irb140.q_max[4] + 0.1, irb140.q_max[4] + 0.2, irb140.q_min[0] - 0.15
    qd[4, 5] = -1.5 * irb140.qd_max[5]
    position, speed = violations(irb140, t, q, qd)
    assert position[:5] == ("position", "joint_5", 0.75, q[3, 4], irb140.q_max[4])
    assert speed[:5] == ("speed", "joint_6", 1.0, qd[4, 5], -irb140.qd_max[5])
    assert str(position).startswith("joint_5 is at ")
    assert "at t = 0.75 s, its limit is" in str(position)
    assert str(speed).startswith("joint_6 moves at -675 deg/s")


def test_excess_of_passive_joints_counts_at_both_ends_of_their_ranges(irb1400):
    q = np.random.default_rng(0).uniform(irb1400.q_min, irb1400.q_max, (200, 6))
    angles = irb1400.passive_angles(q)
    endless = np.full(angles.shape[1], np.inf)
    for arm, outside in (
        (replace(irb1400, passive_max=endless), angles < irb1400.passive_min),
        (replace(irb1400, passive_min=-endless), angles > irb1400.passive_max),
    ):
        beyond = outside.any(axis=1)
        assert 0 < np.count_nonzero(beyond) < len(q)
        np.testing.assert_array_equal(beyond_passive_range(arm, q) > 0, beyond)


def test_motion_that_ends_on_a_limit_is_no_violation(irb140):
    """A move of minimum duration ends on its limits up to rounding."""
    q, qd = np.stack([irb140.q_min, irb140.q_max]), np.stack([irb140.qd_max] * 2)
    for share, found in ((1 + 1e-11, []), (1.0001, ["position", "speed"])):
        beyond = violations(irb140, np.arange(2.0), share * q, share * qd)
        assert [one.quantity for one in beyond] == found


@pytest.mark.parametrize("direction", [1.0, -3.0])  # beyond the upper and the lower end of joint 2
def test_rollout_and_closed_loop_report_equal_violations(irb140, direction):
    """The violations do not depend on the number of stored samples."""
    pull = ControlLaw(irb140, pulled, [[0, 60.0 * direction, 0, 0, 0, -1e-3]])
    reference = sample(sines(np.zeros(6), np.zeros(6), np.ones(6), 0.4), 1e-3)
    rollout = run_rollouts(irb140, pull, reference, every=50)
    log = run_closed_loop(AnalyticPlant(irb140), pull, reference)
    assert rollout.violations == log.violations()
    assert {found.quantity for found in rollout.violations} == {"position", "speed"}
    (position,) = (found for found in rollout.violations if found.quantity == "position")
    assert (position.joint, position.value * direction > 0) == ("joint_2", True)
    assert rollout.failures == ()


def test_payload_sweep_names_rollouts_beyond_limits(irb1400):
    """With a soft PID and unknown loads, no rollout ends early, but some leave their limits."""
    arms = [irb1400, *(irb1400.with_payload(Payload(mass, (0.0, 0.0, 0.2))) for mass in (2.0, 5.0))]
    law, reference = controllers.make("pid", irb1400, bandwidth=2.0), swing(irb1400, 0.2, 1.0)
    sweep = run_rollouts(arms, law, reference, every=100)
    assert sweep.failures == ()
    for k, arm in enumerate(arms):
        of_it = [found for found in sweep.violations if found.rollout == (k,)]
        alone = run_rollouts(arm, law, reference).violations
        assert [found._replace(rollout=()) for found in of_it] == list(alone)
    assert len(sweep.violations) >= 2
    assert f"in rollout {sweep.violations[-1].rollout[0]}" in str(sweep.violations[-1])


def test_joint_without_limits_has_no_violations(irb140):
    endless = np.full(6, np.inf)
    robot = replace(irb140, q_min=-endless, q_max=endless, qd_max=endless)
    assert violations(robot, np.zeros(1), np.full((1, 6), 1e5), np.full((1, 6), 1e5)) == ()


@pytest.mark.parametrize(("joint", "sign"), [(0, 1.0), (5, -1.0)])
def test_arm_checks_cover_both_directions(irb140, joint, sign):
    q, qd = np.zeros((2, 4, 6))
    qd[2, joint] = sign * 1.01 * irb140.qd_max[joint]
    position, speed = arm_metrics(made_log(irb140, q, qd=qd))
    assert position.passes
    assert not speed.passes
    assert speed.value == pytest.approx(1.01, rel=1e-14)
    qd[2, joint] = sign * 0.99 * irb140.qd_max[joint]
    q[1, joint] = (irb140.q_max if sign > 0 else irb140.q_min)[joint] + sign * 1e-3
    position, speed = arm_metrics(made_log(irb140, q, qd=qd))
    assert speed.passes
    assert not position.passes
    assert position.value == pytest.approx(1e-3, rel=1e-9)
