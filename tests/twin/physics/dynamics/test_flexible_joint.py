"""The two-mass joint: equations, motion, sticking friction; tests/published has Table 3.1 and its power."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import expm

from tests.support.refusals import refused
from twin.physics.dynamics.flexible_joint import (
    FlexibleJoint,
    angle_model,
    energy,
    frequency_response,
    simulate_flexible_joint,
    spring_torque,
    velocity_model,
)

JM, JA, FM, K, GEAR = 5.9e-4, 5.2e-2, 1.3e-2, 677.2, 118.461539  # Norrlöf 1999, Table 3.1
R = 1 / GEAR
IDENTIFIED = FlexibleJoint.reported(JM, JA, K, R, FM)
DAMPED = FlexibleJoint(Jm=0.7, Ja=2.3, k=31.0, r=-0.4, fm=0.2, fa=0.5, d=1.1)


def equations(joint, x, xd, u):
    """Return the residuals of the torque balances of motor and arm, (2, ...)."""
    torque = joint.k * (joint.r * x[..., 0] - x[..., 2]) + joint.d * (joint.r * x[..., 1] - x[..., 3])
    motor = joint.Jm * xd[..., 1] + joint.fm * x[..., 1] + joint.r * torque - u
    return np.array([motor, joint.Ja * xd[..., 3] + joint.fa * x[..., 3] - torque])


def moved(model, x, u):
    return x @ model.A.T + u[..., None] * model.B[:, 0]


@pytest.mark.parametrize("joint", [IDENTIFIED, DAMPED])
def test_both_models_obey_the_equations(joint, rng):
    x, u = rng.normal(size=(100, 4)), rng.normal(size=100)
    model = angle_model(joint)
    xd = moved(model, x, u)
    scale = np.max(np.abs(xd)) * max(joint.Ja, joint.Jm)
    np.testing.assert_allclose(equations(joint, x, xd, u), 0, atol=1e-13 * scale)
    np.testing.assert_array_equal(xd[:, [0, 2]], x[:, [1, 3]])
    np.testing.assert_allclose(model.C @ x.T, [x[:, 0]])
    # [qm', qa', r qm - qa] of the same motion
    to_three = np.array([[0, 1, 0, 0], [0, 0, 0, 1], [joint.r, 0, -1, 0]])
    three = velocity_model(joint)
    np.testing.assert_allclose(
        moved(three, x @ to_three.T, u), xd @ to_three.T, atol=1e-13 * np.max(np.abs(xd))
    )
    np.testing.assert_array_equal(three.B, to_three @ model.B)
    np.testing.assert_array_equal(three.C, [[1, 0, 0]])
    held = [0.2, 0, 0.7, 0]  # what stretches the spring is what it stores
    assert energy(joint, held) == pytest.approx(spring_torque(joint, held) ** 2 / (2 * joint.k), rel=1e-14)


def test_frequency_response_is_that_of_the_equations():
    omega = np.array([0.3, 2.0, 40.0])
    s, j = 1j * omega, DAMPED
    coupling = j.k + j.d * s
    motor, arm = j.Jm * s**2 + j.fm * s + j.r**2 * coupling, j.Ja * s**2 + j.fa * s + coupling
    expected = arm / (motor * arm - (j.r * coupling) ** 2)
    np.testing.assert_allclose(frequency_response(angle_model(j), omega), expected, rtol=1e-12)
    np.testing.assert_allclose(frequency_response(velocity_model(j), omega), s * expected, rtol=1e-12)


def test_joints_and_states_that_cannot_be_are_refused():
    refused(
        (lambda: FlexibleJoint(0.0, 1.0, 1.0), "expected Jm of a flexible joint to be above 0, got 0.0"),
        (lambda: FlexibleJoint(1.0, 1.0, np.inf), "k .* above 0, got inf"),
        (lambda: FlexibleJoint(1.0, 1.0, 1.0, r=0.0), "r .* other than 0, got 0.0"),
        (lambda: FlexibleJoint(1.0, 1.0, 1.0, fm=-1.0), "fm .* at least 0, got -1.0"),
        (lambda: FlexibleJoint.reported(JM, JA, K, -0.1, FM), r"expected r .* to be above 0, got -0\.1"),
        (lambda: energy(DAMPED, [1, 2]), r"expected a finite state .* of shape \(..., 4\), got \[1.0, 2.0\]"),
    )


FREE = FlexibleJoint(Jm=0.7, Ja=2.3, k=31.0, r=-0.4)
START = np.array([0.3, -0.2, 0.1, 0.4])


def exact(joint, tau, dt, x):
    """The states under torques that are held over each step: by the matrix exponential."""
    model = angle_model(joint)
    both = np.block([[model.A, model.B], [np.zeros((1, 5))]])
    step, found = expm(both * dt), [x]
    for torque in tau:
        found.append((step @ [*found[-1], torque])[:4])
    return np.array(found)


@pytest.mark.parametrize("joint", [FREE, DAMPED])
def test_motion_tends_to_the_exact_one(joint):
    seconds, steps = 2.0, 200
    tau = 3 * np.sin(np.linspace(0, 7, steps))
    wanted = exact(joint, tau, seconds / steps, START)
    found = [
        simulate_flexible_joint(joint, np.repeat(tau, more), seconds / steps / more, START)[::more]
        for more in (10, 20, 40, 80)
    ]
    errors = [np.max(np.abs(states - wanted)) for states in found]
    assert errors[0] < 1e-2 * np.max(np.abs(wanted))
    for order in (1, 2, 3):
        found = [(2**order * fine - coarse) / (2**order - 1) for coarse, fine in pairwise(found)]
    assert errors[1] / errors[2] == pytest.approx(2, abs=0.05)
    np.testing.assert_allclose(found[0], wanted, rtol=0, atol=1e-8 * np.max(np.abs(wanted)))


def poles_of_step(joint, dt):
    """Return the poles of a step `x+ = Phi x` in continuous time, in [1/s]."""
    Phi = np.array([simulate_flexible_joint(joint, [0.0], dt, unit)[1] for unit in np.eye(4)]).T
    return np.sort_complex(np.log(np.linalg.eigvals(Phi).astype(complex)) / dt)


def test_without_friction_it_swings_for_ever_at_any_step():
    for dt in (0.01, 0.1, 10.0):
        swinging = sorted(poles_of_step(FREE, dt), key=lambda pole: abs(pole.imag))[2:]
        np.testing.assert_allclose(np.real(swinging), 0, atol=1e-10 / dt)
    quarter, theta = 31.0 * (0.16 / 0.7 + 1 / 2.3), 0.1  # Newmark: tan(omega' dt / 2) = omega dt / 2
    swings = 2 / theta * np.arctan(np.sqrt(quarter) * theta / 2)
    assert np.max(poles_of_step(FREE, theta).imag) == pytest.approx(swings, rel=1e-9)


def test_friction_holds_the_motor_while_the_arm_swings_and_takes_its_energy():
    joint = FlexibleJoint(Jm=0.7, Ja=2.3, k=310.0, r=-0.4)
    held = simulate_flexible_joint(joint, np.full(500, 2.0), 1e-3, [0, 0, 0.01, 0], coulomb=4.0, static=9.0)
    np.testing.assert_array_equal(held[:, :2], 0)
    assert np.min(held[:, 2]) < -0.009
    # 2 N m of the motor are 5 at the joint, and the spring adds 3.1: less than 9, but more than 8
    slid = simulate_flexible_joint(joint, np.full(500, 2.0), 1e-3, [0, 0, 0.01, 0], coulomb=4.0, static=8.0)
    assert np.max(np.abs(slid[:, 1])) > 0.01
    slowed = simulate_flexible_joint(joint, np.zeros(12000), 1e-3, START, coulomb=3.0)
    slowed[:, [0, 2]] -= slowed[:, [1, 3]] * 1e-3 / 2  # where the step keeps energy, half a step before
    # But in a step that turns the motor friction has the sign of the speed after it.
    assert np.all(np.diff(energy(joint, slowed)) < 1e-4)
    assert energy(joint, slowed[-1]) < 0.1 * energy(joint, slowed[0])
    assert slowed[-1, 1] == 0

    # Sliding one way, Coulomb friction is a constant torque: r times that at the joint.
    tau, dt = np.full(300, -5.0), 1e-3
    with_law = simulate_flexible_joint(DAMPED, tau, dt, [0, -3, 0, 1], coulomb=0.7)
    assert np.all(with_law[:, 1] < 0)
    pushed = simulate_flexible_joint(DAMPED, tau + 0.4 * 0.7, dt, [0, -3, 0, 1])
    np.testing.assert_allclose(with_law, pushed, rtol=0, atol=1e-12)


def test_wrong_input_is_rejected():
    def simulated(tau=(0.0,), time_step=1e-3, **changed):
        return lambda: simulate_flexible_joint(FREE, tau, time_step, **changed)

    refused(
        (simulated(tau=[[0.0]]), "torques tau of shape (N,), got shape (1, 1)"),
        (simulated(x=[0, 0, 0]), "of shape (4,)"),
        (simulated(time_step=0.0), "expected a time step above 0 s, got 0.0"),
        (simulated(coulomb=2.0, static=1.0), "static of axis 1 is 1, expected at least the Coulomb friction"),
    )
