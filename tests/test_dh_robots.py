"""Robots known by a DH table alone: the laboratory's printed results, and the tree against plain products."""

from dataclasses import replace

import numpy as np
import pytest

import twin
from tests.dh_arms import dh_pose as dh_pose_of_six
from tests.peers import Pinocchio, largest_relative_error, one_step
from tests.random_trees import interpreted
from twin.dh_robots import LinkBody, dh_robot
from twin.engine import Simulation
from twin.errors import RobotError, UnknownNameError
from twin.robot import DH, Payload
from twin.urdf_writer import urdf_of_tree

# Ljubljana lab manual: what its functions print, four decimals; for the last three, friction f_v qd is added.
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
VISCOUS = np.array([2.0, 1.0, 1.0])  # N m s
HALF_A_DIGIT = 5e-5


def plain(robot):
    """A robot, or the one of that name, whose kernels run as plain Python."""
    return interpreted(twin.load(robot) if isinstance(robot, str) else robot)


def dh_product(robot, q):
    """The pose of the last DH frame by the elementary transforms, prismatic rows included."""
    T = np.eye(4)
    for theta0, d, a, alpha, kind, x in zip(*robot.dh, robot.joint_kinds, q, strict=True):
        theta, d = (theta0 + x, d) if kind == "revolute" else (theta0, d + x)
        c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
        turn = np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
        shift = np.array([[1, 0, 0, a], [0, 1, 0, 0], [0, 0, 1, d], [0, 0, 0, 1]])
        T = T @ turn @ shift @ np.array([[1, 0, 0, 0], [0, ca, -sa, 0], [0, sa, ca, 0], [0, 0, 0, 1]])
    return T


def random_robot(rng, kinds, **settings):
    """A robot of random DH rows and bodies that can exist."""
    n = len(kinds)
    bodies = []
    for _ in range(n):
        points = rng.normal(size=(8, 3)) * 0.1
        spread = points.T @ points
        bodies.append(
            LinkBody(rng.uniform(0.2, 5), rng.normal(size=3) * 0.2, np.trace(spread) * np.eye(3) - spread)
        )
    table = DH(rng.uniform(-3, 3, n), *rng.normal(size=(2, n)) * 0.4, rng.uniform(-3, 3, n))
    limits = {"q_min": np.full(n, -3.0), "q_max": np.full(n, 3.0), "qd_max": np.full(n, 5.0)}
    limits["tau_max"] = np.full(n, 100.0)
    return interpreted(dh_robot("random", table, kinds=kinds, bodies=bodies, **limits | settings))


MIXED = ("revolute", "prismatic", "revolute", "revolute", "prismatic", "revolute")


def test_names_are_those_of_the_laboratory():
    assert twin.robot_names() == ("irb140", "irb1400")
    assert twin.laboratory_names() == ("figure_7_1", "rtr", "rx90", "two_link", "youbot", "youbot3")
    with pytest.raises(
        UnknownNameError, match=r"unknown robot 'rx91': known are irb140, .*youbot3, or the path"
    ):
        twin.load("rx91")


def test_a_single_row_is_the_printed_dh_matrix():
    row = dh_robot("row", DH(*np.array([[0.0], [2.0], [3.0], [4.0]])))
    T = twin.forward_kinematics(interpreted(row), [1.0])
    assert np.max(np.abs(T[:3] - HDH_1_2_3_4)) < HALF_A_DIGIT


def test_rx90_gives_the_printed_pose():
    T = twin.forward_kinematics(plain("rx90"), [1, 2, 3, 4, 5, 6])
    assert np.max(np.abs(T - T6_RX90)) < HALF_A_DIGIT


def test_youbot_gives_the_printed_pose_and_jacobian():
    robot, q = plain("youbot"), [1, 2, 3, 4, 5]
    assert np.max(np.abs(twin.forward_kinematics(robot, q) - T5_YOUBOT)) < HALF_A_DIGIT
    assert np.max(np.abs(twin.jacobian(robot, q) - JACOBIAN_YOUBOT)) < HALF_A_DIGIT


