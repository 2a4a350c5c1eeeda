"""Joint guidance: its settings, its law in closed form, and the limits of the drives."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import twin
from tests.support.egm_wires import Wire, run_session
from tests.support.guided_runs import DT, EXACT, FAST, HOME, run_of
from twin.abb.egm import GuidanceSettings, SensorMessage
from twin.abb.egm.guidance.guidance import GuidanceStop, JointGuidance
from twin.abb.egm.guidance.limits import TORQUE_SHARE, DriveLimits, torque_utilization
from twin.abb.egm.guidance.run import Phase, Run
from twin.base.errors import EgmError
from twin.physics.robot.drives.motors import MotorLimits, limited_torque

STEP = np.deg2rad([10.0, -5.0, 2.5, 0.0, 8.0, -10.0])


def guided(robot, settings, message, samples, period=DT):
    """Return the samples of a run that gets one message at its beginning."""
    run = Run(robot, settings, JointGuidance(robot, settings), HOME, period)
    run.take(message)
    return run.samples(samples)


def of_period(a, k):
    """Return the transition matrix of (error, v) over one period, for the filter's share a."""
    return np.array([[1.0 - DT * a * k, -DT * (1.0 - a)], [a * k, 1.0 - a]])


@pytest.mark.parametrize("bandwidth", [None, 20.0])
def test_motion_runs_at_speed_limit_then_obeys_the_law(irb140, bandwidth):
    """One factor scales all speeds, with the fastest at the limit, until the law requests less.

    The gain times the error falls below the limit L where the error is L / k; from there it is the linear
    law, which begins at the speed L.
    """
    level, k, limit = (0 if bandwidth is None else 1), 20.0, np.deg2rad(20.0)
    settings = GuidanceSettings(level=level, position_gain=k, max_speed_deviation=20.0)
    N, n = 500, 1200
    found = guided(irb140, settings, SensorMessage(q=HOME + STEP), n)
    largest = np.abs(STEP).max()
    a = 1.0 if bandwidth is None else 1.0 - np.exp(-2.0 * np.pi * bandwidth * DT)
    assert a * k * largest > limit  # from the first period
    j = np.arange(n)
    way = limit * DT * np.where(j <= N, j * (j + 1) / (2 * N), j - (N - 1) / 2)
    last = int(np.argmax(k * (largest - way) < limit))  # the first position at which the law requests less
    assert 500 < last < 1000, last
    np.testing.assert_allclose(found.q[: last + 1], HOME + way[: last + 1, None] * STEP / largest, **EXACT)
    state = np.array([largest - way[last], limit])
    for q, qd in zip(found.q[last:], found.qd[last:], strict=True):
        np.testing.assert_allclose(q, HOME + (largest - state[0]) * STEP / largest, **EXACT)
        np.testing.assert_allclose(qd, state[1] * STEP / largest, rtol=0.0, atol=1e-12)
        state = of_period(a, k) @ state


def test_unguided_joints_hold_their_position(irb140):
    settings = GuidanceSettings(axes="1,5", **FAST)
    beyond = HOME + np.array([0.1, 0.1, 99.0, 0.1, 0.1, 0.1])
    found = guided(irb140, settings, SensorMessage(q=beyond, qd=np.full(6, 0.1)), 3000)
    moved = found.q[-1] - HOME
    np.testing.assert_allclose(moved[[0, 4]], 0.1 + 0.1 / 5.0, rtol=0.0, atol=1e-6)
    assert moved[[1, 2, 3, 5]].tolist() == [0.0] * 4


@pytest.mark.parametrize("step", [{"q": HOME + STEP}, {"qd": 10.0 * STEP}])
def test_reference_is_clipped_to_max_pos_deviation(irb140, step):
    settings = GuidanceSettings(max_pos_deviation=3.0, **FAST)
    guidance = JointGuidance(irb140, settings)
    run = Run(irb140, settings, guidance, HOME, DT)
    run.take(SensorMessage(**step))
    run.samples(4000)
    way = STEP if "q" in step else 2.0 * STEP  # u = k (q_ref - q) + qd_ref is 0 at the offset qd_ref / k
    np.testing.assert_allclose(run.q, HOME + np.clip(way, -np.deg2rad(3), np.deg2rad(3)), rtol=0, atol=1e-7)
    assert run.phase is Phase.GUIDED
    assert not guidance.converged(run.q)


