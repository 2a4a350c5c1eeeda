"""How fast springs vibrate, and the warning where a step is too long for that."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from tests.support.engine_states import BODY
from tests.support.sample_drives import uncoupled
from twin.base.errors import RobotError
from twin.physics.control.plant import AnalyticPlant
from twin.physics.dynamics.equation_of_motion import mass_matrix
from twin.physics.dynamics.flexible_joint import frequency_in_steps, spring_frequencies
from twin.physics.engine.simulation import Simulation

AT = np.array([0.3, -0.2, 0.25, 0.4, 0.7, -1.1])


def eigenfrequencies(robot, q):
    """Return the frequencies of arm and rotors on their springs, in [Hz], in ascending order."""
    drives = robot.drives
    root = np.sqrt(drives.stiffness)
    mobility = np.linalg.inv(mass_matrix(robot, q)) + np.linalg.inv(drives.reflected_inertia)
    return np.sqrt(np.linalg.eigvalsh(root[:, None] * mobility * root)) / (2 * np.pi)


def test_the_fastest_vibration_lies_between_the_bounds(arm):
    robot = arm.with_payload(BODY)
    own, whole = spring_frequencies(robot, AT), eigenfrequencies(robot, AT)
    assert np.max(own) <= whole[-1] <= np.linalg.norm(own)
    np.testing.assert_allclose(np.linalg.norm(own), np.linalg.norm(whole), rtol=1e-12)


def test_one_spring_alone_is_exact(irb140):
    """The other drives are rigid, their rotors part of the arm."""
    stiffness = np.full(6, np.inf)
    stiffness[4] = 9000.0
    robot = replace(irb140, drives=replace(uncoupled(irb140).drives, stiffness=stiffness))
    A, M = robot.drives.reflected_inertia, mass_matrix(robot, AT)
    # q, and the angle of motor 5: one twist of the spring, found from the matrices of the whole
    W, twist = np.zeros((7, 7)), np.zeros(7)
    W[:6, :6] = M + A - np.diag(np.diag(A) * (np.arange(6) == 4))
    W[6, 6], twist[6], twist[4] = A[4, 4], 1.0, -1.0
    squared = np.max(np.linalg.eigvals(np.linalg.solve(W, 9000.0 * np.outer(twist, twist))).real)
    expected = np.where(np.arange(6) == 4, np.sqrt(squared) / (2 * np.pi), 0.0)
    np.testing.assert_allclose(spring_frequencies(robot, AT), expected, rtol=1e-12)


def test_step_vibrates_at_the_predicted_frequency(irb140):
    """One axis of the arm on its spring, all others held: its swing is counted."""
    dt = 1e-3
    drives = replace(irb140.drives.without_friction(), damping=0.0, stiffness=np.r_[9e5, np.full(5, np.inf)])
    drives = replace(drives, static=[0, 1e6, 1e6, 1e6, 1e6, 1e6])  # which holds the others
    robot = irb140.with_gravity((0, 0, 0)).with_drives("elastic", drives)
    M, A = mass_matrix(robot.arm, AT)[0, 0], drives.reflected_inertia[0, 0]
    f = np.sqrt(9e5 * (1 / M + 1 / A)) / (2 * np.pi)
    plant, twist = AnalyticPlant(robot, dt), []
    plant.reset(AT)
    plant.step(50.0 * np.eye(6)[0])
    for _ in range(2000):
        plant.step(np.zeros(6))
        twist.append(plant.motor_state()[0, 0] - plant.state()[0, 0])
    sign = np.sign(twist)
    rising = np.flatnonzero((sign[:-1] < 0) & (sign[1:] > 0))
    counted = (len(rising) - 1) / ((rising[-1] - rising[0]) * dt)
    np.testing.assert_allclose(counted, frequency_in_steps(f, dt), rtol=2e-3)
    assert frequency_in_steps(f, dt) < 0.95 * f


@pytest.mark.parametrize("plant", [AnalyticPlant, Simulation])
def test_a_step_too_long_is_warned_of(irb140, plant):
    told = (
        r"steps of 0.001 s are too long for the springs of joint_5 at 880 Hz \(simulated at 389 Hz\), "
        r"joint_6 at 3996 Hz \(simulated at 475 Hz\)"
    )
    with pytest.warns(UserWarning, match=told) as caught:
        plant(irb140.with_drives("elastic"), time_step=1e-3)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plant(irb140.with_drives("elastic"), time_step=5e-5)
        plant(irb140.with_drives("rigid"), time_step=1e-3)
        plant(irb140.with_payload(BODY).with_drives("elastic"), time_step=1e-3)
    light = irb140.with_payload(BODY).with_drives("elastic", replace(irb140.drives, rotor_inertia=0.0))
    if plant is AnalyticPlant:
        with pytest.warns(UserWarning, match=r"joint_1 at inf Hz \(simulated at 500 Hz\)"):
            plant(light)
    with pytest.raises(RobotError, match="has no springs: its drives are unknown"):
        spring_frequencies(replace(irb140, drives=None), AT)
