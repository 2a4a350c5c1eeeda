"""What drives add to the arm: rotors by their energy and two libraries, friction by formulas written here."""

from math import exp

import numpy as np
import pytest

import twin
from tests.support.peers import MuJoCo, Pinocchio, largest_relative_error
from tests.support.sample_drives import COUPLING, RUBBING, uncoupled
from twin.robot.drives.drives import Drives
from twin.robot.evaluation import uncompiled


@pytest.fixture(scope="module")
def robot(irb140):
    return uncompiled(irb140.with_drives("rigid", RUBBING))


def rubbed(v, axis):
    """F(v) of one shaft, as it is written."""
    names = ("coulomb", "static", "stribeck_speed", "viscous")
    Fc, Fs, vs, Fv = (getattr(RUBBING, name)[axis] for name in names)
    sign = 1.0 if v > 0 else -1.0 if v < 0 else 0.0
    fading = exp(-((v / vs) ** 2)) if vs > 0 else 0.0
    return (Fc + (Fs - Fc) * fading) * sign + Fv * v


def test_friction_is_the_law_at_each_shaft_and_takes_its_power(robot, rng):
    qd = rng.normal(size=(200, 6)) * 10.0 ** rng.integers(-3, 1, size=(200, 6))
    qd[::7, rng.integers(6)] = 0.0
    for speeds, torque in zip(qd, twin.friction_torque(robot, qd), strict=True):
        wanted = np.zeros(6)
        for axis in range(6):
            turns = COUPLING[axis] if RUBBING.friction_at[axis] == "motor" else np.eye(6)[axis]
            wanted += rubbed(sum(turns * speeds), axis) * turns
        np.testing.assert_allclose(torque, wanted, rtol=1e-13, atol=1e-13 * np.max(np.abs(wanted)))
    assert np.all(np.sum(qd * twin.friction_torque(robot, qd), axis=-1) >= 0)


def test_rotors_have_the_energy_of_their_turning(robot, rng):
    for qd in rng.normal(size=(50, 6)):
        turns = RUBBING.ratio * (COUPLING @ qd)
        turning = sum(0.5 * RUBBING.rotor_inertia * turns**2)
        assert 0.5 * qd @ twin.dynamics.reflected_inertia(robot) @ qd == pytest.approx(turning, rel=1e-13)
        tau_m = rng.normal(size=6)  # N^T tau_m at the joints does the work of tau_m at the motors
        assert (RUBBING.motor_matrix.T @ tau_m) @ qd == pytest.approx(tau_m @ turns, rel=1e-12)


def test_mass_matrix_with_rotors_against_pinocchio_and_mujoco(arm, rng):
    driven = uncoupled(arm).with_drives("rigid", uncoupled(arm).drives.without_friction())
    armature = np.zeros(driven.tree.n)  # the rotors' inertia at each joint of the tree
    armature[list(driven.driven)] = np.array(driven.drives.ratio) ** 2 * driven.drives.rotor_inertia
    pinocchio, mujoco = Pinocchio(driven.urdf, driven.tree.names), MuJoCo(driven.urdf)
    pinocchio.model.armature = armature[pinocchio.back]
    mujoco.model.dof_armature[:] = armature
    G, q = driven.embedding, rng.uniform(driven.q_min, driven.q_max, (30, 6)) * 0.5
    M = twin.mass_matrix(driven, q)
    for peer in (pinocchio, mujoco):
        expected = np.array([G.T @ peer.mass_matrix(G @ one + driven.embedding_offset) @ G for one in q])
        assert largest_relative_error(M, expected) < 1e-12


def test_shapes_go_together_as_those_of_inverse_dynamics(robot):
    assert twin.friction_torque(robot, np.zeros((0, 6))).shape == (0, 6)
    still, moving, F = np.zeros(6), np.full((3, 1, 6), 0.1), np.arange(6.0)
    tau, free = (twin.inverse_dynamics(robot, still, moving, np.ones((4, 6)), w) for w in (F, None))
    assert tau.shape == (3, 4, 6)
    pushed = np.broadcast_to(-F @ twin.jacobian(robot, still), tau.shape)
    np.testing.assert_allclose(tau - free, pushed, rtol=0, atol=1e-11)
    with pytest.raises(ValueError, match=r"expected qd of shape \(\.\.\., 6\), got \(5,\)"):
        twin.friction_torque(robot, np.zeros(5))
    with pytest.raises(ValueError, match="expected qd to be finite"):
        twin.friction_torque(robot, np.full(6, np.nan))


def test_joints_at_rest_have_no_friction_and_slow_ones_the_static_one(irb140):
    for mode in ("ideal", "rigid"):
        still = twin.friction_torque(irb140.with_drives(mode), np.full(6, 0.1 * (mode == "ideal")))
        np.testing.assert_array_equal(still, 0)
    assert irb140.arm is irb140
    np.testing.assert_array_equal(twin.dynamics.reflected_inertia(irb140), np.zeros((6, 6)))
    slow = twin.friction_torque(uncoupled(irb140).with_drives("rigid"), np.full(6, -1e-12))
    np.testing.assert_allclose(slow, -irb140.drives.static, rtol=1e-10)
    steep = Drives(np.ones(6), 0.0, coulomb=1.0, static=2.0, stribeck_speed=1e-300)
    fast = twin.friction_torque(irb140.with_drives("rigid", steep), np.full(6, 3.0))
    np.testing.assert_array_equal(fast, 1.0)
