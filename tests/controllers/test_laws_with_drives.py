"""Control laws whose model has rotors and friction: exact where the model is, and what it costs if not."""

from dataclasses import replace

import numpy as np

import controllers
import twin
from controllers.cascade import Cascade
from controllers.gains import diagonal_inertia
from controllers.pid import PD, PID
from scenarios.joint_tracking import JointTracking
from tests.support.sample_drives import uncoupled
from twin.data.logs.closed_loop import run_closed_loop
from twin.physics.control.plant import AnalyticPlant
from twin.physics.robot.drives.drives import Drives
from twin.physics.trajectories.joint_trajectories import hold, quintic, sequence
from twin.physics.trajectories.sampling import Reference, State, sample_semi_implicit

PERIOD = 1e-3


def swings(robot, duration=2.0):
    """Return a motion of all joints at different frequencies, with 0 to 3 reversals per joint and second."""
    return sample_semi_implicit(JointTracking(duration=duration).motion(robot), PERIOD)


def error(plant, model, law="computed_torque", reference=None):
    """The largest error (n,) along the swings, in [rad]."""
    reference = swings(plant) if reference is None else reference
    controller = controllers.make(law, model, period=PERIOD)
    log = run_closed_loop(AnalyticPlant(plant, PERIOD), controller, reference)
    return np.abs(log.q - log.q_ref).max(axis=0)


def coupled(robot):
    """The robot with a wrist whose motors turn together."""
    coupling = np.eye(6)
    coupling[4, 3], coupling[5, 3:5] = -0.02, (0.03, -1.0)
    columns = {name: getattr(robot.drives, name) for name in ("ratio", "rotor_inertia", "coulomb", "static")}
    columns |= {name: getattr(robot.drives, name) for name in ("stribeck_speed", "viscous")}
    return robot.with_drives("rigid", Drives(**columns, coupling=coupling))


def test_computed_torque_that_knows_the_drives_is_exact_through_reversals(arm):
    reference = swings(arm)
    turns = np.count_nonzero(np.diff(np.sign(reference.qd), axis=0), axis=0)
    assert turns.min() >= 1
    assert turns.max() >= 3
    rigid = arm.with_drives("rigid")
    assert error(rigid, rigid).max() <= 1e-14
    assert error(coupled(arm), coupled(arm)).max() <= 1e-14
    assert error(rigid, arm.with_drives("elastic")).max() <= 1e-14, "a law takes elastic drives for rigid"


def test_it_is_exact_from_rest_to_rest_and_holds_without_a_rattle(arm):
    """At rest the torque is the weight alone, to the last sample: static friction is not fought."""
    rigid, start = arm.with_drives("rigid"), arm.poses["zero"] + 0.1
    path = sequence(hold(start, 0.1), quintic(start, start + 0.2, 0.6), hold(start + 0.2, 0.1))
    law, reference = controllers.make("computed_torque", rigid), sample_semi_implicit(path, PERIOD)
    log = run_closed_loop(AnalyticPlant(rigid), law, reference, start=(start + 1e-15, np.zeros(6)))
    assert np.max(np.abs(log.q - log.q_ref)) <= 1e-14
    resting = [*range(50), *range(len(log.t) - 50, len(log.t))]
    weight = twin.gravity_torque(arm, log.q[resting])
    np.testing.assert_allclose(log.tau[resting], weight, rtol=0, atol=1e-9 * np.abs(weight).max())


def test_what_is_not_known_of_the_drives_costs_radians(irb140):
    """The largest error of the same motion; the wrists stick where nothing of their rotors is known."""
    rigid, drives = irb140.with_drives("rigid"), irb140.drives
    assert 0.1 < error(rigid, irb140.with_drives("rigid", drives.without_friction())).max() < 0.5
    assert error(rigid, irb140.with_drives("rigid", replace(drives, rotor_inertia=0.0))).max() > 0.5
    assert error(rigid, irb140).max() > 0.5


def test_computed_torque_with_drives_is_its_equation(irb140):
    """From the matrices, friction written out: level at the measured speed, the rest at the next one."""
    drives, rng = irb140.drives, np.random.default_rng(3)
    robot = uncoupled(irb140).with_drives("rigid")
    state = State(0.0, robot.q_max * rng.uniform(-1, 1, 6), 0.02 * rng.uniform(-1, 1, 6))
    reference = Reference(state.q + 0.01, state.qd - 0.1, rng.uniform(-9, 9, 6))
    law = controllers.make("computed_torque", robot, bandwidth=15.0, period=0.004)
    a = reference.qdd + 30.0 * (reference.qd - state.qd) + 225.0 * (reference.q - state.q)
    after = state.qd + 0.004 * a
    assert np.any(np.sign(after) != np.sign(state.qd))
    fall = np.exp(-((state.qd / drives.stribeck_speed) ** 2))
    level = drives.coulomb + (drives.static - drives.coulomb) * fall
    expected = (
        twin.inverse_dynamics(irb140, state.q, state.qd, a) + drives.ratio**2 * drives.rotor_inertia * a
    )
    expected += level * np.sign(after) + drives.viscous * after
    np.testing.assert_allclose(law(state, reference), expected, rtol=1e-12)


def test_gains_count_the_rotors(arm):
    arm = uncoupled(arm)
    rotors = arm.drives.ratio**2 * arm.drives.rotor_inertia
    links = np.diag(twin.mass_matrix(arm, np.zeros(6)))
    np.testing.assert_allclose(diagonal_inertia(arm), links, rtol=0)
    for mode in ("rigid", "elastic"):
        np.testing.assert_allclose(diagonal_inertia(arm.with_drives(mode)), links + rotors, rtol=1e-15)
    stiff, soft = PD(arm.with_drives("rigid")), PD(arm)
    np.testing.assert_allclose(stiff.gains.Kp, 400.0 * (links + rotors), rtol=1e-15)
    np.testing.assert_allclose(stiff.gains.Kp / soft.gains.Kp, 1 + rotors / links, rtol=1e-14)


def test_anti_windup_knows_the_motors_limits(irb140):
    """A motor weaker than `tau_max` stops the integral earlier, an unknown one at `tau_max`, or never."""
    at_rest = State(0.0, np.zeros(6), np.zeros(6))
    far = Reference(np.full(6, 0.5), np.zeros(6), np.zeros(6))
    endless = np.full(6, np.inf)
    for limit, effort, stops in (
        (1e-3, endless, True), (np.inf, endless, False), (np.inf, np.full(6, 1e-3), True)
    ):  # fmt: skip
        drives = Drives(ratio=100.0 * np.ones(6), rotor_inertia=1e-4, motor_torque_max=limit)
        for Law in (PID, Cascade):
            law = Law(replace(irb140, tau_max=effort).with_drives("rigid", drives))
            law(at_rest, far)
            assert np.all((law.integral == 0.0) == stops), law.name
