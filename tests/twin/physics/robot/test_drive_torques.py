"""Torques that drives add: rotors by their energy and two libraries, friction by formulas written here."""

from itertools import pairwise
from math import exp

import numpy as np
import pytest

import twin
from tests.support.drive_oracles import levels
from tests.support.peers import MuJoCo, Pinocchio, largest_relative_error
from tests.support.sample_drives import COUPLING, RUBBING, uncoupled
from twin.physics.control.plant import AnalyticPlant
from twin.physics.robot.drives.drives import Drives
from twin.physics.robot.evaluation import uncompiled


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


# Energy: what the motors give is stored in links, rotors and springs, or becomes heat.
#
# Summed as the step's scheme has it: torques at the mean of the speeds before and after a step, springs half
# a step before the positions.  Then rotors, springs, dampers and friction balance to round-off, and what is
# left is that of the links, whose inertia changes on the way: of first order in the step.


pytestmark = pytest.mark.filterwarnings("ignore:steps of .* are too long for the springs")

START = np.deg2rad([10, 20, -10, 15, 30, -20])
SPEED = np.array([0.5, -0.4, 0.6, 1.0, -0.8, 1.2])
SECONDS = 0.4


def driven(robot, drives, t, stops=False):
    """Torques over friction and gravity at the start: every joint goes on as it went, or turns back."""
    swing = -2.5 * np.sin(2 * np.pi * t / SECONDS) if stops else 0.3 * np.sin(20 * t)
    return twin.gravity_torque(robot, START) + np.sign(SPEED) * drives.coulomb * (1.1 + swing)


def ledger(robot, dt, stops=False):
    """Work of the motors, heat of friction, of dampers, and what is stored more at the end, in [J]."""
    drives, plant = robot.drives, AnalyticPlant(robot, dt)
    plant.reset(START, SPEED)
    sprung = np.isfinite(drives.stiffness) & (robot.drive_mode == "elastic")
    k, d = np.where(sprung, drives.stiffness, 0.0), np.where(sprung, drives.damping, 0.0)

    def stored():
        (q, qd), (theta, thetad) = plant.state(), plant.motor_state()
        bend = theta - q - dt * (thetad - qd) / 2
        rotors = thetad @ drives.reflected_inertia @ thetad
        return twin.energy(robot.arm, q, qd) + (rotors + bend @ (k * bend)) / 2

    before = stored()
    work = rubbed = damped = 0.0
    for step in range(round(SECONDS / dt)):
        tau, qd, w = driven(robot, drives, step * dt, stops), plant.state()[1], plant.motor_state()[1]
        plant.step(tau)
        next_qd, next_w = plant.state()[1], plant.motor_state()[1]
        mean, stretch = (w + next_w) / 2, (w + next_w - qd - next_qd) / 2
        friction = levels(drives, w, np.zeros(robot.n)) * np.sign(next_w) + drives.viscous * next_w
        stuck = next_w == 0
        friction[stuck] = (drives.reflected_inertia @ w / dt + tau - plant.tau_joint)[stuck]
        work += dt * tau @ mean
        rubbed += dt * friction @ mean
        damped += dt * stretch @ (d * stretch)
    return work, rubbed, damped, stored() - before


@pytest.mark.parametrize(
    ("name", "mode", "stops", "extrapolated"),
    [("irb140", "rigid", True, 1e-6), ("irb1400", "elastic", False, 1e-8)],
)
def test_work_is_stored_or_becomes_heat(name, mode, stops, extrapolated):
    """Joints that keep moving (seen: 9e-12 of the work), and such that stop, stick and turn back (2e-8)."""
    robot = uncoupled(twin.load(name)).with_drives(mode)
    left, works = [], []
    for part in (1, 2, 4, 8):
        work, rubbed, damped, stored = ledger(robot, 1e-3 / part, stops)
        assert rubbed > 0.1 * work > 0
        assert (damped > 0) == (mode == "elastic")
        left.append(work - rubbed - damped - stored)
        works.append(work)
    assert abs(left[0]) < 1e-3 * works[0]
    assert left[1] / left[2] == pytest.approx(2, abs=0.1)
    for order in (1, 2, 3):
        left = [(2**order * fine - coarse) / (2**order - 1) for coarse, fine in pairwise(left)]
    assert abs(left[0]) < extrapolated * works[0]
