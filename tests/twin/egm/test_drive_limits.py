"""Limits of the commanded acceleration by the torque of the drives."""

from dataclasses import replace

import numpy as np
import pytest

import twin
from tests.support.egm_wires import Wire, run_session
from tests.support.guided_runs import DT, HOME, run_of
from twin.egm.guidance.limits import TORQUE_SHARE, DriveLimits
from twin.egm.guidance.settings import GuidanceSettings
from twin.egm.wire.messages import SensorMessage

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


@pytest.mark.parametrize(("name", "drives"), [("irb140", "ideal"), ("irb1400", "ideal"), ("irb140", "rigid")])
def test_limited_step_uses_the_full_torque_of_one_motor(name, drives, rng):
    """One factor scales all accelerations; it is 1 if the drives have enough torque."""
    robot = twin.load(name).with_drives(drives)
    limits = DriveLimits(robot, DT, np.zeros(6))
    slowed = 0
    for _ in range(60):
        q = robot.q_min + rng.uniform(0.3, 0.7, 6) * (robot.q_max - robot.q_min)
        qd = rng.uniform(-0.3, 0.3, 6)
        wanted = qd + rng.uniform(-1.0, 1.0, 6) * rng.choice([0.01, 1.0])
        speed, needed = limits.within(q, qd, wanted)
        largest = motor_shares(robot, q, qd, (wanted - qd) / DT).max()
        if drives == "ideal":
            assert needed == pytest.approx(100.0 * largest, rel=1e-9)
        if needed <= 100.0 * TORQUE_SHARE:
            assert speed is wanted
            continue
        slowed += 1
        change = (speed - qd) / (wanted - qd)
        np.testing.assert_allclose(change, change[0], rtol=1e-9)
        taken = motor_shares(robot, q, qd, (speed - qd) / DT).max()
        # Friction is computed at the requested speed; at the reached speed it differs.
        assert taken == pytest.approx(TORQUE_SHARE, rel=1e-9 if drives == "ideal" else 0.15)
    assert 10 < slowed < 50


def test_coupled_joints_are_limited_by_motor_torque():
    """The limit applies to a motor, not to a joint."""
    coupling = np.eye(6)
    coupling[4, 3], coupling[5, 3], coupling[5, 4] = -0.4, 0.3, 0.6
    drives = twin.load("irb140").drives
    robot = twin.load("irb140").with_drives(
        "rigid", replace(drives, coupling=coupling, coulomb=0.0, static=0.0, viscous=0.0)
    )
    q = np.array([0.0, 0.2, -0.3, 0.0, 0.5, 0.0])
    for wanted in ([0, 0, 0, 0, 1.5, 0], [0, 0, 0, 2.0, 0, 0], [0, 0, 0, 2.0, 1.0, 0]):
        speed, needed = DriveLimits(robot, DT, np.zeros(6)).within(q, np.zeros(6), np.array(wanted))
        taken = motor_shares(robot, q, np.zeros(6), speed / DT)
        assert needed > 100.0 * TORQUE_SHARE
        assert taken.max() == pytest.approx(TORQUE_SHARE, rel=1e-9)


def test_joint_can_brake_even_if_its_motor_can_hardly_hold_it(irb140):
    q, qd = np.array([0, 1.2, 0, 0, 0, 0.0]), np.array([0, 1.0, 0, 0, 0, 0.0])
    static = np.abs(twin.inverse_dynamics(irb140, q, qd, np.zeros(6)))
    weak = replace(irb140, tau_max=np.maximum(static / TORQUE_SHARE * 1.001, 1.0))
    found = [DriveLimits(weak, DT, np.full(6, always)).within(q, qd, np.zeros(6)) for always in (0.0, 5.0)]
    assert found[0][0][1] > 1.0 - 0.1 * DT
    assert found[1][0][1] == pytest.approx(1.0 - 5.0 * DT, abs=1e-12)


def test_command_comes_to_rest_even_if_the_drives_cannot_hold_the_arm(irb140):
    loaded = irb140.with_payload(twin.Payload(60.0))
    q, qd = np.array([0, 1.2, 0, 0, 0, 0.0]), np.array([0, 1.0, 0, 0, 0, 0.0])
    always = np.full(6, 5.0)
    speed, needed = DriveLimits(loaded, DT, always).within(q, qd, np.zeros(6))
    assert needed > 100.0
    assert speed[1] <= 1.0 - 5.0 * DT + 1e-12


def test_arm_stays_within_limits_under_jumping_references(irb140):
    """Unfiltered random references at the highest gain saturate no motor and leave no joint range."""
    random = np.random.default_rng(4)
    low, high = 0.8 * irb140.q_min, 0.8 * irb140.q_max

    def client(message):
        return SensorMessage(message.seqno, q=random.uniform(low, high), qd=random.uniform(-3.0, 3.0, 6))

    made = run_session(irb140, Wire(client), GuidanceSettings(**RAW, cond_time=1e3), duration=1.0)
    log = made.log()
    assert not made.done.faults
    assert not log.saturated.any()
    assert log.violations() == ()
    assert np.abs(log.q - log.q_ref).max() < 1e-12
    assert np.max(log.arrays["egm_utilization"]) > 100.0
    assert np.ptp(log.q, axis=0).min() > 0.01


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
