"""A constrained arm over time: against Pinocchio, an integrator of SciPy, and what must hold by itself."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp

import controllers
import twin
from controllers.hybrid import Hybrid
from tests.support.peers import Pinocchio
from tests.support.refusals import refused
from twin.base.errors import DivergenceError, RobotError, SingularityError
from twin.physics.dynamics import (
    Cylinder,
    JointFunction,
    Plane,
    Sphere,
    ToolOn,
    circle,
    fixed_point,
    joint_relation,
    line,
    onto_constraint,
    reduced_dynamics,
)

PULL = np.array([4.0, -3.0, 2.0, 0.1, -0.05, 0.001])  # N m


@pytest.fixture
def q(robot):
    return robot.poses["test_1"]


def constraints(robot, q):
    """Every kind of constraint, through a position."""
    p = twin.forward_kinematics(robot, q)[:3, 3]
    A = np.array([[1.0, -1, 0.5, 0, 0, 0], [0, 0, 0, 1, 2, -1]])
    return {
        "plane": ToolOn(Plane(p, [0.2, -0.3, 1])),
        "sphere": ToolOn(Sphere(p - [0, 0.3, 0.4], 0.5)),
        "line": ToolOn(line(p, [0.3, 1, 0.2])),
        "circle": ToolOn(circle(p - [0.1, 0, 0], [0, 0, 1], 0.1)),
        "point": ToolOn(fixed_point(p)),
        "joints": joint_relation(A, A @ q),
        "function": JointFunction(
            lambda x: [np.sin(x[0]) * x[1] + x[2] ** 2 - f(q), x[4] + x[1] - q[4] - q[1]]
        ),
    }


def f(q):
    return np.sin(q[0]) * q[1] + q[2] ** 2


KINDS = ("plane", "sphere", "line", "circle", "point", "joints", "function")


def torque(robot, q, t):
    return twin.gravity_torque(robot, q) + PULL * np.cos(9.0 * t)


@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_of_every_constraint(robot, q, kind):
    held, qd, h = constraints(robot, q)[kind], np.array([0.3, -0.2, 0.5, 1.0, 0.4, -0.7]), 1e-4
    found = held.at(robot, q, qd)
    ends = [held.violation(robot, q + way * np.eye(6)).T for way in (h, -h)]
    np.testing.assert_allclose(found.J, (ends[0] - ends[1]) / (2 * h), rtol=0, atol=1e-7)
    ahead, behind = (held.at(robot, q + way * qd, qd).J for way in (h, -h))
    np.testing.assert_allclose(found.Jd, (ahead - behind) / (2 * h), rtol=0, atol=1e-7)
    np.testing.assert_allclose(found.phi, 0.0, rtol=0, atol=1e-15)


def test_a_function_of_the_joints_has_derivatives_to_rounding(robot, q):
    """Against the analytic derivatives of the same function."""
    qd = np.array([0.3, -0.2, 0.5, 1.0, 0.4, -0.7])
    found = constraints(robot, q)["function"].at(robot, q, qd)
    s, c = np.sin(q[0]), np.cos(q[0])
    J = [[c * q[1], s, 2 * q[2], 0, 0, 0], [0, 1, 0, 0, 1, 0]]
    Jd = [[-s * qd[0] * q[1] + c * qd[1], c * qd[0], 2 * qd[2], 0, 0, 0], [0] * 6]
    np.testing.assert_allclose(found.J, J, rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.Jd, Jd, rtol=0, atol=2e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_motion_and_multipliers_against_an_integration_of_pinocchios_equations(robot, q, kind):
    """DOP853 of the index-1 equations with Pinocchio's M, h and J; it drifts, the plant does not."""
    held, peer, T = constraints(robot, q)[kind], Pinocchio(robot.urdf, robot.joint_names), 1e-3
    plant, N = twin.ConstrainedPlant(robot, held, T), 40
    plant.reset(q)
    tau = None

    def solved(state):
        position, speed = state[:6], state[6:]
        _, J, Jd = held.at(robot, position, speed)
        if isinstance(held, ToolOn):  # the tool's Jacobians are Pinocchio's, too
            p = peer.forward_kinematics(position)[:3, 3]
            levels = [
                one(p) for one in (held.surfaces if isinstance(held.surfaces, list) else [held.surfaces])
            ]
            G, J_v = np.array([one.gradient for one in levels]), peer.jacobian(position)[:3]
            bend = np.array([one.hessian @ J_v @ speed for one in levels])
            J, Jd = G @ J_v, G @ peer.jacobian_dot(position, speed)[:3] + bend @ J_v
        m = len(J)
        system = np.block([[peer.mass_matrix(position), -J.T], [J, np.zeros((m, m))]])
        h = peer.inverse_dynamics(position, speed, np.zeros(6))
        return np.split(np.linalg.solve(system, np.append(tau - h, -Jd @ speed)), [6])

    state, largest, worst = np.append(q, np.zeros(6)), 0.0, 0.0
    for k in range(N):
        tau = torque(robot, plant.state()[0], k * T)
        force = solved(state)[1]
        state = solve_ivp(
            lambda _, y: np.append(y[6:], solved(y)[0]), (0, T), state, "DOP853", rtol=1e-12, atol=1e-13
        ).y[:, -1]
        plant.step(tau)
        largest = max(largest, np.abs(force).max())
        worst = max(worst, np.abs(plant.force - force).max())
    assert np.abs(plant.state()[0] - q).max() > 1e-3
    assert worst < 1e-10 * largest  # the error of Runge-Kutta steps of 1 ms; observed: 4e-11 and 2e-11
    np.testing.assert_allclose(plant.state()[0], state[:6], rtol=0, atol=1e-10)
    assert plant.forces.shape == (N, len(plant.force))


