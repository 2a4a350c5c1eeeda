"""Runs, output and files of `irb-twin validate`."""

import re
import shlex
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest

import controllers
import twin
from scenarios.commands.validate import REPRESENTATIVE, Selection, matches, planned
from scenarios.running import registry
from scenarios.running.runs import run_name
from scenarios.shell.command_line import main
from scenarios.shell.output import Tally
from tests.support import foreign_urdf, tasks, user_scenarios
from twin.base.errors import RobotError, UnknownNameError

VARIANT = "variants = ({'controller': 'pid', 'bandwidth': 9.0},)\n"
MOTION = """def motion(self, robot):
    return twin.hold(robot.poses["test_3"], 0.1)
"""
METRICS = """def metrics(self, run):
    import numpy as np
    error = float(np.max(np.abs(run.log.q_ref - run.log.q)))
    return (Metric("largest error", error, "rad", 1e-3, "what our gripper can bear"),)
"""


def write_scenario(folder, name="mine.py", **parts):
    return registry.find(user_scenarios.write(folder / name, **parts))


def names(plan):
    return [run_name(task) for task in plan.tasks]


def test_default_plan_has_all_scenarios_with_their_robots():
    plan = planned()
    found = {(task.entry.name, task.setup.robot) for task in plan.tasks}
    assert {name for name, _ in found} == set(registry.titles())
    assert {robot for name, robot in found if name == "pose_path"} == set(REPRESENTATIVE)
    assert {robot for name, robot in found if name == "parallelogram"} == {"irb1400"}
    for name, robot in found:
        here = [task.setup for task in plan.tasks if (task.entry.name, task.setup.robot) == (name, robot)]
        assert {setup.controller for setup in here} >= set(controllers.NAMES)
    assert len(set(names(plan))) == len(plan.tasks)
    every = planned(["all"], [registry.find("joint_tracking")], Selection(["pd"]))
    assert [task.setup.robot for task in every.tasks] == list(twin.robot_names())


def test_selected_controller_restricts_runs_and_variants(tmp_path):
    mine = write_scenario(tmp_path, options=VARIANT)
    assert names(planned(["irb140"], [mine], Selection(["pd"]))) == ["irb140, mine, pd"]
    both = ["irb140, mine, pid", "irb140, mine, pid, bandwidth 9.0"]
    assert names(planned(["irb140"], [mine], Selection(["pid"]))) == both
    assert len(planned(["irb140"], [mine]).tasks) == len(controllers.NAMES) + 1


def test_setting_applies_to_every_run_and_duplicates_run_once(tmp_path):
    mine = write_scenario(tmp_path, options=VARIANT)
    selection = Selection((), {"bandwidth": 9.0, "unheard_of": 1}, {"pid": (("Ki", 3.0),)})
    plan = planned(["irb140"], [mine], selection)
    assert len(plan.tasks) == len(controllers.NAMES)
    assert {task.setup.bandwidth for task in plan.tasks} == {9.0}
    pid = [task.setup for task in plan.tasks if task.setup.controller == "pid"]
    assert {setup.law_settings for setup in pid} == {(("Ki", 3.0),)}


def test_plan_uses_default_robot_of_scenario(tmp_path):
    def robots(plan):
        return {task.setup.robot for task in plan.tasks}

    mine = write_scenario(tmp_path, options="defaults = {'robot': 'irb1400'}\n")
    assert robots(planned((), [mine])) == {"irb1400"}
    assert robots(planned(["irb140"], [mine])) == {"irb140"}
    suits = "def suits(self, robot):\n    return robot.name == 'irb1400'\n"
    fussy = write_scenario(tmp_path, "fussy.py", options=suits)
    plan = planned((), [fussy])
    assert robots(plan) == {"irb1400"}
    assert plan.unsuited == (("fussy", "irb140"), ("fussy", "irb1600"))


@pytest.mark.parametrize(
    ("texts", "held"),
    [
        (["POSE_path"], True), (["irb140*pd"], True), (["irb1?0"], True), (["irb1400", "bandwidth 30"], True),
        (["irb1400"], False), (["pd*irb140"], False), ([], False),
    ],
)  # fmt: skip
def test_only_matches_part_of_a_name_or_a_pattern(texts, held):
    name = run_name(tasks.task("pose_path", controller="pd", bandwidth=30.0))
    assert name == "irb140, pose_path, pd, bandwidth 30.0"
    assert matches(name, texts) is held