def test_youbot3_gives_the_printed_inertia_and_torques():
    robot = plain("youbot3")
    assert np.max(np.abs(twin.mass_matrix(robot, [1, 2, 3]) - INERTIA3)) < HALF_A_DIGIT
    tau = twin.inverse_dynamics(robot, [7, 8, 9], [4, 5, 6], [1, 2, 3]) + VISCOUS * [4, 5, 6]
    assert np.max(np.abs(tau - TORQUE)) < HALF_A_DIGIT
    tau = twin.inverse_dynamics(robot, [4, 5, 6], [1, 2, 3], np.zeros(3)) + VISCOUS * [1, 2, 3]
    assert np.max(np.abs(tau - TAU3)) < HALF_A_DIGIT


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


@pytest.mark.parametrize(
    ("name", "q", "p", "z"),
    [
        ("rtr", [0.0, 0.0, 0.0], [0.5, 0.0, 0.4], [0, 0, 1]),
        ("rtr", [np.pi / 2, 0.1, -np.pi / 2], [0.2, 0.4, 0.4], [0, 0, 1]),
        ("figure_7_1", [0.0, 0.0, 0.0], [0.2, 0.0, 0.5], [1, 0, 0]),
        ("figure_7_1", [np.pi / 2, 0.1, 0.3], [0.0, 0.5, 0.6], [0, 1, 0]),
    ],
)
def test_mechanisms_are_what_their_files_say(name, q, p, z):
    T = twin.forward_kinematics(plain(name), q)
    np.testing.assert_allclose(T[:3, 3], p, atol=1e-15)
    np.testing.assert_allclose(T[:3, 2], z, atol=1e-15)


@pytest.mark.parametrize("name", twin.laboratory_names())
def test_tree_and_table_agree(name, rng):
    robot = plain(name)
    for q in rng.uniform(-3, 3, (20, robot.n)):
        assert np.max(np.abs(twin.forward_kinematics(robot, q) - dh_product(robot, q))) < 4e-15


def test_prismatic_rows_of_any_table(rng):
    robot = random_robot(rng, MIXED)
    q = rng.uniform(-3, 3, (20, 6))
    expected = np.array([dh_product(robot, sample) for sample in q])
    assert np.max(np.abs(twin.forward_kinematics(robot, q) - expected)) < 1e-14


@pytest.mark.parametrize("kinds", [MIXED, ("prismatic", "prismatic", "revolute"), ("revolute",) * 4])
def test_dynamics_against_pinocchio_and_pybullet(kinds, rng, tmp_path):
    """By the URDF that is written of the tree, bodies given in DH frames."""
    robot = random_robot(rng, kinds)
    path = tmp_path / "written.urdf"
    path.write_text(urdf_of_tree(robot))
    peer = Pinocchio(path, robot.joint_names)
    q, qd, tau = rng.uniform(-2, 2, (3, 20, robot.n))
    expected = np.array([peer.forward_kinematics(sample) for sample in q])
    assert largest_relative_error(twin.forward_kinematics(robot, q), expected) < 1e-14
    expected = np.array([peer.forward_dynamics(*sample) for sample in zip(q, qd, tau, strict=True)])
    found = twin.forward_dynamics(robot, q, qd, tau)
    assert largest_relative_error(found, expected) < 1e-11
    with Simulation(robot) as simulation:
        steps = [one_step(simulation, *sample) for sample in zip(q, qd, tau, strict=True)]
        assert largest_relative_error(steps, found) < 1e-11
        simulation.reset(q[0])
        T = twin.forward_kinematics(robot, q[0])
        assert np.max(np.abs(simulation.tool_pose() - T)) < 1e-14
        assert np.max(np.abs(simulation.jacobian(q[0]) - twin.jacobian(robot, q[0]))) < 1e-14


