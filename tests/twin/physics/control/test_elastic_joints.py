"""Elastic joints in the analytic plant: against scipy's own integration, stiff and stiffer, and at rest."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import twin
from tests.support.sample_drives import coupled
from twin.physics.control.plant import AnalyticPlant
from twin.physics.robot.drives.drives import Drives

pytestmark = pytest.mark.filterwarnings("ignore:steps of .* are too long for the springs")

STEPS = (1e-3, 5e-4, 2.5e-4)
PUSH = np.array([20.0, -8, 9, -2, 2, 2])
START = np.deg2rad([10, 20, -10, 15, 30, -20])


def smooth(robot):
    """The robot with its elastic drives, of friction the viscous one alone."""
    return robot.with_drives("elastic", replace(robot.drives, coulomb=0.0, static=0.0))


def motion(robot, dt, tau, seconds, q=START, samples=20):
    """Joints and motors (samples + 1, 2, 2, n): positions and speeds of the joints, and of the motors."""
    plant, found = AnalyticPlant(robot, dt), []
    plant.reset(q)
    steps = round(seconds / dt / samples)
    for k in range(samples * steps + 1):
        if k % steps == 0:
            found.append([plant.state(), plant.motor_state()])
        plant.step(tau)
    return np.array(found)


def integrated(robot, tau, seconds, q=START, samples=20):
    """Return the same samples by scipy, from the continuous equations."""
    drives, n = robot.drives, robot.n
    k, d, A = drives.stiffness, drives.damping, np.diag(drives.reflected_inertia)

    def rate(_, x):
        q, theta, qd, thetad = x.reshape(4, n)
        T = k * (theta - q) + d * (thetad - qd)
        qdd = twin.forward_dynamics(robot.arm, q, qd, T)
        return np.concatenate([qd, thetad, qdd, (tau - T - drives.viscous * thetad) / A])

    start = np.concatenate([q, q + twin.gravity_torque(robot, q) / k, np.zeros(2 * n)])
    times = np.linspace(0, seconds, samples + 1)
    found = solve_ivp(rate, (0, seconds), start, method="Radau", rtol=1e-10, atol=1e-11, t_eval=times)
    assert found.success
    return found.y.T.reshape(-1, 2, 2, n).transpose(0, 2, 1, 3)


def test_motion_is_that_of_the_continuous_equations():
    """The errors fall in proportion to the step, and vanish where it is extrapolated to zero."""
    robot = smooth(twin.load("irb1400").mounted("inverted"))
    tau = twin.gravity_torque(robot, START) + PUSH
    exact = integrated(robot, tau, 1.0)[:, :, 0]
    assert np.max(np.abs(exact[-1, 0] - START)) > 0.3
    coarse, middle, fine = (motion(robot, dt, tau, 1.0)[:, :, 0] for dt in STEPS)
    errors = [np.max(np.abs(found - exact)) for found in (coarse, middle, fine)]
    assert errors[0] < 3e-3
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.1)
    assert errors[1] / errors[2] == pytest.approx(2, abs=0.1)
    extrapolated = (8 * fine - 6 * middle + coarse) / 3
    assert np.max(np.abs(extrapolated - exact)) < 1e-6


def test_growing_stiffness_tends_to_rigid_drives(irb140):
    tau = twin.gravity_torque(irb140, START) + PUSH
    drives = replace(irb140.drives, damping=0.0)
    rigid = motion(irb140.with_drives("rigid", drives), 1e-3, tau, 0.5)
    gaps = []
    for more in (1e2, 1e4, 1e6):
        stiff = irb140.with_drives("elastic", replace(drives, stiffness=more * drives.stiffness))
        gaps.append(np.max(np.abs(motion(stiff, 1e-3, tau, 0.5)[:, :, 0] - rigid[:, :, 0])))
    assert gaps[0] < 1e-4
    assert gaps[1] < 2e-2 * gaps[0]
    assert gaps[2] < 2e-2 * gaps[1]


def test_an_axis_without_spring_is_rigid(irb140):
    """And the step of a robot whose axes all are is that of rigid drives, to the bit."""
    stiffness = irb140.drives.stiffness.copy()
    stiffness[[0, 3]] = np.inf
    robot = irb140.with_drives("elastic", replace(irb140.drives, stiffness=stiffness))
    tau = twin.gravity_torque(robot, START) + 3 * PUSH
    found = motion(robot, 1e-3, tau, 0.2)
    np.testing.assert_array_equal(found[:, 0][..., [0, 3]], found[:, 1][..., [0, 3]])
    assert np.all(found[1:, 0, 0][:, [1, 2, 4, 5]] != found[1:, 1, 0][:, [1, 2, 4, 5]])
    stiffness[:] = np.inf
    all_rigid = irb140.with_drives("elastic", replace(irb140.drives, stiffness=stiffness))
    rigid = motion(irb140.with_drives("rigid"), 1e-3, tau, 0.2)
    np.testing.assert_array_equal(motion(all_rigid, 1e-3, tau, 0.2), rigid)


@pytest.mark.parametrize("stiffness", [1e2, 1e5, 1e9])
def test_undamped_vibration_keeps_its_amplitude(stiffness, irb140):
    """At any stiffness: the method has no damping of its own, and what it keeps is stated here."""
    dt = 1e-3
    drives = Drives(np.full(6, 100.0), 1e-4, stiffness=stiffness)
    robot = irb140.with_gravity([0.0, 0, 0]).with_drives("elastic", drives)
    plant = AnalyticPlant(robot, dt)
    plant.reset(np.zeros(6))
    plant.step(np.array([1e-3, 0, 0, 0, 0, 0]))  # so small that the arm's inertia stays what it is
    kept, M, A = [], twin.mass_matrix(robot.arm, np.zeros(6)), drives.reflected_inertia
    for _ in range(2000):
        (q, qd), (theta, thetad) = plant.state(), plant.motor_state()
        bend = theta - q - dt * (thetad - qd) / 2  # half a step before the positions
        kept.append(qd @ M @ qd + thetad @ A @ thetad + bend @ (drives.stiffness * bend))
        plant.step(np.zeros(6))
    assert kept[0] > 0
    np.testing.assert_allclose(kept, kept[0], rtol=1e-6)


@pytest.mark.parametrize(("name", "dt"), [("irb140", 1e-4), ("irb1400", 1e-3)])
def test_the_arm_rests_on_its_springs(name, dt):
    """Under the torque that gravity asks for nothing moves, joint or motor, with friction or without."""
    arm = twin.load(name)
    robot = smooth(arm)
    rest = motion(robot, dt, twin.gravity_torque(robot, START), 0.2)
    np.testing.assert_allclose(rest[-1, 0, 0], START, rtol=0, atol=1e-9)
    np.testing.assert_allclose(rest[-1, 1, 0], rest[0, 1, 0], rtol=0, atol=1e-9)
    held = twin.gravity_torque(arm, START) + 0.9 * arm.drives.static
    stuck = motion(arm.with_drives("elastic"), dt, held, 0.2)
    np.testing.assert_array_equal(stuck[:, 1, 0], stuck[:1, 1, 0].repeat(len(stuck), axis=0))
    np.testing.assert_allclose(stuck[-1, 0, 0], START, rtol=0, atol=1e-9)


def test_an_arm_that_is_elastic_in_part_rests_on_the_springs_that_it_has(irb140):
    robot = irb140.with_drives("elastic", coupled(irb140))
    plant, q = AnalyticPlant(robot, 1e-4), np.array([0.1, 0.2, -0.1, 0.3, 0.4, 0.2])
    plant.reset(q)
    weight = twin.gravity_torque(robot, q)
    np.testing.assert_allclose(
        plant.motor_state()[0] - q, weight / robot.drives.stiffness, rtol=1e-9, atol=1e-15
    )
    for _ in range(20):
        plant.step(weight)
    np.testing.assert_allclose(plant.state(), [q, np.zeros(6)], rtol=0, atol=1e-12)
