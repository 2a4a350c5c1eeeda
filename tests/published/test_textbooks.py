"""The two-link arm of Siciliano et al.: against its printed equations, step by step, and for small steps."""

import numpy as np
import pytest

import twin
from tests.published.textbooks import siciliano
from tests.published.textbooks.siciliano import LOAD, PERIOD, arm, largest_errors, reference

GAINS = {"Kp": 100.0, "Kd": 16.0, "L": 10.0, "K": 0.005}


def printed_model(q, qd, load):
    """Return B, C, and g of section 7.3.2, with the load as a point at the end of link 2."""
    (q1, q2), (qd1, qd2) = q, qd
    a1 = 1.0
    link, motor, I_link, I_motor, ratio, l1, gravity = 50.0, 5.0, 10.0, 0.01, 100.0, 0.5, 9.81
    m2 = link + load
    l2 = (0.5 * link + load) / m2  # centre of link 2 with its load, from joint 2
    I2 = I_link + link * (l2 - 0.5) ** 2 + load * (1.0 - l2) ** 2
    c2, s2 = np.cos(q2), np.sin(q2)
    b11 = I_link + link * l1**2 + ratio**2 * I_motor + I2 + m2 * (a1**2 + l2**2 + 2 * a1 * l2 * c2)
    b11 += I_motor + motor * a1**2
    b12 = I2 + m2 * (l2**2 + a1 * l2 * c2) + ratio * I_motor
    b22 = I2 + m2 * l2**2 + ratio**2 * I_motor
    h = -m2 * a1 * l2 * s2
    g2 = m2 * l2 * gravity * np.cos(q1 + q2)
    g1 = (link * l1 + motor * a1 + m2 * a1) * gravity * np.cos(q1) + g2
    return (
        np.array([[b11, b12], [b12, b22]]), np.array([[h * qd2, h * (qd1 + qd2)], [-h * qd1, 0.0]]),
        np.array([g1, g2]),
    )  # fmt: skip


def printed_run(law):
    """Run a law `(q, qd, ref) -> tau` by the printed equations, with friction at the end of each step."""
    samples, F = reference(), 100.0
    q, qd, path = samples.q[0].copy(), samples.qd[0].copy(), []
    for k in range(len(samples.t)):
        path.append(q.copy())
        tau = law(q, qd, (samples.q[k], samples.qd[k], samples.qdd[k]))
        B, C, g = printed_model(q, qd, LOAD)
        qdd = np.linalg.solve(B + PERIOD * F * np.eye(2), tau - C @ qd - g - F * qd)
        qd = qd + PERIOD * qdd
        q = q + PERIOD * qd
    return np.array(path)


def test_arm_has_the_printed_inertia_and_torques():
    q, qd, qdd = np.random.default_rng(1).uniform(-2, 2, (3, 20, 2))
    for load in (0.0, LOAD):
        for one in zip(q, qd, qdd, strict=True):
            B, C, g = printed_model(*one[:2], load)
            np.testing.assert_allclose(twin.mass_matrix(arm(load), one[0]), B, rtol=1e-14)
            right = B @ one[2] + C @ one[1] + g + 100.0 * one[1]
            np.testing.assert_allclose(twin.inverse_dynamics(arm(load), *one), right, rtol=1e-12, atol=1e-11)


def test_runs_are_those_of_the_printed_equations():
    def inverse_dynamics(q, qd, ref):
        B, C, g = printed_model(q, qd, 0.0)
        a = ref[2] + 16.0 * (ref[1] - qd) + 100.0 * (ref[0] - q)
        return B @ a + C @ qd + g + 100.0 * (qd + 1e-9 * a)  # the law's friction, 1 ns ahead

    log = siciliano.run(siciliano.computed_torque(arm(), GAINS), 1)
    np.testing.assert_allclose(log.q, printed_run(inverse_dynamics), atol=1e-12)

    estimate = 0.0

    def adaptive(q, qd, ref):
        nonlocal estimate
        v, a = ref[1] + 10.0 * (ref[0] - q), ref[2] + 10.0 * (ref[1] - qd)
        torques = [B @ a + C @ v + g for B, C, g in (printed_model(q, qd, load) for load in (0.0, 1.0))]
        y, s = torques[1] - torques[0], v - qd
        tau = torques[0] + estimate * y + 100.0 * v + 1e4 * s
        estimate += PERIOD * y @ s / 0.005
        return tau

    log = siciliano.run(siciliano.adaptive(GAINS | {"Kd": 1e4}), 1)
    np.testing.assert_allclose(log.q, printed_run(adaptive), atol=1e-12)


def test_errors_for_vanishing_steps():
    """The errors are of first order in the step: 0.0151 and 0.0131 rad.

    The load is 12.8 kg at 75 ms, and 10.01 kg at 1 s.
    """
    model = arm()
    coarse, fine = (
        largest_errors(siciliano.run(siciliano.computed_torque(model, GAINS), k)) for k in (10, 20)
    )
    np.testing.assert_allclose(2 * fine - coarse, [0.0151, 0.0131], atol=5e-5)
    masses = []
    for steps in (10, 20):
        law = siciliano.adaptive(GAINS | {"Kd": 1e4})
        siciliano.run(law, steps)
        masses.append(np.array(law.masses)[[75, 1000, 2500]])
    assert 2 * masses[1] - masses[0] == pytest.approx([12.8, 10.01, 10.0], abs=0.05)
    assert masses[1][2] == pytest.approx(LOAD, abs=5e-5)
