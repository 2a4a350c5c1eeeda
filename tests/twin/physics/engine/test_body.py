"""The engine's robot is the `Robot` that it is given, whatever its file says and however it says it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import twin
from tests.support.peers import one_step
from tests.support.random_trees import interpreted
from tests.support.small_robots import LUMP, agrees, arm, inertial, one_step_error
from twin.base.errors import RobotError
from twin.physics.dynamics.equation_of_motion import forward_dynamics
from twin.physics.engine.body import MOST_JOINTS
from twin.physics.engine.simulation import Simulation
from twin.physics.kinematics.forward import forward_kinematics, jacobian
from twin.physics.multibody.tree import body_from_parameters
from twin.physics.robot.evaluation import uncompiled
from twin.physics.robot.loops import open_chain, without_loop_links
from twin.physics.robot.robot import Payload

ABOVE = np.nextafter([0.1, 0.2], 1)
FILES = {
    "a collision shape": arm(shape='<collision><geometry><box size="0.1 0.2 0.3"/></geometry></collision>'),
    "a rod, at the edge of the triangle inequality": arm(second=inertial(tensor=(0, 0.1, ABOVE[0], 0, 0, 0))),
    "a plate": arm(second=inertial(tensor=(0.1, 0.1, ABOVE[1], 0, 0, 0))),
    "a moment below zero": arm(second=inertial(tensor=(-1e-18, 0.1, 0.1, 0, 0, 0))),
    "an axis of few digits": arm(axis="0.70710 0.70711 0"),
    "damping": arm(dynamics='<dynamics damping="0.5"/>'),
    "friction": arm(dynamics='<dynamics friction="2"/>'),
    "a spring": arm(dynamics='<dynamics spring_stiffness="30"/>'),
    "contact": arm(second=LUMP + '<contact><inertia_scaling value="3"/></contact>'),
    "a link without inertial": arm().replace(inertial(0.0, tensor=np.zeros(6)), ""),
    "no name": arm().replace('<robot name="arm">', "<robot>"),
}
"""Robots with something in their files that PyBullet would take otherwise than the model."""


@pytest.mark.parametrize("what", FILES)
def test_the_engine_takes_the_model_s_numbers_for_those_of_the_file(load, rng, what):
    assert agrees(load(FILES[what]), rng)


def test_off_diagonal_inertia_is_brought_to_principal_axes(load, rng):
    """PyBullet's own diagonalisation is at its worst, some 1e-7, where two moments are nearly equal."""
    for _ in range(2):
        R = Rotation.random(rng=rng).as_matrix()
        T = R @ np.diag([0.1, 0.10001, 0.08]) @ R.T
        tilted = inertial(rpy="0.4 1.1 -2", tensor=(T[0, 0], T[1, 1], T[2, 2], T[0, 1], T[0, 2], T[1, 2]))
        assert agrees(load(arm(first=tilted, second=tilted)), rng)


def test_a_payload_at_that_edge_keeps_its_inertia(irb140, rng):
    for _ in range(3):
        along = rng.normal(size=3)
        rod = Payload(6.0, [0, 0, 0.08], 0.5 * (along @ along * np.eye(3) - np.outer(along, along)))
        assert agrees(irb140.with_payload(rod), rng)


def test_a_turned_inertial_frame_of_the_base_does_not_turn_the_jacobian(load, rng):
    robot = load(arm(base=inertial(rpy="0.5 0.6 0.7", tensor=(0.1, 0.12, 0.09, 0.02, 0, 0))))
    q = rng.uniform(-3, 3, 2)
    with Simulation(robot) as simulation:
        np.testing.assert_allclose(simulation.jacobian(q), jacobian(robot, q), atol=1e-13)
        simulation.reset(q)
        np.testing.assert_allclose(simulation.tool_pose(), forward_kinematics(robot, q), atol=1e-13)
        assert one_step_error(simulation, rng) < 1e-11


def test_models_that_leave_the_links_of_a_loop_out_are_refused(irb1400):
    """They ran as the whole arm; and a joint without mass has no acceleration in PyBullet, loop or not."""
    with pytest.raises(RobotError, match="'irb1400' cannot be simulated: joint 'joint_3' moves no mass"):
        Simulation(without_loop_links(irb1400))
    with pytest.raises(RobotError, match="'irb1400' cannot be simulated: its q are not the angles"):
        Simulation(open_chain(irb1400))


