"""Control laws against their equations, and against the motion that those equations promise."""

from dataclasses import replace

import numpy as np
import pytest

import controllers
import twin
from controllers.gains import diagonal_inertia, pd_gains, pid_gains
from controllers.pid import PID
from tests.support.forks import NUMBA, Fork
from tests.support.refusals import refused
from twin.base.errors import UnknownNameError
from twin.physics.trajectories.sampling import Reference, State

OMEGA = 20.0


@pytest.fixture(scope="module")
def case(robot):
    """A random state and a reference that differs from it in everything."""
    rng = np.random.default_rng(5)
    q, qd = robot.q_max * rng.uniform(-1, 1, 6), robot.qd_max * rng.uniform(-1, 1, 6)
    reference = Reference(
        q + rng.uniform(-0.1, 0.1, 6), qd + rng.uniform(-0.5, 0.5, 6), rng.uniform(-9, 9, 6)
    )
    return State(0.3, q, qd, rng.uniform(-9, 9, 6)), reference


@pytest.mark.parametrize("omega", [3.0, 20.0])
def test_gains_give_every_joint_a_double_pole_with_pd_and_a_triple_one_with_pid(robot, omega):
    inertia = np.diag(twin.mass_matrix(robot, np.zeros(6)))
    for loop in np.transpose(
        [np.ones(6), pd_gains(robot, omega).Kd / inertia, pd_gains(robot, omega).Kp / inertia]
    ):
        np.testing.assert_allclose(loop, np.poly([-omega] * 2), rtol=1e-14)
    Kp, Ki, Kd = pid_gains(robot, omega)
    for loop in np.transpose([np.ones(6), Kd / inertia, Kp / inertia, Ki / inertia]):
        np.testing.assert_allclose(loop, np.poly([-omega] * 3), rtol=1e-14)
    each = omega * np.arange(1.0, 7.0)
    np.testing.assert_allclose(pd_gains(robot, each).Kp, each**2 * diagonal_inertia(robot), rtol=1e-15)


def test_pd_is_its_equation_and_pd_gravity_adds_the_weight_of_the_measured_pose(robot, case):
    state, reference = case
    inertia = np.diag(twin.mass_matrix(robot, np.zeros(6)))
    expected = OMEGA**2 * inertia * (reference.q - state.q) + 2 * OMEGA * inertia * (reference.qd - state.qd)
    tau = controllers.make("pd", robot)(state, reference)
    np.testing.assert_allclose(tau, expected, rtol=1e-14)
    weight = twin.gravity_torque(robot, state.q)
    difference = controllers.make("pd_gravity", robot)(state, reference) - tau
    np.testing.assert_allclose(difference, weight, rtol=0, atol=1e-12 * np.abs(weight).max())


def test_pid_is_its_equation(robot, case):
    state, reference = case
    Kp, Ki, Kd = pid_gains(robot, OMEGA)
    error, rate = reference.q - state.q, reference.qd - state.qd
    law = PID(replace(robot, tau_max=np.full(6, np.inf)), bandwidth=OMEGA, period=0.002)
    for tick in (1, 2, 3, 1):
        if tick == 1:
            law.reset()
        expected = Kp * error + Ki * (tick * 0.002 * error) + Kd * rate
        np.testing.assert_allclose(law(state, reference), expected, rtol=1e-13)


def test_pid_stops_integrating_at_the_torque_limit_and_only_there(robot):
    """Joint 1 asks for more than the drive gives; an error that pulls its torque back still counts."""
    law = PID(robot, bandwidth=OMEGA, period=1e-3)
    at_zero = State(0.0, np.zeros(6), np.zeros(6))
    far = Reference(np.array([1.0, 0.01, 0, 0, 0, 0]), np.zeros(6), np.zeros(6))
    demand = law.gains.Kp * far.q
    assert demand[0] > robot.tau_max[0]
    assert demand[1] < robot.tau_max[1]
    for _ in range(100):
        law(at_zero, far)
    np.testing.assert_allclose(law.integral, [0, 100 * 1e-3 * 0.01, 0, 0, 0, 0], rtol=1e-12)
    law.integral[0] = before = 2 * robot.tau_max[0] / law.gains.Ki[0]
    back = Reference(np.array([-0.01, 0, 0, 0, 0, 0]), np.zeros(6), np.zeros(6))
    assert law(at_zero, back)[0] > robot.tau_max[0]
    assert law.integral[0] == before - 1e-3 * 0.01


