"""Analytic Jacobians, their rates and inverses, and the joint motions that make a motion of the tool."""

import numpy as np
import pytest

import twin
from tests.support.dh_arms import T_TOOL, fourth_order, states_of, times
from tests.support.laboratory_arms import TABLES, laboratory_arm
from tests.support.refusals import refused
from twin.base.errors import SingularityError
from twin.physics.kinematics.differential import (
    analytic_jacobian,
    analytic_jacobian_dot,
    analytic_jacobian_inverse,
    coordinate_accelerations,
    coordinate_rates,
    inverse_acceleration,
    inverse_velocity,
    tool_coordinates,
)
from twin.physics.kinematics.manipulability import (
    force_ellipsoid,
    manipulability_measure,
    singular_configuration,
    velocity_ellipsoid,
)

KINDS = ("zyx", "zyz", "quaternion")
ARMS = ("irb1400", "youbot", "rx90", "seven")


@pytest.fixture
def arm(request):
    return laboratory_arm(request.param) if request.param in TABLES else twin.load(request.param)


def wrapped(x, kind):
    if kind != "quaternion":
        x[..., 3:] -= 2 * np.pi * np.rint(x[..., 3:] / (2 * np.pi))
    return x


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("arm", ARMS, indirect=True)
def test_jacobians_are_derivatives_and_make_rates_of_twists(arm, kind):
    q, qd, qdd = states_of(arm)
    x = tool_coordinates(arm, q, T_TOOL, kind)
    J = analytic_jacobian(arm, q, T_TOOL, kind)
    scale = np.maximum(1, np.max(np.abs(J), axis=(1, 2)))

    def moved(step):
        return wrapped(tool_coordinates(arm, q + step * qd, T_TOOL, kind) - x, kind)

    away = np.max(np.abs(moved(2e-4)), axis=1) < 0.1  # no jump of the quaternion's sign between
    error = np.max(np.abs(fourth_order(moved, 1e-4) - times(J, qd)), axis=1)
    assert np.count_nonzero(away) > 20
    assert np.max((error / scale**3)[away]) < 1e-9

    J_dot = analytic_jacobian_dot(arm, q, qd, T_TOOL, kind)
    derivative = fourth_order(lambda h: analytic_jacobian(arm, q + h * qd, T_TOOL, kind), 1e-4)
    error = np.max(np.abs(derivative - J_dot), axis=(1, 2))
    assert np.max((error / scale**4)[away]) < 1e-9

    V = times(twin.jacobian(arm, q, T_TOOL), qd)
    Vd = times(twin.jacobian(arm, q, T_TOOL), qdd) + times(twin.jacobian_dot(arm, q, qd, T_TOOL), qd)
    size = np.max(np.abs(J_dot), axis=(1, 2))[:, None] + 1
    rates, accelerations = coordinate_rates(x, V, kind), coordinate_accelerations(x, V, Vd, kind)
    assert np.max(np.abs(rates - times(J, qd)) / size) < 1e-14
    assert np.max(np.abs(accelerations - times(J, qdd) - times(J_dot, qd)) / size) < 1e-14