def test_masses_and_geometry_changed_in_a_program_are_changed_in_the_engine(irb140, rng):
    longer = irb140.tree.T_parent_joint.copy()
    longer[:, :3, 3] *= 1.5
    tree = replace(irb140.tree, T_parent_joint=longer, inertias=2 * irb140.tree.inertias)
    robot = interpreted(replace(irb140, tree=tree))
    q = rng.uniform(-2, 2, 6)
    with Simulation(robot) as simulation:
        assert one_step_error(simulation, rng) < 1e-11
        simulation.reset(q)
        np.testing.assert_allclose(simulation.tool_pose(), forward_kinematics(robot, q), atol=1e-13)


def test_a_tensor_that_no_body_has_is_that_of_the_model(irb140, rng):
    """A robot that is known to be unphysical: PyBullet makes the inertia of such a file zero."""
    for row in ((0, 0.05, 0.3, 0, 0, 0), (0.05, -2e-5, 0.05, 0, 0, 0)):
        inertias = irb140.tree.inertias.copy()
        inertias[-1, 4:] += row
        moments = np.linalg.eigvalsh(body_from_parameters(inertias[-1])[2])
        assert moments[0] < 0 or moments[2] > moments[0] + moments[1]
        robot = interpreted(replace(irb140, tree=replace(irb140.tree, inertias=inertias)))
        assert agrees(robot, rng)


def test_masses_that_pybullet_does_not_take_are_refused(irb140):
    for column, value, message in (
        (0, -1.0, "link 'link_6' of robot 'irb140' has a mass of -1 kg"),
        (5, np.nan, "has a mass of 0.05.* kg or a mass property that is not finite"),
        (0, 0.0, "has a first moment and no mass"),
    ):
        inertias = irb140.tree.inertias.copy()
        inertias[-1, column] = value
        with pytest.raises(RobotError, match=message):
            Simulation(replace(irb140, tree=replace(irb140.tree, inertias=inertias)))


def chain(n, name="j"):
    """URDF text of n joints in a row."""
    links = "".join(f'<link name="l{i}">{inertial(1.23456789)}</link>' for i in range(n + 1))
    joints = "".join(
        f'<joint name="{name}{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/>'
        f'<origin xyz="0 0 0.123456789"/><axis xyz="{i % 2} {(i + 1) % 2} 0"/>'
        '<limit lower="-1" upper="1" effort="10" velocity="1"/></joint>'
        for i in range(n)
    )
    return f'<robot name="long">{links}{joints}</robot>'


def test_as_many_joints_as_pybullet_takes_and_no_more(tmp_path, rng):
    path = tmp_path / "long.urdf"
    for n in (MOST_JOINTS, MOST_JOINTS + 1):
        path.write_text(chain(n))
        robot = uncompiled(twin.load(path))
        if n > MOST_JOINTS:
            with pytest.raises(RobotError, match="has 122 moving joints, PyBullet simulates at most 121"):
                Simulation(robot)
            continue
        q, qd = rng.uniform(-0.1, 0.1, (2, n))
        with Simulation(robot) as simulation:
            simulation.reset(q, qd)
            np.testing.assert_array_equal(simulation.state(), (q, qd))
            np.testing.assert_allclose(simulation.tool_pose(), forward_kinematics(robot, q), atol=1e-12)
            np.testing.assert_allclose(simulation.jacobian(q), jacobian(robot, q), atol=1e-11)
            found = one_step(simulation, q, qd, np.zeros(n))
        expected = forward_dynamics(robot, q, qd, np.zeros(n))
        np.testing.assert_allclose(found, expected, atol=1e-8 * np.max(np.abs(expected)))


def test_joints_may_have_names_that_pybullet_does_not_survive(load, rng):
    for name in ("j" * 3000, "gelenk ä<b> [/x] "):
        robot = load(chain(3, name=name.replace("<", "&lt;")))
        assert robot.joint_names[1] == f"{name}1"
        assert agrees(robot, rng)
