"""From recordings to parameters: logs of the engine, tables with noise, the command line, and bad input."""

import json
from dataclasses import replace

import numpy as np
import pytest

import twin
from scenarios.shell.command_line import main
from tests.support import tasks
from tests.support.identified_arms import excited, slides_as_it_starts
from tests.support.sample_drives import uncoupled
from twin.base.errors import IdentificationError, IdentificationWarning
from twin.data.identification import Filtering, filtered_measurements
from twin.data.identification.excitation import stored_excitation
from twin.data.identification.least_squares import fitted, joint_residuals, triangles
from twin.data.identification.torque_model import TorqueModel

pytestmark = pytest.mark.slow("fits recordings")

DT = 0.004


@pytest.fixture(scope="module")
def log():
    """Log of the engine with drives whose static friction exceeds the Coulomb friction."""
    return tasks.run("excitation", robot="irb140", time_step=0.002).log


@pytest.fixture(scope="module")
def found(log):
    return twin.identify(log.robot, log)


@pytest.fixture(scope="module")
def linear(irb140):
    return slides_as_it_starts(irb140)


@pytest.fixture(scope="module")
def motion(linear):
    return excited(linear, 1, DT)


def base_values(found):
    return found.model.base.K @ found.model.parameters.values


def error(found):
    true = base_values(found)
    return np.linalg.norm(found.beta - true) / np.linalg.norm(true)


def test_a_log_of_the_engine_gives_the_parameters_back(found):
    assert found.rank == 58
    assert found.condition < 100
    assert error(found) < 1e-8
    true = base_values(found)
    np.testing.assert_allclose(found.beta, true, rtol=1e-6, atol=1e-8)
    assert np.max(found.residuals.percent) < 1e-8
    assert "excluded below 0.056 or 0.119 rad/s" in found.how[0]
    assert all(one.before == one_true for one, one_true in zip(found.values, true, strict=True))


def test_friction_near_rest_is_left_out_and_acts_at_the_speed_after_a_step(log, found):
    (measured,) = found.measured
    assert 0.01 < np.mean(~measured.used) < 0.2
    everything = replace(measured, used=np.ones_like(measured.used))
    with pytest.warns(IdentificationWarning, match="repeat with the position"):
        assert error(twin.identify(log.robot, everything)) > 1e-4
    before = replace(measured, qd_friction=measured.qd)
    assert 1e-6 < error(twin.identify(log.robot, before)) < 1e-2


@pytest.mark.filterwarnings("ignore:the residuals of joint")
def test_a_log_with_sensors_is_measured(log):
    """Without the engine's recursion, speeds of friction are half a step old: of this arm ten times worse."""
    counts = 2 * np.pi / log.robot.drives.encoder_counts / log.robot.drives.ratio
    seen = replace(log, q_seen=np.round(log.q / counts) * counts)
    filtering = Filtering(10.0)
    found = twin.identify(log.robot, seen, filtering=filtering, min_speed=0.0)
    assert "low-pass filtered at 50 Hz, torques and model at 10 Hz" in found.how[0]
    assert error(found) < 3e-3
    as_table = twin.logs.torque_recording(log.t, seen.q_seen, log.tau)
    assert error(twin.identify(log.robot, as_table, filtering=filtering, min_speed=0.0)) > 3 * error(found)


def test_repeated_rows_add_no_information(linear, motion, rng):
    t, q, tau = motion
    recording = twin.logs.torque_recording(t, q, tau + rng.normal(size=q.shape))
    filters = (Filtering(10.0, row_rate=rate) for rate in (20, 125))
    measured = [filtered_measurements(recording, filtering) for filtering in filters]
    few, many = (np.diag(fitted(triangles(TorqueModel(linear), [one])).covariance) for one in measured)
    assert np.median(np.sqrt(many / few)) == pytest.approx(1.0, abs=0.1)


def test_triangles_are_the_equations(linear, motion):
    t, q, tau = motion
    model = TorqueModel(linear)
    measured = filtered_measurements(twin.logs.torque_recording(t, q, tau), Filtering(10.0))
    halves = [measured.between(None, 2.0), measured.between(2.0, None)]
    reduced, parts = triangles(model, [measured]), triangles(model, halves)
    np.testing.assert_array_equal(parts.counts, reduced.counts)
    beta = np.ones(58)
    told = joint_residuals(reduced, beta)
    np.testing.assert_allclose(joint_residuals(parts, beta).rms, told.rms, rtol=1e-12)
    found = twin.identify(linear, measured)
    _, torque, predicted = replace(found, beta=beta).predicted(measured)
    left = np.sqrt(np.mean((torque - predicted) ** 2, axis=0))
    np.testing.assert_allclose(left, told.rms, rtol=1e-12)


