"""Robots made of a DH table: the tree against plain products, Pinocchio and PyBullet, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

import twin
from tests.support.dh_tables import MIXED, dh_product, plain, random_robot
from tests.support.peers import Pinocchio, largest_relative_error, one_step
from tests.support.random_trees import interpreted
from tests.support.urdf_writer import urdf_of_tree
from twin.engine.simulation import Simulation
from twin.errors import RobotError
from twin.robot.loading.dh_tables import LinkBody, dh_robot
from twin.robot.robot import DH, Payload

TABLE = DH(*np.zeros((4, 2)))
TENSOR = np.diag([1.0, 2.0, 2.5])


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


def test_a_joint_may_have_the_name_of_the_flange_s(rng):
    """Two joints of one name end the process in PyBullet."""
    names = ["joint_tool", "joint_tool_"]
    robot = dh_robot("arm", TABLE, bodies=[LinkBody(1.0, (0, 0, 0), TENSOR)] * 2, joint_names=names)
    with Simulation(interpreted(robot)) as simulation:
        q = rng.uniform(-1, 1, 2)
        simulation.reset(q)
        np.testing.assert_allclose(simulation.tool_pose(), twin.forward_kinematics(robot, q), atol=1e-14)


def test_six_rows_with_a_slide_are_outside_the_family():
    table = twin.load("rx90").dh
    assert table is not None
    slides = dh_robot("slides", table, kinds=("revolute", "revolute", "prismatic", *("revolute",) * 3))
    with pytest.raises(RobotError, match=r"'slides' is outside the family .*: joint 3 is prismatic"):
        twin.inverse_kinematics(slides, np.eye(4))


def test_dh_angles_know_of_slides():
    robot = twin.load("rtr")
    half = np.pi / 2
    np.testing.assert_array_equal(
        twin.kinematics.dh_from_joint_angles(robot, [0.5, 0.1, 0.2]), [0.5 - half, 0.0, 0.2 + half]
    )
    with pytest.raises(RobotError, match="joint 'joint_2' of robot 'rtr' is prismatic"):
        twin.kinematics.joint_from_dh_angles(robot, np.zeros(3))


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
    from twin.control.closed_loop import run_closed_loop
    from twin.control.plant import AnalyticPlant
    from twin.logs.log import Log
    from twin.trajectories.joint_trajectories import hold
    from twin.trajectories.sampling import sample

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
        for name in ("q_min", "tau_max", "gravity", "dh_coupling"):
            np.testing.assert_array_equal(getattr(back.robot, name), getattr(robot, name))


def test_a_log_of_a_robot_from_nowhere_is_refused(irb140):
    from twin.errors import TwinError
    from twin.logs.archive import robot_to_record

    with pytest.raises(TwinError, match="robot 'irb140' cannot be stored in a log"):
        robot_to_record(replace(irb140, file=None, dh=None))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"kinds": ["revolute"]}, ValueError, "expected 2 kinds, one per row of the DH table, got 1"),
        ({"kinds": ["revolute", "screw"]}, ValueError, "kind revolute or prismatic, got 'screw'"),
        ({"bodies": []}, ValueError, "expected 2 bodies, .* got 0"),
        ({"joint_names": ["a", "a"]}, ValueError, "expected different, non-empty joint_names, got 'a', 'a'"),
        ({"joint_names": ["a", ""]}, ValueError, "expected different, non-empty joint_names, got 'a', ''"),
        ({"q_min": [0, np.nan], "q_max": [1, 1]}, ValueError, "expected 2 numbers for q_min"),
        ({"q_min": [0, 2], "q_max": [1, 1]}, RobotError, "joint_2 of robot 'bad' has the range 2 to 1"),
        ({"qd_max": [0, 2]}, RobotError, "joint_1 of robot 'bad': expected limits"),
        ({"bodies": [LinkBody(-1.0), None]}, RobotError, "link 1 of robot 'bad' has a mass below 0 kg"),
        ({"bodies": [None, LinkBody(np.nan)]}, RobotError, "link 2 of robot 'bad' has a mass below 0 kg"),
        ({"bodies": [LinkBody(0.0, (0, 0, 0), TENSOR), None]}, RobotError, "inertia but no mass"),
        (
            {"bodies": [LinkBody(1.0, (0, 0, 0), np.diag([1.0, 1, 3])), None]},
            RobotError,
            "which are impossible",
        ),
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
