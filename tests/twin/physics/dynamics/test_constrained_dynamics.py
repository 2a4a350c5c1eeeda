"""An arm held by its tool: against other derivations, the motion along a surface, and surfaces themselves."""

import numpy as np
import pytest

import twin
from tests.support.dh_arms import T_TOOL, times
from tests.support.laboratory_arms import laboratory_arm
from tests.support.peers import Pinocchio
from tests.support.refusals import refused
from twin.base.errors import SingularityError
from twin.physics.dynamics.constrained import (
    Constraint,
    Cylinder,
    Plane,
    Sphere,
    constrained_forward_dynamics,
    surface_constraint,
    surface_violation,
)


def rotation_with_z_along(axis):
    z = np.asarray(axis) / np.linalg.norm(axis)
    x = np.cross(z, (0.3, -0.8, 0.5))
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def states_on(robot, surface_at, rng, count, tool=T_TOOL):
    """Random states with the tool on a surface that is put there, moving along it, and torques."""
    states = []
    for _ in range(count):
        q = rng.uniform(0.5 * robot.q_min, 0.5 * robot.q_max)
        R = rotation_with_z_along(rng.normal(size=3))
        surface = surface_at(twin.forward_kinematics(robot, q, tool)[:3, 3], R)
        J = surface_constraint(robot, q, 0 * q, surface, tool).A @ twin.jacobian(robot, q, tool)
        qd = rng.uniform(-1, 1, robot.n) * robot.qd_max
        qd -= np.linalg.pinv(J) @ J @ qd
        states.append((surface, q, qd, rng.uniform(-1, 1, robot.n) * robot.tau_max))
    return states


SURFACES = {
    "plane": lambda p, R: Plane(p + R @ (0.2, -0.1, 0.0), R[:, 2]),
    "sphere": lambda p, R: Sphere(p - R @ (0.1, -0.2, 0.2), 0.3),
    "cylinder": lambda p, R: Cylinder(p - R @ (0.15, 0.2, 0.15), 2.5 * R[:, 2], 0.25),
    "point": lambda p, R: [Plane(p, axis) for axis in np.eye(3)],
}
"""Surfaces through a point, in directions that a rotation gives."""


@pytest.mark.parametrize("surface_at", SURFACES)
def test_full_and_reduced_constrained_systems_agree(robot, surface_at):
    """One linear system in accelerations and multipliers; and coordinates that the constraint leaves free."""
    peer = Pinocchio(robot.urdf, robot.joint_names)
    for surface, q, qd, tau in states_on(robot, SURFACES[surface_at], np.random.default_rng(4), 10):
        constraint = surface_constraint(robot, q, qd, surface, T_TOOL)
        found = constrained_forward_dynamics(robot, q, qd, tau, constraint, T_TOOL)
        M, h = peer.mass_matrix(q), peer.inverse_dynamics(q, qd, 0 * qd)
        J_c = constraint.A @ twin.jacobian(robot, q, T_TOOL)
        gamma = -constraint.b - constraint.A @ twin.jacobian_dot(robot, q, qd, T_TOOL) @ qd
        m = len(J_c)
        whole = np.block([[M, -J_c.T], [J_c, np.zeros((m, m))]])
        solution = np.linalg.solve(whole, np.concatenate([tau - h, gamma]))
        result = np.concatenate([found.qdd, found.multipliers])
        np.testing.assert_allclose(result, solution, rtol=0, atol=1e-11 * np.max(np.abs(solution)))
        np.testing.assert_allclose(found.wrench, constraint.A.T @ found.multipliers, rtol=1e-14)
        N = np.linalg.svd(J_c)[2][m:].T  # motions along the surface
        particular = np.linalg.pinv(J_c) @ gamma
        along = particular + N @ np.linalg.solve(N.T @ M @ N, N.T @ (tau - h - M @ particular))
        np.testing.assert_allclose(found.qdd, along, rtol=0, atol=1e-11 * np.max(np.abs(found.qdd)))
        # And backwards: these torques and that wrench make this motion.
        back = twin.inverse_dynamics(robot, q, qd, found.qdd, found.wrench, T_TOOL)
        size = np.max(np.abs(tau)) + np.max(np.abs(found.multipliers))
        np.testing.assert_allclose(back, tau, rtol=0, atol=1e-11 * size)


