"""Deviations under coloured noise, samples near rest, and the check for bias of rotors."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.signal import lfilter

import twin
from scenarios.shell.command_line import main
from tests.support import tasks
from tests.support.identified_arms import GAS_SPRING, excited, measured, slides_as_it_starts
from tests.support.sample_drives import uncoupled
from twin.base.errors import IdentificationError, IdentificationWarning
from twin.base.sibling_packages import PROJECT
from twin.data.identification import Filtering, check_bias, filtered_measurements
from twin.data.identification.deviations import Part, block_covariance, weighted_residuals
from twin.data.identification.excitation import stored_excitation
from twin.data.identification.least_squares import (
    Triangles,
    chosen_min_speed,
    fitted,
    speed_weights,
    triangles,
    without_rest,
)
from twin.data.identification.measurements import differences
from twin.data.identification.payload import fitted_parts, identify_payload
from twin.data.identification.torque_model import TorqueModel

pytestmark = pytest.mark.slow("fits recordings")

DT = 0.004


@pytest.fixture(scope="module")
def arm(irb140):
    return slides_as_it_starts(irb140)


@pytest.fixture(scope="module")
def motion(arm):
    return excited(arm, 2, DT)


def lasting(rng, shape, seconds):
    """Noise of deviation 1 that forgets itself in some seconds."""
    a = np.exp(-DT / seconds)
    return lfilter([np.sqrt(1 - a * a)], [1, -a], rng.normal(size=(shape[0] + 1000, shape[1])), axis=0)[1000:]


def noisy(rng, motion, share=0.02, reference=None, name="seen"):
    """Return a recording of a motion whose torques have noise, a share of their deviation."""
    t, q, tau = motion
    noise = share * np.std(tau, axis=0) * rng.normal(size=q.shape)
    return twin.logs.torque_recording(t, q, tau + noise, name, reference)


def test_deviations_hold_where_noise_lasts(arm, motion):
    """White ones are too small: within one and two deviations of the truth should be 68 and 95 %."""
    t, q, tau = motion
    model, sizes = TorqueModel(arm), 0.02 * np.std(tau, axis=0)
    true, r = model.base.K @ model.parameters.values, len(model.base.columns)
    ratios = {"blocks": [], "white": []}
    for seed in range(10):
        noise = lasting(np.random.default_rng(seed), q.shape, 0.1)
        recording = twin.logs.torque_recording(t, q, tau + sizes * noise)
        seen = filtered_measurements(recording, Filtering(10.0))
        fit = fitted(triangles(model, [seen]))
        residuals = weighted_residuals(model, fit, [Part([seen], np.eye(r), np.zeros(r))])
        covariance, blocks = block_covariance(model, fit, residuals)
        assert blocks == 20
        for kind, one in (("blocks", covariance), ("white", fit.covariance)):
            ratios[kind].append(np.abs(fit.beta - true) / np.sqrt(np.diag(one)))
    blocks, white = (np.array(found) for found in ratios.values())
    assert 0.58 < np.mean(blocks < 1.0) < 0.75
    assert 0.88 < np.mean(blocks < 1.96) < 0.98
    assert np.mean(white < 1.96) < 0.85


def test_a_weight_of_the_only_part_changes_nothing(arm, motion, rng):
    """Equations of twice the size have residuals of twice the size."""
    model, seen = TorqueModel(arm), filtered_measurements(noisy(rng, motion), Filtering(10.0))
    reduced, r, found = triangles(model, [seen]), len(model.base.columns), []
    for weight in (1.0, 2.0):
        fit = fitted(reduced._replace(R=weight * reduced.R))
        residuals = weighted_residuals(model, fit, [Part([seen], np.eye(r), np.zeros(r), weight)])
        found.append((residuals[0].weighted, block_covariance(model, fit, residuals)[0]))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-9 * np.max(np.abs(one)))


def test_a_recording_with_four_times_the_rows_weighs_no_more(arm, motion, rng):
    model, seen = TorqueModel(arm), filtered_measurements(noisy(rng, motion), Filtering(10.0))
    middle, r = float(np.mean(seen.t)), len(model.base.columns)
    first, last = (triangles(model, [seen.between(*ends)]) for ends in ((None, middle), (middle, None)))
    repeated = Triangles(2.0 * last.R, 4 * last.counts, 4 * last.oversampling)
    parts = [Part([seen], np.eye(r), np.zeros(r))] * 2
    (fit, _), (again, _) = (fitted_parts([first, one], parts) for one in (last, repeated))
    deviations, others = (np.sqrt(np.diag(one.covariance)) for one in (fit, again))
    assert np.max(np.abs(again.beta - fit.beta) / deviations) < 0.1
    np.testing.assert_allclose(others, deviations, rtol=0.06)


def test_blocks_of_white_noise_have_the_deviations_of_white_noise(arm, motion, rng):
    recording = noisy(rng, motion)
    found = twin.identify(arm, recording, filtering=Filtering(10.0), min_speed=0.0)
    white = twin.identify(arm, recording, filtering=Filtering(10.0), min_speed=0.0, deviations="white")
    assert (found.blocks, white.blocks) == (20, 0)
    np.testing.assert_array_equal(found.beta, white.beta)
    assert np.median(found.deviations / white.deviations) == pytest.approx(1.0, abs=0.15)


def test_a_torque_that_repeats_with_the_position_is_warned_of(arm, motion, rng):
    t, q, tau = motion
    ripple = np.zeros_like(tau)
    ripple[:, 1] = 10.0 * np.sin(12.0 * q[:, 1])
    recording = noisy(rng, (t, q, tau + ripple))
    with pytest.warns(IdentificationWarning, match="residuals of joint 2 repeat with the position"):
        twin.identify(arm, recording, filtering=Filtering(10.0), min_speed=0.05)


def test_slow_samples_are_left_out_where_friction_is_another(irb140, motion, rng):
    """Static friction is 1.6 times the Coulomb friction, and decays over some 0.01 rad/s."""
    arm, (t, q, _) = irb140.with_drives("rigid"), motion
    qd, qdd = np.gradient(q, DT, axis=0), np.gradient(np.gradient(q, DT, axis=0), DT, axis=0)
    tau = twin.inverse_dynamics(arm, q, qd, qdd)
    seen, model = filtered_measurements(noisy(rng, (t, q, tau), 1e-3), Filtering(10.0)), TorqueModel(arm)
    speed = chosen_min_speed(model, [seen])
    assert 0.01 <= speed <= 0.1
    assert f"excluded below {speed:g} rad/s" in without_rest(seen, arm, speed).how
    true = model.base.K @ model.parameters.values
    errors = [
        np.linalg.norm(fitted(triangles(model, [without_rest(seen, arm, one)])).beta - true)
        for one in (0.0, speed)
    ]
    assert errors[1] < 0.05 * errors[0]


def test_weights_rise_from_the_lowest_speed_to_twice_that_speed(arm):
    speeds = np.outer([0.05, -0.1, 0.15, -0.2, 0.3], np.ones(6))
    arm = uncoupled(arm)
    states = replace(measured(arm, count=5), qd=speeds, qd_friction=speeds)
    expected = np.outer([0.0, 0.0, 0.5, 1.0, 1.0], np.ones(6))
    np.testing.assert_allclose(speed_weights(states, arm, 0.1), expected, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:the residuals of joint 4 repeat")
def test_instrumental_variables_free_rotors_of_the_noise_of_positions(irb140):
    """Noise of 3 mrad pulls rotor 3 by more than one deviation; the other estimate has less.

    The rotor is three times that of the file, whose pull is lost in the friction that noise near rest
    reverses.  The warning is about that friction.
    """
    inertia = irb140.drives.rotor_inertia * [1, 1, 3, 1, 1, 1]
    arm = slides_as_it_starts(replace(irb140, drives=replace(irb140.drives, rotor_inertia=inertia)))
    t, q, tau = excited(arm, 2, DT)
    off = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        seen = q + 3e-3 * rng.normal(size=q.shape)
        recording = noisy(rng, (t, seen, tau), reference=q)
        found = twin.identify(arm, recording, filtering=Filtering(10.0), min_speed=0.0)
        checked = check_bias(found)
        true = found.model.base.K @ found.model.parameters.values
        rotor = found.model.base.symbols.index("J3")
        off.append([(one - true)[rotor] / found.deviations[rotor] for one in (found.beta, checked.beta)])
    least_squares, instrumental = np.mean(off, axis=0)
    assert least_squares < -1.0
    assert abs(instrumental) < 0.8


def test_a_check_for_bias_needs_the_commanded_motion(arm, motion, rng):
    plain = noisy(rng, motion, name="plain.csv")
    found = twin.identify(arm, plain, filtering=Filtering(10.0), min_speed=0.05)
    with pytest.raises(IdentificationError, match=r"plain.csv: a check for bias needs the commanded motion"):
        check_bias(found)


def test_the_command_states_all_of_it(arm, motion, rng, tmp_path, capsys):
    t, q, _ = motion
    tau = noisy(rng, motion).tau
    names = ["t", *(f"{name}{k}" for name in ("q", "tau", "qref") for k in range(1, 7))]
    table = np.column_stack([t, q + 1e-4 * rng.normal(size=q.shape), tau, q])
    file = tmp_path / "seen.csv"
    np.savetxt(file, table, delimiter=",", header=",".join(names), comments="")
    words = ["identify", str(file), "--robot", "irb140", "--cutoff", "10", "--min-speed", "0.05"]
    assert main([*words, "--check-bias", "--json", str(tmp_path / "found.json")]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Deviations by the bootstrap of 20 blocks of residuals" in printed
    assert "least squares beside instrumental variables" in printed
    assert "excluded below 0.05 rad/s" in printed
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert found["blocks"] == 20
    assert len(found["instrumental"]["values"]) == found["rank"]
    assert main([*words, "--friction", "wet"]) == 2
    assert "--friction wet: expected load, root or difference" in capsys.readouterr().err


def test_a_payload_is_found_in_a_log_of_ideal_drives():
    log = tasks.run("joint_tracking", payload="3,0.01,0.02,0.1", duration=0.5).log
    assert log.drives == "ideal"
    estimate = identify_payload(log.robot, log)
    np.testing.assert_allclose(estimate.values[:4], [3.0, 0.01, 0.02, 0.1], rtol=0, atol=1e-6)


def test_wrong_settings_are_refused(arm, motion):
    t, q, tau = motion
    recording = twin.logs.torque_recording(t, q, tau)
    for settings, said in (
        ({"min_speed": -1.0}, "expected a min_speed of at least 0 rad/s, got -1.0"),
        ({"deviations": "red"}, "expected deviations to be blocks or white, got 'red'"),
        ({"friction": ["wet"]}, "expected friction among load, root, difference, got 'wet'"),
    ):
        with pytest.raises(ValueError, match=said):
            twin.identify(arm, recording, **settings)


def test_friction_by_load_that_is_not_there_is_left_out_with_a_warning(arm, motion, rng):
    recording = noisy(rng, motion)
    with pytest.warns(IdentificationWarning, match="--friction load does not improve the prediction"):
        found = twin.identify(arm, recording, filtering=Filtering(10.0), friction=["load"])
    assert len(found.model.friction) < 3


def test_small_range_of_an_axis_with_a_gas_spring_gives_a_warning(tmp_path, rng):
    """Over a fifth of the motion, both are alike: the torque is known there, but not 70 degrees away."""
    given = PROJECT / "urdf" / "irb140"
    (tmp_path / "robot.toml").write_text((given / "robot.toml").read_text(encoding="utf-8") + GAS_SPRING)
    (tmp_path / "irb140.urdf").write_bytes((given / "irb140.urdf").read_bytes())
    arm = slides_as_it_starts(twin.load(tmp_path / "robot.toml"))
    t = np.arange(0.0, 10.0, DT)
    motion = replace(stored_excitation(twin.load("irb140")), periods=2)(t)
    q, qd, qdd = (0.2 * one for one in motion)
    tau = twin.inverse_dynamics(arm, q, qd, qdd)
    with pytest.warns(
        IdentificationWarning, match=r"joint 2 was recorded from -13 to 15.7 deg;.* at -90 deg"
    ):
        twin.identify(arm, noisy(rng, (t, q, tau), 0.01), filtering=Filtering(10.0))


def test_deviations_by_halves_hold_where_friction_drifts(arm, motion):
    """Friction drifts by 5 % in some seconds: a block is too short to see it, the halves differ by it."""
    t, q, tau = motion
    drives = replace(arm.drives, coulomb=np.zeros(6), viscous=np.zeros(6), static=np.zeros(6))
    qd, qdd = differences(q, DT)
    friction = twin.inverse_dynamics(arm, q, qd, qdd)
    friction -= twin.inverse_dynamics(arm.with_drives("rigid", drives), q, qd, qdd)
    model = TorqueModel(arm)
    true = model.base.K @ model.parameters.values
    rubs = np.array([symbol[:2] in ("Fv", "Fc") for symbol in model.base.symbols])
    inside = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        knots = rng.normal(size=(8, 6))
        drift = 0.05 * CubicSpline(np.linspace(0.0, t[-1], 8), knots)(t)
        recording = noisy(rng, (t, q, tau + drift * friction), 0.01)
        found = twin.identify(arm, recording, filtering=Filtering(10.0), min_speed=0.05)
        off = np.abs(found.beta - true)
        by_halves = np.array([one.deviation_by_halves for one in found.values])
        assert np.all(by_halves >= found.deviations)
        inside.append([np.mean((off < 1.96 * size)[rubs]) for size in (found.deviations, by_halves)])
    blocks, halves = np.mean(inside, axis=0)
    assert halves > max(0.9, blocks)


def test_deviations_of_a_short_recording_hold(arm):
    """4 s of white noise: the fit absorbs a third of it, and joints of few equations much more."""
    model, ratios = TorqueModel(arm), []
    true, r = model.base.K @ model.parameters.values, len(model.base.columns)
    t, q, tau = (values[:1000] for values in excited(arm, 1, DT))
    for seed in range(10):
        seen = filtered_measurements(noisy(np.random.default_rng(seed), (t, q, tau), 0.01))
        fit = fitted(triangles(model, [seen]))
        residuals = weighted_residuals(model, fit, [Part([seen], np.eye(r), np.zeros(r))])
        covariance, _ = block_covariance(model, fit, residuals)
        ratios.append(np.abs(fit.beta - true) / np.sqrt(np.diag(covariance)))
    assert 0.90 <= np.mean(np.array(ratios) < 1.96) <= 0.98
