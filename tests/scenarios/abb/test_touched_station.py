"""A station whose tool hits a wall of its cell: event, stop, log, and exit status of the session."""

import numpy as np
import pytest

from scenarios.shell.command_line import main
from twin.data.logs.log import Log

pytestmark = pytest.mark.slow("serves a station")

MODULE = """MODULE Swing
PERS tooldata grip:=[TRUE,[[0,0,100],[1,0,0,0]],[0.5,[0,0,50],[1,0,0,0],0,0,0]];
CONST jointtarget a:=[[0,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]];
CONST jointtarget b:=[[40,0,0,0,30,0],[9E9,9E9,9E9,9E9,9E9,9E9]];
PROC main()
MoveAbsJ a,v500,fine,grip;
MoveAbsJ b,v500,fine,grip;
TPWrite "passed";
ERROR
IF ERRNO=ERR_COLL_STOP TPWrite "hit";
ENDPROC
ENDMODULE
"""
STATION = """drives = "rigid"
cycle = "once"
[tasks.T_ROB1]
modules = ["swing.mod"]
[supervision]
joint_1 = 10
"""
CELL = """[tool]
tcp = { at = [0, 0, 0.1] }
[objects.wall]
box = [0.02, 0.05, 1.0]
at = [0.52, 0.30, 0.7]
stiffness = 2e4
damping = 100
[[pairs]]
between = ["link_6", "wall"]
may_touch = true
"""


def test_wall_stops_the_program(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, text in (("swing.mod", MODULE), ("station.toml", STATION), ("cell.toml", CELL)):
        (tmp_path / name).write_text(text)
    line = "abb serve station.toml --cell cell.toml --supervise --log run.npz --duration 3"
    assert main(line.split()) == 1
    out = capsys.readouterr()
    assert "motion supervision: joint_1: " in out.out
    assert "N m of external torque, at most 10 N m" in out.out
    assert "TPWrite: hit" in out.out
    assert "passed" not in out.out
    log = Log.load(tmp_path / "run.npz")
    hit = np.flatnonzero(log.wrench[:, 1] < 0)
    assert len(hit) > 5
    assert log.model_residual() < 1e-11
    stopped = np.max(np.abs(log.qd[hit[0] + 600 :])) if len(log.t) > hit[0] + 600 else 0.0
    assert stopped < 0.05
