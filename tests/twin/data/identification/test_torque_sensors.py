"""Torque sensors behind the gears: recordings without rotors and friction of the drives in front of them."""

import numpy as np
import pytest

import twin
from scenarios.shell.command_line import main
from twin.data.identification import Filtering
from twin.data.identification.excitation import stored_excitation
from twin.data.identification.payload import identify_payload

DT = 0.004
OFFSET = np.array([1.0, -2.0, 1.5, 0.1, -0.2, 0.05])
SETTINGS = {"filtering": Filtering(10.0), "deviations": "white"}


@pytest.fixture(scope="module")
def arrays(irb140):
    return sensed(irb140)


def sensed(robot):
    """Times, positions, and torques of the links alone, with zeros of the sensors that are off and noise."""
    t = np.arange(0.0, 5.0, DT)
    q, qd, qdd = stored_excitation(robot)(t)
    tau = twin.inverse_dynamics(robot.with_drives("ideal"), q, qd, qdd)
    noise = 0.01 * np.sqrt(np.mean(tau**2, axis=0)) * np.random.default_rng(3).normal(size=q.shape)
    return t, q, tau + OFFSET + noise


def test_links_and_zeros_of_the_sensors_are_found(irb140, arrays):
    recording = twin.logs.torque_recording(*arrays)
    found = twin.identify(irb140, recording, torque_sensors=True, **SETTINGS)
    assert found.findings == ()
    assert not {symbol[:2] for symbol in found.model.base.symbols} & {"J1", "J5", "Fv", "Fc"}
    assert found.rank == 42  # of 58, 12 are friction, and 4 rotors that links do not have in them
    off = [(one.value - one.before) / one.deviation for one in found.values if one.symbol[:2] != "F0"]
    zeros = [(one.value, one.deviation) for one in found.values if one.symbol[:2] == "F0"]
    off += [(value - true) / deviation for (value, deviation), true in zip(zeros, OFFSET, strict=True)]
    assert 0.7 < np.sqrt(np.mean(np.square(off))) < 1.4
    assert np.max(np.abs(off)) < 4


def test_a_payload_and_a_file_from_sensors(irb140, arrays, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    carrying = sensed(irb140.with_payload(twin.Payload(4.0, (0.01, 0.02, 0.06))))
    runs = [twin.logs.torque_recording(*some) for some in (carrying, arrays)]
    found = identify_payload(irb140, runs[0], bare=[runs[1]], torque_sensors=True, filtering=Filtering(10.0))
    assert abs(found.values[0] - 4.0) < 3 * found.deviations[0] < 0.1
    names = ["t", *(f"{what}{k}" for what in ("q", "tau") for k in range(1, 7))]
    np.savetxt("run.csv", np.column_stack(arrays), delimiter=",", header=",".join(names), comments="")
    words = ["identify", "run.csv", "--robot", "irb140", "--torque-sensors"]
    assert main([*words, "--cutoff", "10", "--deviations", "white", "--out", "sensed.toml"]) == 0
    written = twin.load(tmp_path / "sensed.toml")
    for name in ("rotor_inertia", "coulomb", "viscous"):
        np.testing.assert_array_equal(getattr(written.drives, name), getattr(irb140.drives, name))
    assert np.max(np.abs(written.tree.inertias - irb140.tree.inertias)) > 0
    capsys.readouterr()
    for more, said in (
        (["--both-sides"], "--both-sides is of drives, which torque sensors do not see"),
        (["--motor-side", "torques"], "they exclude --motor-side torques"),
        (["--validate", "run.npz"], "run.npz: a log has the torques of motors"),
    ):
        assert main([*words, *more]) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(ValueError, match="torque sensors behind the gears see no friction"):
        twin.identify(irb140, runs[1], torque_sensors=True, friction=["load"])
