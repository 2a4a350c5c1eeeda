"""Wrong use of the command `irb-twin`: one sentence on standard error, and status 2."""

import pytest

from scenarios.cli.command_line import main


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("walk", "walk"),
        ("run", "known are drive_check, drive_mismatch, excitation, gravity_hold, identify_joint"),
        ("run --controller pd pose_path", "before all options"),
        ("run pose_pth", "unknown scenario 'pose_pth': known are drive_check"),
        ("run nowhere/mine.py", "no scenario file 'nowhere/mine.py'"),
        ("run gravity_hold --robot irb99", "unknown robot 'irb99': known are irb140"),
        ("run gravity_hold --controller lqr", "unknown controller 'lqr': known are pd"),
        ("run gravity_hold --bandwith 3", "(did you mean --bandwidth?)"),
        ("run gravity_hold --csv a.csv", "unknown option '--csv'"),
        ("run gravity_hold --bandwidth fast", "--bandwidth: invalid float value: 'fast'"),
        ("run gravity_hold --bandwidth nan", "positive, finite bandwidth in rad/s, got nan"),
        ("run gravity_hold --time-step -1", "time step in s, got -1.0"),
        ("run gravity_hold --steps-per-period 0", "expected 1 to 1000000 engine steps per period, got 0"),
        ("run gravity_hold --duration inf", "duration in s, got inf"),
        ("run gravity_hold --reference exact", "known are consistent, continuous"),
        ("run gravity_hold --pose test_9", "known are"),
        ("run payload_mismatch --payload-mass -6", "payload mass in kg, got -6.0"),
        ("run gravity_hold --log nowhere/a.npz", "there is no folder nowhere"),
        ("run gravity_hold --log a.txt", "ends in .npz"),
        ("run gravity_hold --report a.htm", "ends in .html"),
        ("run gravity_hold --drives soft", "unknown drives 'soft': known are ideal, rigid, elastic"),
        ("run gravity_hold --robot youbot --drives rigid", "cannot have rigid drives"),
        ("run gravity_hold --robot youbot --encoder", "no encoders: its file has no table [drives]"),
        ("run gravity_hold --seed -1", "expected a seed of 0 or more, got -1"),
        ("run drive_check --robot youbot", "robot 'youbot' has no drives: its file"),
        ("run drive_check --drives ideal", "known are rigid, elastic"),
        ("run drive_mismatch --knows some", "known are all, no_friction, no_rotors, nothing"),
        ("run drive_mismatch --model-drives ideal", "are set by --knows"),
        ("validate --junit nowhere/a.xml", "there is no folder nowhere"),
        ("validate --duration 3", "unknown option '--duration'"),
        ("list robots", "'robots'"),
    ],
)
def test_wrong_use_is_one_sentence_and_status_2(line, told, capsys):
    assert main(line.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("irb-twin: ")
    assert printed.err.count("\n") == 1
    assert told in printed.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def run(config): ...\n", "lacks Config, metrics"),
        ("class Config: ...\ndef run(c): ...\ndef metrics(l): ...\n", "inherits scenarios.base.Config"),
    ],
)
def test_a_scenario_file_that_is_none_is_wrong_use(text, told, tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text(text, encoding="utf-8")
    assert main(["run", str(path)]) == 2
    assert told in capsys.readouterr().err


def test_a_bad_recording_is_wrong_use(tmp_path, capsys):
    path = tmp_path / "path.csv"
    path.write_text("t,x,y,z,a,b,c\n0,0,0,0,1,0,0\n", encoding="utf-8")
    assert main(["run", "pose_path", "--csv", str(path)]) == 2
    assert "no column 'd'" in capsys.readouterr().err
