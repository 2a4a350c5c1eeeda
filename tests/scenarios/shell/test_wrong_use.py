"""Wrong use of the command `irb-twin`: one sentence on standard error, and status 2."""

import sys

import pytest

from tests.support import user_scenarios
from tests.support.example_logs import irb140_log

FILES = {
    "law.py": "def silent(robot):\n    return lambda state, reference: state.q * 0\n",
    "weld.mod": "MODULE weld\nPROC main()\nENDPROC\nENDMODULE\n",
    "cell.toml": "frames.bench.at = [0.5, -0.2, 0.3]\ntool = { tcp = { at = [0, 0, 0.15] }, mass = 1.2 }\n",
    "path.csv": "t,x,y,z,a,b,c\n0,0,0,0,1,0,0\n",
    "arm.xacro": "",
    "arm.urdf": "<robot",
    "robot.toml": "[dh",
    "good.mod": "MODULE M\nPROC main()\nENDPROC\nENDMODULE\n",
    "station.toml": "[tasks.T_ROB1]\nmodules = ['good.mod']\n",
    "lacks.py": "def run(config): ...\n",
    "old.py": "class Config: ...\ndef run(c): ...\ndef metrics(l): ...\n",
    **{f"{kind}.py": user_scenarios.scenario(options=f"size: {kind} = option({kind}(2), 'x')\n")
       for kind in ("int", "float")},
}  # fmt: skip
"""Files of a user."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("use")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    irb140_log().save(folder / "a.npz")
    return folder


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("walk", "walk"),
        ("run", "known are collision, constrained_circle, drive_check, excitation, gravity_hold"),
        ("run --controller pd pose_path", "before all options"),
        ("run pose_pth", "unknown scenario 'pose_pth', did you mean 'pose_path'?"),
        ("run nowhere/mine.py", "no scenario file 'nowhere/mine.py'"),
        ("run gravity_hold --bandwith 3", "(did you mean --bandwidth?)"),
        ("run gravity_hold --bandwidth fast", "--bandwidth: invalid float value: 'fast'"),
        ("run gravity_hold --bandwidth nan", "positive, finite bandwidth in rad/s, got nan"),
        ("run gravity_hold --time-step -1", "time step in s, got -1.0"),
        ("run gravity_hold --steps-per-period 0", "expected 1 to 1000000 engine steps per period, got 0"),
        ("run gravity_hold --log a.txt", "ends in .npz"),
        ("run gravity_hold --drives soft", "unknown drives 'soft': known are ideal, rigid, elastic"),
        ("run gravity_hold --robot youbot --encoder", "no encoders: its file has no table [drives]"),
        ("run gravity_hold --seed -1", "expected a seed of 0 or more, got -1"),
        ("run drive_check --robot youbot", "robot 'youbot' has no drives: its file"),
        ("run drive_check --drives ideal", "known are rigid, elastic"),
        ("run payload_mismatch --payload-mass -6", "payload mass in kg, got -6.0"),
        ("validate --junit nowhere/a.xml", "there is no folder nowhere"),
        ("run lacks.py", "expected one class that inherits scenarios.TrackingScenario or scenarios.Scenario"),
        ("run old.py", "has the form of version 0.2, with Config, run and metrics: a scenario is now"),
        ("run int.py float.py --size 2.5", "--size is int in int and float in float: run them separately"),
        ("run pose_path --csv path.csv", "no column 'd'"),
        ("egm", "name a command after egm: known are serve"),
        ("egm serve --to a:1 a:2", "--to names 2 addresses for 1 robot"),
        ("egm serve --drives rigid --robot youbot", "cannot have rigid drives"),
        ("egm serve --position-gain 21", "0 to 20"),
        ("egm serve --to 6510", "expected HOST:PORT with a port of 1 to 65535, as 127.0.0.1:6510, got"),
        ("egm serve --robot irb140 rx90 --to a:7 a:7", "cannot send to the same address"),
        ("egm serve --robot irb140 rx90 --to a:65535", "the largest port is 65535"),
        ("egm serve --robot irb140 rx90 --bind 127.0.0.1:7000", "cannot share a port"),
        ("egm serve --mode path", "--mode path requires --path FILE.csv"),
        ("egm serve --path a.csv", "--path requires --mode path"),
        ("egm serve --mode path --path a.csv --start zero", "--start is not valid in path mode"),
        ("egm serve --start bent", "unknown pose of irb140 'bent': known are zero, test_1"),
        ("egm serve --lockstep --gui", "--gui requires real time"),
        ("egm serve --limit 3", "--limit requires --lockstep"),
        ("egm serve --pause -1", "--pause -1: expected 0 s or more"),
        ("sweep joint_tracking pose_path", "name one scenario"),
        ("sweep model_agreement --vary payload=0:6", "model_agreement"),
        ("sweep joint_tracking", "nothing varies: give --vary"),
        ("sweep joint_tracking --vary payload", "expected NAME=TEXT"),
        ("sweep joint_tracking --vary payload=0:6 --limit error=1", "'error': known are joint_error"),
        ("sweep joint_tracking --vary payload=0:6 --figure error", "unknown quantity 'error'"),
        ("sweep joint_tracking --controller pd pid --vary law.nope=0:1", "'law.nope': the nearest"),
        ("sweep joint_tracking --vary payload=0:6 --resume", "--resume requires --out"),
        ("sweep joint_tracking --vary payload=0:6 --jobs 2 --scheduler tcp://h:1", "--jobs excludes"),
        ("sweep joint_tracking --vary payload=0:6 --limit joint_error=-1", "at least 0"),
        ("sweep joint_tracking --vary payload=0:6 --require-share 95", "expected a share from 0 to 1"),
        ("tune", "name a controller and a scenario"),
        ("tune pd joint_tracking --minimise rms_torque", "limit an error, too"),
        ("tune pd joint_tracking --minimise cubic_torque", "--minimise cubic_torque: a hanging arm"),
        ("tune ./law.py:silent joint_tracking --engine", "has no numeric setting"),
        ("mass a.stl --density 1", "mesh files state no unit: give --unit m, cm, mm or inch"),
        ("mass a.stl --unit m", "give one of --density, --mass and --total"),
        ("mass a.stl --unit m --mass 1 2", "--mass: expected one number per file, 1"),
        ("mass a.stl --unit m --total 0", "expected finite numbers above 0"),
        ("mass a.stl --unit m --total 1 --out x.urdf", "--out requires a URDF"),
        ("mass robot.urdf --unit m --total 1", "a URDF is in m, with a scale per mesh"),
        ("mass robot.urdf a.stl --total 1", "expected mesh files, or one URDF alone"),
        ("mass robot.urdf --mass 1", "--mass requires mesh files"),
        ("mass robot.urdf --total 1 --out /tmp/x.urdf", "expected a file beside the URDF"),
        ("mass none.stl --unit m --total 1", "no such mesh file: none.stl"),
        ("plot a.npz --joint elbow", "unknown joint 'elbow': known are joint_1"),
        ("plot a.npz --what jerk", "speed, position, pose, force, moment, wrench to draw, got 'jerk'"),
        ("plot a.npz --from 9", "no sample between 9 s and inf s"),
        ("export a.npz", "nothing to write: give --csv, --parquet or both"),
        ("export a.npz --csv --every 0", "--every 0: expected a whole number of at least 1"),
        ("export a.npz --parquet --decimal-comma", "--decimal-comma requires --csv"),
        ("export a.npz a.npz --csv", "several logs would be written to a.csv"),
        ("export a.npz --parquet", "pip install 'irb-twin[tables]'"),
        ("rapid check weld.mod --share 2", "--share 2: expected more than 0 and at most 1"),
        ("rapid check weld.mod --settling -1", "--settling -1: expected at least 0 s"),
        ("rapid check weld.mod --start nowhere", "robot irb140 has no pose 'nowhere': known are"),
        ("rapid check weld.mod --accelerations 1 2", "expected one number or six"),
        ("rapid check weld.mod --robot two_link", "2 axes"),
        ("rapid check weld.mod --lock joint_7=0", "no joint 'joint_7' to lock, did you mean"),
        ("identify a.npz --lock joint_6=0", "--lock and --unphysical require --robot: a log has its robot"),
        ("rapid fit weld.mod", "--times FILE.csv is required"),
        ("collide run.npz", "--cell CELL.toml is required"),
        ("reach --plane bench", "--plane requires --cell"),
        ("reach --step -1", "expected 1 to 2000 steps"),
        ("run gravity_hold --cell none.toml", "cannot read none.toml"),
        ("run gravity_hold --cell cell.toml --tool 0.1", "twice: by --tool 0.1 and by tool.tcp of cell.toml"),
        ("run gravity_hold --cell cell.toml --payload 2", "the payload is given twice"),
        ("new robot --from arm.urdf --folder ..", "expected new robot --from FILE.urdf, or new robot NAME"),
        ("export-model irb140", "name a file to write: --urdf FILE.urdf, --mjcf FILE.xml, or both"),
        ("export-model rx90 --mjcf a.xml", "robot 'rx90' has no dynamics"),
        ("export-model irb140 --mjcf a.urdf", "expected a file name that ends in .xml"),
        ("export-model irb140 --mjcf a.xml --drives elastic", "invalid choice: 'elastic'"),
        ("export-model youbot3 --mjcf a.xml --urdf a.urdf", "no such body exists"),
        ("gui", "no display to open the window on (DISPLAY is not set)"),
        ("gui --browser --poses a.csv", "--browser excludes --poses, --log and --cell"),
        ("replay a.npz --browser --loop", "--browser excludes --film, --loop and --speed"),
        ("abb serve", "expected STATION.toml or --load TASK=FILES"),
        ("abb serve --load server.mod", "--load server.mod: expected TASK=FILES"),
        ("abb serve --load T_ROB1=there_is_none.mod", "there is no file or folder"),
        ("abb serve station.toml --", "expected the command of a client after --"),
        ("abb serve station.toml --inputs a=b", "--inputs: expected inputs as"),
        ("abb serve station.toml --home no_folder", "--home no_folder: expected a folder"),
        ("abb serve station.toml -- no_such_command_here", "cannot run no_such_command_here"),
        ("abb serve station.toml --duration -1", "duration"),
        ("abb serve station.toml --limit 3", "--limit requires --lockstep"),
        ("abb serve station.toml --lag -5", "--lag: expected a lag of 0 to 1000 ms, got -5"),
        ("abb serve station.toml --lockstep --gui", "--gui requires real time"),
        ("abb serve station.toml --omnicore", "--omnicore, --certificate and --strict need --rws PORT"),
        ("abb serve station.toml --rws 70000", "--rws 70000: expected a port from 0, a free one, to 65535"),
        ("abb serve station.toml --rws 0 --certificate x.pem", "--certificate needs --omnicore"),
        ("abb serve station.toml --rws 0 --omnicore --certificate x.pem", "x.pem: expected a PEM file"),
        ("abb serve station.toml --rws 0 --listen 256.0.0.1", "--rws 0 at 256.0.0.1:"),
        ("check-model arm.xacro", "expected a file whose name ends in .urdf, robot.toml or dh.toml"),
        ("check-model arm.urdf", "is not well-formed XML"),
    ],
)
def test_wrong_use_is_one_sentence_and_status_2(line, told, folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not installed
    monkeypatch.delenv("DISPLAY", raising=False)
    before = sorted(path.name for path in folder.iterdir() if path.is_file())
    printed = command(line.split(), 2)
    assert printed.out == ""
    assert printed.err.startswith("irb-twin: ")
    assert printed.err.count("\n") == 1
    assert told in printed.err
    assert sorted(path.name for path in folder.iterdir() if path.is_file()) == before


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("tune pd joint_tracking --gains Kp law.Kp", "searched twice"),
        ("reach --cell cell.toml --plane benc", "no frame 'benc', did you mean 'bench'?"),
        ("learn joint_tracking --gamma 2", "gamma above 0 and at most 1"),
    ],
)
def test_wrong_use_that_is_found_later_is_the_last_sentence(line, told, folder, monkeypatch, command):
    monkeypatch.chdir(folder)
    assert told in command(line.split(), 2).err.splitlines()[-1]
