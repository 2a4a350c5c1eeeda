"""The two-mass joint: its equations, and what it refuses; Table 3.1 and its power are in tests/published."""

import numpy as np
import pytest

from tests.support.flexible_joints import DAMPED, FM, IDENTIFIED, JA, JM, K
from tests.support.refusals import refused
from twin.dynamics.flexible_joint import (
    FlexibleJoint,
    angle_model,
    energy,
    frequency_response,
    spring_torque,
    velocity_model,
)


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