def test_later_part_is_used_for_validation(linear, motion, rng):
    t, q, tau = motion
    recording = twin.logs.torque_recording(t, q, tau + 0.1 * rng.normal(size=q.shape))
    found = twin.identify(linear, recording, split=3.5, filtering=Filtering(10.0))
    early = twin.identify(linear, recording, end=3.5, filtering=Filtering(10.0))
    np.testing.assert_array_equal(found.beta, early.beta)
    assert found.validation.count == pytest.approx(6 * 20 * 1.4, abs=12)
    late = recording.t >= 3.6
    spoilt = replace(recording, tau=np.where(late[:, None], 2.0, 1.0) * recording.tau)
    worse = twin.identify(linear, spoilt, split=3.5, filtering=Filtering(10.0))
    assert np.all(worse.validation.percent > 30)
    assert np.all(found.validation.percent < 5)


def refused(robot, t, q, tau, said, **settings):
    recording = twin.logs.torque_recording(t, q, tau, "run.csv")
    with pytest.raises(IdentificationError, match=said):
        twin.identify(robot, recording, **{"filtering": Filtering(10.0)} | settings)


def test_torques_in_another_unit_or_on_the_wrong_side_of_the_gear(linear, motion):
    t, q, tau = motion
    N = linear.drives.motor_matrix
    side = r"torques differ from those of 'irb140', that of joint . is 0.0\d+ times as large, and 0.0"
    for seen, torque, said in (
        (q, np.linalg.solve(N.T, tau.T).T, side + r"\d+ is one over its gear ratio"),
        (q, tau @ N, "is its gear ratio: are these torques of the joints, not of the motors"),
        (q, 1e3 * tau, r"and 1e\+03 is the factor of the unit: are these torques in mN m \(--torque-unit\)"),
        (q @ N.T, tau, "reaches .* are these positions of the motors"),
        (np.rad2deg(q), tau, r"in another unit \(--angle-unit\)"),
    ):
        refused(linear, t, seen, torque, said)
    twice = twin.identify(linear, twin.logs.torque_recording(t, q, 2 * tau), filtering=Filtering(10.0))
    assert twice.rank == 58  # an arm may be heavier than was thought


def test_masses_far_from_the_model_or_from_the_data_sheet_warn(linear, motion):
    """No gear and no unit is named, since none explains the factor."""
    t, q, tau = (part[::5] for part in motion)
    with pytest.warns(IdentificationWarning, match=r"links are 250[\d.]* times as heavy .* with its base$"):
        twin.identify(linear, twin.logs.torque_recording(t, q, 250.0 * tau))
    heavy = replace(linear, tree=replace(linear.tree, inertias=8.0 * linear.tree.inertias))
    said = r"573 kg; by the data sheet the arm weighs 98 kg with its base"
    with pytest.warns(IdentificationWarning, match=said):
        twin.identify(heavy, twin.logs.torque_recording(t, q, 8.0 * tau))


def test_too_little_motion(linear, motion):
    t, q, tau = motion
    still = q.copy()
    still[:, 3] = 0.3
    refused(linear, t, still, tau, "joint 4 stands still: it moves over .* which does not determine")
    few = [part[t < 0.7] for part in (t, q, tau)]
    refused(linear, *few, r"\d+ equations are too few for 58 parameters: expected 116")
    refused(linear, t, q, tau, "nothing was recorded from 9 s", start=9.0)


def test_indistinguishable_parameters_are_named_with_a_better_motion(linear):
    """Without noise, as noise tells anything apart; the equations of a motion as it is told."""

    def measured(q, qd, qdd, t):
        tau = twin.inverse_dynamics(linear, q, qd, qdd)
        used = np.ones(q.shape, dtype=bool)
        return twin.Measurements("run", t, q, qd, qdd, qd, tau, used, None, 250.0, "as it is")

    t = np.arange(0.0, 5.0, DT)
    q, qd, qdd = stored_excitation(linear)(t)
    q[:, 2], qd[:, 2], qdd[:, 2] = 0.5 * t, 0.5, 0.0
    alike = [0.3 * f(2 * t)[:, None] * np.ones(6) * w for f, w in ((np.sin, 1), (np.cos, 2), (np.sin, -4))]
    for motion, said in (
        ((q, qd, qdd), "determines 55 of 58 base parameters: J3, Fv3, Fc3, F03 cannot .*; let joint 3 turn"),
        (alike, "Iyy3, Iyy2, J3 cannot be distinguished; let all joints turn at"),
        ((q, 0 * q, 0 * q), r"and \d+ more cannot .*; let joint 1, 2, 3, 4, 5, 6 turn"),
    ):
        with pytest.raises(IdentificationError, match=said):
            twin.identify(linear, measured(*motion, t))