def test_a_body_in_a_dh_frame_is_where_that_frame_is(rng):
    """The potential energy is that of the masses' places, found by the plain product of the rows."""
    kinds = ("revolute", "prismatic", "revolute")
    table = DH(rng.uniform(-3, 3, 3), *rng.normal(size=(2, 3)), rng.uniform(-3, 3, 3))
    q, height = rng.uniform(-1, 1, 3), 0.0
    bodies = [LinkBody(2.0 + i, rng.normal(size=3), TENSOR) for i in range(3)]
    robot = interpreted(dh_robot("bodies", table, kinds=kinds, bodies=bodies))
    for i, body in enumerate(bodies, start=1):
        part = dh_robot("part", DH(*(column[:i] for column in table)), kinds=kinds[:i])
        height += body.mass * (dh_product(part, q[:i]) @ [*body.com, 1])[2]
    assert abs(twin.energy(robot, q, np.zeros(3)) - 9.81 * height) < 1e-12


def test_a_payload_hangs_on_the_last_frame_in_the_engine_too(rng):
    robot = interpreted(random_robot(rng, MIXED).with_payload(Payload(3.0, (0.1, 0, 0.2))))
    q, qd, tau = rng.uniform(-2, 2, (3, 6))
    with Simulation(robot) as simulation:
        step = one_step(simulation, q, qd, tau)
    assert largest_relative_error([step], [twin.forward_dynamics(robot, q, qd, tau)]) < 1e-11


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
    assert np.max(np.abs(dh_pose_of_six(robot, solutions) - T[:, None])) < 1e-14
    assert np.max(np.abs(twin.inverse_kinematics(robot, T, near=q) - q)) < 1e-9


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("youbot", "'youbot' is outside the family of closed-form inverse kinematics: it has 5 DH rows"),
        ("figure_7_1", "'figure_7_1' is outside the family .*: it has 3 DH rows"),
    ],
)
def test_inverse_kinematics_of_others_is_refused(name, message):
    with pytest.raises(RobotError, match=message):
        twin.inverse_kinematics(twin.load(name), np.eye(4))


def test_six_rows_with_a_slide_are_outside_the_family():
    table = twin.load("rx90").dh
    assert table is not None
    slides = dh_robot("slides", table, kinds=("revolute", "revolute", "prismatic", *("revolute",) * 3))
    with pytest.raises(RobotError, match=r"'slides' is outside the family .*: joint 3 is prismatic"):
        twin.inverse_kinematics(slides, np.eye(4))


def test_dh_angles_know_of_slides():
    robot = twin.load("rtr")
    half = np.pi / 2
    np.testing.assert_array_equal(twin.dh_angles(robot, [0.5, 0.1, 0.2]), [0.5 - half, 0.0, 0.2 + half])
    with pytest.raises(RobotError, match="joint 'joint_2' of robot 'rtr' is prismatic"):
        twin.joint_angles(robot, np.zeros(3))


@pytest.mark.parametrize(
    "ask",
    [
        lambda r: twin.inverse_dynamics(r, *np.zeros((3, r.n))),
        lambda r: twin.forward_dynamics(r, *np.zeros((3, r.n))),
        lambda r: twin.mass_matrix(r, np.zeros(r.n)),
        lambda r: twin.coriolis_matrix(r, *np.zeros((2, r.n))),
        lambda r: twin.gravity_torque(r, np.zeros(r.n)),
        lambda r: twin.energy(r, *np.zeros((2, r.n))),
        lambda r: twin.mass_matrix(r.with_payload(Payload(1.0)), np.zeros(r.n)),
        Simulation,
        urdf_of_tree,
        lambda r: Simulation(r.with_payload(Payload(1.0))),
    ],
)
def test_without_masses_there_are_no_dynamics(ask):
    with pytest.raises(RobotError, match="robot 'rx90' has no dynamics: its DH table is known"):
        ask(plain("rx90"))


