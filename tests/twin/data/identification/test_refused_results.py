"""Results that are no arm or a worse one than was given, and cut-offs that determine too little."""

from dataclasses import replace

import numpy as np
import pytest

import twin
from scenarios.shell.command_line import main
from tests.support.identified_arms import excited, measured, slides_as_it_starts
from twin.base.errors import IdentificationError
from twin.data.identification import Filtering
from twin.data.identification.physical import file_findings, physical_solution

pytestmark = pytest.mark.filterwarnings("ignore::twin.errors.IdentificationWarning")

WHITE = {"min_speed": 0.0, "deviations": "white"}
LOAD = twin.Payload(8.0, (0.0, 0.0, 0.1))


@pytest.fixture(scope="module")
def linear(irb140):
    return slides_as_it_starts(irb140)


@pytest.fixture(scope="module")
def other(linear):
    """Measurements of the arm that was given, without a load."""
    return measured(linear, 0.01, seed=2)


def test_a_result_from_an_arm_with_a_load_is_worse_than_the_given_robot(linear, other):
    loaded = measured(linear.with_payload(LOAD), 0.01)
    found = twin.identify(linear, loaded, validate=[other], **WHITE)
    for (finding,) in (file_findings(physical_solution(found)), found.findings):
        assert (finding.name, finding.stops) == ("worse", True)
        assert "times those of the given robot, 'irb140': the others are too short" in finding.text
    right = twin.identify(linear, measured(linear, 0.01), validate=[other], **WHITE)
    assert file_findings(physical_solution(right)) == []


def test_torques_of_no_arm_leave_more_in_a_file_than_in_the_free_fit(linear, other):
    """Joint 1 would have a negative inertia, which the free fit finds and no link has."""
    tau = other.tau.copy()
    tau[:, 0] -= 10.0 * other.qdd[:, 0]
    solution = physical_solution(twin.identify(linear, replace(other, tau=tau), **WHITE))
    (finding,) = file_findings(solution)
    assert (finding.name, finding.stops) == ("file", True)
    assert 1 in finding.joints
    assert f"up to {np.max(solution.growth):.3g} times those of the free fit" in finding.text
    assert file_findings(physical_solution(twin.identify(linear, other, **WHITE))) == []


def test_a_worse_result_is_not_written_unless_it_is_accepted(linear, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = ",".join(["t", *(f"{what}{k}" for what in ("q", "tau") for k in range(1, 7))])
    for name, robot in (("loaded.csv", linear.with_payload(LOAD)), ("bare.csv", linear)):
        rows = np.column_stack(excited(robot, 1, 0.01))
        np.savetxt(name, rows, delimiter=",", header=names, comments="", fmt="%.9g")
    words = ["identify", "loaded.csv", "--validate", "bare.csv", "--robot", "irb140", "--min-speed", "0"]
    words += ["--deviations", "white", "--cutoff", "10", "--out", "found.toml"]
    assert main(words) == 1
    printed = capsys.readouterr()
    assert "STOP worse: on the validation recordings" in printed.out
    assert "add --accept worse" in printed.err
    assert not (tmp_path / "found.toml").exists()
    assert main([*words, "--accept", "worse"]) == 0
    assert (tmp_path / "found.toml").exists()


def test_a_chosen_cutoff_that_determines_too_little_is_doubled(linear):
    """2 s of the motion: rows at twice the cut-off are too few for 58 parameters at the first one."""
    t, q, tau = excited(linear, 1, 0.004)
    noise = 0.01 * np.sqrt(np.mean(tau**2, axis=0)) * np.random.default_rng(1).normal(size=tau.shape)
    short = twin.logs.torque_recording(*(part[t < 2.0] for part in (t, q, tau + noise)))
    found = twin.identify(linear, short, **WHITE)
    assert "torques and model at 9 Hz (chosen from the motion, times 2)" in found.how[0]
    assert found.rank == 58
    with pytest.raises(IdentificationError, match="equations are too few for 58 parameters: expected 116"):
        twin.identify(linear, short, filtering=Filtering(4.5), **WHITE)
