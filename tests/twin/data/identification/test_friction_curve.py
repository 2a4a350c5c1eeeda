"""Friction from constant speeds: curves of an engine's log, and the law fitted to them."""

import dataclasses

import numpy as np
import pytest

import controllers
import twin
from twin.base.errors import IdentificationError, LimitError, RobotError
from twin.data.identification.friction_law import (
    constant_speed_motion,
    fit_friction,
    friction_by_direction,
    friction_curve,
)
from twin.physics.robot.drives.drives import Drives
from twin.physics.robot.drives.friction import friction_rows, sliding_friction
from twin.physics.trajectories.sampling import sample_semi_implicit

AXIS = Drives([1.0], 0.0, coulomb=24.2, static=36.3, stribeck_speed=0.0085, viscous=11.85)
"""Axis 1 of an IRB 2400: P. Obal and P. Gierlak, Acta Mechanica et Automatica 19 (2025)."""
TRUE = np.array([24.2, 36.3, 0.0085, 11.85, 0.0])
NAMES = ("coulomb", "static", "stribeck_speed", "viscous")
SLOW_AND_FAST = np.geomspace(0.002, 1.0, 20)
SPEEDS = np.concatenate([-SLOW_AND_FAST[::-1], SLOW_AND_FAST])
POSE = np.radians([10.0, 20.0, -10.0, 20.0, 30.0, 10.0])


def friction(speed):
    """The law as the drives have it, another program."""
    torque = np.empty((len(speed), 1))
    sliding_friction(friction_rows(AXIS), speed[:, None], np.zeros_like(torque), torque)
    return torque[:, 0]


def values(fit):
    return np.array([getattr(fit, name) for name in (*NAMES, "offset")])


def known(drives, joint):
    return np.array([getattr(drives, name)[joint] for name in NAMES])


@pytest.fixture(scope="module")
def slides():
    """Log of all joints of the IRB 140, from a third of their Stribeck speeds to forty times these speeds."""
    robot = twin.load("irb140").with_drives("rigid", loaded_drives())
    assert robot.drives is not None
    speeds = np.geomspace(0.3, 40, 6)[:, None] * np.minimum(robot.drives.stribeck_speed, robot.qd_max / 50)
    motion = constant_speed_motion(robot, POSE, speeds, seconds=0.06, ramp=0.03)
    law = controllers.make("computed_torque", robot, bandwidth=30.0, period=1e-3)
    with twin.Simulation(robot) as simulation:
        return twin.run_closed_loop(simulation, law, sample_semi_implicit(motion, 1e-3))


def loaded_drives():
    """Return the drives of the IRB 140, with coupled motors of the wrist."""
    drives = twin.load("irb140").drives
    assert drives is not None
    coupling = np.eye(6)
    coupling[5, 4] = 0.5
    return dataclasses.replace(drives, coupling=coupling)


def test_from_an_engine_log_every_drive_comes_back(slides):
    """To round-off: at constant speed the law's step sees one speed."""
    for joint in range(6):
        curve = friction_curve(slides, joint)
        assert len(curve.speed) == 12
        assert np.all(np.diff(curve.speed) > 0)
        assert np.max(curve.deviation) < 1e-9
        assert np.all(curve.samples == curve.samples[0])
        fit = fit_friction(curve.speed, curve.torque)
        np.testing.assert_allclose(values(fit)[:4], known(slides.robot.drives, joint), rtol=1e-9)
        assert fit.noise < 1e-10


def test_a_model_of_another_mass_shows_as_an_offset(slides):
    """Both directions err alike: what is left of the weight is no friction."""
    heavier = slides.robot.with_payload(twin.Payload(3.0, (0.0, 0.0, 0.08)))
    curve = friction_curve(slides, 1, heavier)
    fit = fit_friction(curve.speed, curve.torque, offset=True)
    weight = twin.gravity_torque(heavier, POSE) - twin.gravity_torque(slides.robot, POSE)
    assert fit.offset == pytest.approx(-weight[1], rel=0.1)
    np.testing.assert_allclose(values(fit)[[0, 3]], known(slides.robot.drives, 1)[[0, 3]], rtol=0.05)


def test_without_a_model_the_weight_cancels_between_directions(slides):
    """But for samples that are not quite in the same places, and what moves the other joints."""
    curve = friction_by_direction(slides, 1)
    assert len(curve.speed) == 6
    np.testing.assert_allclose(curve.torque, friction_curve(slides, 1).torque[6:], rtol=1e-3)
    assert np.min(curve.torque) > 0


