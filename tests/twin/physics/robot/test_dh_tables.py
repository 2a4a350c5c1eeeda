"""Robots made of a DH table: the tree against plain products, Pinocchio and PyBullet, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import twin
from tests.support.dh_tables import MIXED, dh_product, plain, random_robot
from tests.support.peers import Pinocchio, largest_relative_error, one_step
from tests.support.urdf_writer import urdf_of_tree
from twin.base.errors import RobotError, TwinError
from twin.data.logs.archive import robot_to_record
from twin.data.logs.closed_loop import run_closed_loop
from twin.data.logs.log import Log
from twin.physics.control.plant import AnalyticPlant
from twin.physics.engine.simulation import Simulation
from twin.physics.multibody.tree import frozen
from twin.physics.robot.dh_tables import LinkBody, dh_robot
from twin.physics.robot.evaluation import uncompiled
from twin.physics.robot.robot import DH, Payload
from twin.physics.trajectories.joint_trajectories import hold
from twin.physics.trajectories.sampling import sample

pytestmark = pytest.mark.slow("loads and compiles arms")

TABLE = DH(*np.zeros((4, 2)))
TENSOR = np.diag([1.0, 2.0, 2.5])


@pytest.mark.parametrize("kinds", [MIXED, ("prismatic", "prismatic", "revolute")])
def test_dynamics_against_pinocchio_and_pybullet(kinds, rng, tmp_path):
    """By the URDF that is written of the tree, bodies in DH frames; then with a payload on the last one."""
    robot = random_robot(rng, kinds)
    path = tmp_path / "written.urdf"
    path.write_text(urdf_of_tree(robot))
    peer = Pinocchio(path, robot.joint_names)
    q, qd, tau = rng.uniform(-2, 2, (3, 5, robot.n))
    T = twin.forward_kinematics(robot, q)
    for pose in (peer.forward_kinematics, lambda sample: dh_product(robot, sample)):
        assert largest_relative_error(T, np.array([pose(sample) for sample in q])) < 1e-14
    expected = np.array([peer.forward_dynamics(*sample) for sample in zip(q, qd, tau, strict=True)])
    found = twin.forward_dynamics(robot, q, qd, tau)
    assert largest_relative_error(found, expected) < 1e-11
    with Simulation(robot) as simulation:
        steps = [one_step(simulation, *sample) for sample in zip(q, qd, tau, strict=True)]
        assert largest_relative_error(steps, found) < 1e-11
        simulation.reset(q[0])
        assert np.max(np.abs(simulation.tool_pose() - T[0])) < 1e-14
        assert np.max(np.abs(simulation.jacobian(q[0]) - twin.jacobian(robot, q[0]))) < 1e-14
    loaded = uncompiled(robot.with_payload(Payload(3.0, (0.1, 0, 0.2))))
    with Simulation(loaded) as simulation:
        step = one_step(simulation, q[0], qd[0], tau[0])
    assert largest_relative_error([step], [twin.forward_dynamics(loaded, q[0], qd[0], tau[0])]) < 1e-11


def test_a_body_in_a_dh_frame_is_where_that_frame_is(rng):
    """The potential energy is that of the masses' places, found by the plain product of the rows."""
    kinds = ("revolute", "prismatic", "revolute")
    table = DH(rng.uniform(-3, 3, 3), *rng.normal(size=(2, 3)), rng.uniform(-3, 3, 3))
    q, height = rng.uniform(-1, 1, 3), 0.0
    bodies = [LinkBody(2.0 + i, rng.normal(size=3), TENSOR) for i in range(3)]
    robot = uncompiled(dh_robot("bodies", table, kinds=kinds, bodies=bodies))
    for i, body in enumerate(bodies, start=1):
        part = dh_robot("part", DH(*(column[:i] for column in table)), kinds=kinds[:i])
        height += body.mass * (dh_product(part, q[:i]) @ [*body.com, 1])[2]
    assert abs(twin.energy(robot, q, np.zeros(3)) - 9.81 * height) < 1e-12


def test_a_joint_may_have_the_name_of_the_flange_s(rng):
    """Two joints of one name end the process in PyBullet."""
    names = ["joint_tool", "joint_tool_"]
    robot = dh_robot("arm", TABLE, bodies=[LinkBody(1.0, (0, 0, 0), TENSOR)] * 2, joint_names=names)
    robot = uncompiled(robot)
    with Simulation(robot) as simulation:
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
    theta = twin.kinematics.dh_from_joint_angles(robot, [0.5, 0.1, 0.2])
    np.testing.assert_array_equal(theta, [0.5 - half, 0.0, 0.2 + half])
    with pytest.raises(RobotError, match="joint 'joint_2' of robot 'rtr' is prismatic"):
        twin.kinematics.joint_from_dh_angles(robot, np.zeros(3))


