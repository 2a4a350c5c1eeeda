"""Programs as users write them, one a feature: they are read, run, planned and judged as a whole."""

import math

import numpy as np
import pytest

import twin
from tests.support.shared_data import shared_folder
from twin.abb.rapid import check, interpret, parse, read

ROBOT = twin.load("irb140").with_drives("rigid")
DOWN = "[0,0,1,0]"
EXT = "[9E9,9E9,9E9,9E9,9E9,9E9]"

SEAM = f"""MODULE seam
  PERS tooldata torch := [TRUE,[[0,0,120],[1,0,0,0]],[1,[0,0,50],[1,0,0,0],0,0,0]];
  TASK PERS wobjdata bench := [FALSE,TRUE,"",[[480,0,250],[1,0,0,0]],[[0,-50,0],[0.9990482,0,0,0.0436194]]];
  CONST robtarget begin := [[0,0,0],{DOWN},[0,0,0,0],{EXT}];
  PROC main()
    ConfJ\\Off; ConfL\\Off;
    MoveJ Offs(begin,0,0,60), v500, fine, torch\\WObj:=bench;
    MoveL begin, v100, fine, torch\\WObj:=bench;
    SetDO arc_on, 1;
    MoveL Offs(begin,0,40,0), v20, z1, torch\\WObj:=bench;
    MoveC Offs(begin,30,70,0), Offs(begin,60,40,0), v20, z1, torch\\WObj:=bench;
    MoveLDO Offs(begin,60,0,0), v20, fine, torch\\WObj:=bench, arc_on, 0;
    MoveL RelTool(CRobT(\\Tool:=torch\\WObj:=bench),0,0,-60\\Rz:=10), v200, fine, torch\\WObj:=bench;
  ENDPROC
ENDMODULE
"""


def judged(text, robot=ROBOT):
    program = interpret(parse(text, "user.mod"), robot)
    assert program.fault is None, program.fault
    plan, fault = check(program, robot)
    assert fault is None, fault
    return program, plan


def tool_points(program, robot=ROBOT):
    """Return the tool's points at the ends of the moves in [mm], from the joint angles."""
    points = []
    for one in program.segments:
        T = twin.forward_kinematics(robot, one.q[-1])
        points.append(1e3 * T[:3, 3] + T[:3, :3] @ one.move.tool.values[1].values[0].values)
    return np.array(points)


def test_a_welding_seam_with_a_circle_in_a_work_object():
    program, plan = judged(SEAM)
    assert [one.move.name for one in plan.moves] == ["MoveJ", "MoveL", "MoveL", "MoveC", "MoveLDO", "MoveL"]
    assert plan.moves[3].length == pytest.approx(30 * math.pi, abs=1e-3)
    seam = plan.moves[2:5]
    assert sum(one.by_speed for one in seam) == pytest.approx((40 + 30 * math.pi + 40) / 20, rel=1e-2)
    turn = math.radians(5)
    c, s = math.cos(turn), math.sin(turn)
    ends = tool_points(program)[1:5]
    in_bench = np.array([(0, 0), (0, 40), (60, 40), (60, 0)])
    expected = in_bench @ [[c, s], [-s, c]] + [480, -50]
    assert np.allclose(ends, np.c_[expected, np.full(4, 250)], atol=1e-4)  # seven decimals of the quaternion
    assert any("(logged)" in note.text for note in program.notes)
    circle = twin.forward_kinematics(ROBOT, program.segments[3].q)
    # Both ends and the point between them have one orientation: the tool does not turn.
    assert np.allclose(circle[:, :3, :3], circle[0, :3, :3], atol=1e-6)


@pytest.mark.parametrize("name", ["irb1400", "irb1600"])
def test_the_same_program_on_other_arms(name):
    robot = twin.load(name).with_drives("rigid")
    shift = {"irb1400": 400, "irb1600": 300}[name]
    program, plan = judged(SEAM.replace("[480,0,250]", f"[{480 + shift},0,{250 + shift}]"), robot)
    assert plan.time == pytest.approx(plan.motion.duration)
    assert plan.by_speed <= plan.bound <= plan.time + 1e-9
    assert np.allclose(tool_points(program, robot)[1], [480 + shift, -50, 250 + shift], atol=1e-6)


