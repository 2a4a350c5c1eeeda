"""Manual mode of a virtual controller: jogging, reduced speed, and steps of the execution."""

import numpy as np
import pytest

from tests.support.virtual_cell import START
from twin.abb.controller.motion import REDUCED
from twin.base.errors import RapidError
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.trajectories.jogging import TOOL_SPEED

pytestmark = pytest.mark.slow("runs sessions of a virtual controller")

PATH = """MoveAbsJ b, v1000, z10, tool0; MoveAbsJ c, v1000, z10, tool0; MoveAbsJ a, v1000, fine, tool0;
MoveAbsJ b, v1000, fine, tool0;"""
T_TOOL = np.array([[0.0, 0, 1, 0.05], [0, 1, 0, 0.02], [-1, 0, 0, 0.1], [0, 0, 0, 1]])


@pytest.fixture
def manual(cell):
    """A controller in manual mode whose program stands at its beginning."""
    live = cell(T_ROB1=PATH, options={"starts": False})
    live.controller.set_mode("MANR")
    return live


def rest(live, seconds=10.0):
    """Run cycles until the arm rests, and return its joint angles and its log."""
    live.run(seconds, until=lambda: live.controller.rests)
    live.run(0.1)
    return live.controller.arm.q, live.log


def tool_speeds(log):
    return np.linalg.norm(np.diff(log.pose[:, :3], axis=0), axis=1) / np.diff(log.t)


def test_joints_turn_by_increments_within_their_ranges(manual):
    controller, turn = manual.controller, np.radians([5.0, 0, 0, 0, 0, -20.0])
    controller.jog().move_joints(turn)
    manual.run(0.02)
    controller.jog().move_joints(turn)  # while it moves
    q, log = rest(manual)
    np.testing.assert_allclose(q, START + 2 * turn, atol=1e-12)
    assert np.all(np.abs(log.qd).max(axis=0) <= 0.25 * controller.robot.qd_max + 1e-9)
    controller.jog().move_joints(np.full(6, 100.0))
    assert rest(manual)[0][5] == pytest.approx(controller.robot.q_max[5], abs=1e-12)


@pytest.mark.parametrize("in_tool_axes", [False, True])
def test_a_tool_moves_along_and_about_axes(manual, in_tool_axes):
    controller, move = manual.controller, np.array([0.0, 0.0, -0.05, 0.0, 0.0, 0.0])
    before = forward_kinematics(controller.robot, START, T_TOOL)
    controller.jog().move_tool(T_TOOL, move, in_tool_axes=in_tool_axes)
    q, log = rest(manual)
    after = forward_kinematics(controller.robot, q, T_TOOL)
    way = before[:3, :3] @ move[:3] if in_tool_axes else move[:3]
    np.testing.assert_allclose(after[:3, 3] - before[:3, 3], way, atol=1e-9)
    np.testing.assert_allclose(after[:3, :3], before[:3, :3], atol=1e-9)
    places = forward_kinematics(controller.robot, log.q_ref, T_TOOL)[:, :3, 3] - before[:3, 3]
    off = np.linalg.norm(np.cross(places, way / np.linalg.norm(way)), axis=1)
    assert off.max() < 1e-9, "the tool is on a line"
    assert tool_speeds(log).max() < 1.001 * TOOL_SPEED
    controller.jog().move_tool(T_TOOL, np.array([0, 0, 0, 0, 0, 0.2]), in_tool_axes=in_tool_axes)
    turned = forward_kinematics(controller.robot, rest(manual)[0], T_TOOL)
    np.testing.assert_allclose(turned[:3, 3], after[:3, 3], atol=1e-9)
    R = turned[:3, :3] @ after[:3, :3].T
    np.testing.assert_allclose(np.trace(R), 1 + 2 * np.cos(0.2), atol=1e-9)


def test_joints_take_over_from_a_tool_that_moves_without_a_jerk(manual):
    controller = manual.controller
    controller.jog().move_tool(np.eye(4), np.array([0, 0, -0.2, 0, 0, 0]), in_tool_axes=False)
    manual.run(0.5)
    controller.jog().move_joints(np.radians([0.0, 0, 0, 0, 0, 10.0]))
    _, log = rest(manual)
    assert np.abs(np.diff(log.qd_ref, axis=0)).max() < 1.5e-3 * (controller.robot.qd_max / 4 / 0.3).max()