def test_contact_force_against_pinocchios_constrained_dynamics(robot, q):
    """A tool that turns about a fixed point, which Pinocchio has as a contact of the frame."""
    held = constraints(robot, q)["point"]
    J = held.at(robot, q, 0 * q).J
    qd = np.linalg.svd(J)[2][3:].T @ [1.0, -0.5, 2.0]
    plant = twin.ConstrainedPlant(robot, held)
    plant.reset(q, qd)
    tau = torque(robot, q, 0.0)
    plant.step(tau)
    peer = Pinocchio(robot.urdf, robot.joint_names)
    frame = peer.model.frames[peer.model.getFrameId("tool0")]
    p = pin.SE3(np.eye(3), twin.forward_kinematics(robot, q)[:3, 3])
    of_frame = peer.model, frame.parentJoint, frame.placement
    contact = pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, *of_frame, 0, p, pin.LOCAL_WORLD_ALIGNED)
    models, states = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    models.append(contact)
    states.append(contact.createData())
    pin.initConstraintDynamics(peer.model, peer.data, models, states)
    settings = pin.ProximalSettings(1e-14, 1e-10, 20)
    pin.constraintDynamics(peer.model, peer.data, *peer._reordered(q, qd, tau), models, states, settings)
    force = states[0].contact_force.linear
    np.testing.assert_allclose(plant.force, force, rtol=0, atol=1e-10 * np.abs(force).max())


def test_a_wall_holds_a_tool_that_is_pressed_against_it():
    """The sign: the wall pushes the tool back, along its gradient, with the force that statics gives."""
    arm = twin.load("two_link").mounted("wall")
    q = np.array([0.0, np.pi / 2])
    plant = twin.ConstrainedPlant(arm, ToolOn(Plane([1, 0, 0], [1, 0, 0])))
    plant.reset(q)
    J = twin.jacobian(arm, q)[0]
    plant.step(twin.gravity_torque(arm, q) + 7.0 * J)  # 7 N in the direction of the gradient
    np.testing.assert_allclose(plant.force, [-7.0], rtol=1e-13)
    np.testing.assert_allclose(plant.state()[1], 0.0, atol=1e-15)


def test_constraint_holds_for_five_seconds(robot, q):
    held, T = constraints(robot, q)["circle"], 5e-3
    plant = twin.ConstrainedPlant(robot, held, T)
    law = controllers.make("computed_torque", robot)
    rest = np.zeros(6)

    def pushed(state, reference):
        return law(state, reference) + PULL * np.cos(3.0 * state.t)

    log = twin.run_closed_loop(plant, pushed, twin.sample(twin.hold(q, 5.0), T), start=(q, rest))
    assert np.ptp(log.q, axis=0).max() > 1e-3
    assert np.abs(held.violation(robot, log.q)).max() < 1e-13
    rates = [held.at(robot, *state).J @ state[1] for state in zip(log.q, log.qd, strict=True)]
    assert np.abs(rates).max() < 1e-13
    assert len(plant.forces) == len(log.t) - 1


def test_a_free_motion_keeps_its_energy():
    arm = twin.load("two_link").mounted("wall")
    held = ToolOn(Cylinder([0, 0.5, 0], [0, 0, 1], 1.0))
    q = onto_constraint(arm, held, [0.4, 1.2])
    plant = twin.ConstrainedPlant(arm, held)
    plant.reset(q)
    energy = twin.energy(arm, *plant.state())
    for _ in range(300):
        plant.step([0, 0])
    assert np.abs(plant.state()[1]).max() > 0.5
    assert abs(twin.energy(arm, *plant.state()) - energy) < 1e-10