def test_joint_at_its_deviation_limit_does_not_slow_the_others(irb140):
    """A joint at its largest deviation requests no speed, so it does not reduce the common factor."""
    settings = GuidanceSettings(max_pos_deviation=3.0, max_speed_deviation=2.0, ramp_time=0.005)
    step = np.deg2rad([90.0, -2.9, 0, 0, 0, 0])
    found = guided(irb140, settings, SensorMessage(q=HOME + step), 3000)
    moved = np.rad2deg(found.q[-1] - HOME)
    np.testing.assert_allclose(moved, [3.0, -2.9, 0, 0, 0, 0], rtol=0.0, atol=0.1)


def begun(robot, **settings):
    """Return guidance that has begun."""
    guidance = JointGuidance(robot, GuidanceSettings(**settings))
    guidance.begin(HOME, DT)
    return guidance


def test_positions_stay_valid_and_speeds_do_not(irb140):
    guidance = begun(irb140, level=0)
    guidance.take(SensorMessage(q=HOME + STEP, qd=STEP), HOME)
    np.testing.assert_allclose(guidance.speed(HOME), 5.0 * STEP + STEP, **EXACT)
    guidance.take(SensorMessage(qd=-STEP), HOME)
    np.testing.assert_allclose(guidance.speed(HOME), 5.0 * STEP - STEP, **EXACT)
    for message in (SensorMessage(q=HOME - STEP), SensorMessage(seqno=3)):  # the latter has no effect
        guidance.take(message, HOME)
        np.testing.assert_allclose(guidance.speed(HOME), -5.0 * STEP, **EXACT)


def test_invalid_reference_is_a_fault_and_has_no_effect(irb140, irb1400):
    for message, number, sentence in (
        ({"T": np.eye(4)}, 41826, "without joints"),
        ({"q": np.zeros(7)}, 0, "expects 6 finite joint angles, got 7"),
        ({"qd": np.zeros(5)}, 0, "expects 6 finite joint speeds, got 5"),
        ({"q": np.full(6, np.nan)}, 0, "expects 6 finite joint angles, got values that are not finite"),
        ({"q": np.full(6, 1e308)}, 50027, "joint_1 would be at"),
        ({"q": np.array([0, 1.95, 0, 0, 0, 0])}, 50027, "its range is -90 deg"),
    ):
        guidance = begun(irb140)
        guidance.take(SensorMessage(q=HOME + STEP), HOME)
        before = guidance.speed(HOME)
        with pytest.raises(GuidanceStop) as stop:
            guidance.take(SensorMessage(**message), HOME)
        assert stop.value.fault.number == number
        assert sentence in stop.value.fault.sentence
        guidance.follow(np.zeros(6))
        np.testing.assert_array_equal(guidance.speed(HOME), before)
    with pytest.raises(GuidanceStop, match="q3 - q2"):  # the range of a passive joint
        begun(irb1400).take(SensorMessage(q=np.deg2rad([0, 50.0, -50.0, 0, 0, 0])), HOME)


RAW = {"level": 0, "position_gain": 20.0, "max_speed_deviation": 300.0, "ramp_time": 0.005}


def motor_shares(robot, q, qd, qdd, after):
    """Return the utilization of every motor by a motion, with the friction of a step to the speeds `after`.

    The level of this friction is that of the speeds before, its sign and its viscous part are those after.
    """
    tau = twin.inverse_dynamics(robot.arm, q, qd, qdd)
    if robot.active_drives is None:
        return np.abs(tau) / robot.tau_max
    drives = robot.active_drives
    before, after = drives.friction_matrix @ qd, drives.friction_matrix @ after
    excess = (drives.static - drives.coulomb) * np.exp(-((before / drives.stribeck_speed) ** 2))
    friction = (drives.coulomb + excess) * np.sign(after) + drives.viscous * after
    tau = tau + drives.reflected_inertia @ qdd + drives.friction_matrix.T @ friction
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
        largest = motor_shares(robot, q, qd, (wanted - qd) / DT, wanted).max()
        assert needed == pytest.approx(100.0 * largest, rel=1e-9)
        if needed <= 100.0 * TORQUE_SHARE:
            assert speed is wanted
            continue
        slowed += 1
        change = (speed - qd) / (wanted - qd)
        np.testing.assert_allclose(change, change[0], rtol=1e-9)
        taken = motor_shares(robot, q, qd, (speed - qd) / DT, wanted).max()  # friction as for the request
        assert taken == pytest.approx(TORQUE_SHARE, rel=1e-9)
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
    drives = twin.Drives(ratio=np.ones(1), rotor_inertia=0.0, motor_torque_max=1.0, motor_speed_max=2.0)
    motors = MotorLimits.of(drives, drives.torque_max)
    assert torque_utilization(motors, np.array([0.5]), np.array([3.0])) == 1000.0, "no driving torque"
    assert torque_utilization(motors, np.array([-0.5]), np.array([3.0])) == 50.0, "full braking torque"
    assert torque_utilization(motors, np.array([0.0]), np.array([3.0])) == 0.0


