"""Limits of the commanded acceleration by the torque of the drives, and the utilization of the motors."""

from dataclasses import replace

import numpy as np
import pytest

import twin
from tests.support.egm_wires import Wire, run_session
from tests.support.guided_runs import DT, HOME, run_of
from twin.egm.guidance.limits import TORQUE_SHARE, DriveLimits, torque_utilization
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.wire.messages import SensorMessage
from twin.robot.drives.motors import MotorLimits, limited_torque

RAW = {"level": 0, "position_gain": 20.0, "max_speed_deviation": 300.0, "ramp_time": 0.005}


def motor_shares(robot, q, qd, qdd):
    """Return the utilization of every motor by a motion, from the public functions."""
    tau = twin.inverse_dynamics(robot, q, qd, qdd)
    if robot.active_drives is None:
        return np.abs(tau) / robot.tau_max
    drives = robot.active_drives
    after = qd + DT * qdd
    tau = tau + drives.reflected_inertia @ qdd + twin.friction_torque(robot, after)
    return np.abs(np.linalg.solve(drives.coupling.T, tau)) / drives.torque_max


def coupled(robot):
    """Return a robot with coupled motors and without friction."""
    coupling = np.eye(6)
    coupling[4, 3], coupling[5, 3], coupling[5, 4] = -0.4, 0.3, 0.6
    smooth = replace(robot.drives, coupling=coupling, coulomb=0.0, static=0.0, viscous=0.0)
    return robot.with_drives("rigid", smooth)


@pytest.mark.parametrize(
    ("name", "drives"), [("irb1400", "ideal"), ("irb140", "rigid"), ("irb140", "coupled")]
)
def test_limited_step_uses_the_full_torque_of_one_motor(name, drives, rng):
    """One factor scales all accelerations; it is 1 if the drives have enough torque."""
    robot = coupled(twin.load(name)) if drives == "coupled" else twin.load(name).with_drives(drives)
    limits = DriveLimits(robot, DT, np.zeros(6))
    slowed = 0
    for _ in range(60):
        q = robot.q_min + rng.uniform(0.3, 0.7, 6) * (robot.q_max - robot.q_min)
        qd = rng.uniform(-0.3, 0.3, 6)
        wanted = qd + rng.uniform(-1.0, 1.0, 6) * rng.choice([0.01, 1.0])
        speed, needed = limits.within(q, qd, wanted)
        largest = motor_shares(robot, q, qd, (wanted - qd) / DT).max()
        if drives != "rigid":
            assert needed == pytest.approx(100.0 * largest, rel=1e-9)
        if needed <= 100.0 * TORQUE_SHARE:
            assert speed is wanted
            continue
        slowed += 1
        change = (speed - qd) / (wanted - qd)
        np.testing.assert_allclose(change, change[0], rtol=1e-9)
        taken = motor_shares(robot, q, qd, (speed - qd) / DT).max()
        # Friction is computed at the requested speed; at the reached speed it differs.
        assert taken == pytest.approx(TORQUE_SHARE, rel=0.15 if drives == "rigid" else 1e-9)
    assert 10 < slowed < 50


def test_joint_can_brake_even_if_its_motor_can_hardly_hold_it(irb140):
    q, qd, still = np.array([0, 1.2, 0, 0, 0, 0.0]), np.array([0, 1.0, 0, 0, 0, 0.0]), np.zeros(6)

    def braked(robot, always):
        return DriveLimits(robot, DT, np.full(6, always)).within(q, qd, still)

    static = np.abs(twin.inverse_dynamics(irb140, q, qd, still))
    weak = replace(irb140, tau_max=np.maximum(static / TORQUE_SHARE * 1.001, 1.0))
    assert braked(weak, 0.0)[0][1] > 1.0 - 0.1 * DT
    assert braked(weak, 5.0)[0][1] == pytest.approx(1.0 - 5.0 * DT, abs=1e-12)
    speed, needed = braked(irb140.with_payload(twin.Payload(60.0)), 5.0)  # which they cannot hold
    assert needed > 100.0
    assert speed[1] <= 1.0 - 5.0 * DT + 1e-12


