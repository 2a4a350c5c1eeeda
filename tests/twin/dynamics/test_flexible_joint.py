"""The two-mass joint: its equations, Table 3.1 in both readings, power, and what print gets wrong."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

from tests.support.flexible_joints import DAMPED, FM, IDENTIFIED, JA, JM, K, R
from twin.dynamics.flexible_joint import (
    FlexibleJoint,
    angle_model,
    energy,
    energy_matrix,
    frequency_response,
    poles,
    spring_torque,
    velocity_model,
    zeros,
)

LITERAL = FlexibleJoint(JM, JA, K, R, FM)
JOINTS = (IDENTIFIED, LITERAL, DAMPED)


def equations(joint, x, xd, u):
    """Return the residuals of the torque balances of motor and arm, (2, ...)."""
    torque = joint.k * (joint.r * x[..., 0] - x[..., 2]) + joint.d * (joint.r * x[..., 1] - x[..., 3])
    motor = joint.Jm * xd[..., 1] + joint.fm * x[..., 1] + joint.r * torque - u
    return np.array([motor, joint.Ja * xd[..., 3] + joint.fa * x[..., 3] - torque])


def moved(model, x, u):
    return x @ model.A.T + u[..., None] * model.B[:, 0]


@pytest.mark.parametrize("joint", JOINTS)
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


@pytest.mark.parametrize("joint", JOINTS)
def test_spring_makes_no_power(joint, rng):
    x, u = rng.normal(size=(100, 4)), rng.normal(size=100)
    xd = moved(angle_model(joint), x, u)
    H = energy_matrix(joint)
    np.testing.assert_allclose(np.einsum("ki,ij,kj->k", x, H, x) / 2, energy(joint, x), rtol=1e-10)
    rate = np.einsum("ki,ij,kj->k", x, H, xd)
    stretching = joint.r * x[:, 1] - x[:, 3]
    power = u * x[:, 1] - joint.fm * x[:, 1] ** 2 - joint.fa * x[:, 3] ** 2 - joint.d * stretching**2
    flowing = np.einsum("ki,ij,kj->k", *(np.abs(a) for a in (x, H, xd)))
    np.testing.assert_allclose(rate, power, atol=1e-14 * np.max(flowing))
    held = [0.2, 0, 0.7, 0]  # what stretches the spring is what it stores
    assert energy(joint, held) == pytest.approx(spring_torque(joint, held) ** 2 / (2 * joint.k), rel=1e-14)


def test_reported_symbols_are_those_of_the_printed_matrix():
    """(3.73) in the report's symbols, fa included."""
    fa = 0.02
    printed = [
        [0, 1, 0, 0],
        [-K * R / JM, -FM / JM, K / JM, 0],
        [0, 0, 0, 1],
        [K * R / JA, 0, -K / JA, -fa / JA],
    ]
    model = angle_model(FlexibleJoint.reported(JM, JA, K, R, FM, fa))
    np.testing.assert_allclose(model.A, printed, rtol=1e-14)
    np.testing.assert_allclose(model.B[:, 0], [0, 1 / JM, 0, 0], rtol=1e-14)
    assert IDENTIFIED.k == pytest.approx(80222.15421080001, rel=1e-14)
    assert IDENTIFIED.Ja == pytest.approx(6.160000028, rel=1e-14)


def test_poles_of_both_readings():
    """Worked out apart from this code."""
    expected = [-12.700388759857276, -4.666754772613764 - 150.2396460425064j]
    expected.append(np.conj(expected[1]))
    np.testing.assert_allclose(poles(velocity_model(IDENTIFIED)), expected, rtol=1e-12)
    four = poles(angle_model(IDENTIFIED))
    np.testing.assert_allclose(four[:3], expected, rtol=1e-11)
    assert abs(four[3]) < 1e-9  # the angle itself is free
    literal = poles(velocity_model(LITERAL))
    np.testing.assert_allclose(literal, [-21.90, -0.066 - 114.46j, -0.066 + 114.46j], atol=6e-3)


