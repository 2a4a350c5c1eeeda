"""D, C and g of Norrlöf's report: the corrected forms hold, and each misprint fails.

The reference is the library's kernel (`twin/multibody/recursions.py`) over the tree of column, arms, lever
and rod.  `STATE` is one set of parameters, and `Q`, `QD`, `QDD` are one motion.  The numbers for them come
from a separate Euler-Lagrange derivation, which agreed with Pinocchio on the same tree.
"""

from dataclasses import astuple, replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import twin
from tests.published.norrlof.closed_form import (
    MainAxes,
    coriolis_matrix,
    gravity_torque,
    main_axes_parameters,
    main_axes_robot,
    mass_matrix,
)
from tests.support.peers import largest_relative_error
from tests.support.random_trees import interpreted, random_urdf
from twin.errors import RobotError
from twin.multibody.tree import frozen, inertial_parameters

STATE = MainAxes(
    *(4.1, 0.9, 1.3, 0.2, 0.35, 28.0, 35.0, 6.0, 11.0, 0.15, 0.6, -0.18),
    *(0.03, 0.24, 0.11, 0.07, 0.0, 0.31, -0.09, 0.02),
)
Q, QD, QDD = np.array([[0.3, -0.4, 0.7], [0.8, -1.1, 0.5], [0.4, -0.9, 1.7]])
D_STATE = [
    [4.538867475792382, 0, 0],
    [0, 15.9146, -1.0935264790977486],
    [0, -1.0935264790977486, 2.5329],
]
C_STATE = [
    [-1.3824426241950283, 0.9955060985746411, -0.021794781847834777],
    [-0.9955060985746411, 0, -1.1030089391650553],
    [0.021794781847834777, -2.4266196661631216, 0],
]
G_STATE = [0, 105.41142567247438, -30.22932192243496]
TAU_STATE = [-0.39636120839509115, 87.88138130956597, -22.25250063298928]


@pytest.fixture(scope="module")
def arm():
    """IRB 1400 with the report's simplifications."""
    return interpreted(main_axes_robot(twin.load("irb1400")))


@pytest.fixture(scope="module")
def p(arm):
    return main_axes_parameters(arm)


@pytest.fixture
def motions(rng):
    return rng.uniform(-3, 3, (3, 200, 3))


def robot_of(p, arm):
    """Return the robot with the given parameters."""
    T = arm.tree.T_parent_joint.copy()
    T[1, 0, 3] = T[3, 0, 3] = p.l1x
    T[2, 2, 3], T[4, 0, 3] = p.l2z, p.l5x
    columns = [(7.0, 0, 0, np.diag([0, 0, p.I1]))]
    for i in (2, 3, 5, 4):  # the tree has the lever before the rod
        m, x, z, I = (getattr(p, name) for name in (f"m{i}", f"rc{i}x", f"rc{i}z", f"I{i}"))  # noqa: E741
        columns.append((m, x, z, np.diag([0, I, 0])))
    inertias = [inertial_parameters(m, np.array([x, 0, z]), inertia) for m, x, z, inertia in columns]
    tree = replace(arm.tree, T_parent_joint=frozen(T), inertias=frozen(inertias))
    return interpreted(replace(arm, tree=tree).with_gravity((0, 0, -p.gz)))


def inertia_rate(D, p, q, qd):
    """Return `Ddot` of an inertia matrix D(p, q) along a motion, by a five-point difference."""
    h = 1e-3
    weights = {-2: 1 / 12, -1: -8 / 12, 1: 8 / 12, 2: -1 / 12}
    return sum(weight * D(p, q + k * h * qd) for k, weight in weights.items()) / h


def asymmetry(D, C, p, q, qd):
    """Return twice the symmetric part of `Ddot - 2 C`."""
    N = inertia_rate(D, p, q, qd) - 2 * C(p, q, qd)
    return N + np.swapaxes(N, -1, -2)


# The printed forms that differ from the right ones.


def printed_mass_matrix(p, q):
    """Return D of (3.55) as printed: the last term of d11 has cos(2 theta2) and sin(theta2)."""
    D = mass_matrix(p, q)
    c3, s2, s3 = np.cos(q[..., 2]), np.sin(q[..., 1]), np.sin(q[..., 2])
    square = p.rc5x**2 + p.rc5z**2
    difference = p.rc5x**2 - p.rc5z**2
    right = (p.l1x + p.rc5x * c3 + p.rc5z * s3) ** 2
    printed = p.l1x**2 + square / 2 + 2 * p.l1x * p.rc5x * c3 + difference * np.cos(2 * q[..., 1]) / 2
    printed = printed + 2 * p.l1x * p.rc5z * s2 + p.rc5x * p.rc5z * np.sin(2 * q[..., 2])
    D[..., 0, 0] += p.m5 * (printed - right)
    return D


