"""The laboratory's robots: every printed result of theirs, and what their files say of the others."""

import numpy as np
import pytest

import twin
from scenarios.shell.command_line import main
from tests.support.dh_arms import dh_pose
from tests.support.dh_tables import dh_product, plain
from tests.support.peers import largest_relative_error, one_step
from twin.base.errors import RobotError, UnknownNameError
from twin.physics.engine.simulation import Simulation
from twin.physics.robot.dh_tables import dh_robot
from twin.physics.robot.evaluation import uncompiled
from twin.physics.robot.robot import DH

# Ljubljana lab manual: what its functions print, four decimals.
T6_RX90 = [
    [-0.5170, 0.5432, -0.6616, -0.3906],
    [-0.8486, -0.4266, 0.3128, -0.4941],
    [-0.1123, 0.7231, 0.6815, -0.2236],
    [0, 0, 0, 1],
]
T5_YOUBOT = [
    [0.6673, -0.7108, 0.2227, 0.0501],
    [-0.7356, -0.5819, 0.3468, 0.0780],
    [-0.1169, -0.3952, -0.9111, 0.0142],
    [0, 0, 0, 1],
]
JACOBIAN_YOUBOT = [
    [-0.0780, -0.0718, -0.0369, -0.0576, 0],
    [0.0501, -0.1118, -0.0575, -0.0897, 0],
    [0, -0.0597, 0.0812, -0.0482, 0],
    [0, -0.8415, -0.8415, -0.8415, 0.2227],
    [0, 0.5403, 0.5403, 0.5403, 0.3468],
    [1, 0, 0, 0, -0.9111],  # the 1 did not survive in our copy
]
HDH_1_2_3_4 = [[0.5403, 0.55, -0.6368, 1.6209], [0.8415, -0.3532, 0.4089, 2.5244], [0, -0.7568, -0.6536, 2]]
INERTIA3 = [[0.1528, 0.0207, -0.0093], [0.0207, 0.1071, 0.0187], [-0.0093, 0.0187, 0.0489]]
TORQUE = [5.4961, 1.5868, 8.3222]
TAU3 = [0.768, 8.6224, 4.8946]
HALF_A_DIGIT = 5e-5


def test_names_are_those_of_the_laboratory():
    assert all(name.startswith("irb") for name in twin.robot_names())
    assert twin.robot.laboratory_names() == (
        "figure_7_1", "manutec_r3", "rtr", "rx90", "two_link", "youbot", "youbot3",
    )  # fmt: skip
    told = r"'rx91', did you mean 'rx90'\?: known are irb120, .*youbot3, or the path"
    with pytest.raises(UnknownNameError, match=told):
        twin.load("rx91")


def test_the_list_shows_them_apart_from_the_arms(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("laboratory"))
    shown = [line.split() for line in lines[first : first + len(twin.robot.laboratory_names())]]
    assert [words[1 if k == 0 else 0] for k, words in enumerate(shown)] == list(twin.robot.laboratory_names())
    assert "Stäubli RX90 (kinematics)" in lines[first + twin.robot.laboratory_names().index("rx90")]


def test_a_single_row_is_the_printed_dh_matrix():
    row = dh_robot("row", DH(*np.array([[0.0], [2.0], [3.0], [4.0]])))
    T = twin.forward_kinematics(uncompiled(row), [1.0])
    assert np.max(np.abs(T[:3] - HDH_1_2_3_4)) < HALF_A_DIGIT


def test_rx90_and_youbot_have_the_printed_poses_and_jacobian():
    T = twin.forward_kinematics(plain("rx90"), [1, 2, 3, 4, 5, 6])
    assert np.max(np.abs(T - T6_RX90)) < HALF_A_DIGIT
    robot, q = plain("youbot"), [1, 2, 3, 4, 5]
    assert np.max(np.abs(twin.forward_kinematics(robot, q) - T5_YOUBOT)) < HALF_A_DIGIT
    assert np.max(np.abs(twin.jacobian(robot, q) - JACOBIAN_YOUBOT)) < HALF_A_DIGIT