def test_without_masses_there_are_no_dynamics():
    bare = plain("rx90")
    zero = np.zeros(bare.n)
    for robot in (bare, bare.with_payload(Payload(1.0))):
        for call in (
            lambda: twin.inverse_dynamics(robot, zero, zero, zero),  # noqa: B023
            lambda: twin.mass_matrix(robot, zero),  # noqa: B023
            lambda: twin.energy(robot, zero, zero),  # noqa: B023
            lambda: Simulation(robot),  # noqa: B023
            lambda: urdf_of_tree(robot),  # noqa: B023
        ):
            with pytest.raises(RobotError, match="robot 'rx90' has no dynamics: its DH table is known"):
                call()


def test_a_log_keeps_such_robots(rng, tmp_path):
    given = tmp_path / "own_dh.toml"
    given.write_bytes(twin.load("two_link").file.read_bytes())
    made = random_robot(rng, MIXED).with_payload(Payload(2.0, (0, 0.1, 0))).mounted("wall")
    for robot in map(plain, (made, twin.load("youbot3"), twin.load(given))):
        reference = sample(hold(np.zeros(robot.n), 0.003), 1e-3)
        log = run_closed_loop(AnalyticPlant(robot), lambda *_, n=robot.n: np.zeros(n), reference)
        log.save(tmp_path / "run.npz")
        read = Log.load(tmp_path / "run.npz")
        back = read.robot
        assert read.identical(log)
        assert (back.name, back.file, back.tree.kinds) == (robot.name, robot.file, robot.tree.kinds)
        for name in ("inertias", "T_parent_joint", "T_joint_flange"):
            np.testing.assert_array_equal(getattr(back.tree, name), getattr(robot.tree, name))
        for name in ("q_min", "tau_max", "gravity", "dh_coupling"):
            np.testing.assert_array_equal(getattr(back, name), getattr(robot, name))


def test_a_log_of_a_robot_from_nowhere_is_refused(irb140):
    with pytest.raises(TwinError, match="robot 'irb140' cannot be stored in a log"):
        robot_to_record(replace(irb140, file=None, dh=None))


def of(*body):
    return {"bodies": [LinkBody(*body), None]}


POINT = (0, 0, 0)


def test_misuse_is_one_clear_sentence():
    for settings, error, message in (
        ({"kinds": ["revolute"]}, ValueError, "expected 2 kinds, one per row of the DH table, got 1"),
        ({"kinds": ["revolute", "screw"]}, ValueError, "kind revolute or prismatic, got 'screw'"),
        ({"bodies": []}, ValueError, "expected 2 bodies, .* got 0"),
        ({"joint_names": ["a", "a"]}, ValueError, "expected different, non-empty joint_names, got 'a', 'a'"),
        ({"joint_names": ["a", ""]}, ValueError, "expected different, non-empty joint_names, got 'a', ''"),
        ({"q_min": [0, np.nan], "q_max": [1, 1]}, ValueError, "expected 2 numbers for q_min"),
        ({"q_min": [0, 2], "q_max": [1, 1]}, RobotError, "joint_2 of robot 'bad' has the range 2 to 1"),
        ({"qd_max": [0, 2]}, RobotError, "joint_1 of robot 'bad': expected limits"),
        ({"coupling": np.ones((2, 2))}, ValueError, r"expected a coupling of shape \(2, 2\) that can be inv"),
        (
            {"kinds": ["revolute", "prismatic"], "coupling": [[1, 0], [1, 1]]},
            ValueError,
            r"expected row 2 of the coupling to be \[0.0, 1.0\]: it slides",
        ),
        (of(-1.0), RobotError, "link 1 of robot 'bad' has a mass below 0 kg"),
        (of(np.nan), RobotError, "link 1 of robot 'bad' has a mass below 0 kg"),
        (of(0.0, POINT, TENSOR), RobotError, "inertia but no mass"),
        (of(1.0, POINT, np.diag([1.0, 1, 3])), RobotError, "which are impossible"),
        (of(1.0, POINT, TENSOR), RobotError, "joint 'joint_2' moves no mass"),
        (of(1.0, (0, 0), TENSOR), ValueError, "com of shape"),
        (of(1.0, POINT, TENSOR + np.eye(3, k=1)), ValueError, "symmetric"),
    ):
        with pytest.raises(error, match=message):
            dh_robot("bad", TABLE, **settings)
    for table in (DH(*np.zeros((4, 0))), TABLE._replace(a=np.zeros(3)), TABLE._replace(d=[0, np.inf])):
        with pytest.raises(ValueError, match="expected a DH table of four columns of finite numbers"):
            dh_robot("bad", table)


COUPLING = [[1, 0, 0], [0, 1, 0], [0, -1, 1]]  # axis 3 keeps its direction, as with a parallelogram


def coupled_arm():
    """Return three axes with a parallelogram, rigid drives and friction."""
    bodies = [LinkBody(m, (-0.2, 0.01, 0.02), np.diag([0.1, 0.2, 0.15])) for m in (9, 6, 3)]
    dh = DH(theta0=[0, -1.2, 0.4], d=[0.4, 0, 0], a=[0.1, 0.6, 0.5], alpha=[-np.pi / 2, 0, 0])
    arm = dh_robot("coupled", dh, bodies=bodies, coupling=COUPLING)
    drives = twin.Drives([100.0] * 3, 1e-4, coulomb=[3.0, 5, 2], static=[4.0, 7, 3], viscous=2.0)
    return arm.with_drives("rigid", drives)


