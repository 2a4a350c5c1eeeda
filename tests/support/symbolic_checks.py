"""Properties that every symbolic derivation must have."""

import numpy as np
import sympy as sp

import twin
from tests.support.peers import largest_relative_error
from twin.dynamics.symbolic.trigonometric_sums import trigonometric_sum


def agrees(dynamics, robot, rng, parameters=(), span=3.0):
    """Assert that D, C and g agree with the kernels to 1e-12 over random states."""
    q, qd = rng.uniform(-span, span, (2, 30, robot.n))
    D, C, g = dynamics.function(compiled=False)(q, qd, parameters)
    tau = np.einsum("kij,kj->ki", C, qd) + g
    assert largest_relative_error(D, twin.mass_matrix(robot, q)) < 1e-12
    assert largest_relative_error(tau, twin.inverse_dynamics(robot, q, qd, 0 * q)) < 1e-12
    scale = 1e-12 * np.max(np.abs(twin.coriolis_matrix(robot, q, qd)))  # C of two prismatic joints is zero
    np.testing.assert_allclose(C, twin.coriolis_matrix(robot, q, qd), atol=scale, rtol=0)
    np.testing.assert_allclose(g, twin.gravity_torque(robot, q), atol=1e-12 * np.max(np.abs(g)), rtol=0)


def is_skew(dynamics):
    """Return whether `Ddot - 2 C` is identically skew-symmetric."""
    rates = zip(dynamics.q, dynamics.qd, strict=True)
    Ddot = sum((dynamics.D.diff(q) * qd for q, qd in rates), sp.zeros(*dynamics.D.shape))
    N = Ddot - 2 * dynamics.C
    return (N + N.T).applyfunc(trigonometric_sum) == sp.zeros(*N.shape)
