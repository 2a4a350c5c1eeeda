"""Identification of payloads from runs of the engine, with and without noise, and its benefit for control."""

import json
from dataclasses import replace

import numpy as np
import pytest

import twin
from scenarios.excitation import Excitation
from scenarios.setup import Setup
from scenarios.shell.command_line import main
from twin.base.errors import IdentificationError
from twin.data.identification.payload import identify_payload, payload_values
from twin.physics.multibody.tree import inertial_parameters

CARRIED = "6,0.02,-0.03,0.08,0.02,0.025,0.015,0.001,-0.002,0.0015"
TRUE = np.array([float(x) for x in CARRIED.split(",")])
SCENARIO = Excitation(periods=2)
RUN = {"robot": "irb140", "time_step": 0.004}


@pytest.fixture(scope="module")
def loaded():
    """10 s of excitation with 6 kg."""
    return SCENARIO.run(SCENARIO.setup(payload=CARRIED, **RUN)).log


@pytest.fixture(scope="module")
def bare():
    return SCENARIO.run(SCENARIO.setup(**RUN)).log


@pytest.fixture(scope="module")
def files(loaded, bare, tmp_path_factory):
    """Recordings with noise of which the mass is within one deviation; of seeds 1 and 2 it is 3.3 off."""
    folder = tmp_path_factory.mktemp("payload")
    names = [folder / "loaded.npz", folder / "bare.npz"]
    for name, log in zip(names, (noisy(loaded, 5), noisy(bare, 6)), strict=True):
        log.save(name)
    return names


def noisy(log, seed):
    """With 2 % of noise on the torques."""
    rms = np.sqrt(np.mean(log.tau**2, axis=0))
    return replace(log, tau=log.tau + 0.02 * rms * np.random.default_rng(seed).normal(size=log.tau.shape))


@pytest.fixture(scope="module")
def exact(loaded):
    return identify_payload(loaded.robot, loaded)


def test_without_noise_it_is_found_by_the_known_model_or_by_a_run_without_it(exact, loaded, bare):
    np.testing.assert_allclose(exact.values, TRUE, rtol=0, atol=1e-8)
    assert np.max(exact.residuals.percent) < 1e-8 < 20 < np.min(exact.without.percent)
    assert exact.robot.payload is None
    robot = loaded.robot.with_payload(None)
    wrong = replace(robot, tree=replace(robot.tree, inertias=2.0 * robot.tree.inertias))
    found = identify_payload(wrong, loaded, bare=[bare])
    np.testing.assert_allclose(found.values, TRUE, rtol=0, atol=1e-8)


@pytest.mark.parametrize("known", [True, False])
def test_under_noise_deviations_are_right_and_small(loaded, bare, known):
    """The 60 errors of six pairs of recordings are, in the mean of squares, as large as their deviations."""
    ratios = []
    for seed in range(1, 13, 2):
        other = [] if known else [noisy(bare, seed + 1)]
        found = identify_payload(loaded.robot, noisy(loaded, seed), bare=other)
        ratios.append((found.values - TRUE) / found.deviations)
        assert found.deviations[0] < 0.003 * 6
        assert np.max(found.deviations[1:4]) < 2e-4
    assert 0.8 < np.sqrt(np.mean(np.square(ratios))) < 1.25
    assert np.mean(np.abs(ratios) < 3) > 0.95


def test_deviations_of_centre_and_inertia_follow_from_those_of_the_moments():
    """The derivatives, against central differences."""
    xx, yy, zz, xy, xz, yz = TRUE[4:]
    phi = inertial_parameters(6.0, TRUE[1:4], np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    values, J = payload_values(phi)
    np.testing.assert_allclose(values, TRUE, rtol=1e-12)
    steps = 1e-5 * np.eye(10)
    columns = [(payload_values(phi + h)[0] - payload_values(phi - h)[0]) / 2e-5 for h in steps]
    np.testing.assert_allclose(J, np.transpose(columns), rtol=0, atol=1e-10)


def test_command_reports_the_payload(files, capsys, tmp_path):
    found = tmp_path / "found.json"
    names = [str(name) for name in files]
    assert main(["identify", names[0], "--without", names[1], "--payload", "--json", str(found)]) == 0
    told = json.loads(found.read_text(encoding="utf-8"))
    out = capsys.readouterr().out
    assert f"--payload {told['payload']}" in out
    assert "relative to recordings without it" in out
    assert told["values"]["mass"] == pytest.approx(6, abs=3 * told["deviations"]["mass"])
    payload = Setup(payload=told["payload"]).plant_payload
    assert payload is not None
    assert payload.mass == pytest.approx(told["values"]["mass"])


def test_empty_flange_and_too_little_motion_are_reported(bare, loaded):
    with pytest.raises(IdentificationError, match="the recordings show no payload"):
        identify_payload(bare.robot.with_payload(twin.Payload(1.0)), noisy(bare, 4), bare=[noisy(bare, 3)])
    still = replace(loaded, qd=loaded.qd * [1, 0, 0, 0, 0, 0], q=np.tile(loaded.q[:1], (len(loaded.q), 1)))
    with pytest.raises(IdentificationError, match=r"do not determine the payload's .*expected runs in which"):
        identify_payload(loaded.robot, still)


def test_conflicting_options_are_rejected(files, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words, sentence in (
        (["--without", "bare.npz"], "--without requires --payload"),
        (["--payload", "--out", "arm.toml"], "--out identifies the parameters of the arm: it excludes --pay"),
    ):
        assert main(["identify", str(files[0]), *words]) == 2
        assert sentence in capsys.readouterr().err