def test_computed_torque_is_its_equation(robot, case):
    """Thesis eq. (2.28), from the matrices, with a frequency for each joint."""
    state, reference = case
    omega = np.array([10.0, 12, 14, 16, 18, 20])
    command = reference.qdd + 2 * omega * (reference.qd - state.qd) + omega**2 * (reference.q - state.q)
    expected = (
        twin.mass_matrix(robot, state.q) @ command
        + twin.coriolis_matrix(robot, state.q, state.qd) @ state.qd
        + twin.gravity_torque(robot, state.q)
    )
    tau = controllers.make("computed_torque", robot, bandwidth=omega)(state, reference)
    np.testing.assert_allclose(tau, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_computed_torque_decouples_the_joints(robot):
    """Thesis eq. (2.29): each error decays as e0 (1 + omega t) exp(-omega t), whatever the others do."""
    omega, dt, steps = 3.0, 1e-3, 500
    e0 = np.array([0.2, -0.1, 0.3, 0.5, -0.4, 0.7])
    law = controllers.make("computed_torque", robot, bandwidth=omega)
    rest = Reference(np.zeros(6), np.zeros(6), np.zeros(6))
    q, qd = -e0, np.zeros(6)
    for k in range(steps):
        tau = law(State(k * dt, q, qd), rest)
        qd = qd + dt * twin.forward_dynamics(robot, q, qd, tau)
        q = q + dt * qd
    t = steps * dt
    promised = e0 * (1 + omega * t) * np.exp(-omega * t)
    np.testing.assert_allclose(promised[0], 0.11156508007421491, rtol=1e-12)  # at 0.5 s, for e0 = 0.2
    np.testing.assert_allclose(-q, promised, rtol=omega * dt)  # the step's own error
    ratio = -q / e0
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)  # one law of decay for all


def test_controller_uses_its_model_instead_of_the_plant(robot, case):
    """Another model, another torque; the law never sees the plant."""
    loaded = robot.with_payload(twin.Payload(6.0, (0.0, 0.0, 0.08)))
    for name in controllers.NAMES:
        assert not np.allclose(controllers.make(name, robot)(*case), controllers.make(name, loaded)(*case))


@pytest.mark.parametrize("name", controllers.NAMES)
def test_a_law_is_a_function_of_its_arguments(robot, case, name):
    """It touches neither state nor reference, its result is its own, and after a reset it repeats itself."""
    state, reference = case
    before = [np.copy(part) for part in (*state, *reference)]
    law = controllers.make(name, robot)
    first = law(state, reference)
    kept = first.copy()
    law(state, Reference(reference.q + 1.0, reference.qd, reference.qdd))
    np.testing.assert_array_equal(first, kept)
    law.reset()
    np.testing.assert_array_equal(law(state, reference), kept)
    for part, copy in zip((*state, *reference), before, strict=True):
        np.testing.assert_array_equal(part, copy)
    assert law.name == name
    assert first.shape == (6,)


def test_settings_that_cannot_be_are_refused(robot):
    def make(name, **settings):
        return lambda: controllers.make(name, robot, **settings)

    wrong = "positive, finite bandwidth in rad/s"
    refused(
        *((make(name, bandwidth=np.nan), wrong) for name in controllers.NAMES),
        *((make("pd", bandwidth=given), wrong) for given in (0.0, np.inf, [20.0] * 5 + [-1.0])),
        (make("pd", bandwidth=np.ones(5)), r"shape \(\) or \(6,\), got \(5,\)"),
        *((make("pid", period=given), "control period in s") for given in (0.0, np.nan)),
    )
    refused(
        (make("lqr"), "unknown controller 'lqr': known are pd, pd_gravity, pid, cascade"),
        error=UnknownNameError,
    )


def test_no_law_needs_the_engine():
    code = (
        "import sys, controllers, twin\n"
        "robot = twin.load('irb140')\n"
        "laws = [controllers.make(name, robot) for name in controllers.NAMES]\n"
        "engine = {'pybullet', 'scenarios', 'twin.physics.engine.simulation'}\n"
        "assert not engine & set(sys.modules), 'a law imports the engine'\n"
    )
    ended = Fork(code, NUMBA).wait()
    assert ended.returncode == 0, ended.stderr