def test_arm_stays_within_limits_under_jumping_references(irb140):
    """Unfiltered random references at the highest gain saturate no motor and leave no joint range."""
    random = np.random.default_rng(4)
    low, high = 0.8 * irb140.q_min, 0.8 * irb140.q_max

    def client(message):
        return SensorMessage(message.seqno, q=random.uniform(low, high), qd=random.uniform(-3.0, 3.0, 6))

    made = run_session(irb140, Wire(client), GuidanceSettings(**RAW, cond_time=1e3), duration=0.6)
    log = made.log()
    assert not made.done.faults
    assert not log.saturated.any()
    assert log.violations() == ()
    assert np.abs(log.q - log.q_ref).max() < 1e-12
    assert np.max(log.arrays["egm_utilization"]) > 100.0


def test_stop_takes_longer_than_the_ramp_if_the_drives_need_it(irb140):
    """A stop with a ramp of 5 ms takes longer, and ends at rest."""
    run = run_of(irb140, HOME, **RAW, pos_corr_gain=0.0)
    run.take(SensorMessage(qd=np.array([2.0, 0, 0, 0, 0, 0])))
    run.samples(400)
    assert run.qd[0] == 2.0
    run.stop()
    q, qd, qdd = run.samples(200)[1:]
    tau = twin.inverse_dynamics(irb140, q, qd, qdd)
    assert np.all(np.abs(tau) <= TORQUE_SHARE * irb140.tau_max * (1.0 + 1e-9))
    rests = int(np.argmax(qd[:, 0] == 0.0))
    assert 10 < rests < 100
    assert not qd[rests:].any()


COUPLED = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -0.7, 1.0]])


@pytest.mark.parametrize("coupling", [np.eye(3), COUPLED])
def test_utilization_is_100_percent_at_the_motor_limit(coupling, rng):
    drives = twin.Drives(
        ratio=np.array([80.0, -90.0, 50.0]), rotor_inertia=1e-4, coupling=coupling, motor_torque_max=1.5,
        motor_speed_rated=200.0, motor_speed_max=500.0,
    )  # fmt: skip
    motors = MotorLimits.of(drives, drives.torque_max)
    for _ in range(50):
        demand, speed = 100.0 * rng.standard_normal(3), 3.0 * rng.standard_normal(3)
        share = torque_utilization(motors, demand, speed) / 100.0
        if share >= 10.0:
            continue
        tau = np.empty(3)
        for factor, limited in ((0.999, False), (1.001, True)):
            limited_torque(*motors, demand * factor / share, speed, tau)
            assert (not np.array_equal(tau, demand * factor / share)) == limited


def test_utilization_is_the_bounded_maximum_of_samples():
    motors = MotorLimits.of(None, np.array([10.0, np.inf]))
    demand = np.array([[1.0, 5.0], [-4.0, 100.0]])
    assert torque_utilization(motors, demand, np.ones((2, 2))) == 40.0
    assert torque_utilization(motors, 1e9 * demand, np.ones((2, 2))) == 1000.0
    assert torque_utilization(motors, 0.0 * demand, np.ones((2, 2))) == 0.0
    drives = twin.Drives(ratio=np.ones(1), rotor_inertia=0.0, motor_torque_max=1.0, motor_speed_max=2.0)
    motors = MotorLimits.of(drives, drives.torque_max)
    assert torque_utilization(motors, np.array([0.5]), np.array([3.0])) == 1000.0, "no driving torque"
    assert torque_utilization(motors, np.array([-0.5]), np.array([3.0])) == 50.0, "full braking torque"
    assert torque_utilization(motors, np.array([0.0]), np.array([3.0])) == 0.0
