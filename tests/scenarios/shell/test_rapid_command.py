"""`irb-twin rapid` prints figures of every move, writes them, and ends with the status of the verdict."""

import json
import os
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

import twin
from twin.abb.rapid.fitting import stop_times
from twin.abb.rapid.planning import Limits
from twin.abb.rapid.programs import check, export, interpret, read

EXT = "[9E9,9E9,9E9,9E9,9E9,9E9]"
GOOD = f"""MODULE weld
PROC main()
    MoveAbsJ [[0,20,-20,0,60,0],{EXT}], v500, fine, tool0;
    SetDO torch, 1;
    ConfL \\Off;
    MoveL Offs(CRobT(), 0, 100, 0), v200, z10, tool0;
    MoveL Offs(CRobT(), 0, 0, 50), v200, fine, tool0;
ENDPROC
ENDMODULE
"""


def write(file, text):
    """Write a file and its folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weld.mod").write_text(GOOD, encoding="utf-8")
    return tmp_path


def test_check_prints_moves_and_writes_files(program, command):
    files = ["--json", "r.json", "--junit", "r.xml", "--markdown", "r.md"]
    lines = command(["rapid", "check", "weld.mod", *files]).out.splitlines()
    assert lines[0] == "weld.mod: main, 3 moves, irb140, rigid drives"
    assert [line.split()[:2] for line in lines[3:6]] == [["3", "MoveAbsJ"], ["6", "MoveL"], ["7", "MoveL"]]
    assert "  line 4: SetDO torch (logged)" in lines
    assert "  line 7: CRobT behind a fly-by point: taken as if the arm had reached it" in lines
    assert "no fault" in lines
    result = json.loads((program / "r.json").read_text(encoding="utf-8"))
    assert result["passes"]
    assert result["fault"] is None
    assert result["time_s"]["by_speed"] <= result["time_s"]["bound"] <= result["time_s"]["estimate"] + 1e-9
    assert [move["line"] for move in result["moves"]] == [3, 6, 7]
    root = ET.parse(program / "r.xml").getroot()
    assert (root.attrib["tests"], root.attrib["failures"]) == ("4", "0")
    assert "| 6 | MoveL | 100 | 200 | z10 |" in (program / "r.md").read_text(encoding="utf-8")


def test_a_fault_has_its_line_and_status_1(program, command):
    """A fault of a move, and one of the language."""
    (program / "weld.mod").write_text(GOOD.replace("0, 100, 0", "900, 0, 0"), encoding="utf-8")
    out = command(["rapid", "check", "weld.mod", "--junit", "r.xml"], 1).out
    assert "weld.mod: main, 1 moves" in out
    assert "FAULT weld.mod, line 6: MoveL leaves the reach after" in out
    assert ET.parse(program / "r.xml").getroot().attrib["failures"] == "1"
    (program / "weld.mod").write_text("MODULE weld\nPROC main(\nENDMODULE", encoding="utf-8")
    said = command(["rapid", "check", "weld.mod"], 1).err
    assert "FAULT weld.mod, line 3: the end of the file is not RAPID here" in said


def test_export_prints_a_module_that_follows_the_log(program, command):
    command(["run", "joint_tracking", "--duration", "0.2", "--log", "run.npz"])
    words = ["--every", "50", "--speed", "v200", "--zone", "z5", "--name", "Again"]
    text = command(["rapid", "export", "run.npz", *words]).out
    (program / "again.mod").write_text(text, encoding="utf-8")
    log = twin.Log.load("run.npz")
    found = interpret(read("again.mod"), log.robot)
    ends = np.array([segment.q[-1] for segment in found.segments])
    assert np.allclose(ends, log.q[[0, 50, 100, 150, 200]], atol=1e-11)
    assert "MODULE Again" in text
    assert text.count(",v200,z5,") == 4


def test_fit_takes_several_programs_and_their_totals_and_prints_both_numbers(program, command):
    """The second program has zones; the fit predicts its time as well."""
    robot, limits = twin.load("irb140").with_drives("rigid"), Limits(share=0.6, settling=0.05)
    q = np.random.default_rng(5).uniform(-0.5, 0.5, (5, 6))
    rows = ["program,line,time_s"]
    for name, zone in (("slow.mod", "fine"), ("zones.mod", "z50")):
        (program / name).write_text(export(robot, q, speed="v7000", zone=zone), encoding="utf-8")
        plan = check(interpret(read(name), robot), robot, limits)[0]
        rows.append(f"{name},,{plan.time:.6f}")
    plan = check(interpret(read("slow.mod"), robot), robot, limits._replace(settling=0.0))[0]
    rows += [f"slow.mod,{line},{time:.6f}" for line, time in stop_times(plan, 0.05).items()]
    (program / "stops.csv").write_text("\n".join(rows), encoding="utf-8")
    words = command(["rapid", "fit", "slow.mod", "zones.mod", "--times", "stops.csv"]).out.split()
    assert float(words[1]) == pytest.approx(0.6, abs=2e-3)
    assert float(words[5]) == pytest.approx(0.05, abs=2e-3)
    fit = ["rapid", "fit", "slow.mod", "--times"]
    (program / "long.csv").write_text("line,time_s\n3,300\n4,300\n5,300\n", encoding="utf-8")
    out = command([*fit, "long.csv"], 1).out
    assert "settling ends at its bound of 5 s" in out
    assert "stops at one speed alone: other speeds and zones may differ by 10 to 25 %" in out
    (program / "odd.csv").write_text("line,time_s\n3,0.5\n5,0,3\n", encoding="utf-8")
    command([*fit, "odd.csv"], 2)


CELL = '[objects."{}"]\nbox = [0.1, 0.1, 0.1]\nat = [0.515, 0, 0.55]\n'


def test_texts_of_strangers_are_escaped_in_every_output(program, command):
    """Names of files, which need not be UTF-8, texts of the program, and names of objects of the cell."""
    said = "x\x1b[31m<i>|`a"
    file = os.fsdecode(b"w\xff\x1b|<i>.mod")
    (program / file).write_text(GOOD.replace("ConfL", f'TPWrite "{said}";\nConfL'), encoding="utf-8")
    (program / "cell.toml").write_text(CELL.format(r"a|<i>\u001b[31m\nno fault"), encoding="utf-8")
    files = ["--json", "r.json", "--junit", "r.xml", "--markdown", "r.md", "--cell", "cell.toml"]
    out = command(["rapid", "check", file, *files]).out
    markdown = (program / "r.md").read_text(encoding="utf-8")
    suite = ET.parse(program / "r.xml").getroot()[0]
    assert suite.attrib["name"] == "w??|<i>.mod"
    assert r"w\udcff\x1b|<i>.mod: main, 3 moves" in out
    assert r"  line 5: TPWrite: x\x1b[31m<i>|`a" in out
    assert r"a|<i>\x1b[31m no fault" in out
    assert r"w\\udcff\\x1b\|\<i\>.mod" in markdown
    assert r"TPWrite: x\\x1b\[31m\<i\>\|\`a" in markdown
    assert r"a\|\<i\>\\x1b\[31m no fault" in markdown
    assert not any("\x1b" in text for text in (out, markdown, ET.tostring(suite, "unicode")))


def test_a_program_that_is_not_checked_to_its_end_does_not_pass(program, command, monkeypatch):
    """The statistics of the JUnit suite are computed once, not for every move."""
    from junitparser import TestSuite

    counted, update = [], TestSuite.update_statistics
    monkeypatch.setattr(TestSuite, "update_statistics", lambda suite: counted.append(update(suite)))
    files = ["--moves", "2", "--json", "r.json", "--junit", "r.xml"]
    assert "no fault until then" in command(["rapid", "check", "weld.mod", *files], status=1).out
    result = json.loads((program / "r.json").read_text(encoding="utf-8"))
    assert (result["passes"], result["fault"]) == (False, None)
    assert result["stopped"] == "stopped after 2 moves (--moves), before line 7"
    assert ET.parse(program / "r.xml").getroot().attrib["skipped"] == "1"
    assert len(counted) == 1
    command(["rapid", "check", "weld.mod", "--moves", "3", "--json", "r.json"])
    assert json.loads((program / "r.json").read_text(encoding="utf-8"))["passes"]


def test_lines_of_a_task_with_several_modules_name_their_file(program, command):
    lib = 'MODULE lib\nPROC weld_it()\n    TPWrite "on";\n    WaitUntil ready=1;\n'
    write(program / "task" / "lib.mod", lib + "    WHILE TRUE DO\n    ENDWHILE\nENDPROC\nENDMODULE\n")
    main = 'MODULE m\nPROC main()\n    TPWrite "off";\n    weld_it;\nENDPROC\nENDMODULE\n'
    write(program / "task" / "m.mod", main)
    lines = command(["rapid", "check", "task", "--no-kinematics"], status=1).out.splitlines()
    assert "  m.mod, line 3: TPWrite: off" in lines
    assert "  lib.mod, line 3: TPWrite: on" in lines
    (stopped,) = [line for line in lines if line.startswith("the program waits")]
    assert "in the loop of line 5 of lib.mod:" in stopped
    write(program / "task" / "m.mod", main.replace('"off"', "").replace("TPWrite", "WaitTime 0"))
    assert "  lib.mod, line 3: TPWrite: on" in command(["rapid", "check", "task"], status=1).out.splitlines()


def test_encrypted_modules_of_a_task_are_left_out_with_a_remark(program, command):
    """Options and integrators leave such modules in backups."""
    (program / "lock.sys").write_bytes(bytes(range(256)))
    out = command(["rapid", "check", "weld.mod", "lock.sys"]).out
    assert "remark: lock.sys: encrypted or not text, expected a RAPID module; left out" in out
    assert "encrypted" in command(["rapid", "check", "lock.sys"], status=1).err


def test_times_at_the_limits_are_not_judged_where_no_torque_limit_is_known(program, command, monkeypatch):
    """Neither the motor's limit nor the joint's effort is known of joint 2."""
    given = twin.load("irb140")
    drives = replace(given.drives, motor_torque_max=[3.0, np.inf, 4.2, 0.75, 1.0, 1.0])
    arm = replace(given, tau_max=np.array([282, np.inf, 333, 45, 60, 38])).with_drives("rigid", drives)
    monkeypatch.setattr("scenarios.abb.rapid.check.robot_of", lambda *_, **__: arm)
    out = command(["rapid", "check", "weld.mod", "--json", "r.json"]).out
    assert "not judged at the limits (no torque limit is known of joint_2;" in out
    result = json.loads((program / "r.json").read_text(encoding="utf-8"))
    assert result["time_s"]["bound"] is None
    assert result["moves"][0]["torque"]["share"] is None


BACKUP = {
    "RAPID/TASK1/PROGMOD/MainModule.mod": 'MODULE MainModule\nPROC main()\nIF di1=1 TPWrite "one";\n'
    f"MoveAbsJ [[0,0,0,0,30,0],{EXT}], v500, fine, tool0;\nENDPROC\nENDMODULE",
    "RAPID/TASK2/PROGMOD/Side.mod": "MODULE Side\nPROC main()\nWaitTime 1;\nENDPROC\nENDMODULE",
    "RAPID/TASK3/SYSMOD/user.sys": "MODULE user(SYSMODULE)\nVAR num reg1 := 0;\nENDMODULE",
    "SYSPAR/EIO.cfg": """EIO:CFG_1.0::