@pytest.mark.parametrize("mode", ["ideal", "rigid"])
def test_coupled_dh_angles_in_model_and_engine(mode, rng):
    arm = uncompiled(coupled_arm().with_drives(mode))
    alone = uncompiled(replace(arm, embedding=frozen(np.eye(3)), dh_coupling=frozen(np.eye(3))))
    S = np.array(COUPLING, dtype=float)
    q, qd, qdd = rng.uniform(-1, 1, (3, 3))
    T = twin.forward_kinematics(alone, S @ q)
    np.testing.assert_allclose(twin.forward_kinematics(arm, q), T, atol=1e-15)
    theta = twin.kinematics.dh_from_joint_angles(arm, q)
    np.testing.assert_allclose(theta, S @ q + arm.dh.theta0, atol=1e-15)
    theirs = S.T @ twin.inverse_dynamics(alone.arm, S @ q, S @ qd, S @ qdd)
    np.testing.assert_allclose(twin.inverse_dynamics(arm.arm, q, qd, qdd), theirs, atol=1e-12)
    plant = AnalyticPlant(arm, 1e-3)
    with Simulation(arm) as engine:
        for one in (plant, engine):
            one.reset(q, 0 * qd)
        for k in range(60):
            tau = twin.gravity_torque(arm, q) + 8.0 * np.sin(0.1 * k + np.arange(3))
            for one in (plant, engine):
                one.step(tau)
        np.testing.assert_allclose(engine.state(), plant.state(), rtol=0, atol=1e-11)


# A table in the modified convention, against the product of its transformations.


A = [0, 0, 0, 0.0825, -0.0825, 0, 0.088]
ALPHA = [0, -90, 90, 90, -90, 90, 90]
D = [0.333, 0, 0.316, 0, 0.384, 0, 0.1]
MOMENTS = [0.1, 0.12, 0.13, 0.01, 0.02, -0.015]
MODIFIED = f"""
name = "seven"
title = "Seven axes"
source = "made up, as a Panda"

[dh]
convention = "modified"
theta0_deg = [0, 0, 0, 0, 0, 0, 0]
d = {D}
a = {A}
alpha_deg = {ALPHA}
source = "made up"

[links]
source = "made up"
""" + "".join(
    f"[link.{i + 1}]\nmass = {i + 1}\ncom = [0.1, {0.02 * i}, -0.05]\ninertia = {MOMENTS}\n" for i in range(7)
)


def frames(q):
    """Poses of the seven frames, each at its joint: Rx(alpha) Tx(a) Rz(q) Tz(d)."""
    T, found = np.eye(4), []
    for a, alpha, d, angle in zip(A, ALPHA, D, q, strict=True):
        before, joint = np.eye(4), np.eye(4)
        before[:3, :3] = Rotation.from_euler("x", alpha, degrees=True).as_matrix()
        before[:3, 3] = (a, 0, 0)
        joint[:3, :3], joint[2, 3] = Rotation.from_euler("z", angle).as_matrix(), d
        T = T @ before @ joint
        found.append(T)
    return found


def test_flange_and_inertia_are_those_of_the_transformations(tmp_path, rng):
    (tmp_path / "seven_dh.toml").write_text(MODIFIED, encoding="utf-8")
    arm = uncompiled(twin.load(tmp_path / "seven_dh.toml"))
    q = rng.uniform(-2.0, 2.0, 7)
    T = frames(q)
    np.testing.assert_allclose(twin.forward_kinematics(arm, q), T[-1], atol=1e-14)
    xx, yy, zz, xy, xz, yz = MOMENTS
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    M = np.zeros((7, 7))
    for i in range(7):
        com = (T[i] @ [0.1, 0.02 * i, -0.05, 1.0])[:3]
        axes = np.array([one[:3, 2] for one in T[: i + 1]])
        linear, angular = np.zeros((2, 3, 7))
        linear[:, : i + 1] = np.cross(axes, com - np.array([one[:3, 3] for one in T[: i + 1]])).T
        angular[:, : i + 1] = axes.T
        R = T[i][:3, :3]
        M += (i + 1) * linear.T @ linear + angular.T @ R @ tensor @ R.T @ angular
    np.testing.assert_allclose(twin.mass_matrix(arm, q), M, rtol=1e-12, atol=1e-13)


def test_what_is_no_modified_table_is_one_sentence(tmp_path):
    for before, after, said in (
        ('"modified"', '"craig"', "dh.convention: expected standard or modified, got 'craig'"),
        ("a = [0, 0,", "a = [0.1, 0,", "expected a and alpha_deg of the first row to be 0"),
    ):
        (tmp_path / "bad_dh.toml").write_text(MODIFIED.replace(before, after), encoding="utf-8")
        with pytest.raises(RobotError, match=said):
            twin.load(tmp_path / "bad_dh.toml")
