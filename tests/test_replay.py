"""The replay of logs in PyBullet's window."""

import numpy as np
import pytest

from scenarios.bench.replay import told
from tests.made_logs import made_log, swing
from twin.logs.playback import Track


def test_the_text_of_a_sample_is_what_the_log_says(robot):
    q_ref = np.zeros((2, 6))
    q, tau, saturated = q_ref.copy(), np.zeros((2, 6)), np.zeros((2, 6), dtype=bool)
    q[1, 2], q[1, 1] = -0.025, 0.01
    tau[1] = robot.tau_max * [0.1, -0.8, 0.2, 0, 0, 0]
    saturated[1, [1, 4]] = True
    track = Track(made_log(robot, q, q_ref, tau=tau, saturated=saturated), "pd")
    text = told(track, 1)
    distance = 1e3 * np.linalg.norm(track.log.pose[1, :3] - track.log.pose_ref[1, :3])
    assert distance > 1.0
    assert text == (
        f"joint_3 0.025 rad off, tool {distance:.3g} mm off, torque 80 % of its limit in joint_2, "
        "saturated: joint_2, joint_5"
    )
    assert told(track, 0).startswith("joint_1 0 rad off, tool 0 mm off, torque 0 % of its limit")


def test_a_torque_that_is_not_finite_is_not_passed_over(robot):
    log = swing(robot, 0, 1.0, tau=np.full((51, 6), np.nan))
    assert "torque nan % of its limit in joint_1" in told(Track(log, "pd"), 0)