@pytest.mark.parametrize("surface_at", ["sphere", "cylinder"])
def test_a_free_motion_stays_on_the_surface_and_keeps_its_energy(robot, surface_at):
    """Runge-Kutta over 0.05 s, without drives: no force of the constraint does work."""
    surface, q, qd, _ = states_on(robot, SURFACES[surface_at], np.random.default_rng(5), 1)[0]
    qd = 0.3 * qd

    def rate(state):
        q, qd = state
        constraint = surface_constraint(robot, q, qd, surface, T_TOOL)
        return np.array([qd, constrained_forward_dynamics(robot, q, qd, np.zeros(6), constraint, T_TOOL).qdd])

    state, h = np.array([q, qd]), 5e-4
    energy = twin.energy(robot, q, qd)
    start = twin.forward_kinematics(robot, q, T_TOOL)[:3, 3]
    for _ in range(100):
        a = rate(state)
        b = rate(state + h / 2 * a)
        c = rate(state + h / 2 * b)
        state = state + h / 6 * (a + 2 * b + 2 * c + rate(state + h * c))
    g, g_dot = surface_violation(robot, *state, surface, T_TOOL)
    moved = np.linalg.norm(twin.forward_kinematics(robot, state[0], T_TOOL)[:3, 3] - start)
    assert moved > 5e-3
    assert abs(g[0]) < 1e-9  # the integration's own error
    assert abs(g_dot[0]) < 1e-8
    assert abs(twin.energy(robot, *state) - energy) < 1e-7 * abs(energy)


def test_a_tool_held_altogether_does_not_move_and_violations_are_along_the_normal(robot):
    held = Constraint(np.eye(6), np.zeros(6))
    q, tau = robot.poses["test_1"], np.array([50.0, -100, 60, 5, -6, 3])
    found = constrained_forward_dynamics(robot, q, 0 * q, tau, held, T_TOOL)
    np.testing.assert_allclose(found.qdd, 0, rtol=0, atol=1e-9)
    balance = tau - twin.gravity_torque(robot, q) + twin.jacobian(robot, q, T_TOOL).T @ found.wrench
    np.testing.assert_allclose(balance, 0, rtol=0, atol=1e-9)
    qd = np.array([0.3, -0.2, 0.5, 1.0, 0.4, -0.7])
    p = twin.forward_kinematics(robot, q, T_TOOL)[:3, 3]
    v = (twin.jacobian(robot, q, T_TOOL) @ qd)[:3]
    surfaces = [Plane(p - np.array([0, 0, 2e-3]), (0, 0, 5)), Sphere(p - np.array([0.3, 0, 0]), 0.3)]
    g, g_dot = surface_violation(robot, q, qd, surfaces, T_TOOL)
    np.testing.assert_allclose(g, (2e-3, 0), rtol=0, atol=1e-15)
    np.testing.assert_allclose(g_dot, (v[2], v[0]), rtol=0, atol=1e-15)


def test_forces_that_are_not_determined_are_refused(robot):
    q = robot.poses["test_1"]
    p = twin.forward_kinematics(robot, q)[:3, 3]
    twice = surface_constraint(robot, q, 0 * q, [Plane(p, (0, 0, 1)), Plane(p, (0, 0, -2))])
    with pytest.raises(SingularityError, match=r"the constraint does not exist: .* along \(0\.707, 0\.707\)"):
        constrained_forward_dynamics(robot, q, 0 * q, 0 * q, twice)
    # Full stretch: the wrist cannot move outwards, so nothing holds it from doing so.
    T_wrist = np.eye(4)
    T_wrist[2, 3] = -robot.dh.d[5]
    q = np.deg2rad([0.0, 0, -90, 0, 30, 0])
    p = twin.forward_kinematics(robot, q, T_wrist)[:3, 3]
    outwards = surface_constraint(robot, q, 0 * q, [Plane(p, (0, 0, 1)), Plane(p, (1, 0, 0))], T_wrist)
    with pytest.raises(SingularityError, match=r"cannot accelerate along \(-?1, "):
        constrained_forward_dynamics(robot, q, 0 * q, 0 * q, outwards, T_wrist)
    five = laboratory_arm("youbot")
    held = Constraint(np.eye(6), np.zeros(6))
    with pytest.raises(SingularityError, match="6 directions, more than the 5 joints of the arm"):
        constrained_forward_dynamics(five, np.ones(5), np.zeros(5), np.zeros(5), held)