def test_failure_reports_figure_place_cause_and_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    user_scenarios.write(tmp_path / "mine.py", motion=MOTION, metrics=METRICS)
    words = "validate ./mine.py --robot irb140 --controller pd computed_torque --jobs 1 --bandwidth 21"
    assert main([*words.split(), "--junit", "a.xml", "--markdown", "a.md"]) == 1
    told = capsys.readouterr().out
    (line,) = [one for one in told.splitlines() if one.startswith("irb140, mine, pd, bandwidth 21.0: larg")]
    figure = line.partition(" error is ")[2].partition(" rad")[0]
    assert f"largest joint error is {figure} rad, of joint_" in told
    assert re.search(r", of joint_\d at t = 0\.\d+ s cause: ", " ".join(told.split()))
    assert "cause: the controller or its gains: computed_torque, which knows" in told
    (repeat,) = [line.removeprefix("repeat: ") for line in told.splitlines() if line.startswith("repeat: ")]
    program, *repeated = shlex.split(repeat)
    assert program == "irb-twin"
    assert main(repeated) == 1
    assert f"pd: largest error is {figure} rad" in capsys.readouterr().out

    suite = ET.parse(tmp_path / "a.xml").getroot()[0]
    properties = {one.attrib["name"]: one.attrib["value"] for one in suite.iter("property")}
    assert properties["irb-twin"] == twin.__version__
    assert "bandwidth=21.0" in properties["settings of irb140, mine, pd, bandwidth 21.0"]
    (failure,) = suite.iter("failure")
    assert repeat in failure.text
    page = (tmp_path / "a.md").read_text()
    assert page.startswith("## irb-twin validate: 1 FAIL\n")
    assert page.index("### Failures") < page.index("| irb140 | mine | pd, bandwidth 21.0 |")
    assert f"`{repeat}`" in page


def test_plan_judges_the_arm_with_its_locked_joints_and_impossible_bodies(tmp_path):
    """A scenario suits the arm that runs, not the one of the file, which has no dynamics and a finger."""
    arm = tmp_path / "arm.urdf"
    text = foreign_urdf.robot(foreign_urdf.chain(2), foreign_urdf.fingers("link_2"))
    arm.write_text(text.replace('ixx="0.02"', 'ixx="0.2"'))
    suits = "def suits(self, robot):\n    return robot.n == 2 and robot.has_inertia\n"
    two = write_scenario(tmp_path, "two.py", options=suits)
    with pytest.raises(RobotError, match="no dynamics"):
        planned([str(arm)], [two], Selection(["pd"]))
    found = {"lock": ("left_finger_joint=0",), "unphysical": True}
    (task,) = planned([str(arm)], [two], Selection(["pd"], found)).tasks
    assert task.setup.nominal_robot().n == 2


def test_empty_plan_is_wrong_use(capsys):
    assert main(["validate", "parallelogram", "--robot", "irb140"]) == 2
    assert "nothing to run: not run, because the scenario does not suit the robot" in capsys.readouterr().err
    assert main(["validate", "gravity_hold", "--only", "no such"]) == 2
    told = "none of 33 runs has that in its name; a name looks like 'irb140, gravity_hold, pd'"
    assert told in capsys.readouterr().err
    with pytest.raises(UnknownNameError, match="pd_gravitas"):
        planned(["irb140"], (), Selection(["pd_gravitas"]))


def test_tally_prints_remaining_time_without_terminal(capsys):
    now = [0.0]
    bar = SimpleNamespace(add_task=lambda *_, **__: 0, update=lambda *_, **__: None, disable=True)
    tally = Tally(["a", "b", "c", "d"], bar, clock=lambda: now[0])
    assert tally.left() == ""
    for place, seconds in enumerate((20.0, 40.0, 60.0)):
        now[0] = seconds
        tally.begun(place)
        tally.done(place, place != 0)
    assert capsys.readouterr().err == "irb-twin: 2 of 4 done, 1 fails, about 40 s left\n"
    assert tally.line() == "3 of 4 done, 1 fails, about 20 s left"
