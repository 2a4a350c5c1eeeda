"""Parts in the hand of a virtual controller: taken by a signal or a load, carried, judged, and left."""

import numpy as np
import pytest

import twin
from twin.abb.controller.arm import Supervision
from twin.abb.controller.events import WARNING
from twin.physics.kinematics.forward import forward_kinematics
from twin.studies.cell.clearance import Clearance, Gripper

B = np.radians([20.0, 10, -10, 15, 40, -30])
"""Target b of the programs, where the part is."""

DATA = """PERS tooldata grip:=[TRUE,[[0,0,100],[1,0,0,0]],[0.5,[0,0,50],[1,0,0,0],0,0,0]];
PERS loaddata part:=[2,[0,0,30],[1,0,0,0],0,0,0];"""
PICK = "MoveAbsJ b,v300,fine,grip; {take} MoveAbsJ c,v1000,fine,grip; {leave} MoveAbsJ a,v300,fine,grip;"
BY_SIGNAL = PICK.format(take="SetDO doGrip,1;", leave="SetDO doGrip,0;")
DECLARED = BY_SIGNAL.replace("doGrip,1;", "doGrip,1; GripLoad part;").replace(
    "doGrip,0;", "doGrip,0; GripLoad load0;"
)
TOOL_MASS, MASS = 0.5, 2.0


@pytest.fixture
def around(abb_robot, tmp_path):
    """Return a function that returns the distances in a cell with a part 30 mm before the tool at b."""

    def clearance(more=""):
        T = forward_kinematics(abb_robot, B)
        at = (T[:3, 3] + 0.13 * T[:3, 2]).tolist()
        part = f"[objects.piece]\nsphere = 0.02\nat = {at}\nmass = {MASS}\n"
        (tmp_path / "cell.toml").write_text(part + more)
        return Clearance(abb_robot, twin.load_cell(tmp_path / "cell.toml"))

    return clearance


@pytest.fixture
def started(cell, around):
    """Return a function that starts a program in a cell with a part."""

    def start(body, signal="doGrip", more="", **options):
        clearance = around(more)
        live = cell(DATA, T_ROB1=body, options={"supervision": Supervision(clearance, **options)})
        live.controller.unit.gripper = Gripper(clearance, signal)
        return live

    return start


def masses(log):
    """Return the mass of the plant's payload in each sample."""
    return log.payloads.loads[log.payloads.load, 0]


def grips(live):
    return [(line.task, line.sentence) for line in live.lines if line.sentence.startswith("gripper")]


def test_a_signal_takes_the_part_and_leaves_it_where_the_arm_is(started, abb_robot):
    live = started(DECLARED)
    unit, clearance = live.controller.unit, live.controller.unit.gripper.clearance
    live.run(until=lambda: unit.gripper.held)
    assert live.controller.signals.values["dogrip"] == 1
    payload, T = live.controller.arm.robot.payload, forward_kinematics(abb_robot, B)
    assert payload.mass == pytest.approx(TOOL_MASS + MASS)
    com = (TOOL_MASS * 0.05 + MASS * 0.13) / (TOOL_MASS + MASS)
    np.testing.assert_allclose(payload.com, [0, 0, com], atol=1e-5)  # where the arm came to rest
    sphere = 0.4 * MASS * 0.02**2
    across = sphere + TOOL_MASS * (com - 0.05) ** 2 + MASS * (com - 0.13) ** 2
    np.testing.assert_allclose(payload.inertia, np.diag([across, across, sphere]), atol=1e-5)
    live.run()
    assert live.controller.faults == []
    assert grips(live) == [("", "gripper: holds piece"), ("", "gripper: leaves piece")]
    assert live.controller.arm.robot.payload.mass == pytest.approx(TOOL_MASS)
    (piece,) = (one for one in clearance.solids if one.name == "piece")
    c = np.radians([-30.0, 20, -20, 15, 50, 30])
    T = forward_kinematics(abb_robot, c)
    np.testing.assert_allclose(piece.T[:3, 3], T[:3, 3] + 0.13 * T[:3, 2], atol=1e-5)
    assert piece.body == -1


def test_a_program_that_forgets_the_load_is_off_its_path(started):
    """The arm carries the part whether the program says so or not; its controller knows what is said."""
    errors = {}
    for name, body in (("declared", DECLARED), ("forgotten", BY_SIGNAL)):
        live = started(body)
        live.run()
        log = live.log
        carries = masses(log) > 1.0
        assert set(masses(log).round(9)) == {TOOL_MASS, TOOL_MASS + MASS}
        errors[name] = np.abs(log.q - log.q_ref)[carries].max()
    assert errors["declared"] < 1e-3
    assert errors["forgotten"] > 0.01


@pytest.mark.parametrize("word", ["part", "load0"])
def test_without_a_signal_the_load_of_the_program_takes_the_part(started, word):
    body = PICK.format(take=f"GripLoad {word};", leave="GripLoad load0;")
    live = started(body, signal="")
    live.run()
    if word == "load0":
        assert grips(live) == []
        assert masses(live.log).max() == TOOL_MASS
        return
    assert [sentence for _, sentence in grips(live)] == ["gripper: holds piece", "gripper: leaves piece"]
    first, last = np.flatnonzero(masses(live.log) > 1.0)[[0, -1]]
    np.testing.assert_allclose(live.log.q[first], B, atol=1e-4)  # the move behind GripLoad begins
    assert np.degrees(live.log.q[last]) == pytest.approx([-30, 20, -20, 15, 50, 30], abs=0.1)


def test_a_gripper_that_closes_on_nothing_is_one_event(started):
    live = started("MoveAbsJ c,v300,fine,grip; SetDO doGrip,1; WaitTime 0.2; SetDO doGrip,0;")
    live.run()
    (line,) = (sentence for _, sentence in grips(live))
    assert line.startswith("gripper: no part within 50 mm, piece at ")
    (entry,) = (one for one in live.controller.execution.events if one.code == 80002)
    assert (entry.event.title, entry.event.type, entry.event.texts) == ("Gripper empty", WARNING, (line,))
    assert masses(live.log).max() == TOOL_MASS
    assert live.controller.unit.gripper.held == ""


POST = """[objects.post]
cylinder = 0.05
from = [0.70, -0.05, 0.0]
to = [0.70, -0.05, 1.5]
"""


def test_what_the_arm_holds_may_not_hit_the_cell(started):
    live = started(BY_SIGNAL, more=POST, stops=True)
    live.run(5.0)
    [(_, fault)] = live.controller.faults
    assert "collision: piece - post" in str(fault)
    empty = started(BY_SIGNAL.replace("SetDO doGrip,1;", ""), more=POST, stops=True)
    empty.run(5.0)
    assert empty.controller.faults == []


def test_a_part_that_is_taken_within_a_margin_is_seen_while_the_arm_rests(started, abb_robot):
    T = forward_kinematics(abb_robot, B)
    at = (T[:3, 3] + 0.13 * T[:3, 2] + 0.06 * T[:3, 0]).tolist()  # 10 mm beside the piece
    pin = f"""[objects.pin]
    sphere = 0.03
    at = {at}
    [[pairs]]
    between = ["pin", "piece"]
    margin = 0.02
    """
    live = started("MoveAbsJ b,v300,fine,grip; WaitTime 0.1; SetDO doGrip,1; WaitTime 0.1;", more=pin)
    live.run()
    assert live.controller.supervision.collisions == 1
    assert live.controller.supervision.now.distance == pytest.approx(0.01, abs=1e-3)
