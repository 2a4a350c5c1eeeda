"""Closed-loop inverse kinematics along a line that leaves the arm's reach, and what the ledger counts."""

import numpy as np
import pytest

import twin
from scenarios import laboratory
from scenarios.ledger.items import chosen
from scenarios.ledger.norrlof import inverse as norrlof_inverse
from scenarios.ledger.rows import rows
from scenarios.reports.ledger_report import total
from twin.errors import UnreachableError
from twin.trajectories.closed_loop_inverse import FeedbackLaw, track
from twin.trajectories.tool_paths import straight_line


@pytest.mark.parametrize(("gain", "period"), [(10.0, 1e-3), (50.0, 1e-3), (10.0, 1e-2)])
def test_a_line_out_of_reach_is_said_to_be_so_with_its_time_and_error(robot, gain, period):
    start = robot.poses["test_3"]
    T = np.tile(twin.forward_kinematics(robot, start), (2, 1, 1))
    T[1, :3, 3] += [1.0, -1.0, 0.0]
    line = straight_line(T[0], T[1], speed=0.25, acceleration=0.5)
    with pytest.raises(
        UnreachableError, match=r"sample \d+ at t = 0\.\d+ s: the joints lost the path, \S+ m off"
    ):
        track(FeedbackLaw(robot, gain), line, start, period)


def test_the_laboratory_says_so_too():
    with pytest.raises(UnreachableError, match="the joints lost the path"):
        laboratory.run(laboratory.Config(distance=1.5))


@pytest.mark.parametrize("name", ["N-2.29", "N-2.31", "N-2.34", "N-2.36", "N-2.38"])
def test_an_item_of_the_report_misses_an_elbow_that_is_lost(monkeypatch, name):
    whole = norrlof_inverse.main_axis_angles

    def without(robot, p):
        theta = whole(robot, p)
        theta[:, [1, 3]] = np.nan
        return theta

    (item,) = chosen(None, [name])
    assert next(rows([item])).holds
    monkeypatch.setattr(norrlof_inverse, "main_axis_angles", without)
    assert not next(rows([item])).holds


def test_what_is_text_only_is_not_counted_as_computed():
    every = list(rows(chosen(None, ["T-T32", "K-rest", "K-1"])))
    assert "; 1 computed, 2 text only" in str(total(every))