def test_a_robot_of_dh_parameters_alone():
    arm = twin.load("irb140")
    bare = twin.dh_robot("bare", arm.dh, q_min=arm.q_min, q_max=arm.q_max, qd_max=arm.qd_max)
    program = interpret(parse(SEAM, "user.mod"), bare)
    assert program.fault is None, program.fault
    with pytest.raises(twin.errors.RobotError):
        check(program, bare)
    limits = twin.rapid.Limits(accelerations=np.full(6, 10.0))
    plan, fault = check(program, bare, limits)
    assert fault is None
    t = np.linspace(0, plan.motion.duration, 1001)
    _, qd, qdd = plan.motion(t)
    assert np.abs(qdd).max() < 10.5
    assert np.abs(qd / bare.qd_max).max() <= 1.0
    assert np.isnan(plan.moves[0].torque[0])


REFUSALS = (
    ("SocketCreate s;", "it needs a live controller"),
    ("EGMActJoint id;", "EGM is not planned"),
    ("MoveAbsJ [[0,0,0,0,30,0],[5,9E9,9E9,9E9,9E9,9E9]], v100, fine, tool0;", "external axes (5)"),
    ("MoveAbsJ [[0,0,0,0,30,0],EXT], v100, fine, held;", "a work object that the robot holds"),
    ("MoveL p, v100, fine, tool0 \\WObj:=moving;", "a work object on a moving unit"),
    ("MoveL *, v100, fine, tool0;", "'*' is not RAPID here"),
)


@pytest.mark.parametrize(("statement", "reason"), REFUSALS)
def test_every_refusal_names_line_and_reason(statement, reason):
    text = f"""MODULE M
        CONST robtarget p := [[450,0,400],{DOWN},[0,0,0,0],{EXT}];
        PERS tooldata held := [FALSE,[[0,0,0],[1,0,0,0]],[1,[0,0,1],[1,0,0,0],0,0,0]];
        PERS wobjdata moving := [FALSE,FALSE,"STN1",[[0,0,0],[1,0,0,0]],[[0,0,0],[1,0,0,0]]];
        PROC main()
        {statement.replace("EXT", EXT)}
        ENDPROC
        ENDMODULE"""
    try:
        fault = interpret(parse(text, "user.mod"), ROBOT).fault
    except twin.errors.RapidError as error:
        fault = error
    assert fault is not None
    assert str(fault).startswith("user.mod, line 6: ")
    assert reason in str(fault)


@pytest.mark.shared
def test_mains_of_public_modules_run_or_are_refused_by_name_and_line():
    """Pieces for a parser's tests are broken on purpose, or are no modules."""
    pieces = {
        "WRAPPING_AND_BRACES_TEMPLATE", "flow_File", "lexer_keywords", "lexer_numbers", "parser_Fields",
        "parser_Modules", "parser_Routines", "parser_Structures", "parser_Variables",
    }  # fmt: skip
    files = [one for one in (shared_folder() / "rapid").glob("*/*") if one.suffix.lower() in (".mod", ".sys")]
    assert len(files) == 51
    judged_mains, unread = 0, []
    for file in files:
        try:
            source = read(file)
        except twin.errors.RapidError as error:
            unread.append((file.stem, error.kind, error.line))
            continue
        program = interpret(source, ROBOT, moves=100, step_limit=20_000)
        fault = check(program, ROBOT)[1]
        if fault is not None:
            without_main = "there is no procedure main" in str(fault)
            assert without_main or fault.line > 0
            judged_mains += not without_main
    assert len(unread) == len(pieces)
    assert all(any(map(name.endswith, pieces)) for name, _, _ in unread)
    assert all(kind == "syntax" and line for _, kind, line in unread)
    assert judged_mains > 15