@pytest.mark.parametrize("kind", KINDS)
def test_reduced_dynamics_give_the_accelerations_and_are_passive(robot, q, kind):
    held = constraints(robot, q)[kind]
    N = np.linalg.svd(held.at(robot, q, 0 * q).J)[2][len(held.at(robot, q, 0 * q).phi) :].T
    qd = N @ np.linspace(1.0, -0.8, N.shape[1])
    found = reduced_dynamics(robot, q, qd, held)
    free = list(found.independent)
    np.testing.assert_allclose(found.N @ qd[free], qd, rtol=0, atol=1e-13)
    tau = torque(robot, q, 0.0)
    zdd = np.linalg.solve(found.M, found.N.T @ tau - found.C @ qd[free] - found.g)
    plant = twin.ConstrainedPlant(robot, held)
    plant.reset(q, qd)
    plant.tau = tau
    qdd = plant._rate(plant.state())[0][1]
    np.testing.assert_allclose(
        found.N @ zdd + found.Nd @ qd[free], qdd, rtol=0, atol=1e-11 * np.abs(qdd).max()
    )
    # d/dt of M along a motion on the constraint, by central differences of positions that are put onto it.
    h = 1e-4
    ends = []
    for way in (h, -h):
        at = onto_constraint(robot, held, q + way * qd + way**2 / 2 * qdd)
        ends.append(reduced_dynamics(robot, at, 0 * qd, held, free).M)
    skew = (ends[0] - ends[1]) / (2 * h) - 2 * found.C
    np.testing.assert_allclose(skew + skew.T, 0, atol=1e-6 * np.abs(found.C).max())
    assert np.abs(skew).max() > 1e-4


def test_hybrid_control_presses_as_desired_under_any_controller(robot, q):
    p = twin.forward_kinematics(robot, q)[:3, 3]
    held, reference = ToolOn(Plane(p, [0, 0, 1])), twin.sample(twin.hold(q, 0.02), 1e-3)
    for name in ("pd", "computed_torque", "dob"):
        plant = twin.ConstrainedPlant(robot, held)
        law = Hybrid(controllers.make(name, robot), robot, held, [25.0])
        twin.run_closed_loop(plant, law, reference)
        np.testing.assert_allclose(plant.forces, 25.0, rtol=1e-11)
    loaded = robot.with_payload(twin.Payload(2.0, (0, 0, 0.05)))
    plant = twin.ConstrainedPlant(loaded, held)
    law = Hybrid(controllers.make("computed_torque", robot), robot, held, [25.0], lambda: plant.force, 100.0)
    twin.run_closed_loop(plant, law, twin.sample(twin.hold(q, 0.1), 1e-3))
    error = np.abs(plant.forces - 25.0)
    assert error[0] > 1.0
    assert error[-1] < 0.02 * error[0]


def test_singularity_has_its_time_and_place():
    """The lines q1 = q2 and q1 = -q2 cross at zero, where the constraint does not tell which one goes on."""
    arm = twin.load("two_link").with_drives("ideal")
    held = JointFunction(lambda q: q[0] ** 2 - q[1] ** 2)
    plant = twin.ConstrainedPlant(arm, held)
    q, qd = np.array([0.1, 0.1]), np.array([-1.0, -1.0])
    reference = twin.sample(twin.hold(q, 0.5), 1e-3)
    with pytest.raises(DivergenceError, match=r"becomes singular at t = 0\.\d+ s, q = \[.*\]: ") as caught:
        twin.run_closed_loop(plant, lambda state, _: np.zeros(2), reference, start=(q, qd))
    assert 50 < len(caught.value.log.t) < 200
    assert np.abs(caught.value.log.q[-1]).max() < 0.02
    with pytest.raises(SingularityError, match="cannot accelerate along"):
        twin.ConstrainedPlant(arm, held).reset([0.0, 0.0])
    with pytest.raises(SingularityError, match=r"joints \[0, 1\] do not determine the others"):
        reduced_dynamics(arm, q, 0 * q, held, [0, 1])


def test_misuse_is_one_clear_sentence(robot, q):
    held = constraints(robot, q)["plane"]
    plant = twin.ConstrainedPlant(robot, held)
    away, moving = q + 0.01 * np.eye(6)[1], np.array([0, 0.1, 0, 0, 0, 0])
    norm = JointFunction(lambda x: np.linalg.norm(x) - np.linalg.norm(q))
    wrong = JointFunction(lambda x: x[0] - q[0], lambda x: [[2.0, 0, 0, 0, 0, 0]])
    refused(
        (lambda: plant.reset(away), "the start is off the constraint by"),
        (lambda: plant.reset(q, moving), "the speed of the start is off the constraint by"),
        (lambda: twin.ConstrainedPlant(robot, norm).reset(q), "not the derivative of phi(q)"),
        (lambda: twin.ConstrainedPlant(robot, wrong).reset(q), "not the derivative of phi(q)"),
        (lambda: twin.ConstrainedPlant(robot, Plane([0, 0, 0], [0, 0, 1])), "expected a constraint, as twin"),
        (lambda: twin.ConstrainedPlant(robot, held, 0.0), "expected a time step above 0 s"),
    )
    with pytest.raises(RobotError, match="has rigid drives: expected ideal drives"):
        twin.ConstrainedPlant(robot.with_drives("rigid"), held)
    plant.reset(onto_constraint(robot, held, away))
    np.testing.assert_array_equal(plant.force, [0.0])