def test_youbot3_gives_the_printed_inertia_torques_and_direct_dynamics():
    """With the friction of its drives; by (6.94) the printed torques give the accelerations back."""
    robot = uncompiled(twin.load("youbot3").with_drives("rigid"))
    assert np.max(np.abs(twin.mass_matrix(robot, [1, 2, 3]) - INERTIA3)) < HALF_A_DIGIT
    for q, qd, qdd, printed in (
        ([7, 8, 9], [4, 5, 6], [1, 2, 3], TORQUE),
        ([4, 5, 6], [1, 2, 3], [0] * 3, TAU3),
    ):
        tau = twin.inverse_dynamics(robot, q, qd, qdd)
        assert np.max(np.abs(tau - printed)) < HALF_A_DIGIT
        np.testing.assert_allclose(twin.forward_dynamics(robot, q, qd, tau), qdd, rtol=0, atol=1e-12)
        rounding = np.abs(np.linalg.inv(twin.mass_matrix(robot, q))).sum(axis=1) * HALF_A_DIGIT
        assert np.all(np.abs(twin.forward_dynamics(robot, q, qd, printed) - qdd) < rounding)


def test_two_link_is_the_textbook_s_arm():
    """Spong & Vidyasagar's planar elbow manipulator with rods of 1 m and 1 kg, on the wall."""
    robot, (q1, q2) = plain(twin.load("two_link").mounted("wall")), (0.4, -1.1)
    m = l = 1.0  # noqa: E741
    lc, I = l / 2, m * l**2 / 12  # noqa: E741
    off = m * (lc**2 + l * lc * np.cos(q2)) + I
    M = [[m * lc**2 + m * (l**2 + lc**2 + 2 * l * lc * np.cos(q2)) + 2 * I, off], [off, m * lc**2 + I]]
    g2 = m * 9.81 * lc * np.cos(q1 + q2)
    g = [m * 9.81 * (lc + l) * np.cos(q1) + g2, g2]
    assert largest_relative_error([twin.mass_matrix(robot, [q1, q2])], [M]) < 1e-15
    assert largest_relative_error([twin.gravity_torque(robot, [q1, q2])], [g]) < 1e-15
    assert not twin.gravity_torque(plain("two_link"), [q1, q2]).any()  # on the floor


def test_mechanisms_agree_with_their_files():
    for name, q, p, z in (
        ("rtr", [0.0, 0.0, 0.0], [0.5, 0.0, 0.4], [0, 0, 1]),
        ("rtr", [np.pi / 2, 0.1, -np.pi / 2], [0.2, 0.4, 0.4], [0, 0, 1]),
        ("figure_7_1", [0.0, 0.0, 0.0], [0.2, 0.0, 0.5], [1, 0, 0]),
        ("figure_7_1", [np.pi / 2, 0.1, 0.3], [0.0, 0.5, 0.6], [0, 1, 0]),
    ):
        T = twin.forward_kinematics(plain(name), q)
        np.testing.assert_allclose(T[:3, 3], p, atol=1e-15)
        np.testing.assert_allclose(T[:3, 2], z, atol=1e-15)


def test_tree_and_table_agree(rng):
    for name in twin.robot.laboratory_names():
        robot = plain(name)
        for q in rng.uniform(-3, 3, (5, robot.n)):
            assert np.max(np.abs(twin.forward_kinematics(robot, q) - dh_product(robot, q))) < 4e-15, name


def test_youbot3_has_inertia_without_mass_in_the_engine_too(rng):
    robot = plain("youbot3")
    q, qd, tau = rng.uniform(-2, 2, (3, 3))
    with Simulation(robot) as simulation:
        step = one_step(simulation, q, qd, tau)
    assert largest_relative_error([step], [twin.forward_dynamics(robot, q, qd, tau)]) < 1e-12


def test_rx90_has_its_inverse_kinematics_in_closed_form(rng):
    robot = plain("rx90")
    q = rng.uniform(-3, 3, (50, 6))
    T = twin.forward_kinematics(robot, q)
    solutions = twin.inverse_kinematics(robot, T)
    assert not np.isnan(solutions).any()
    assert np.max(np.abs(dh_pose(robot, solutions) - T[:, None])) < 1e-14
    assert np.max(np.abs(twin.inverse_kinematics(robot, T, near=q) - q)) < 1e-9


def test_inverse_kinematics_of_others_is_refused():
    for name, rows in (("youbot", 5), ("figure_7_1", 3)):
        told = f"'{name}' is outside the family of closed-form inverse kinematics: it has {rows} DH rows"
        with pytest.raises(RobotError, match=told):
            twin.inverse_kinematics(twin.load(name), np.eye(4))
