"""Error of closed-loop inverse kinematics due to integration in steps."""

import numpy as np
import pytest
from scipy.linalg import expm

from tests.support.laboratory_arms import laboratory_arm
from tests.support.refusals import refused
from tests.support.tool_paths import K, path_of
from twin.kinematics.forward import forward_kinematics
from twin.trajectories.closed_loop_inverse import FeedbackLaw, decayed_error, drift_bound, step_decay, track
from twin.trajectories.tool_paths import through_poses

GAINS = np.array([20.0, 40.0, 80.0, 10.0, 60.0, 30.0])


def test_the_step_is_the_series_of_the_exponential():
    np.testing.assert_allclose(step_decay(K, 0.01, "euler"), np.eye(6) - 0.01 * K, rtol=0, atol=1e-16)
    series = step_decay(K, 0.01, "runge-kutta")
    np.testing.assert_allclose(series, expm(-0.01 * K), rtol=0, atol=6e-6)  # (K T)^5 / 120
    fifth = np.linalg.matrix_power(-0.01 * K, 5) / 120
    np.testing.assert_allclose(series + fifth, expm(-0.01 * K), rtol=0, atol=3e-7)


@pytest.mark.parametrize(
    ("gains", "kind", "offset"),
    [
        *((GAINS, *sample) for sample in (("zyx", 0.0), ("zyx", 0.001), ("zyz", 0.05))),
        (np.full(6, 950.0), "zyx", 0.001),  # K T = 1.9, where the error changes its sign with every step
    ],
)
def test_the_bound_holds_and_is_near(robot, gains, kind, offset):
    start, path = path_of(robot)
    law = FeedbackLaw(robot, gains, None, kind)
    tracked = track(law, path, start + offset, 2e-3)
    samples = tracked.samples
    N = len(samples.t)
    decayed = decayed_error(law, tracked.error[0], N, 2e-3, "euler")
    expected = [tracked.error[0] * (1 - 2e-3 * gains) ** k for k in range(N)]
    np.testing.assert_allclose(decayed, expected, rtol=1e-12)
    bound = drift_bound(law, samples, path(samples.t), 2e-3, "euler")
    ratio = np.max(np.abs(tracked.error - decayed), axis=0) / bound
    assert np.all(ratio <= 1.0)
    assert np.max(ratio) > 0.3 or gains is not GAINS


def test_runge_kutta_follows_the_exponential_far_below_the_bound(robot):
    start, path = path_of(robot)
    law = FeedbackLaw(robot, GAINS)
    tracked = track(law, path, start + 0.001, 2e-3, integration="runge-kutta")
    t = tracked.samples.t
    decayed = decayed_error(law, tracked.error[0], len(t), 2e-3, "runge-kutta")
    exponential = np.exp(-GAINS * t[:, None]) * tracked.error[0]
    np.testing.assert_allclose(decayed, exponential, rtol=0, atol=3e-9)  # a step's (K T)^5 / 120 shows
    bound = drift_bound(law, tracked.samples, path(t), 2e-3, "runge-kutta")
    assert np.all(np.abs(tracked.error - decayed) < 1e-3 * bound)


def test_what_five_joints_cannot_do_is_in_the_bound():
    five = laboratory_arm("youbot")
    start = np.array([0.3, 0.4, 0.9, 0.8, 0.2])
    T = np.tile(forward_kinematics(five, start), (2, 1, 1))
    T[1, :3, 3] += [0.0, -0.05, -0.03]  # sideways with a tool that is not upright: it has to turn
    path = through_poses(T, durations=[1.0])
    law = FeedbackLaw(five, 10.0)
    tracked = track(law, path, start, 4e-3)
    bound = drift_bound(law, tracked.samples, path(tracked.samples.t), 4e-3, "euler")
    off = np.abs(tracked.error - decayed_error(law, tracked.error[0], len(tracked.error), 4e-3, "euler"))
    assert np.all(off <= bound)
    assert np.max(off) > 1e-2
    assert np.max(np.max(off, axis=0) / bound) > 0.3


def test_what_has_no_such_bound_is_refused(robot):
    start, path = path_of(robot)
    tracked = track(FeedbackLaw(robot, 20.0), path, start, 1e-2)
    motion = path(tracked.samples.t)

    def bound(*law):
        return lambda: drift_bound(FeedbackLaw(robot, *law), tracked.samples, motion, 1e-2, "euler")

    refused(
        (bound(K), "got 'zyx' and another a gain"),
        (bound(20.0, None, "quaternion"), "got 'quaternion' and such a gain"),
        (bound(200.0), "expected a gain that lets errors decay in steps of 0.01 s"),
    )
