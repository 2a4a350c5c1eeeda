"""Closed-loop inverse kinematics along a line that leaves the arm's reach."""

import numpy as np
import pytest

import twin
from scenarios import laboratory
from twin.errors import UnreachableError
from twin.trajectories.closed_loop_inverse import FeedbackLaw, track
from twin.trajectories.tool_paths import straight_line


def test_unreachable_line_is_reported_with_time_and_error_also_by_the_scenario(robot):
    start = robot.poses["test_3"]
    T = np.tile(twin.forward_kinematics(robot, start), (2, 1, 1))
    T[1, :3, 3] += [1.0, -1.0, 0.0]
    line = straight_line(T[0], T[1], speed=0.25, acceleration=0.5)
    told = r"sample \d+ at t = 0\.\d+ s: the joints lost the path, \S+ m off"
    with pytest.raises(UnreachableError, match=told):
        track(FeedbackLaw(robot, 10.0), line, start, 1e-2)
    with pytest.raises(UnreachableError, match="the joints lost the path"):
        laboratory.run(laboratory.Config(distance=1.5, speed=0.5, acceleration=2.0))