def printed_coriolis_matrix(p, q, qd):
    """Return C of (3.58) as printed: c11, c23 and c32 are zero."""
    C = coriolis_matrix(p, q, qd)
    for i, j in ((0, 0), (1, 2), (2, 1)):
        C[..., i, j] = 0
    return C


def printed_gravity_torque(p, q):
    """Return g of (3.59) as printed: m3 l2z has the wrong sign."""
    g = gravity_torque(p, q)
    g[..., 1] += 2 * p.gz * p.m3 * p.l2z * np.sin(q[..., 1])
    return g


def test_closed_form_gives_the_numbers_of_a_separate_derivation():
    np.testing.assert_allclose(mass_matrix(STATE, Q), D_STATE, atol=1e-14)
    np.testing.assert_allclose(coriolis_matrix(STATE, Q, QD), C_STATE, atol=1e-14)
    np.testing.assert_allclose(gravity_torque(STATE, Q), G_STATE, atol=1e-13)
    tau = mass_matrix(STATE, Q) @ QDD + coriolis_matrix(STATE, Q, QD) @ QD + gravity_torque(STATE, Q)
    np.testing.assert_allclose(tau, TAU_STATE, atol=1e-13)


def test_closed_form_equals_the_kernel_for_the_robot(arm, p, motions):
    q, qd, qdd = motions
    D, C, g = mass_matrix(p, q), coriolis_matrix(p, q, qd), gravity_torque(p, q)
    assert largest_relative_error(D, twin.mass_matrix(arm, q)) < 1e-12
    assert largest_relative_error(C, twin.coriolis_matrix(arm, q, qd)) < 1e-12
    assert largest_relative_error(g, twin.gravity_torque(arm, q)) < 1e-12
    tau = np.einsum("kij,kj->ki", D, qdd) + np.einsum("kij,kj->ki", C, qd) + g
    assert largest_relative_error(tau, twin.inverse_dynamics(arm, q, qd, qdd)) < 1e-12


def test_closed_form_equals_the_kernel_for_random_parameters(arm, rng, motions):
    """No parameter is zero, not even `rc4x`, which the printed formulas omit."""
    q, qd, _ = motions
    for _ in range(5):
        p = MainAxes(*rng.uniform(0.1, 2.0, 9), *rng.uniform(-1, 1, 11), gz=9.81)
        robot = robot_of(p, arm)
        np.testing.assert_allclose(astuple(main_axes_parameters(robot)), astuple(p), rtol=1e-13, atol=1e-14)
        assert largest_relative_error(mass_matrix(p, q), twin.mass_matrix(robot, q)) < 1e-12
        assert largest_relative_error(coriolis_matrix(p, q, qd), twin.coriolis_matrix(robot, q, qd)) < 1e-12
        assert largest_relative_error(gravity_torque(p, q), twin.gravity_torque(robot, q)) < 1e-12


def test_printed_d11_is_wrong(arm, p, motions):
    q, _, _ = motions
    expected = twin.mass_matrix(arm, q)[:, 0, 0]
    assert largest_relative_error(mass_matrix(p, q)[:, :1, 0], expected[:, None]) < 1e-12
    assert largest_relative_error(printed_mass_matrix(p, q)[:, :1, 0], expected[:, None]) > 1e-3
    error = printed_mass_matrix(STATE, Q)[0, 0] - D_STATE[0][0]
    np.testing.assert_allclose(abs(error), 0.04591255731103239, rtol=1e-12)


def test_printed_c11_halves_the_coriolis_torque_of_the_base(arm, p, motions):
    q, qd, _ = motions
    expected = twin.inverse_dynamics(arm.with_gravity((0, 0, 0)), q, qd, 0 * qd)[:, 0]
    right, printed = coriolis_matrix(p, q, qd), coriolis_matrix(p, q, qd)
    printed[:, 0, 0] = 0
    scale = np.max(np.abs(expected))
    np.testing.assert_allclose(np.einsum("kj,kj->k", right[:, 0], qd), expected, atol=1e-12 * scale)
    np.testing.assert_allclose(np.einsum("kj,kj->k", printed[:, 0], qd), expected / 2, atol=1e-12 * scale)
    rate = inertia_rate(mass_matrix, STATE, Q, QD)[0, 0]
    np.testing.assert_allclose(rate / 2, C_STATE[0][0], rtol=1e-9)  # difference quotient


