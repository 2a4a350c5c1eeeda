"""Targets become joint angles: configurations, turns, tools, work objects, lines and circles."""

from types import SimpleNamespace

import numpy as np
import pytest

import twin
from tests.support import rapid_programs
from twin.abb.rapid.targets import Arm, payload_of

ROBOT = twin.load("irb140")
EXT = "[9E9,9E9,9E9,9E9,9E9,9E9]"
POSE = "[515.02,200,711.97],[0.7071,0,0.7071,0]"


def run(body, robot=ROBOT, before="", **options):
    return rapid_programs.program(body, robot, before, **options)


def pose_text(T):
    pose = twin.pose_vector(T)
    return f"[{','.join(f'{1e3 * x:.9f}' for x in pose[:3])}],[{','.join(f'{x:.12f}' for x in pose[3:])}]"


def ends(program):
    assert program.fault is None, program.fault
    return np.array([segment.q[-1] for segment in program.segments])


TAUGHT = [  # a taught program of an IRB 140: confdata, and the angles of the pendant in degrees
    ((0, -1, 0, 0), (23.96, 6.77, -7.15, -89.15, 23.97, 89.07)),
    ((0, 1, -2, 1), (23.96, 6.77, -7.15, 90.85, -23.97, -90.93)),
    *[(conf, None) for conf in ((0, -1, 0, 2), (-2, 1, 0, 4), (-2, -1, -2, 7))],
]


@pytest.mark.parametrize(("conf", "degrees"), TAUGHT)
def test_confdata_names_one_of_eight_solutions(conf, degrees):
    program = run(f"MoveJ [{POSE},{list(conf)},{EXT}],v100,fine,tool0;")
    (q,) = ends(program)
    assert [np.floor(q[i] / (np.pi / 2)) for i in (0, 3, 5)] == list(conf[:3])
    T = twin.forward_kinematics(ROBOT, q)
    assert np.allclose(T[:3, 3], [0.51502, 0.2, 0.71197], atol=1e-9)
    near = twin.inverse_kinematics(ROBOT, T, limits=False)[conf[3]]
    assert np.allclose(np.cos(near), np.cos(q), atol=1e-9)
    if degrees:
        assert np.allclose(np.degrees(q), degrees, atol=0.02)


def test_an_impossible_confdata_lists_those_there_are():
    fault = run(f"MoveJ [{POSE},[-2,0,-1,0],{EXT}],v100,fine,tool0;").fault
    assert str(fault).startswith("a.mod, line 4: no solution has confdata [-2,0,-1,0]; this pose has [")
    assert "[0,-1,0,0]" in str(fault)
    assert fault.kind == "target"


def test_conf_j_off_takes_the_nearest_configuration_and_notes_it():
    program = run(f"ConfJ \\Off;\nMoveJ [{POSE},[-2,0,-1,0],{EXT}],v100,fine,tool0;")
    assert ends(program).shape == (1, 6)
    assert program.notes[-1].text.startswith("MoveJ goes to confdata [0,")


@pytest.mark.parametrize("start", [-1.0, 1.0])
def test_of_several_solutions_the_one_nearest_to_the_arm_is_taken(start, monkeypatch):
    """Two turns of joint 6 meet the confdata; the arm is beside one of them, and zero is not the measure."""
    planner = Arm(ROBOT)
    planner.q = np.full(6, start)
    found = [(np.full(6, -0.9), 0), (np.full(6, 0.8), 0)]
    monkeypatch.setattr(planner, "_solutions", lambda *_: (found, [q for q, _ in found]))
    monkeypatch.setattr(planner, "_near", lambda *_: "")
    target = {"robconf": SimpleNamespace(values=[0, 0, 0, 0])}
    q, _ = planner.solution(target, None, None, exact=True)
    assert np.sign(q[0]) == np.sign(start)