ZERO, ONES = np.zeros(6), np.ones(6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("arm", ARMS, indirect=True)
def test_inverses_of_the_analytic_jacobian(arm, kind):
    q = states_of(arm)[0]
    J_A, inverse = analytic_jacobian(arm, q, T_TOOL, kind), analytic_jacobian_inverse(arm, q, T_TOOL, kind)
    m, n = J_A.shape[1:]
    values = np.linalg.svd(J_A, compute_uv=False)
    assert np.all(np.sum(values > 1e-12, axis=1) == min(6, n))
    cond = (values[:, 0] / values[:, min(6, n) - 1])[:, None, None]
    if m >= n and n <= 6:
        assert np.max(np.abs(inverse @ J_A - np.eye(n)) / cond) < 2e-15
    normal = np.linalg.pinv(J_A, rcond=1e-12)
    error = np.abs(inverse - normal) / np.max(np.abs(normal), axis=(1, 2))[:, None, None]
    assert np.max(error / cond**2) < 1e-15


@pytest.mark.parametrize("kind", ["twist", *KINDS])
@pytest.mark.parametrize("arm", ARMS, indirect=True)
def test_joint_motions_come_back(arm, kind):
    q, qd, qdd = states_of(arm)
    if kind == "twist":
        J, J_dot = twin.jacobian(arm, q, T_TOOL), twin.jacobian_dot(arm, q, qd, T_TOOL)
    else:
        J = analytic_jacobian(arm, q, T_TOOL, kind)
        J_dot = analytic_jacobian_dot(arm, q, qd, T_TOOL, kind)
    rates, accelerations = times(J, qd), times(J, qdd) + times(J_dot, qd)
    found = inverse_velocity(arm, q, rates, T_TOOL, coordinates=kind)
    second = inverse_acceleration(arm, q, qd, accelerations, T_TOOL, coordinates=kind)
    cond = np.linalg.cond(J)[:, None]
    size = np.max(np.abs(accelerations), axis=1)[:, None] + np.max(np.abs(times(J_dot, qd)), axis=1)[:, None]
    if arm.n <= 6:
        assert np.max(np.abs(found - qd) / cond) < 2e-15
        assert np.max(np.abs(second - qdd) / (cond * size)) < 2e-15
    else:  # one motion of many: of them the one without idle part
        idle = np.linalg.svd(J)[2][:, J.shape[1] if kind != "quaternion" else 6 :]
        assert np.max(np.abs(times(idle, found))) < 1e-13
        assert np.max(np.abs(times(J, found) - rates) / cond) < 1e-14
        assert np.max(np.abs(times(J, second) + times(J_dot, qd) - accelerations) / (cond * size)) < 1e-14


SINGULAR_WRIST = np.deg2rad([10.0, 20, -30, 40, 0, 50])


def test_in_a_singular_wrist_possible_motions_are_found(robot):
    rng = np.random.default_rng(12)
    J = twin.jacobian(robot, SINGULAR_WRIST)
    for _ in range(20):
        qd, qdd = rng.normal(size=(2, 6))
        found = inverse_velocity(robot, SINGULAR_WRIST, J @ qd)
        np.testing.assert_allclose(J @ found, J @ qd, rtol=0, atol=1e-14)
        least = qd - np.array([0, 0, 0, 1, 0, -1]) * (qd[3] - qd[5]) / 2
        np.testing.assert_allclose(found, least, rtol=0, atol=1e-13)
        J_dot = twin.jacobian_dot(robot, SINGULAR_WRIST, qd)
        wanted = J @ qdd + J_dot @ qd
        second = inverse_acceleration(robot, SINGULAR_WRIST, qd, wanted)
        np.testing.assert_allclose(J @ second + J_dot @ qd, wanted, rtol=0, atol=1e-13)
        # No joint acceleration at all: what is left of the right-hand side is rounding.
        none = inverse_acceleration(robot, SINGULAR_WRIST, qd, J_dot @ qd)
        np.testing.assert_allclose(none, 0, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(inverse_velocity(robot, SINGULAR_WRIST, np.zeros(6)), np.zeros(6))


def test_motions_that_a_singular_wrist_or_five_joints_cannot_do_are_refused(robot):
    J = twin.jacobian(robot, SINGULAR_WRIST)
    lost = np.linalg.svd(J)[0][:, -1]
    possible = J @ np.ones(6)
    with pytest.raises(SingularityError, match=r"velocity of the tool is not possible: .* of rank 5, misses"):
        inverse_velocity(robot, SINGULAR_WRIST, possible + 1e-6 * lost)
    with pytest.raises(SingularityError, match=r"acceleration of the tool of sample \[1\] is not possible"):
        inverse_acceleration(robot, SINGULAR_WRIST, ZERO, [possible, possible + lost])
    nearest = inverse_velocity(robot, SINGULAR_WRIST, possible + lost, least_squares=True)
    np.testing.assert_allclose(J @ nearest, possible, rtol=0, atol=1e-14)
    assert abs(nearest[3] - nearest[5]) < 1e-14  # without idle motion
    with pytest.raises(SingularityError, match=r"the analytic Jacobian of sample \[1, 0\] has rank 5, not 6"):
        analytic_jacobian_inverse(robot, [[np.ones(6)], [SINGULAR_WRIST]])
    five, q, V = laboratory_arm("youbot"), np.arange(1.0, 6), (-0.01, 0, 0, 0, 0, 0)
    with pytest.raises(SingularityError, match=r"not possible: the Jacobian, of rank 5, misses \("):
        inverse_velocity(five, q, V, coordinates="zyx")
    nearest = inverse_velocity(five, q, V, coordinates="zyx", least_squares=True)
    np.testing.assert_allclose(nearest, analytic_jacobian_inverse(five, q) @ V, rtol=1e-12)


@pytest.mark.parametrize("kind", ["zyx", "zyz"])
def test_euler_angles_have_additional_singularities(kind):
    arm = laboratory_arm("rx90")
    theta = {"zyx": np.pi / 2, "zyz": 0.0}[kind]
    q = np.array([0.4, -0.7, 1.9, 0.0, 0.6, 0.3])
    q[4] = theta - q[1] - q[2]  # all turns about parallel axes: the tool's z axis at theta from upright
    if kind == "zyx":
        q[5] = 0.0
    with pytest.raises(SingularityError, match=f"rates of {kind} angles"):
        analytic_jacobian(arm, q, None, kind)
    rates = twin.jacobian(arm, q) @ np.ones(6)
    np.testing.assert_allclose(inverse_velocity(arm, q, rates), np.ones(6), rtol=1e-12)
    assert analytic_jacobian(arm, q, None, "quaternion").shape == (7, 6)


def test_misuse_is_one_clear_sentence(robot):
    refused(
        (lambda r: tool_coordinates(r, ZERO, None, "xyz"), "unknown coordinates 'xyz': known are 'zyx'"),
        (lambda r: analytic_jacobian(r, ZERO, None, "twist"), "unknown coordinates 'twist'"),
        (lambda r: inverse_velocity(r, ZERO, ONES, coordinates="xyz"), "known are 'twist', 'zyx'"),
        (lambda r: inverse_velocity(r, ZERO, np.full(6, np.nan)), "expected finite rates, got nan"),
        (lambda r: inverse_acceleration(r, ZERO, ZERO, np.ones(7)), "accelerations of shape (..., 6)"),
        (lambda r: coordinate_rates(np.ones(7), ONES, "zyx"), "expected x of shape (..., 6), got (7,)"),
        given=(robot,),
    )


# Manipulability, its ellipsoids, and what singular configurations lose.


@pytest.fixture(scope="module")
def states(robot):
    return np.random.default_rng(8).uniform(robot.q_min, robot.q_max, (60, robot.n))


def test_measure_is_the_determinant_and_yoshikawas_root_in_any_shape(robot, states):
    J = twin.jacobian(robot, states, T_TOOL)
    w = manipulability_measure(robot, states, T_TOOL)
    np.testing.assert_allclose(w, np.abs(np.linalg.det(J)), rtol=0, atol=1e-15)
    for part, rows in (("linear", slice(0, 3)), ("angular", slice(3, 6))):
        of_part = np.sqrt(np.linalg.det(J[:, rows] @ np.swapaxes(J[:, rows], 1, 2)))
        found = manipulability_measure(robot, states, T_TOOL, part=part)
        np.testing.assert_allclose(found, of_part, rtol=1e-12)
    q = states[:12].reshape(2, 3, 2, 6)
    np.testing.assert_array_equal(manipulability_measure(robot, q, T_TOOL).ravel(), w[:12])
    moving = velocity_ellipsoid(robot, q, part="linear")
    assert (moving.axes.shape, moving.lengths.shape) == ((2, 3, 2, 3, 3), (2, 3, 2, 3))
    one = velocity_ellipsoid(robot, q[1, 2, 1], part="linear")
    np.testing.assert_array_equal(moving.lengths[1, 2, 1], one.lengths)


@pytest.mark.parametrize("part", ["all", "linear", "angular"])
def test_ellipsoids_hold_what_unit_balls_make(robot, states, part):
    rows = {"all": slice(0, 6), "linear": slice(0, 3), "angular": slice(3, 6)}[part]
    J = twin.jacobian(robot, states, T_TOOL)[:, rows]
    rng = np.random.default_rng(9)
    speeds, torques = robot.qd_max, robot.tau_max
    moving = velocity_ellipsoid(robot, states, T_TOOL, part=part, speeds=speeds)
    pushing = force_ellipsoid(robot, states, T_TOOL, part=part, torques=torques)
    m = J.shape[1]
    products = np.swapaxes(moving.axes, 1, 2) @ moving.axes
    np.testing.assert_allclose(products, np.tile(np.eye(m), (len(J), 1, 1)), rtol=0, atol=3e-15)

    qd = rng.normal(size=(len(J), robot.n))
    qd *= speeds / np.linalg.norm(qd, axis=1)[:, None]
    V = np.einsum("kij,kj->ki", J, qd)
    inside = np.linalg.norm(np.einsum("kji,kj->ki", moving.axes, V) / moving.lengths, axis=1)
    assert np.all(inside <= 1 + 1e-9)
    # Each semi-axis is on the boundary: the least joint speeds that make it have norm 1.
    for i in range(m):
        end = moving.axes[:, :, i] * moving.lengths[:, i : i + 1]
        inverse = np.linalg.pinv(J * speeds, rcond=1e-14)
        np.testing.assert_allclose(np.linalg.norm(times(inverse, end), axis=1), 1, rtol=1e-9)
        F = pushing.axes[:, :, i] * pushing.lengths[:, i : i + 1]
        tau = np.einsum("kji,kj->ki", J, F)
        np.testing.assert_allclose(np.linalg.norm(tau / torques, axis=1), 1, rtol=1e-9)


def test_a_singular_wrist_loses_one_turn_and_one_close_to_it_none(robot):
    q = np.deg2rad([10.0, 20, -30, 40, 0, 50])
    found = singular_configuration(robot, q, T_TOOL)
    assert found.rank == 5
    assert found.values[-1] < 1e-15
    assert manipulability_measure(robot, q, T_TOOL) < 1e-16
    J = twin.jacobian(robot, q, T_TOOL)
    assert np.max(np.abs(found.lost @ J)) < 1e-15
    idle = found.idle[0] * np.sign(found.idle[0, 3])
    np.testing.assert_allclose(idle, (0, 0, 0, 0.5**0.5, 0, -(0.5**0.5)), rtol=0, atol=1e-14)
    assert force_ellipsoid(robot, q, T_TOOL).lengths[-1] == np.inf
    regular = manipulability_measure(robot, q + np.array([0, 0, 0, 0, np.pi / 2, 0]))
    for close in (1e-4, 1e-10):
        q[4] = close
        assert singular_configuration(robot, q).rank == 6
        np.testing.assert_allclose(manipulability_measure(robot, q) / regular, np.sin(close), rtol=1e-5)


def test_a_stretched_arm_with_a_straight_wrist_loses_one_or_two(robot):
    q = np.array([0.3, 0.2, -np.pi / 2, 0.4, 0.0, -0.7])  # lower arm, forearm and axis 6 in one line
    assert singular_configuration(robot, q).rank == 5  # bending the elbow makes up for the turn lost
    q[3] = 0.0  # axis 5 is parallel to axes 2 and 3, which it therefore repeats
    found = singular_configuration(robot, q)
    assert found.rank == 4
    assert found.lost.shape == found.idle.shape == (2, 6)
    assert np.max(np.abs(twin.jacobian(robot, q) @ found.idle.T)) < 1e-15
    # At the wrist centre it cannot move along the line of the two arms: the force from the shoulder out.
    T_wrist = np.eye(4)
    T_wrist[2, 3] = -robot.dh.d[5]
    linear = singular_configuration(robot, q, T_wrist, part="linear")
    wrist = twin.forward_kinematics(robot, q, T_wrist)[:3, 3]
    shoulder = np.array([robot.dh.a[0] * np.cos(q[0]), robot.dh.a[0] * np.sin(q[0]), robot.dh.d[0]])
    outwards = (wrist - shoulder) / np.linalg.norm(wrist - shoulder)
    assert linear.rank == 2
    np.testing.assert_allclose(np.abs(linear.lost[0] @ outwards), 1, rtol=0, atol=1e-14)


def test_arms_with_fewer_and_more_joints():
    five = laboratory_arm("youbot")
    q = np.arange(1.0, 6)
    found = singular_configuration(five, q)
    assert (found.rank, found.lost.shape, found.idle.shape) == (5, (1, 6), (0, 5))
    assert manipulability_measure(five, q) == 0.0
    assert manipulability_measure(five, q, part="linear") > 1e-4
    assert velocity_ellipsoid(five, q).lengths[-1] == 0.0
    assert np.isinf(force_ellipsoid(five, q).lengths).tolist() == [False] * 5 + [True]
    assert singular_configuration(laboratory_arm("seven"), np.linspace(0.1, 0.7, 7)).idle.shape == (1, 7)


def test_misuse_of_manipulability_is_one_clear_sentence(robot):
    q = np.zeros(6)
    refused(
        (lambda: manipulability_measure(robot, q, part="force"), "unknown part of the twist 'force'"),
        (lambda: singular_configuration(robot, [q, q]), "expected q of shape (6,), got (2, 6)"),
        (lambda: velocity_ellipsoid(robot, q, speeds=q), "expected speeds above 0, got"),
        (lambda: force_ellipsoid(robot, q, torques=q - 1), "expected torques above 0, got"),
    )