def test_printed_c23_and_c32_are_wrong(arm, p, motions):
    q, qd, _ = motions
    qd = qd * [0, 1, 1]  # with the base at rest there is no other Coriolis torque
    expected = twin.inverse_dynamics(arm.with_gravity((0, 0, 0)), q, qd, 0 * qd)[:, 1:]
    right = np.einsum("kij,kj->ki", coriolis_matrix(p, q, qd), qd)[:, 1:]
    printed = np.einsum("kij,kj->ki", printed_coriolis_matrix(p, q, qd), qd)[:, 1:]
    assert largest_relative_error(right, expected) < 1e-12
    assert not np.any(printed)
    assert np.max(np.abs(expected)) > 10


def test_printed_g2_is_wrong(arm, p, motions):
    q, _, _ = motions
    expected = twin.gravity_torque(arm, q)
    assert largest_relative_error(gravity_torque(p, q), expected) < 1e-12
    assert largest_relative_error(printed_gravity_torque(p, q), expected) > 1
    error = printed_gravity_torque(STATE, Q) - G_STATE
    np.testing.assert_allclose(np.max(np.abs(error)), 160.4481453980102, rtol=1e-12)


def test_printed_forms_violate_skew_symmetry(p, motions):
    q, qd, _ = motions
    rounding = 1e-7  # of the difference quotient
    assert np.max(np.abs(asymmetry(mass_matrix, coriolis_matrix, p, q, qd))) < rounding
    printed = asymmetry(printed_mass_matrix, printed_coriolis_matrix, p, q, qd)
    assert np.max(np.abs(printed[:, 0, 0])) > 10
    assert np.max(np.abs(printed[:, 1, 2])) > 10
    at_state = asymmetry(printed_mass_matrix, printed_coriolis_matrix, STATE, Q, QD)
    np.testing.assert_allclose(np.max(np.abs(at_state)), 7.059257210656353, rtol=1e-9)
    N = inertia_rate(mass_matrix, STATE, Q, QD) - 2 * coriolis_matrix(STATE, Q, QD)
    skew = [
        [0, -1.9910121971492822, 0.043589563695669555],
        [1.9910121971492822, 0, -1.3236107269980664],
        [-0.043589563695669555, 1.3236107269980664, 0],
    ]
    np.testing.assert_allclose(N, skew, atol=1e-9)


def test_printed_kinetic_energy_is_wrong(load, rng):
    """(3.38) prints `Jw^T R^T I Jw R Jw`; the rotational term is `Jw^T R I R^T Jw`."""
    robot = load(random_urdf(rng, 3, ("revolute",)))
    tree = robot.tree
    for q in rng.uniform(-3, 3, (5, 3)):
        frames, axes, origins = [], [], []
        right, printed = np.zeros((3, 3)), np.zeros((3, 3))
        for i in range(3):
            T = (frames[tree.parents[i]] if tree.parents[i] >= 0 else np.eye(4)) @ tree.T_parent_joint[i]
            axes.append(T[:3, :3] @ tree.axes[i])
            origins.append(T[:3, 3])
            turn = np.eye(4)
            turn[:3, :3] = Rotation.from_rotvec(q[i] * tree.axes[i]).as_matrix()
            frames.append(T @ turn)
            m, h = tree.inertias[i, 0], tree.inertias[i, 1:4]
            xx, yy, zz, xy, xz, yz = tree.inertias[i, 4:]
            I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])  # noqa: E741
            I = I - (np.dot(h, h) * np.eye(3) - np.outer(h, h)) / m  # noqa: E741
            R, com = frames[i][:3, :3], frames[i][:3, :3] @ h / m + frames[i][:3, 3]
            Jv, Jw = np.zeros((3, 3)), np.zeros((3, 3))
            for k in tree.carriers(i):
                Jv[:, k], Jw[:, k] = np.cross(axes[k], com - origins[k]), axes[k]
            right += m * Jv.T @ Jv + Jw.T @ R @ I @ R.T @ Jw
            printed += m * Jv.T @ Jv + Jw.T @ R.T @ I @ Jw @ R @ Jw
        M = twin.mass_matrix(robot, q)
        np.testing.assert_allclose(right, M, atol=1e-12 * np.max(M))
        assert np.max(np.abs(printed - M)) > 1e-3 * np.max(M)


def test_printed_sign_of_the_potential_is_wrong(arm, p, motions):
    """(3.43) subtracts dV/dq; the torque adds it."""
    q, qd, qdd = motions
    expected = twin.inverse_dynamics(arm, q, qd, qdd)
    motion = np.einsum("kij,kj->ki", mass_matrix(p, q), qdd)
    motion += np.einsum("kij,kj->ki", coriolis_matrix(p, q, qd), qd)
    assert largest_relative_error(motion + gravity_torque(p, q), expected) < 1e-12
    assert largest_relative_error(motion - gravity_torque(p, q), expected) > 0.1
    error = 2 * np.max(np.abs(gravity_torque(STATE, Q)))
    np.testing.assert_allclose(error, 210.82285134494876, rtol=1e-12)


