"""Dynamics against Pinocchio on random trees, and against the identities that they must meet.

tests/test_agreement.py compares the arms with Pinocchio and MuJoCo.
"""

import numpy as np
import pytest

import twin
from tests.support.peers import Pinocchio, check_kernels, largest_relative_error
from tests.support.random_trees import interpreted, random_urdf
from twin.physics.robot.evaluation import uncompiled


@pytest.fixture(scope="module")
def states(robot):
    """Random joint positions over the full range, velocities, accelerations, torques."""
    rng = np.random.default_rng(1)
    shape = (100, robot.n)
    return (
        rng.uniform(robot.q_min, robot.q_max, shape),
        rng.uniform(-robot.qd_max, robot.qd_max, shape),
        rng.normal(size=shape) * 20.0,
        rng.uniform(-robot.tau_max, robot.tau_max, shape),
    )


def rows(function, *vectors):
    return np.array([function(*sample) for sample in zip(*vectors, strict=True)])


def test_energy_gravity_in_any_direction_and_c_at_small_speeds_against_pinocchio(robot, states):
    peer, (q, qd, _, _) = Pinocchio(robot.urdf, robot.joint_names), states
    expected = rows(peer.energy, q, qd)[:, None]
    assert largest_relative_error(twin.energy(robot, q, qd)[:, None], expected) < 1e-12
    # C is linear in qd: no precision may be lost at small speeds.
    expected = 1e-9 * rows(peer.coriolis_matrix, q, qd)
    assert largest_relative_error(twin.coriolis_matrix(robot, q, 1e-9 * qd), expected) < 1e-12
    peer.model.gravity.linear[:] = (3.0, -5.0, 7.0)
    tilted = robot.with_gravity((3.0, -5.0, 7.0))
    assert largest_relative_error(twin.gravity_torque(tilted, q), rows(peer.gravity_torque, q)) < 1e-12
    for where, axes in MOUNTED.items():
        np.testing.assert_array_equal(robot.mounted(where).gravity, np.transpose(axes) @ [0, 0, -9.81])


def test_payload_is_a_link_in_pinocchio(robot, states, tmp_path):
    """The payload merged into link 6 is the payload hung on the flange by a fixed joint."""
    q, qd, qdd, _ = states
    inertia = np.array([[0.02, 0.001, -0.002], [0.001, 0.03, 0.003], [-0.002, 0.003, 0.025]])
    com = (0.01, -0.02, 0.08)
    body = (
        f'<link name="payload"><inertial><origin xyz="{com[0]} {com[1]} {com[2]}"/><mass value="6"/>'
        '<inertia ixx="0.02" iyy="0.03" izz="0.025" ixy="0.001" ixz="-0.002" iyz="0.003"/></inertial></link>'
        '<joint name="to_payload" type="fixed"><parent link="tool0"/><child link="payload"/></joint></robot>'
    )
    (tmp_path / "loaded.urdf").write_text(robot.urdf.read_text().replace("</robot>", body))
    loaded = robot.with_payload(twin.Payload(6.0, com, inertia))
    expected = rows(Pinocchio(tmp_path / "loaded.urdf", robot.joint_names).inverse_dynamics, q, qd, qdd)
    assert largest_relative_error(twin.inverse_dynamics(loaded, q, qd, qdd), expected) < 1e-12
    bare = twin.inverse_dynamics(loaded.with_payload(None), q, qd, qdd)
    assert largest_relative_error(bare, twin.inverse_dynamics(robot, q, qd, qdd)) < 1e-12


# The axes of the base in the world, as columns: the base plate on a wall, its x axis up; upside down.
MOUNTED = {"floor": np.eye(3), "wall": [[0, 0, 1], [0, -1, 0], [1, 0, 0]], "inverted": np.diag([1, -1, -1])}


def test_wrenches_broadcast_against_states_and_forward_dynamics_inverts_them(robot, states):
    q, qd, qdd, tau = (s[0] for s in states)
    F = np.random.default_rng(6).normal(size=(2, 5, 6)) * 50
    T = twin.pose_matrix([0.02, -0.01, 0.15, 1, 0, 0, 0])
    loaded = twin.inverse_dynamics(robot, q, qd, qdd, wrench=F, T_flange_tool=T)
    again = twin.forward_dynamics(robot, q, qd, loaded, wrench=F, T_flange_tool=T)
    assert largest_relative_error(again, np.broadcast_to(qdd, again.shape)) < 1e-10
    for function, last in ((twin.inverse_dynamics, qdd), (twin.forward_dynamics, tau)):
        batch = function(robot, q, qd, last, wrench=F)
        assert batch.shape == (2, 5, 6)
        assert np.array_equal(batch[1, 3], function(robot, q, qd, last, wrench=F[1, 3]))
        assert function(robot, q, qd, last, wrench=F[:, :0]).shape == (2, 0, 6)
        with pytest.raises(ValueError, match="expected a wrench whose shape fits q"):
            function(robot, states[0][:3], states[1][:3], states[2][:3], wrench=F)


def test_one_sample_and_a_batch_agree_to_the_last_bit(robot, states):
    q, qd, qdd, tau = (s[:6].reshape(2, 3, 6) for s in states)
    for function, vectors in (
        (twin.inverse_dynamics, (q, qd, qdd)),
        (twin.forward_dynamics, (q, qd, tau)),
        (twin.mass_matrix, (q,)),
        (twin.coriolis_matrix, (q, qd)),
        (twin.gravity_torque, (q,)),
        (twin.energy, (q, qd)),
    ):
        batch = function(robot, *vectors)
        assert np.array_equal(batch[1, 2], function(robot, *(v[1, 2] for v in vectors)))


def test_random_trees_against_pinocchio(tmp_path):
    """Random axes, origins, rotated inertias, branches, prismatic joints; compiling would take minutes."""
    rng, path = np.random.default_rng(3), tmp_path / "tree.urdf"
    trees = []
    for joints, kernels in ((3, interpreted), (6, interpreted), *((n, uncompiled) for n in range(2, 13))):
        path.write_text(random_urdf(rng, joints))
        robot = kernels(twin.load(path))
        check_kernels(robot, Pinocchio(path, robot.joint_names), rng)
        trees.append(robot.tree)
    assert sum(len(set(tree.parents)) < tree.n for tree in trees) > 6
    assert sum("prismatic" in tree.kinds for tree in trees) > 6