def test_a_tool_that_is_out_of_reach_stops_with_a_sentence(manual):
    manual.controller.jog().move_tool(np.eye(4), np.array([3.0, 0, 0, 0, 0, 0]), in_tool_axes=False)
    rest(manual)
    assert any("the tool cannot go there" in text for text in manual.texts)
    assert manual.controller.unit.motion.jog is None


def test_jogging_stops_with_the_motors_and_the_mode(manual):
    controller = manual.controller
    for stop in (
        controller.stop, lambda: controller.execution.set_motors(False), lambda: controller.set_mode("AUTO")
    ):  # fmt: skip
        controller.set_mode("MANR")
        controller.execution.set_motors(True)
        controller.jog().move_joints(np.radians([60.0, 0, 0, 0, 0, 0]))
        manual.run(0.4)
        before = controller.arm.q[0]
        stop()
        q, _ = rest(manual, 1.0)
        assert controller.rests
        assert 0.0 < q[0] - before < np.radians(20.0)
        controller.set_mode("MANR")
        controller.execution.set_motors(True)
        controller.jog().move_joints(START - q)
        rest(manual)


def test_jogging_is_refused_in_automatic_mode_without_motors_and_while_the_arm_moves(manual):
    controller = manual.controller
    controller.start()
    manual.run(0.1)
    with pytest.raises(RapidError, match="while the execution is stopped"):
        controller.jog()
    controller.execution.set_motors(False)
    rest(manual)
    with pytest.raises(RapidError, match="in manual mode with motors on"):
        controller.jog()
    controller.execution.set_motors(True)
    controller.set_mode("AUTO")
    with pytest.raises(RapidError, match="in manual mode with motors on"):
        controller.jog()


def test_an_arm_that_was_jogged_off_its_path_stands_and_does_not_start(manual):
    controller = manual.controller
    controller.start()
    manual.run(0.5)
    controller.stop()
    q, _ = rest(manual)
    turn = np.radians([0.0, 0, 0, 0, 0, 15.0])
    controller.jog().move_joints(turn)
    np.testing.assert_allclose(rest(manual)[0], q + turn, atol=1e-9)
    with pytest.raises(RapidError, match="jogged off its path"):
        controller.start()
    controller.jog().move_joints(-turn)
    rest(manual)
    controller.start()
    manual.run(20.0)
    assert controller.execution.has_ended
    assert controller.faults == []
    assert np.abs(np.diff(manual.log.q, axis=0)).max() < 0.01, "nothing jumps"


def test_the_tool_has_250_mm_s_in_manual_mode_and_its_speed_in_the_others(manual):
    controller = manual.controller
    fastest = {}
    for mode in ("MANR", "MANF", "AUTO"):
        controller.set_mode(mode)
        controller.to_main()
        controller.start()
        first = len(manual.log.t) if manual.log else 0
        manual.run(30.0)
        assert controller.execution.has_ended
        fastest[mode] = tool_speeds(manual.log)[first:].max()
    assert 0.9 * REDUCED < fastest["MANR"] < 1.001 * REDUCED
    assert fastest["MANF"] == pytest.approx(fastest["AUTO"], rel=1e-6)
    assert fastest["AUTO"] > 2 * REDUCED


def test_a_step_ends_where_its_move_ends(manual):
    """In a corner the arm stands in its middle, and the next step goes on from there."""
    controller, reached = manual.controller, []
    controller.set_mode("AUTO")
    for _ in range(4):
        controller.step()
        manual.run(20.0, until=lambda: not controller.execution.running)
        reached.append(np.degrees(rest(manual)[0]))
    a, b, c = np.degrees(START), np.array([20, 10, -10, 15, 40, -30]), np.array([-30, 20, -20, 15, 50, 30])
    for q, corner in zip(reached[:2], (b, c), strict=True):
        assert 0.01 < np.abs(q - corner).max() < 3.0
    np.testing.assert_allclose(reached[2], a, atol=0.01)
    np.testing.assert_allclose(reached[3], b, atol=0.01)
    assert controller.faults == []


def test_a_tool_waits_while_joints_move(manual):
    manual.controller.jog().move_joints(np.radians([20.0, 0, 0, 0, 0, 0]))
    manual.run(0.1)
    with pytest.raises(RapidError, match="the arm moves: wait until it rests"):
        manual.controller.jog().move_tool(np.eye(4), np.array([0, 0, -0.1, 0, 0, 0]), in_tool_axes=False)
