"""Supervision of the arm while it moves, against the analysis of the log afterwards."""

import numpy as np
import pytest

import twin
from twin.abb.controller.arm import Supervision
from twin.abb.rapid.planning import Limits
from twin.physics.robot.drives.motors import MotorLimits, torque_shares
from twin.studies.cell.clearance import Clearance

POST = """margin = 0.01
[objects.post]
cylinder = 0.05
from = [0.35, -0.45, 0.0]
to = [0.35, -0.45, 1.2]
"""
SWING = "MoveAbsJ [[-80,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]], v300, fine, tool0;"


@pytest.fixture
def post(abb_robot, tmp_path):
    """Return the distances in a cell with a post in the way of the arm."""
    (tmp_path / "cell.toml").write_text(POST)
    return Clearance(abb_robot, twin.load_cell(tmp_path / "cell.toml"))


def test_what_comes_too_near_is_a_line_and_counted(cell, post):
    live = cell(T_ROB1=SWING, options={"supervision": Supervision(post)})
    seen = live.controller.supervision
    assert seen.largest.shape == (6,)  # it is compiled before the first cycle, which could not wait for it
    live.run()
    assert live.controller.faults == []
    assert seen.collisions == 1
    [line] = [one for one in live.lines if "collision" in one.sentence]
    assert "post" in line.sentence
    assert line.sentence.endswith("margin 10 mm")
    assert seen.nearest.clearance < 0
    first = next(k for k, q in enumerate(live.log.q) if post.nearest(q).clearance < 0)
    assert 0.0 <= line.t - first * 1e-3 < 0.024  # a look each 20 ms


def test_the_smallest_distance_is_that_of_the_log(cell, post):
    fast = SWING.replace("v300", "v1000")
    there_and_back = "".join(fast.replace("-80", turn) for turn in ("-33", "60", "-37"))
    live = cell(T_ROB1=there_and_back, options={"supervision": Supervision(post)})
    live.run()
    seen, least = live.controller.supervision, post.cell.least_distance(live.log)
    assert seen.collisions == 0
    assert seen.nearest.pair == least.nearest.pair
    assert seen.nearest.distance == pytest.approx(least.nearest.distance, abs=2e-4)
    assert seen.nearest.distance > 0.01


HANDLED = f"""{SWING} TPWrite "never";
ERROR
IF ERRNO = ERR_COLL_STOP THEN TPWrite "stopped"; StopMove; ClearPath; StartMove;
MoveAbsJ a, v300, fine, tool0; TRYNEXT; ENDIF"""


def test_supervision_stops_the_arm_and_an_error_handler_moves_it_away(cell, post):
    live = cell(T_ROB1=HANDLED, options={"supervision": Supervision(post, stops=True)})
    live.run()
    assert live.controller.faults == []
    assert live.texts[1:] == ["stopped", "never"]
    assert np.degrees(live.controller.arm.q) == pytest.approx([0, 0, 0, 0, 30, 0], abs=1e-3)
    ran_into = post.cell.least_distance(live.log).nearest.distance
    assert -0.05 < ran_into < 0.01  # it came to rest within the ramp of 0.2 s


def test_without_a_handler_the_task_has_a_fault_and_the_arm_rests(cell, post):
    live = cell(T_ROB1=SWING, options={"supervision": Supervision(post, stops=True)})
    live.run(3.0)
    [(name, fault)] = live.controller.faults
    assert name == "T_ROB1"
    assert "line 8: collision:" in str(fault)
    for _ in range(60):
        live.controller.cycle()
    assert np.abs(live.log.qd[-1]).max() < 1e-6
    assert np.degrees(live.controller.arm.q[0]) > -70
    live.controller.stop()
    live.controller.to_main()
    assert not live.controller.execution.held


def test_a_drive_that_lacks_torque_stops_the_arm(cell):
    fast = {"limits": Limits(3.0), "supervision": Supervision(stops=True)}
    live = cell(T_ROB1=SWING.replace("v300", "vmax"), options=fast)
    live.run(2.0)
    assert live.controller.supervision.saturations >= 1
    assert "motion supervision: the drive of joint_" in str(live.controller.faults[0][1])
    assert (np.abs(live.log.tau_demand) > 1.001 * np.abs(live.log.tau)).any()
    within = cell(T_ROB1=SWING.replace("v300", "vmax"), options={"supervision": Supervision(stops=True)})
    within.run()
    assert within.controller.supervision.saturations == 0
    assert within.controller.execution.has_ended


def test_the_drive_that_lacks_torque_is_named_by_its_motor(abb_robot):
    """The motor of joint 5 turns joint 6 of this wrist, too: at the joints another share is the largest."""
    motors = MotorLimits.of(abb_robot.active_drives, abb_robot.tau_max)
    tau = motors.coupling[0].T[:, 4] * motors.limits[0, 4]  # R^T of the torques of the motors
    np.testing.assert_allclose(torque_shares(motors, tau), [0, 0, 0, 0, 1, 0], atol=1e-12)
    assert not np.allclose(np.abs(tau) / abb_robot.tau_max, [0, 0, 0, 0, 1, 0])