def test_a_log_keeps_such_robots(rng, tmp_path):
    from twin.analytic_plant import AnalyticPlant
    from twin.closed_loop import run_closed_loop
    from twin.log import Log
    from twin.sampling import sample
    from twin.trajectories import hold

    made = random_robot(rng, MIXED)
    own = tmp_path / "own_dh.toml"
    own.write_text((twin.load("two_link").file).read_text(encoding="utf-8"), encoding="utf-8")
    cases = (
        made,
        made.with_payload(Payload(2.0, (0, 0.1, 0))).mounted("wall"),
        twin.load("youbot3"),
        twin.load(own),
    )
    for robot in map(plain, cases):
        reference = sample(hold(np.zeros(robot.n), 0.003), 1e-3)
        log = run_closed_loop(AnalyticPlant(robot), lambda *_, n=robot.n: np.zeros(n), reference)
        log.save(tmp_path / "run.npz")
        back = Log.load(tmp_path / "run.npz")
        assert back.identical(log)
        assert (back.robot.name, back.robot.file) == (robot.name, robot.file)
        assert back.robot.tree.kinds == robot.tree.kinds
        assert back.robot.has_inertia
        for name in ("inertias", "T_parent_joint", "T_joint_flange"):
            np.testing.assert_array_equal(getattr(back.robot.tree, name), getattr(robot.tree, name))
        for name in ("q_min", "tau_max", "gravity", "S"):
            np.testing.assert_array_equal(getattr(back.robot, name), getattr(robot, name))


def test_a_log_of_a_robot_from_nowhere_is_refused(irb140):
    from twin.errors import TwinError
    from twin.kept_robot import kept

    with pytest.raises(TwinError, match="no log can keep robot 'irb140'"):
        kept(replace(irb140, file=None, dh=None))


TABLE = DH(*np.zeros((4, 2)))
TENSOR = np.diag([1.0, 2.0, 2.5])


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"kinds": ["revolute"]}, ValueError, "expected 2 kinds, one a row of the DH table, got 1"),
        ({"kinds": ["revolute", "screw"]}, ValueError, "kinds revolute or prismatic, got 'screw'"),
        ({"bodies": []}, ValueError, "expected 2 bodies, .* got 0"),
        ({"q_min": [0, np.nan], "q_max": [1, 1]}, ValueError, "expected 2 numbers for q_min"),
        ({"q_min": [0, 2], "q_max": [1, 1]}, RobotError, "joint_2 of robot 'bad' has the range 2 to 1"),
        ({"qd_max": [0, 2]}, RobotError, "joint_1 of robot 'bad': expected limits"),
        ({"bodies": [LinkBody(-1.0), None]}, RobotError, "link 1 of robot 'bad' has a mass below 0 kg"),
        ({"bodies": [None, LinkBody(np.nan)]}, RobotError, "link 2 of robot 'bad' has a mass below 0 kg"),
        ({"bodies": [LinkBody(0.0, (0, 0, 0), TENSOR), None]}, RobotError, "inertia but no mass"),
        ({"bodies": [LinkBody(1.0, (0, 0, 0), np.diag([1.0, 1, 3])), None]}, RobotError, "no body can have"),
        ({"bodies": [LinkBody(1.0, (0, 0, 0), TENSOR), None]}, RobotError, "joint 'joint_2' moves no mass"),
        ({"bodies": [LinkBody(1.0, (0, 0), TENSOR), None]}, ValueError, "com of shape"),
        ({"bodies": [LinkBody(1.0, (0, 0, 0), TENSOR + np.eye(3, k=1)), None]}, ValueError, "symmetric"),
    ],
)
def test_misuse_is_one_clear_sentence(settings, error, message):
    with pytest.raises(error, match=message):
        dh_robot("bad", TABLE, **settings)


@pytest.mark.parametrize(
    "table", [DH(*np.zeros((4, 0))), TABLE._replace(a=np.zeros(3)), TABLE._replace(d=[0, np.inf])]
)
def test_a_table_is_four_finite_columns(table):
    with pytest.raises(ValueError, match="expected a DH table of four columns of finite numbers"):
        dh_robot("bad", table)
