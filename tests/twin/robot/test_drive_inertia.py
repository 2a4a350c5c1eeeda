"""Rotors behind gears: the arm's inertia with them, against Pinocchio, MuJoCo and their energy by sympy."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import twin
from tests.support.peers import MuJoCo, Pinocchio, largest_relative_error
from tests.support.sample_drives import COUPLING
from twin.control.plant import AnalyticPlant

DT = 1e-3


@pytest.fixture(scope="module")
def driven(arm):
    """The arm with rigid drives that nothing rubs in."""
    return arm.with_drives("rigid", arm.drives.without_friction())


@pytest.fixture(scope="module")
def armature(driven):
    """What Pinocchio and MuJoCo want: the rotors' inertia at each joint of the tree (N,)."""
    found = np.zeros(driven.tree.n)
    found[list(driven.driven)] = np.array(driven.drives.ratio) ** 2 * driven.drives.rotor_inertia
    return found


def states(robot, rng, count=30):
    at = [rng.uniform(robot.q_min, robot.q_max) * 0.5 for _ in range(count)]
    return np.array(at), *rng.normal(size=(2, count, robot.n)) * 3


def of_tree(robot, mass_matrix, q):
    """G^T M G of a library that knows the tree."""
    G = robot.embedding
    return np.array([G.T @ mass_matrix(G @ one + robot.embedding_offset) @ G for one in q])


def test_mass_matrix_with_rotors_against_pinocchio(driven, armature, rng):
    peer = Pinocchio(driven.urdf, driven.tree.names)
    peer.model.armature = armature[peer.back]
    q, _, _ = states(driven, rng)
    M = twin.mass_matrix(driven, q) + twin.dynamics.reflected_inertia(driven)
    assert largest_relative_error(M, of_tree(driven, peer.mass_matrix, q)) < 1e-12


def test_mass_matrix_with_rotors_against_mujoco(driven, armature, rng):
    peer = MuJoCo(driven.urdf)
    peer.model.dof_armature[:] = armature
    q, _, _ = states(driven, rng)
    M = twin.mass_matrix(driven, q) + twin.dynamics.reflected_inertia(driven)
    assert largest_relative_error(M, of_tree(driven, peer.mass_matrix, q)) < 1e-12


def test_one_step_without_friction_against_pinocchio(irb140, rng):
    robot = irb140.with_drives("rigid", irb140.drives.without_friction())
    peer, plant = Pinocchio(robot.urdf, robot.tree.names), AnalyticPlant(robot, DT)
    peer.model.armature = (np.array(robot.drives.ratio) ** 2 * robot.drives.rotor_inertia)[peer.back]
    for q, qd, tau in zip(*states(robot, rng), strict=True):
        plant.reset(q, qd)
        plant.step(100 * tau)
        qdd, expected = (plant.state()[1] - qd) / DT, peer.forward_dynamics(q, qd, 100 * tau)
        np.testing.assert_allclose(qdd, expected, rtol=0, atol=1e-11 * np.max(np.abs(expected)))


def test_motors_that_turn_together_are_the_second_derivative_of_their_energy(irb140):
    drives = replace(irb140.drives, coupling=COUPLING, ratio=-irb140.drives.ratio)
    robot = irb140.with_drives("rigid", drives)
    qd = sp.symbols("qd1:7")
    turns = [
        n * sum(c * v for c, v in zip(row, qd, strict=True))
        for n, row in zip(drives.ratio, COUPLING, strict=True)
    ]
    energy = sum(J * turn**2 for J, turn in zip(drives.rotor_inertia, turns, strict=True)) / 2
    A = np.array(sp.hessian(sp.expand(energy), qd), dtype=float)
    np.testing.assert_allclose(twin.dynamics.reflected_inertia(robot), A, rtol=0, atol=1e-14 * np.max(A))
    assert A[3, 4] != 0
    np.testing.assert_allclose(
        A[3, 5], drives.coupling[5, 3] * drives.ratio[5] ** 2 * drives.rotor_inertia[5]
    )


def test_what_motors_bring_is_their_power(irb140, rng):
    """N^T tau_m at the joints is what does the work of tau_m at motors that turn with N qd."""
    drives = replace(irb140.drives, coupling=COUPLING)
    qd, tau_m = rng.normal(size=(2, 6))
    turns = [drives.ratio[i] * sum(COUPLING[i] * qd) for i in range(6)]
    assert (drives.motor_matrix.T @ tau_m) @ qd == pytest.approx(np.dot(tau_m, turns), rel=1e-13)
