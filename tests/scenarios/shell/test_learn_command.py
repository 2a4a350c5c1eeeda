"""`irb-twin learn`, and runs and replays with what it wrote."""

import numpy as np
import pytest

import twin
from scenarios.shell.command_line import main
from twin.studies.learning import LearnedInput

SHORT = ["joint_tracking", "--duration", "0.4", "--drives", "rigid", "--controller", "pd"]


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("learned")
    files = ["--out", str(folder / "learned.npz"), "--picture", str(folder / "runs.png")]
    status = main(["learn", *SHORT, "--runs", "4", "--method", "lead", "optimal", *files])
    return status, folder


def test_each_combination_has_a_file_and_a_picture_shows_all(learned):
    status, folder = learned
    assert status == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["learned-lead-motor.npz", "learned-optimal-motor.npz", "runs.png"]
    inputs = LearnedInput.load(folder / names[0])
    assert (inputs.robot, inputs.u.shape) == ("irb140", (401, 6))


def test_run_with_the_input_has_less_error_and_no_claimed_bound(learned, tmp_path, capsys):
    _, folder = learned
    errors = []
    for more in ([], ["--learned", str(folder / "learned-lead-motor.npz")]):
        path = tmp_path / "log.npz"
        assert main(["run", *SHORT, *more, "--log", str(path)]) == 0
        log = twin.Log.load(path)
        errors.append(np.max(np.abs(log.q - log.q_ref)))
    assert errors[1] < 0.5 * errors[0]
    assert "tracking NOT JUDGED" in capsys.readouterr().out
    assert np.any(log.law_signals["learned"] != 0.0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--duration", "0.5"], "a motion of (samples, joints) (401, 6), got one of (501, 6)"),
        (["--robot", "irb1600"], "learned for robot 'irb140', not for 'irb1600'"),
        (["--learned", "missing.npz"], "cannot read missing.npz: No such file or directory"),
    ],
)
def test_input_of_another_motion_or_robot_is_refused(words, message, learned, command):
    path = str(learned[1] / "learned-lead-motor.npz")
    assert message in command(["run", *SHORT, "--learned", path, *words], 2).err


def test_learning_that_does_not_improve_ends_with_1_and_writes_nothing(tmp_path, capsys):
    out = tmp_path / "learned.npz"
    assert main(["learn", *SHORT[:3], "--runs", "3", "--lead", "0.2", "--out", str(out)]) == 1
    assert "no run is better than the first" in capsys.readouterr().out
    assert not out.exists()
