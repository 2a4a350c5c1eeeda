"""Scenarios on robots that are not of this project: URDFs without limits, without poses, of other makers."""

import json
from pathlib import Path

import numpy as np
import pybullet_data
import pytest

import controllers
import twin
from scenarios.commands.validate import planned
from scenarios.gravity_hold import held_pose
from scenarios.judging.motion_range import finite_range, finite_speed
from scenarios.running import registry
from scenarios.shell.command_line import main
from tests.support import tasks, user_scenarios
from twin.base.errors import RobotError, TwinError
from twin.data.logs.figures import joint_error

pytestmark = pytest.mark.slow("runs scenarios in the engine")

FOREIGN = {
    "gravity_hold": {},
    "joint_tracking": {"duration": 1.0},
    "model_agreement": {"moves": 1, "states": 5, "free_time": 0.1},
}
"""Scenarios that suit these robots, with settings of short runs."""

LIMITLESS = """<robot name="limitless">
<link name="base"/>
<link name="arm">
  <inertial><origin xyz="0 0.1 0.1"/><mass value="2"/>
  <inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
</link>
<link name="carriage">
  <inertial><origin xyz="0.1 0 0"/><mass value="1"/>
  <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
</link>
<joint name="turn" type="continuous">
  <parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
</joint>
<joint name="slide" type="prismatic">
  <parent link="arm"/><child link="carriage"/><origin xyz="0 0 0.3"/><axis xyz="1 0 0"/>
  <limit effort="0" velocity="0"/>
</joint>
</robot>
"""


@pytest.fixture
def limitless(tmp_path):
    path = tmp_path / "limitless.urdf"
    path.write_text(LIMITLESS, encoding="utf-8")
    return str(path)


@pytest.fixture
def iiwa():
    """The KUKA arm that comes with PyBullet."""
    return str(Path(pybullet_data.getDataPath()) / "kuka_iiwa" / "model.urdf")


@pytest.mark.parametrize(
    ("name", "which"), [*((one, "limitless") for one in FOREIGN), ("joint_tracking", "iiwa")]
)
def test_scenario_runs_with_foreign_arm(name, which, request):
    _, scenario, setup = tasks.task(name, robot=request.getfixturevalue(which), **FOREIGN[name])
    run = scenario.run(setup)
    log = run.log
    assert [metric.name for metric in scenario.metrics(run) if not metric.passes] == []
    assert np.abs(joint_error(log)).max() < 1e-14
    low, high = finite_range(log.robot)
    assert np.all((low <= log.q_ref) & (log.q_ref <= high))
    assert np.all(np.abs(log.qd_ref) <= finite_speed(log.robot))
    if name != "gravity_hold":
        assert np.all(np.ptp(log.q, axis=0) > 0.1)


@pytest.mark.parametrize("which", ["limitless", "iiwa"])
def test_default_pose_loads_the_joints(which, request):
    """PD control of 20 rad/s would sag by as much."""
    robot = twin.load(request.getfixturevalue(which))
    q = held_pose(robot, None)
    sag = twin.gravity_torque(robot, q) / controllers.make("pd", robot, period=1e-3).gains.Kp
    assert np.abs(sag).max() > 0.05


def test_missing_limits_have_default_values_and_existing_ones_stay(limitless, tmp_path, irb140):
    robot = twin.load(limitless)
    np.testing.assert_array_equal(finite_range(robot), [[-np.pi, -0.5], [np.pi, 0.5]])
    np.testing.assert_array_equal(finite_speed(robot), [1.0, 0.5])
    for limit, ends in (('lower="1"', [1.0, 2.0]), ('upper="-1"', [-2.0, -1.0])):
        path = tmp_path / "one.urdf"
        path.write_text(LIMITLESS.replace("<limit ", f"<limit {limit} "), encoding="utf-8")
        assert [end[1] for end in finite_range(twin.load(path))] == ends
    np.testing.assert_array_equal(finite_range(irb140), [irb140.q_min, irb140.q_max])
    np.testing.assert_array_equal(finite_speed(irb140), irb140.qd_max)


def test_message_names_missing_parts_of_foreign_robot(limitless):
    for name, settings, told in (
        ("gravity_hold", {"pose": "home"}, "robot 'limitless' has no named poses, hence no 'home'"),
        ("pose_path", {}, r"robot 'limitless' has no \[tour\] of poses"),
        ("payload_mismatch", {}, r"robot 'limitless' has no \[rating\] of payload and reach"),
    ):
        with pytest.raises(TwinError, match=told):
            tasks.run(name, robot=limitless, **settings)


def test_validation_has_suitable_scenarios_only_and_rejects_a_robot_without_masses(limitless, capsys):
    assert {task.entry.name for task in planned([limitless]).tasks} == set(FOREIGN)
    assert {"pose_path", "payload_mismatch"} < {task.entry.name for task in planned(["irb140"]).tasks}
    assert main(["validate", "--robot", "rx90"]) == 2
    assert "robot 'rx90' has no dynamics" in capsys.readouterr().err


def test_validate_writes_failed_and_passed_runs_of_foreign_robot(limitless, tmp_path, monkeypatch, capsys):
    """A scenario that trips over the robot with a `ValueError` is a failed run, and the others are told."""
    trips = "def run(self, setup):\n    raise ValueError('expected finite center, got [nan nan]')\n"
    mine = user_scenarios.write(tmp_path / "mine.py", run=trips)
    monkeypatch.setattr(registry, "BUILT_IN", ("gravity_hold", mine))
    results, junit = tmp_path / "v.json", tmp_path / "v.xml"
    words = ["validate", "--robot", limitless, "--controller", "pd", "pd_gravity", "--jobs", "1"]
    assert main([*words, "--json", str(results), "--junit", str(junit)]) == 1
    told = " ".join(capsys.readouterr().out.split())  # where lines break depends on the path
    assert "mine, pd (and 1 other run): did not finish: expected finite center" in told
    runs = json.loads(results.read_text(encoding="utf-8"))["runs"]
    assert [run["passes"] for run in runs] == [True] * 2 + [False] * 2
    assert 'failures="2"' in junit.read_text(encoding="utf-8")


def test_tool_fixed_to_the_base_is_rejected(tmp_path, capsys):
    """A payload would hang on the last link, and the tool's pose would be that of the last link."""
    path = tmp_path / "limitless.urdf"
    still = '<link name="tool0"/><joint name="flange" type="fixed"><parent link="{}"/>'
    still += '<child link="tool0"/></joint>'
    path.write_text(LIMITLESS.replace("</robot>", still.format("base") + "</robot>"), encoding="utf-8")
    sentence = "no joint moves link 'tool0', so no tool"
    with pytest.raises(RobotError, match=sentence):
        twin.load(path)
    assert main(["check-model", str(path)]) == 1
    assert f"error: {sentence}" in capsys.readouterr().out.replace("\n", " ")
    path.write_text(LIMITLESS.replace("</robot>", still.format("arm") + "</robot>"), encoding="utf-8")
    assert twin.load(path).tree.flange_joint == 0