def test_printed_coriolis_matrix_without_velocities_is_wrong(arm, p, motions):
    """(3.45) sums the Christoffel symbols without multiplying by velocities."""
    q, qd, _ = motions
    assert largest_relative_error(coriolis_matrix(p, q, qd), twin.coriolis_matrix(arm, q, qd)) < 1e-12
    printed = coriolis_matrix(p, q, np.ones(3))  # the sum without velocities
    assert largest_relative_error(printed, twin.coriolis_matrix(arm, q, qd)) > 0.1
    error = coriolis_matrix(STATE, Q, np.ones(3)) - C_STATE
    np.testing.assert_allclose(np.max(np.abs(error)), 4.632637544493232, rtol=1e-12)


def test_printed_cross_product_matrix_is_wrong(rng):
    """(3.28) prints the third row as [w2, w1, 0]."""
    for w, r in rng.normal(size=(5, 2, 3)):
        right = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        printed = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [w[1], w[0], 0]])
        np.testing.assert_allclose(right @ r, np.cross(w, r), atol=1e-14)
        assert np.max(np.abs(printed @ r - np.cross(w, r))) > 1e-3
        assert np.any(printed + printed.T)
    np.testing.assert_allclose(np.cross([1, 2, 3], [0.5, -1, 2]), [7, -0.5, -2])


def test_simplified_robot_has_the_same_gravity_torque_and_mass(arm):
    """The simplification drops only offsets from the plane, so g is unchanged with the wrist at zero."""
    robot = interpreted(twin.load("irb1400"))
    q = np.random.default_rng(3).uniform(-1, 1, (50, 3))
    q_full = np.concatenate([q, np.zeros((50, 3))], axis=1)
    expected = twin.gravity_torque(robot, q_full)[:, :3]
    np.testing.assert_allclose(twin.gravity_torque(arm, q), expected, atol=1e-12 * np.max(np.abs(expected)))
    np.testing.assert_allclose(
        twin.forward_kinematics(arm, q), twin.forward_kinematics(robot, q_full), atol=1e-14
    )
    M, M_full = twin.mass_matrix(arm, q), twin.mass_matrix(robot, q_full)
    np.testing.assert_allclose(M[:, 1, 2], M_full[:, 1, 2], atol=1e-12)
    np.testing.assert_allclose(M[:, 1, 1], M_full[:, 1, 1], rtol=1e-12)
    loaded = main_axes_parameters(robot.with_payload(twin.Payload(5.0, (0, 0, 0.1))))
    assert loaded.m3 == pytest.approx(main_axes_parameters(robot).m3 + 5.0, rel=1e-14)


def test_simplifying_a_robot_twice_changes_nothing(arm, p):
    again = main_axes_robot(arm)
    np.testing.assert_allclose(again.tree.inertias, arm.tree.inertias, rtol=1e-13, atol=1e-15)
    assert main_axes_parameters(again).l5x == p.l5x == -0.17


def test_robots_without_the_parallelogram_are_rejected(irb140, arm):
    with pytest.raises(RobotError, match=r"'irb140' has no joint 'joint_elbow'.*parallelogram"):
        main_axes_parameters(irb140)
    with pytest.raises(RobotError, match=r"gravity is \[-9.81, 0.0, 0.0\]"):
        main_axes_parameters(arm.mounted("wall"))
    T = arm.tree.T_parent_joint.copy()
    T[4, 1, 3] = 0.01
    displaced = replace(arm, tree=replace(arm.tree, T_parent_joint=T))
    with pytest.raises(RobotError, match=r"'joint_rod' at \[-0.17, 0.01, 0.0\] m"):
        main_axes_robot(displaced)
    with pytest.raises(RobotError, match=r"'joint_elbow' with another axis, parent or coupling"):
        main_axes_robot(replace(arm, embedding=np.abs(arm.embedding)))
    with pytest.raises(RobotError, match=r"not at zero"):
        main_axes_robot(replace(arm, embedding_offset=arm.embedding_offset + 0.1))


def test_angles_of_a_wrong_shape_are_rejected(p):
    with pytest.raises(ValueError, match=r"expected finite q of shape \(..., 3\), got \[0.0, 0.0\]"):
        mass_matrix(p, np.zeros(2))
    with pytest.raises(ValueError, match="expected finite qd"):
        coriolis_matrix(p, np.zeros(3), np.full(3, np.nan))