def test_runs_that_were_not_at_constant_speed_are_left_out(slides):
    shaken = slides.qd.copy()
    fast = np.abs(slides.qd_ref[:, 0]) > 0.9 * np.max(np.abs(slides.qd_ref[:, 0]))
    shaken[fast, 0] *= 1 + 0.2 * np.sin(np.arange(np.count_nonzero(fast)))
    log = dataclasses.replace(slides, qd=shaken)
    assert len(friction_by_direction(log, 0).speed) == 5
    with pytest.raises(IdentificationError, match="joint_1 has no part of constant speed in this log"):
        friction_by_direction(dataclasses.replace(slides, qd=np.zeros_like(shaken)), 0)
    forward = dataclasses.replace(slides, qd=np.maximum(slides.qd, 0))
    with pytest.raises(IdentificationError, match=r"joint_1 moves at 0\.\d+ rad/s but never at -0"):
        friction_by_direction(forward, 0)


def test_curves_want_rigid_drives_that_are_known(slides):
    elastic = dataclasses.replace(slides, robot=slides.robot.with_drives("elastic"))
    with pytest.raises(IdentificationError, match="those of this log are elastic"):
        friction_curve(elastic, 0)
    with pytest.raises(RobotError, match="robot 'manutec_bare' has no drives"):
        friction_curve(slides, 0, dataclasses.replace(slides.robot, name="manutec_bare", drives=None))


def test_the_law_comes_back_from_its_points():
    assert fit_friction(SPEEDS, friction(SPEEDS)).noise < 1e-12
    np.testing.assert_allclose(values(fit_friction(SPEEDS, friction(SPEEDS))), TRUE, rtol=1e-9, atol=1e-12)
    found = fit_friction(SPEEDS, friction(SPEEDS) - 3.0, np.linspace(1, 2, 40), offset=True)
    np.testing.assert_allclose(values(found), TRUE - [0, 0, 0, 0, 3.0], rtol=1e-9)
    np.testing.assert_allclose(found.torque(SPEEDS), friction(SPEEDS) - 3.0, rtol=1e-10)
    fast = SPEEDS[np.abs(SPEEDS) > 0.1]
    held = 9.0  # N m at rest, where friction may be anything
    plain = fit_friction(np.append(fast, 0.0), np.append(friction(fast), held), stribeck=False)
    assert plain.noise < 1e-10
    np.testing.assert_allclose(values(plain), [24.2, 24.2, 0.0, 11.85, 0.0], rtol=1e-9)
    np.testing.assert_array_equal(plain.deviations[[2, 4]], 0)
    np.testing.assert_allclose(plain.torque(fast), friction(fast), rtol=1e-10)


def test_the_deviations_are_honest_over_40_seeds():
    """Noise of 2 % of the friction, weighted as the points deserve."""
    torque = friction(SPEEDS)
    sigma = 0.02 * np.abs(torque)
    errors = []
    for seed in range(40):
        measured = torque + sigma * np.random.default_rng(seed).standard_normal(len(SPEEDS))
        fit = fit_friction(SPEEDS, measured, sigma, offset=True)
        errors.append((values(fit) - TRUE) / fit.deviations)
        assert fit.noise == pytest.approx(1.0, abs=0.4)
    errors = np.abs(errors)
    assert 0.60 <= np.mean(errors < 1) <= 0.76
    assert 0.90 <= np.mean(errors < 2) <= 0.99
    assert np.all(np.mean(errors < 2, axis=0) >= 0.88)


@pytest.mark.parametrize(
    ("speed", "settings", "error", "told"),
    [
        ([1.0, 2.0], {}, IdentificationError, "2 points do not determine 4 parameters of friction"),
        (np.linspace(0.5, 1, 9), {}, IdentificationError, r"the slowest is at 0\.5 rad/s; add slower runs"),
        (SLOW_AND_FAST, {"offset": True}, IdentificationError, "only by runs in both directions"),
        ([np.nan] * 9, {}, ValueError, "expected finite speeds and torques"),
        (SPEEDS, {"deviation": np.zeros(40)}, ValueError, "deviations above 0"),
    ],
)
def test_insufficient_points_are_rejected(speed, settings, error, told):
    noise = np.random.default_rng(0).standard_normal(np.shape(speed))
    with pytest.raises(error, match=told):
        fit_friction(speed, 30.0 * np.sign(speed) + noise, **settings)


def test_a_motion_that_cannot_be_is_refused(irb140):
    with pytest.raises(LimitError, match="joint_2"):
        constant_speed_motion(irb140, POSE, [[3.0] * 6], 0.5)
    with pytest.raises(ValueError, match=r"speeds \(m, 6\), got \(6,\), \(1,\)"):
        constant_speed_motion(irb140, POSE, [1.0], 0.5)