def test_the_solution_of_a_confdata_may_be_one_quadrant_off():
    """The joint angles of [0,-1,0,0] are those of a target that was shifted over the edge of a quadrant."""
    exact = run(f"MoveJ [{POSE},[0,-1,0,0],{EXT}],v100,fine,tool0;")
    near = run(f"MoveJ [{POSE},[-1,0,0,0],{EXT}],v100,fine,tool0;")
    assert np.allclose(ends(near), ends(exact))
    assert near.notes[-1].text == "MoveJ goes to confdata [0,-1,0,0], the target names [-1,0,0,0]"
    assert exact.notes == ()
    assert "no solution has confdata" in str(run(f"MoveJ [{POSE},[0,1,0,0],{EXT}],v100,fine,tool0;").fault)


def test_a_quarter_turn_edge_belongs_to_both_quadrants():
    q = np.radians([0, 10, -10, 0, 40, 0])
    place = pose_text(twin.forward_kinematics(ROBOT, q))
    for conf in ("[0,0,0,0]", "[-1,-1,-1,0]", "[0,-1,0,0]"):
        program = run(f"MoveJ [{place},{conf},{EXT}],v100,fine,tool0;")
        assert np.allclose(ends(program)[0], q, atol=1e-8)
        assert program.notes == ()


def test_tool_and_work_object_chain():
    body = f"""MoveAbsJ [[10,20,-20,30,50,60],{EXT}],v100,fine,tool0;
        ConfL \\Off;
        MoveL Offs(CRobT(\\Tool:=grip \\WObj:=bench), 10, -20, 30), v100, fine, grip \\WObj:=bench;"""
    before = (
        "PERS tooldata grip := [TRUE,[[10,20,100],[0.7071068,0,0.7071068,0]],[0,[0,0,0],[1,0,0,0],0,0,0]];\n"
        'PERS wobjdata bench := [FALSE,TRUE,"",[[100,0,50],[0.7071068,0,0,0.7071068]],[[5,6,7],[1,0,0,0]]];'
    )
    q = ends(run(body, before=before))
    T_tool = twin.pose_matrix([0.01, 0.02, 0.1, 0.5**0.5, 0, 0.5**0.5, 0])
    T_object = twin.pose_matrix([0.1, 0, 0.05, 0.5**0.5, 0, 0, 0.5**0.5])
    before, after = (twin.forward_kinematics(ROBOT, one, T_tool) for one in q)
    assert np.allclose(after[:3, 3] - before[:3, 3], T_object[:3, :3] @ [0.01, -0.02, 0.03], atol=1e-7)
    assert np.allclose(after[:3, :3], before[:3, :3], atol=1e-7)


def test_a_line_is_straight_and_a_circle_round():
    start = f"MoveAbsJ [[0,20,-20,0,60,0],{EXT}],v100,fine,tool0; ConfL \\Off;"
    program = run(f"{start} MoveL Offs(CRobT(), 0, 120, 50), v100, fine, tool0;")
    line = twin.forward_kinematics(ROBOT, program.segments[1].q)[:, :3, 3]
    way = line[-1] - line[0]
    assert np.abs(np.cross(line - line[0], way)).max() < 1e-9
    assert program.segments[1].length == pytest.approx(0.13, abs=1e-6)
    program = run(f"{start} MoveC Offs(CRobT(), 0, 50, 50), Offs(CRobT(), 0, 100, 0), v100, fine, tool0;")
    points = twin.forward_kinematics(ROBOT, program.segments[1].q)[:, :3, 3]
    centre = points[0] + [0, 0.05, 0]
    assert np.allclose(np.linalg.norm(points - centre, axis=1), 0.05, atol=1e-6)
    assert program.segments[1].length == pytest.approx(0.05 * np.pi, abs=1e-6)