def test_an_arm_of_which_only_the_geometry_is_known(linear):
    """The file has neither masses nor drives: shafts of ratio 1, each of one joint, replace these."""
    linear = uncoupled(linear)
    t, q, tau = excited(linear, 1, DT)
    tree = replace(linear.tree, inertias=np.zeros_like(linear.tree.inertias))
    unknown = replace(linear, tree=tree, inertia_fault="unknown", drives=None, drive_mode="ideal")
    recording = twin.logs.torque_recording(t, q, tau)
    found, known = (twin.identify(one, recording, filtering=Filtering(10.0)) for one in (unknown, linear))
    assert all(one.before == 0 for one in found.values)
    np.testing.assert_allclose(found.residuals.rms, known.residuals.rms, rtol=1e-6)
    value = {one.symbol: one.value for one in found.values}
    for one in known.values:
        gear = linear.drives.ratio[int(one.symbol[1]) - 1] ** 2 if one.symbol[0] == "J" else 1.0
        assert value[one.symbol] == pytest.approx(gear * one.value, rel=1e-6, abs=1e-9)


def test_the_command_line(log, found, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    log.save("run.npz")
    assert main(["identify", "run.npz", "--json", "found.json", "--picture", "fit.png"]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    for text in ("58 base parameters", "mz2 + 0.36 m3", "joint_6", "rank 58 of 58", "wrote found.json"):
        assert text in told.out
    document = json.loads((tmp_path / "found.json").read_text())
    values = [one["value"] for one in document["parameters"]]
    np.testing.assert_allclose(values, found.beta, rtol=1e-9, atol=1e-12)
    assert document["parameters"][1]["stands_for"] == found.values[1].stands_for
    assert (tmp_path / "fit.png").stat().st_size > 10_000

    assert main(["export", "run.npz", "--csv"]) == 0
    words = ["identify", "run.csv", "--robot", "irb140", "--cutoff", "10", "--validate", "run.npz"]
    assert main([*words, "--split", "4", "--json", "table.json"]) == 0
    document = json.loads((tmp_path / "table.json").read_text())
    values = np.array([one["value"] for one in document["parameters"]])
    cost = np.linalg.norm(values - found.beta) / np.linalg.norm(found.beta)
    assert 1e-4 < cost < 0.05
    assert document["validation"] is not None


def test_the_picture_has_all_samples_and_the_residuals_that_count(linear, motion, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    from scenarios.data.identification.report import Report

    t, q, tau = motion
    noisy = tau + 0.5 * np.random.default_rng(1).normal(size=tau.shape)
    settings = {"filtering": Filtering(10.0), "min_speed": 0.1, "deviations": "white"}
    found = twin.identify(linear, twin.logs.torque_recording(t, q, noisy), split=4.0, **settings)
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    Report(found).draw(tmp_path / "fit.png")
    above, below = drawn[0].axes[0], drawn[0].axes[2]  # row by row: fitted, validation
    measured, predicted = (line.get_ydata() for line in above.lines)
    (rest,) = (line.get_ydata() for line in below.lines)
    np.testing.assert_array_equal(measured, noisy[:, 0])
    np.testing.assert_allclose(measured - predicted, rest, rtol=0, atol=1e-9)
    (fitted,) = found.measured
    counted = fitted.used[:, 0] & (fitted.weights[:, 0] > 0.5)
    np.testing.assert_allclose(below.get_ylim()[1], 1.1 * np.max(np.abs(rest[counted])), rtol=1e-9)
    assert 0.5 < np.mean(counted) < 0.8
    assert np.max(np.abs(rest)) > 2 * below.get_ylim()[1]  # steps of friction, which do not count


def test_wrong_use_of_the_command_line_is_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.csv").write_text("t,q1\n0,1\n")
    for words, said in (
        (["run.csv"], "a table does not name its robot: give --robot"),
        (["run.csv", "--robot", "irb140"], "run.csv, line 1: no column 'q2', 'q3'"),
        (["run.csv", "--robot", "irb140", "--q-offset", "1,x"], "--q-offset 1,x: expected numbers"),
        (["none.npz"], "cannot read the log none.npz"),
        (["run.csv", "--robot", "irb140", "--json", "found.txt"], "expected a file name that ends in .json"),
    ):
        assert main(["identify", *words]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert said in printed.err
        assert printed.err.count("\n") == 1
