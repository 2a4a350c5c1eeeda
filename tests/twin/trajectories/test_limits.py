import numpy as np
import pytest

import twin
from twin.errors import LimitError
from twin.trajectories.joint_trajectories import quintic
from twin.trajectories.sampling import Samples, check_limits, sample

ROBOT = twin.load("irb140")


def samples_at(q, qd=None):
    q = np.atleast_2d(np.asarray(q, dtype=float))
    qd = np.zeros_like(q) if qd is None else np.atleast_2d(np.asarray(qd, dtype=float))
    return Samples(0.5 * np.arange(len(q), dtype=np.float64), q, qd, np.zeros_like(q))


def test_a_motion_on_its_limits_is_allowed():
    check_limits(ROBOT, samples_at([ROBOT.q_min, ROBOT.q_max], [ROBOT.qd_max, -ROBOT.qd_max]))
    check_limits(ROBOT, sample(quintic(ROBOT.q_min, ROBOT.q_max, qd_max=ROBOT.qd_max), 1e-3))


@pytest.mark.parametrize("joint", range(6))
def test_position_and_speed_are_checked_on_both_sides(joint):
    unit = np.eye(6)[joint]
    for q in (ROBOT.q_min - 1e-6, ROBOT.q_max + 1e-6):
        with pytest.raises(LimitError, match=f"joint_{joint + 1} would be at"):
            check_limits(ROBOT, samples_at(unit * q))
    for qd in (ROBOT.qd_max + 1e-6, -ROBOT.qd_max - 1e-6):
        with pytest.raises(LimitError, match=rf"joint_{joint + 1} would move at .* deg/s .* its limit is"):
            check_limits(ROBOT, samples_at(np.zeros(6), unit * qd))


def test_the_earliest_sample_is_named_nan_is_outside_and_degrees_are_suspected_far_outside():
    q, qd = np.zeros((4, 6)), np.zeros((4, 6))
    q[3, 0], qd[1, 5], qd[2, 0] = 9.0, 99.0, 99.0
    outside = (
        r"^joint_4 would be at 206\.265 deg \(3\.6 rad\) at t = 0 s \(sample 0\), "
        r"its range is -200 deg \(-3\.49066 rad\) to 200 deg \(3\.49066 rad\)$"
    )
    for samples, told in (
        (samples_at(q, qd), r"joint_6 would move .*\(sample 1\)"),
        (samples_at([0, np.nan, 0, 0, 0, 0]), "joint_2 would be at nan"),
        (samples_at([4.0, -34.07, 19.54, 7.62, 38.93, 56.38]), r"joint_1 would be .* are these degrees\?"),
        (samples_at([0, 0, 0, 3.6, 0, 0]), outside),
    ):
        with pytest.raises(LimitError, match=told):
            check_limits(ROBOT, samples)
    with pytest.raises(ValueError, match=r"expected samples.q of shape \(N, 6\), got \(1, 5\)"):
        check_limits(ROBOT, samples_at(np.zeros(5)))
