"""Gains of the drives by a known load: simulated recordings of an IRB 140 whose torques are off by 10 %."""

import json
from dataclasses import replace

import numpy as np
import pytest

from scenarios.excitation import Excitation
from scenarios.shell.command_line import main
from twin.base.errors import IdentificationError, IdentificationWarning
from twin.data.identification.payload import identify_gains, identify_payload

KNOWN = [5.0, 0.03, 0.02, 0.06]
UNKNOWN = "6,0.02,-0.03,0.08,0.02,0.025,0.015,0.001,-0.002,0.0015"
TRUE = np.array([float(x) for x in UNKNOWN.split(",")])
GAINS = np.array([1.1, 0.9, 1.1, 0.9, 1.1, 0.9])
SCENARIO = Excitation(periods=2)


def run(payload):
    """10 s of excitation with a payload."""
    return SCENARIO.run(SCENARIO.setup(robot="irb140", time_step=0.004, payload=payload)).log


@pytest.fixture(scope="module")
def logs():
    """Runs with the known load, with an unknown payload, and without any."""
    return [run(payload) for payload in (",".join(map(str, KNOWN)), UNKNOWN, "0")]


def recorded(log, seed=0, noise=0.01):
    """With 1 % of noise in the torques, and columns whose gains are `GAINS`."""
    rms = np.sqrt(np.mean(log.tau**2, axis=0))
    noisy = log.tau + noise * rms * np.random.default_rng(seed).normal(size=log.tau.shape)
    return replace(log, tau=noisy / GAINS)


def scaled(log, gains):
    return replace(log, tau=log.tau * gains)


@pytest.mark.parametrize("count", [1, 4])
def test_without_noise_gains_follow_from_the_mass_or_the_centre(logs, count):
    known, _, bare = logs
    runs = [recorded(one, noise=0.0) for one in (known, bare)]
    robot = bare.robot  # whose masses have no effect
    wrong = replace(robot, tree=replace(robot.tree, inertias=2.0 * robot.tree.inertias))
    found = identify_gains(wrong, runs[0], bare=[runs[1]], load=KNOWN[:count], deviations="white")
    np.testing.assert_allclose(found.gains, GAINS, rtol=1e-9)
    assert np.max(found.residuals.percent) < 1e-6


def test_gains_and_then_an_unknown_payload_are_within_their_deviations(logs):
    """Gains and payload see other noise; without the gains the payload is 20 deviations off."""
    known, unknown, bare = logs
    gains, payloads, assumed = [], [], []
    for seed in range(0, 12, 4):
        runs = [recorded(one, seed + k) for k, one in enumerate((known, bare, unknown, bare))]
        found = identify_gains(bare.robot, runs[0], bare=[runs[1]], load=KNOWN[:1])
        gains.append((found.gains - GAINS) / found.deviations)
        right = [scaled(one, found.gains) for one in runs[2:]]
        estimate = identify_payload(
            bare.robot, right[0], bare=[right[1]], scale_covariance=found.relative_covariance
        )
        assert estimate.scaled
        payloads.append((estimate.values - TRUE) / estimate.deviations)
        assumed.append(identify_payload(bare.robot, right[0], bare=[right[1]]).deviations[0])
    assert 0.7 < np.sqrt(np.mean(np.square(gains))) < 1.3
    assert 0.7 < np.sqrt(np.mean(np.square(payloads))) < 1.3
    assert np.mean(np.abs(payloads) < 3) > 0.95
    assert estimate.deviations[0] > 1.2 * assumed[-1]  # for the gains have a part in it
    with pytest.warns(IdentificationWarning, match="repeat with the position"):
        wrong = identify_payload(bare.robot, runs[2], bare=[runs[3]])
    assert abs(wrong.values[0] - 6.0) > 20 * wrong.deviations[0]