START = f"MoveAbsJ [[0,20,-20,0,{{}},0],{EXT}],v100,fine,tool0; ConfL \\Off; "
FAR = "MoveL Offs(CRobT(),900,0,0), v100, fine, tool0;"
IN_LINE = "MoveC Offs(CRobT(),0,50,0), Offs(CRobT(),0,100,0), v100, fine, tool0;"
FOLDED = "MoveL RelTool(CRobT(),0,0,0 \\Ry:=-80), v100, fine, tool0;"


@pytest.mark.parametrize(
    ("body", "message", "kind"),
    [
        (f"MoveAbsJ [[190,0,0,0,0,0],{EXT}],v100,fine,tool0;", "joint_1 would be at 190 deg", "target"),
        (f"MoveJ [[2000,0,500],[1,0,0,0],[0,0,0,0],{EXT}],v100,fine,tool0;", "is out of reach", "target"),
        (f"MoveJ [[500,0,500],[1,1,0,0],[0,0,0,0],{EXT}],v100,fine,tool0;", "has length 1.41421", "target"),
        (START.format(60) + FAR, "leaves the reach after", "path"),
        (START.format(60) + IN_LINE, "three points of the circle are in a line", "path"),
        (START.format(40) + FOLDED, "passes a singularity after", "path"),
    ],
)
def test_impossible_moves_state_the_reason(body, message, kind):
    fault = run(body).fault
    assert fault is not None
    assert message in str(fault)
    assert fault.kind == kind
    assert str(fault).startswith("a.mod, line 4: ")


def test_the_coupled_range_of_the_parallelogram_holds(irb1400):
    """Neither by joint angles nor by a pose, where it has no solution."""
    fault = run(f"MoveAbsJ [[0,-70,70,0,30,0],{EXT}],v100,fine,tool0;", irb1400).fault
    assert "joint_elbow" in str(fault) or "joint_rod" in str(fault)
    q = np.radians([0, -60, 60, 0, 30, 0])
    assert ((q >= irb1400.q_min) & (q <= irb1400.q_max)).all()
    T = twin.forward_kinematics(irb1400, q)
    row = int(np.nanargmin(np.abs(twin.inverse_kinematics(irb1400, T, limits=False) - q).max(axis=1)))
    fault = run(f"MoveJ [{pose_text(T)},[0,0,0,{row}],{EXT}],v100,fine,tool0;", irb1400).fault
    assert fault is not None
    assert fault.kind == "target"


def test_loads_of_tool_and_gripper_are_one_payload():
    """Two points of 1 kg each, at the flange and 0.2 m from it along the tool, are a dumb-bell."""
    before = "PERS tooldata grip := [TRUE,[[0,0,200],[1,0,0,0]],[1,[0,0,0.001],[1,0,0,0],0,0,0]];\n"
    before += "CONST loaddata part := [1,[0,0,0],[1,0,0,0],0,0,0.03];"
    (move,) = run(f"GripLoad part; MoveAbsJ [[0,0,0,0,30,0],{EXT}],v100,fine,grip;", before=before).moves
    load = payload_of(move.tool, move.settings.load)
    assert load.mass == 2.0
    np.testing.assert_allclose(load.com, [0, 0, 0.1], atol=1e-6)
    np.testing.assert_allclose(load.inertia, np.diag([0.02, 0.02, 0.03]), atol=1e-6)


def test_the_base_has_a_place_in_the_world():
    """A base that is turned by 90 degrees about z and displaced: the tool is where the world says."""
    base = np.eye(4)
    base[:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    base[:3, 3] = [0.1, 0.2, 0.3]
    place = f"[[0,650,700],[0,0,1,0],[0,0,0,0],{EXT}]"
    program = run(f"ConfJ \\Off;\nMoveJ {place},v100,fine,tool0;", T_world_base=base)
    T = base @ twin.forward_kinematics(ROBOT, ends(program)[0])
    assert np.allclose(T[:3, 3], [0, 0.65, 0.7], atol=1e-9)
    assert np.allclose(T[:3, 2], [0, 0, -1], atol=1e-9)