def test_the_parallelogram_arm_and_batches():
    robot = twin.load("irb1400")
    rng = np.random.default_rng(6)
    q, qd, tau = rng.uniform(-0.5, 0.5, (3, 2, 5, 6))
    surface = Sphere((1.0, 0.0, 1.0), 0.4)
    constraint = surface_constraint(robot, q, qd, surface, T_TOOL)
    found = constrained_forward_dynamics(robot, q, qd, tau, constraint, T_TOOL)
    assert (found.qdd.shape, found.multipliers.shape, found.wrench.shape) == ((2, 5, 6), (2, 5, 1), (2, 5, 6))
    Vd = times(twin.jacobian(robot, q, T_TOOL), found.qdd)
    Vd += times(twin.jacobian_dot(robot, q, qd, T_TOOL), qd)
    np.testing.assert_allclose(times(constraint.A, Vd), -constraint.b, rtol=0, atol=1e-12)
    back = twin.inverse_dynamics(robot, q, qd, found.qdd, found.wrench, T_TOOL)
    np.testing.assert_allclose(back, tau, rtol=0, atol=1e-10)


def test_misuse_is_one_clear_sentence(robot):
    q = np.zeros(6)

    def moved(A, b):
        return lambda: constrained_forward_dynamics(robot, q, q, q, Constraint(A, b))

    refused(
        (moved(np.eye(6), np.zeros(3)), "expected constraint.b of shape (..., 6), got (3,)"),
        (moved(np.ones(6), np.zeros(1)), "expected constraint.A of shape (..., m, 6), got (6,)"),
        (lambda: surface_constraint(robot, q, q, []), "expected at least one surface"),
    )


CENTER = np.array([0.3, -0.2, 0.5])
AXIS = np.array([1.0, 2.0, -2.0])
EXAMPLES = {
    "plane": Plane(CENTER, AXIS),
    "sphere": Sphere(CENTER, 0.4),
    "cylinder": Cylinder(CENTER, AXIS, 0.25),
}


def points_on(kind, rng, count=50):
    direction = rng.normal(size=(count, 3))
    along = np.outer(direction @ AXIS, AXIS) / 9.0
    across = direction - along
    if kind == "plane":
        return CENTER + across
    if kind == "sphere":
        return CENTER + 0.4 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    return CENTER + along + 0.25 * across / np.linalg.norm(across, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_on_the_surface_g_is_zero_and_its_gradient_a_unit_normal(kind, rng):
    p = points_on(kind, rng)
    level = EXAMPLES[kind](p)
    np.testing.assert_allclose(level.value, 0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(level.gradient, axis=1), 1, rtol=0, atol=1e-15)
    outwards = EXAMPLES[kind](p + 1e-3 * level.gradient).value
    np.testing.assert_allclose(outwards, 1e-3, rtol=3e-3)


@pytest.mark.parametrize("surface", EXAMPLES.values(), ids=EXAMPLES)
def test_derivatives(surface, rng):
    p, h = rng.normal(size=(4, 5, 3)), 1e-3
    level = surface(p)
    # g is of second degree: central differences are exact but for rounding.
    gradient = [(surface(p + h * e).value - surface(p - h * e).value) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(level.gradient, np.moveaxis(gradient, 0, -1), rtol=0, atol=1e-11)
    hessian = [(surface(p + h * e).gradient - surface(p - h * e).gradient) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(level.hessian, np.moveaxis(hessian, 0, -2), rtol=0, atol=1e-11)


def test_surfaces_that_cannot_be_are_refused():
    refused(
        (lambda: Plane([0, 0], AXIS), "expected point to be 3 finite numbers, got [0.0, 0.0]"),
        (lambda: Plane(CENTER, [0, 0, 0]), "expected normal to be a nonzero vector, got [0.0, 0.0, 0.0]"),
        (lambda: Sphere(CENTER, np.nan), "expected a radius above 0 m, got nan"),
        (lambda: Cylinder(CENTER, AXIS, -1.0), "expected a radius above 0 m, got -1.0"),
        (lambda: EXAMPLES["plane"]([0, 0]), "expected p of shape (..., 3), got (2,)"),
    )
