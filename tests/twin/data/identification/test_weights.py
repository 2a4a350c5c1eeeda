"""Weights of a user in identification: against weighted least squares, at the command line, and bad ones."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import twin
from scenarios.joint_tracking import JointTracking
from scenarios.shell.command_line import main
from tests.support.identified_arms import excited, measured, slides_as_it_starts
from twin.base.errors import IdentificationError
from twin.data.identification import physical_solution
from twin.data.identification.measurements import equations

NOISE = np.array([0.1, 2.0, 0.5, 0.1, 0.05, 0.2])


@pytest.fixture(scope="module")
def arm(irb140):
    return slides_as_it_starts(irb140)


@pytest.fixture(scope="module")
def noisy(arm):
    """400 samples whose noise differs from joint to joint and grows in time, and the matching weights."""
    one = measured(arm)
    deviations = NOISE * np.linspace(0.2, 3.0, len(one.t))[:, None]
    noise = np.random.default_rng(5).normal(size=one.tau.shape) * deviations
    return replace(one, tau=one.tau + noise), 1.0 / deviations


def stacked(found, one):
    """Return the regressor (N, n, r) and the torque (N, n) of all equations, in one block each."""
    rows = np.concatenate([block.rows for block in equations(found.model, replace(one, row_weights=None))])
    return rows[..., :-1], rows[..., -1]


def relative(a, b):
    return np.max(np.abs(a - b)) / np.max(np.abs(b))


def test_fit_and_covariance_are_those_of_weighted_least_squares(arm, noisy):
    one, w = noisy
    for weights in (w, 1.0 / NOISE):
        found = twin.identify(arm, one, weights=weights, deviations="white")
        Y, tau = stacked(found, one)
        full = np.broadcast_to(weights, tau.shape)[..., None]
        A, b = (full * Y).reshape(tau.size, -1), (full[..., 0] * tau).ravel()
        scale = np.linalg.norm(A, axis=0)
        expected, squares, *_ = np.linalg.lstsq(A / scale, b)
        assert relative(found.beta * scale, expected) < 1e-12
        covariance = np.linalg.inv((A / scale).T @ (A / scale)) * squares[0] / (len(b) - len(expected))
        assert relative(found.covariance * np.outer(scale, scale), covariance) < 1e-11


def test_matching_weights_are_nearer_to_the_truth_and_match_their_deviations(arm, noisy):
    one, w = noisy
    equal, matching = (twin.identify(arm, one, weights=x, deviations="white") for x in (np.ones(6), w))
    true = matching.model.base.K @ matching.model.parameters.values
    error, error_equal = (np.abs(found.beta - true) / matching.deviations for found in (matching, equal))
    assert np.sqrt(np.mean(error**2)) < 1.3
    assert np.sqrt(np.mean(error_equal**2)) > 3.0
    assert np.array_equal(equal.residuals.rms, equal.ordinary.rms)
    consistent = physical_solution(matching)  # less uncertain than the free parameters, by the weights
    assert np.all(consistent.deviations < 1.001 * matching.deviations)


def test_a_weight_of_two_counts_as_four_samples_and_of_zero_as_none(arm, noisy):
    one, _ = noisy
    w = np.ones(one.tau.shape)
    w[:100], w[100:150] = 2.0, 0.0
    four = [replace(one, used=np.arange(400)[:, None] + np.zeros(6) < 100)] * 3
    rest = replace(one, used=(w > 0))
    expected = twin.identify(arm, *four, rest, weights=np.ones(6), deviations="white")
    found = twin.identify(arm, one, weights=w, deviations="white")
    assert relative(found.beta, expected.beta) < 1e-11
    assert found.residuals.count == 6 * 350
    assert np.max(np.abs(found.residuals.rms / NOISE)) < 3.0  # in N m, without weights


def test_equations_are_weighted_after_the_filter(arm):
    t, q, tau = excited(arm, 1, 0.004)
    recording = twin.logs.torque_recording(t, q, tau + np.random.default_rng(2).normal(size=tau.shape))
    w = np.random.default_rng(3).uniform(0.5, 2.0, tau.shape)
    found = twin.identify(arm, recording, weights=w)
    (one,) = found.measured
    rows, weights = [], []
    for block in equations(found.model, replace(one, row_weights=None)):
        rows.append(block.rows)
        weights.append(w[block.indices])
    rows, weights = np.concatenate(rows), np.concatenate(weights)
    A = (weights[..., None] * rows).reshape(-1, rows.shape[-1])
    scale = np.linalg.norm(A[:, :-1], axis=0)
    expected = np.linalg.lstsq(A[:, :-1] / scale, A[:, -1])[0]
    assert relative(found.beta * scale, expected) < 1e-11
    assert found.blocks > 0
    assert np.all(found.deviations > 0)
    assert "equations weighted as given" in found.how[0]


def test_weights_of_a_log_and_at_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    log = JointTracking(duration=4.0).run(JointTracking.setup(robot="two_link", time_step=0.005)).log
    log.save("run.npz")
    w = np.random.default_rng(1).uniform(1, 2, (len(log.t), 2))
    np.savetxt("w.csv", np.column_stack([log.t, w]), delimiter=",", header="t,w1,w2", comments="")
    assert main(["identify", "run.npz", "--weights", "w.csv", "--json", "found.json"]) == 0
    values = [one["value"] for one in json.loads((tmp_path / "found.json").read_text())["parameters"]]
    assert values == twin.identify(log.robot, log, weights=w).beta.tolist()
    assert main(["identify", "run.npz", "run.npz", "--weights", "1,2"]) == 0
    assert "equations weighted as given" in " ".join(capsys.readouterr().out.split())
    for words, message in (
        (["--weights", "w.csv", "w.csv"], "expected 2 numbers, as 1,1, or 1 file, one per recording"),
        (["--weights", "1,2,3"], "expected weights of shape (2,), one per joint, or"),
        (["--weights", "1,-2"], "the weight of joint 2 is -2; expected a finite number of at least 0"),
        (["--weights", "none.csv"], "none.csv: cannot be read"),
        (["--weights", "1,2", "--payload"], "--weights identifies the parameters of the arm"),
    ):
        assert main(["identify", "run.npz", *words]) == 2
        assert message in capsys.readouterr().err


def test_bad_weights_are_refused(arm, noisy):
    shape = "shape (6,), one per joint, or (N, 6), one per sample and joint, with N = 400 or 401, got "
    for weights, message in (
        (1.0, f"{shape}()"),
        (np.ones((399, 6)), f"{shape}(399, 6)"),
        (np.full((400, 6), np.nan), "noise: the weight of joint 1 at sample 1 is nan; expected a finite num"),
        ([np.ones((400, 6))] * 2, "expected weights for each of the 1 recordings, got 2 arrays"),
        (["a"] * 6, "expected weights to be real numbers, got text"),
        (np.zeros(6), "0 equations are too few for"),
    ):
        with pytest.raises(IdentificationError if "few" in message else ValueError, match=re.escape(message)):
            twin.identify(arm, noisy[0], weights=weights)