def test_poles_of_the_misprint():
    """With -k/Ja in its second row the model of three states runs away."""
    A = velocity_model(IDENTIFIED).A.copy()
    A[1, 2] *= -1
    assert np.max(np.linalg.eigvals(A).real) == pytest.approx(74.47205465373452, rel=1e-12)


@pytest.mark.parametrize("joint", JOINTS[:2])
def test_zeros_are_where_the_arm_swings_against_the_motor_at_rest(joint):
    antiresonance = np.sqrt(joint.k / joint.Ja)
    assert antiresonance == pytest.approx(np.sqrt(K / JA), rel=1e-14)
    np.testing.assert_allclose(zeros(joint), [-1j * antiresonance, 1j * antiresonance], rtol=1e-14)
    for model in (velocity_model(joint), angle_model(joint)):
        gains = frequency_response(model, [antiresonance, 100.0])
        assert abs(gains[0]) < 1e-12 * abs(gains[1])
    assert frequency_response(velocity_model(joint), 0.0) == pytest.approx(1 / FM, rel=1e-12)


def test_frequency_response_is_that_of_the_equations():
    omega = np.array([0.3, 2.0, 40.0])
    s, j = 1j * omega, DAMPED
    coupling = j.k + j.d * s
    motor, arm = j.Jm * s**2 + j.fm * s + j.r**2 * coupling, j.Ja * s**2 + j.fa * s + coupling
    expected = arm / (motor * arm - (j.r * coupling) ** 2)
    np.testing.assert_allclose(frequency_response(angle_model(j), omega), expected, rtol=1e-12)
    np.testing.assert_allclose(frequency_response(velocity_model(j), omega), s * expected, rtol=1e-12)


def test_motion_agrees_with_the_equations_integrated():
    x0 = np.array([1.0, -0.3, 0.2, 0.8])

    def motion(_, x):
        torque = spring_torque(DAMPED, x)
        qmdd = (-DAMPED.fm * x[1] - DAMPED.r * torque) / DAMPED.Jm
        return [x[1], qmdd, x[3], (torque - DAMPED.fa * x[3]) / DAMPED.Ja]

    end = solve_ivp(motion, (0, 1), x0, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    np.testing.assert_allclose(
        expm(angle_model(DAMPED).A) @ x0, end, rtol=1e-9
    )  # the integrator's own accuracy


def test_stiff_joint_is_one_mass():
    """With k large, the pole that does not swing is that of both masses and frictions together."""
    stiff = FlexibleJoint(Jm=0.01, Ja=4.0, k=1e10, r=0.05, fm=0.2, fa=3.0)
    (slow,) = (pole.real for pole in poles(velocity_model(stiff)) if pole.imag == 0)
    assert slow == pytest.approx(-(0.2 + 3.0 * 0.05**2) / (0.01 + 4.0 * 0.05**2), rel=1e-6)  # 1/k is left


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Jm": 0.0}, "expected Jm of a flexible joint to be above 0, got 0.0"),
        ({"Ja": np.nan}, "Ja .* above 0, got nan"),
        ({"k": np.inf}, "k .* above 0, got inf"),
        ({"r": 0.0}, "r .* other than 0, got 0.0"),
        ({"r": np.nan}, "r .* other than 0, got nan"),
        ({"fm": -1.0}, "fm .* at least 0, got -1.0"),
        ({"d": np.nan}, "d .* at least 0, got nan"),
    ],
)
def test_joints_that_cannot_be_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        FlexibleJoint(**{"Jm": 1.0, "Ja": 1.0, "k": 1.0, **change})


def test_arguments_of_another_kind_are_refused():
    with pytest.raises(ValueError, match=r"expected r of the report's joint to be above 0, got -0\.1"):
        FlexibleJoint.reported(JM, JA, K, -0.1, FM)
    with pytest.raises(ValueError, match=r"expected a finite state .* of shape \(..., 4\), got \[1.0, 2.0\]"):
        energy(DAMPED, [1, 2])
    with pytest.raises(ValueError, match="finite state"):
        spring_torque(DAMPED, [1, 2, 3, np.nan])