#
EIO_SIGNAL:

      -Name "di1" -SignalType "DI"\\
      -Label "x"
""",
    "SYSPAR/MOC.cfg": """MOC:CFG_1.0::
#
ROBOT:

      -name "ROB_1"\\
      -use_robot_type "ROB1_140_0.81_6" -use_joint_0 "rob1_1"\\
      -use_joint_1 "rob1_2" -base_frame_pos_z 0.1

#
ARM:

      -name "rob1_1" -upper_joint_bound 1.5\\
      -lower_joint_bound -1.5
""",
}


def test_a_backup_has_its_arm_and_its_tasks(program, command):
    for name, text in BACKUP.items():
        write(program / "backup" / name, text)
    out = command(["rapid", "check", "backup", "--inputs", "di1=1", "--json", "r.json"]).out
    for told in (
        "TASK1: main, 1 moves, irb140", "TPWrite: one", "TASK2: main, 0 moves",
        "TASK3: no procedure main, not run", "remark: MOC.cfg names the arm ROB1_140_0.81_6: irb140",
        "remark: MOC.cfg gives joint_1 the range -86 to 86 deg",
        "remark: MOC.cfg places the base at [0.0, 0.0, 100.0] mm of the world",
    ):  # fmt: skip
        assert told in out
    assert json.loads((program / "r-TASK1.json").read_text(encoding="utf-8"))["passes"]
    moc = program / "backup/SYSPAR/MOC.cfg"
    moc.write_text(moc.read_text(encoding="utf-8").replace("140_0.81_6", "9999_2.05_60"), encoding="utf-8")
    command(["rapid", "check", "backup"], 2)
    assert "kinematics not judged" in command(["rapid", "check", "backup", "--no-kinematics"]).out


def test_a_pgf_lists_the_modules_of_a_program_and_a_folder_is_a_task(program, command):
    text = "<?xml version='1.0'?><Program><Module>weld.mod</Module></Program>"
    (program / "a.pgf").write_text(text, encoding="utf-8")
    (program / "other.mod").write_text("MODULE other\nPROC main(", encoding="utf-8")
    assert "a.pgf: main, 3 moves" in command(["rapid", "check", "a.pgf"]).out
    assert "main, 3 moves" in command(["rapid", "check", str(program)]).out
    (program / "a.pgf").write_text("<Program><Module>gone.mod</Module></Program>", encoding="utf-8")
    command(["rapid", "check", "a.pgf"], 2)
    move = f"MoveAbsJ [[0,0,0,0,30,0],{EXT}],v100,fine,tool0;"
    for file, name, body in (("PROGMOD/a.mod", "main", "go;"), ("SYSMOD/b.sys", "go", move)):
        write(program / "TASK1" / file, f"MODULE {file[-5]}\nPROC {name}()\n{body}\nENDPROC\nENDMODULE")
    assert "TASK1: main, 1 moves" in command(["rapid", "check", "TASK1"]).out


def test_check_without_kinematics_lists_the_moves(program, command):
    text = GOOD.replace("tool0", "missing").replace(
        "SetDO", 'Open "HOME:/a.txt", f\\Write; Write f, "x"; SetDO'
    )
    text = text.replace("PROC", "VAR iodev f;\nPROC", 1)
    (program / "weld.mod").write_text(text, encoding="utf-8")
    out = command(["rapid", "check", "weld.mod", "--no-kinematics", "--verbose", "--json", "r.json"]).out
    assert "weld.mod: main, 3 moves, kinematics not judged" in out
    assert "written into a.txt:\n  x" in out
    assert "missing is not declared in these modules: any tooldata" in out
    result = json.loads((program / "r.json").read_text(encoding="utf-8"))
    assert (result["passes"], result["judged"], result["written"]) == (True, False, {"a.txt": "x\n"})
    assert result["moves"][0]["time_s"] is None
    assert len(result["assumed"]) == 5
    command(["rapid", "check", "weld.mod"], 1)
    for words in (["--inputs", "a=b"], ["--home", "nowhere"], ["--signal-delay", "-1"]):
        command(["rapid", "check", "weld.mod", *words], 2)