def test_a_payload_grows_with_the_scale_of_all_torques(logs):
    """A common error of the scale alone gives the mass this deviation, and no other."""
    _, unknown, bare = logs
    plain, scale = (
        identify_payload(bare.robot, unknown, bare=[bare], scale_covariance=covariance)
        for covariance in (None, 0.02**2 * np.ones((6, 6)))
    )
    np.testing.assert_allclose(scale.values, plain.values, rtol=1e-12)
    expected = np.zeros(10)
    expected[[0, *range(4, 10)]] = 0.02 * np.abs(TRUE[[0, *range(4, 10)]])  # the centre has no part in it
    np.testing.assert_allclose(scale.deviations, expected, rtol=0, atol=1e-6)


def write(path, log):
    names = ["t", *(f"{what}{k}" for what in ("q", "tau") for k in range(1, 7))]
    rows = np.column_stack([log.t, log.q, log.tau])
    np.savetxt(path, rows, delimiter=",", header=",".join(names), comments="", fmt="%.9g")


@pytest.mark.filterwarnings("ignore:the residuals of joint")
def test_the_command_line_writes_gains_and_takes_them(logs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, log in zip(("known.csv", "unknown.csv", "bare.csv"), logs, strict=True):
        write(name, recorded(scaled(log, 0.1), 1))
    words = ["--without", "bare.csv", "--robot", "irb140", "--min-speed", "0.1"]
    assert main(["identify", "known.csv", "--known-load", "5", *words, "--json", "gains.json"]) == 0
    printed = capsys.readouterr().out
    assert "gains of the drives by a known load" in printed
    assert "\n--gains gains.json\n" in printed
    document = json.loads((tmp_path / "gains.json").read_text())
    np.testing.assert_allclose(document["gains"], 10 * GAINS, rtol=0.03)
    words += ["--gains", "gains.json"]
    assert main(["identify", "unknown.csv", "--payload", *words, "--json", "p.json"]) == 0
    assert "The deviations contain those of the gains." in capsys.readouterr().out
    payload = json.loads((tmp_path / "p.json").read_text())
    assert payload["deviations_contain_gains"]
    assert abs(payload["values"]["mass"] - 6.0) < 3 * payload["deviations"]["mass"]
    words[-1] = ",".join(f"{gain:.6g}" for gain in document["gains"])
    assert main(["identify", "unknown.csv", "--payload", *words]) == 0
    assert "outside the deviations: the scale of the torques" in capsys.readouterr().out
    assert main(["identify", "known.csv", "--known-load", "5", *words]) == 0
    line = capsys.readouterr().out.rstrip().rpartition("--gains ")[2]  # of the columns, not of the torques
    np.testing.assert_allclose([float(x) for x in line.split(",")], document["gains"], rtol=1e-3)


def test_missing_and_contradicting_options_of_gains_are_refused(logs, tmp_path, monkeypatch, capsys):
    known, _, bare = logs
    monkeypatch.chdir(tmp_path)
    write("bare.csv", bare)
    (tmp_path / "other.json").write_text("{}")
    words = ["identify", "bare.csv", "--robot", "irb140", "--known-load", "5"]
    both = ["--without", "bare.csv"]
    for more, said in (
        ([], "--known-load requires --without: recordings of the arm without the load"),
        ([*both, "--out", "x.toml"], "--out identifies the parameters of the arm: it excludes --known-load"),
        ([*both, "--gains", "other.json"], "--gains other.json: expected the file of --known-load with --js"),
        (["--without", "run.npz", "--gains", "1,1,1,1,1,1"], "run.npz: a log has torques in N m, --gains"),
        ([*both, "--motor-side", "torques"], "motors of irb140 turn several joints"),
    ):
        assert main([*words, *more]) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(ValueError, match="expected a load as its mass above 0"):
        identify_gains(bare.robot, known, bare=[bare], load=[np.nan])
    with pytest.raises(IdentificationError, match="do not determine the gains: expected runs in which"):
        identify_gains(bare.robot, bare, bare=[bare], load=[5.0], end=0.2)