def test_defaults_are_those_of_the_manual_and_arguments_override_them():
    settings = GuidanceSettings()
    assert settings.cycle == 0.004
    assert (settings.gain, settings.bandwidth) == (5.0, 20.0)
    assert settings.speed_limit == np.deg2rad(1.0)
    assert settings.position_limit == np.deg2rad(1000.0)
    assert settings.ramp_in == settings.ramp_out == 0.5
    np.testing.assert_allclose(settings.window(6), np.full(6, np.deg2rad(0.5)), rtol=1e-15)
    assert settings.joints(6) == (0, 1, 2, 3, 4, 5)
    assert GuidanceSettings(mode="path").cycle == 0.048
    assert [GuidanceSettings(level=level).bandwidth for level in (0, 2)] == [None, 20.0]
    set_to = {"position_gain": 20.0, "pos_corr_gain": 0.3, "lp_filter": 100, "ramp_time": 0.2}
    settings = GuidanceSettings(**set_to, ramp_in_time=0.05, sample_rate=16)
    found = settings.gain, settings.bandwidth, settings.ramp_in, settings.ramp_out, settings.cycle
    assert found == (20.0 * 0.3, 100, 0.05, 0.2, 0.016)
    assert GuidanceSettings(sample_rate=np.int64(24), mode="path").cycle == 0.024
    assert GuidanceSettings(lp_filter=0.0).bandwidth is None


def test_windows_and_joints_are_set_individually():
    settings = GuidanceSettings(cond_window="0.5, 0.5,1,1,1,2", axes="1, 3")
    np.testing.assert_array_equal(settings.window(6), np.deg2rad([0.5, 0.5, 1, 1, 1, 2]))
    assert settings.joints(6) == (0, 2)
    assert GuidanceSettings(mode="pose", axes="x,rz").axis_names == ("x", "rz")
    assert GuidanceSettings(cond_window=2).window(3).tolist() == np.deg2rad([2.0, 2.0, 2.0]).tolist()
    with pytest.raises(EgmError, match=r"'0.5, 0.5,1,1,1,2': valid is one number, or one number per joint"):
        settings.window(5)
    with pytest.raises(EgmError, match="the robot has 2 joints, valid are 1 to 2"):
        settings.joints(2)


WRONG = (
    ("mode is 'joints': valid is 'joint' or 'pose' or 'path'", {"mode": "joints"}),
    ("sample_rate is 6: in joint mode valid are multiples of 4 ms up to 1000 ms", {"sample_rate": 6}),
    ("sample_rate is 28: in path mode valid are multiples of 24", {"sample_rate": 28, "mode": "path"}),
    ("cond_time is nan", {"cond_time": math.nan}),
    ("cond_window is '0.5,': valid", {"cond_window": "0.5,"}),
    ("cond_window is '1,2': in pose mode valid is one number", {"cond_window": "1,2", "mode": "pose"}),
    ("stop is 'ramp_down': in path mode valid is 'hold'", {"stop": "ramp_down", "mode": "path"}),
    ("no_wait_cond is 1: valid is True or False", {"no_wait_cond": 1}),
    ("axes is '1,1': ", {"axes": "1,1"}),
    ("axes is 'x': in path mode valid are some of y,z, each once", {"axes": "x", "mode": "path"}),
    ("corr_frame is 7: valid is a text", {"corr_frame": 7}),
    ("corr_frame is valid only in pose mode, the mode is joint", {"corr_frame": "0,0,0"}),
    ("level is 3: valid is a whole number from 0 to 2", {"level": 3}),
    ("position_gain is 20.1: valid is a number from 0 to 20", {"position_gain": 20.1}),
    ("pos_corr_gain is -0.1: valid is a number from 0 to 1", {"pos_corr_gain": -0.1}),
    ("max_speed_deviation is 0.0: valid is ", {"max_speed_deviation": 0.0}),
    ("ramp_time is 0.004: valid is a number from 0.005 to 10", {"ramp_time": 0.004}),
    ("cond_window is too long: valid", {"cond_window": [0.5] * 100}),
)


def test_invalid_setting_is_reported_in_one_sentence():
    for sentence, given in WRONG:
        with pytest.raises(EgmError, match=f"^{re.escape(sentence)}[^\n]*$") as caught:
            GuidanceSettings(**given)
        assert len(str(caught.value)) < 200
