"""Choices at the bench: controllers, gains and jogging; the panel is a list of widgets without a window."""

from types import SimpleNamespace

import numpy as np
import pytest

import controllers
from scenarios.bench import free_bench
from scenarios.bench.jogging import JogPanel
from scenarios.bench.watched import ChosenLaw, LawPanel
from scenarios.running.execution import run_sequence
from scenarios.running.runs import Run
from scenarios.setup import Setup
from tests.support.tasks import task
from twin.data.logs.recordings.recording import read_recording
from twin.physics.trajectories.jogging import Follower
from twin.physics.trajectories.sampling import Reference, State

REST = State(0.0, np.full(6, 0.1), np.full(6, 0.2))
BENT = np.array([0.0, 0.3, 0.2, 0.0, 0.5, 0.0])
WANTED = Reference(np.full(6, 0.101), np.zeros(6), np.zeros(6))


class Widget:
    """Slider or button without a window."""

    def __init__(self, panel, name, value=0.0):
        self.panel, self.name, self.value, self.down = panel, name, float(value), False

    def pressed(self):
        was, self.down = self.down, False
        return was

    def set(self, value):
        self.value = float(value)

    def remove(self):
        self.panel.widgets.remove(self)


class Panel:
    def __init__(self):
        self.widgets, self.down, self.holding = [], set(), set()

    def slider(self, name, low, high, start, first=False):
        assert low <= start <= high
        return self.add(Widget(self, name, start))

    def button(self, name):
        return self.add(Widget(self, name))

    def add(self, widget):
        self.widgets.append(widget)
        return widget

    def key(self, name):
        return name in self.down and not self.down.discard(name)

    def held(self, name):
        return name in self.holding

    def __getitem__(self, start):
        return next(widget for widget in self.widgets if widget.name.startswith(start))


@pytest.fixture
def bench():
    texts = {}
    add_keys = lambda line: None  # noqa: E731
    return SimpleNamespace(panel=Panel(), texts=texts, write_line=texts.__setitem__, add_keys=add_keys)


def chosen(irb140, **settings):
    return ChosenLaw(Setup(**settings), lambda given: given.control_law(irb140))


def test_chosen_law_equals_its_controller_and_scaling_gains_preserves_the_integral(irb140):
    law = chosen(irb140, controller="pid", law_settings=(("Kd", 2.0),))
    plain, set_law = (controllers.make("pid", irb140, **gains) for gains in ({}, {"Kd": 2.0}))
    assert law.name == "pid"
    for _ in range(3):
        np.testing.assert_array_equal(law(REST, WANTED), set_law(REST, WANTED))
    law.reset()
    set_law.reset()
    for _ in range(5):
        np.testing.assert_array_equal(law(REST, WANTED), set_law(REST, WANTED))
    law.scale_gains({"Kp": 3.0, "Ki": 1.0, "Kd": 0.5})
    expected = controllers.make("pid", irb140, Kp=3.0 * plain.gains.Kp, Kd=1.0)
    for _ in range(5):
        expected(REST, WANTED)  # no torque is saturated, so that the integral does not depend on the gains
    np.testing.assert_allclose(law(REST, WANTED), expected(REST, WANTED), rtol=1e-14)


def test_panel_selects_controllers_and_scales_gains(irb140, bench):
    law = chosen(irb140, controller="pd")
    panel = LawPanel(bench, law)
    assert panel.act() == ""
    assert panel.names[0] == "pd"
    assert set(panel.names) == set(controllers.NAMES)
    bench.panel["Kp"].set(1.0)
    assert panel.act() == "Kp x 10"
    assert law.description == "law: pd, 20 rad/s, Kp x10"
    np.testing.assert_array_equal(law.gains["Kp"], 10.0 * controllers.make("pd", irb140).gains.Kp)
    bench.panel["bandwidth"].set(40.0)
    assert panel.act() == "bandwidth 40 rad/s"
    np.testing.assert_allclose(law.gains["Kp"], 40.0 * controllers.make("pd", irb140).gains.Kp)
    assert panel.act() == ""
    for name in (*panel.names[1:], panel.names[0]):
        bench.panel.down.add("l")
        assert panel.act() == f"law {name}"
        assert law.label == name
        gains = [f"{gain} x 10^" for gain in law.gains]
        shown = [widget.name for widget in bench.panel.widgets]
        assert shown == [f"law: {name} (next: l)", "bandwidth [rad/s]", *gains]
    assert law.name == "pd", "logs are named after the law that the run began with"


def test_controller_without_gains_has_bandwidth_slider(irb140, bench, tmp_path):
    """An invalid bandwidth is rejected with one sentence."""
    file = tmp_path / "own.py"
    file.write_text(
        "class Own:\n    def __init__(self, robot, *, bandwidth=1.0):\n        self.bandwidth = bandwidth\n"
        "    def __call__(self, state, reference):\n"
        "        return self.bandwidth * (reference.q - state.q)\n"
    )
    law = chosen(irb140, controller=f"{file}:Own")
    panel = LawPanel(bench, law)
    assert law.gains == {}
    bench.panel["bandwidth"].set(30.0)
    assert panel.act() == "bandwidth 30 rad/s"
    assert law.description == "law: Own, 30 rad/s"
    bench.panel["bandwidth"].set(-1.0)
    assert panel.act() == ""
    assert "positive, finite bandwidth" in bench.texts["refused"]
    np.testing.assert_array_equal(law(REST, WANTED), 30.0 * (WANTED.q - REST.q))


def test_sliders_and_keys_jog_joints_and_tool(irb140, bench):
    follower = Follower.of(irb140, np.array([0.0, 0.3, 0.2, 0.0, 0.5, 0.0]), 1e-3)
    jog = JogPanel(bench, irb140, follower, np.eye(4))
    jog.act(0.05)
    assert follower.at_rest
    bench.panel["joint_2 [deg]"].set(30.0)
    jog.act(0.05)
    np.testing.assert_allclose(follower.target[:3], [0.0, np.pi / 6, 0.2])
    bench.panel.down.add("down")
    bench.panel.holding.add("right")
    jog.act(0.05)
    assert jog.axis == 1
    moved = np.pi / 6 + 0.2 * 0.05 * (irb140.q_max[1] - irb140.q_min[1])
    assert follower.target[1] == pytest.approx(moved)
    bench.panel.holding.clear()
    jog.act(0.05)
    assert bench.panel["joint_2 [deg]"].value == pytest.approx(np.degrees(moved))  # follows the key
    follower.restart(follower.target)
    bench.panel.down.add("j")
    jog.act(0.05)
    assert (jog.mode, follower.at_rest) == ("base", True)
    bench.panel["z [mm]"].set(-10.0)
    jog.act(0.05)
    assert np.abs(follower.target - follower.q).max() > 1e-3
    bench.panel["x [mm]"].set(500.0)
    for _ in range(60):
        jog.act(0.05)
    assert "cannot go there" in bench.texts["refused"]
    bench.panel.down.add("s")
    jog.act(0.05)
    assert np.all(follower.qd == 0.0)


def test_run_with_window_is_executed_after_the_others(monkeypatch):
    """The other runs have no window and become ghosts of the first."""
    seen = []

    def run_one(task, progress):
        setup = task.setup
        seen.append((setup.controller, setup.gui, [name for name, _ in setup.beside]))
        return Run(task, f"{setup.controller}'s log", (), 0.0, figures=object())

    monkeypatch.setattr("scenarios.running.execution.run_one", run_one)
    plan = [task("joint_tracking", controller=name, gui=True) for name in ("pd", "pid", "cascade")]
    runs = run_sequence(plan, lambda name: None)
    assert seen == [("pid", False, []), ("cascade", False, []), ("pd", True, ["pid", "cascade"])]
    assert [run.log for run in runs] == ["pd's log", "pid's log", "cascade's log"]


def test_motion_through_taught_poses_is_written_as_recording(irb140, tmp_path):
    poses, file = [np.zeros(6), BENT, BENT, -BENT], tmp_path / "taught.csv"
    speed = np.full(6, 0.5)
    assert free_bench.write_poses(file, irb140, poses, speed)
    recorded = read_recording(file, irb140)
    assert recorded.t[-1] == pytest.approx(free_bench.motion_through(poses, speed).duration)
    np.testing.assert_allclose(recorded.q[[0, -1]], [poses[0], poses[-1]], atol=1e-12)
    for pose in poses:
        assert np.abs(recorded.q - pose).max(axis=1).min() < 0.01, "it passes through every pose"
    assert np.abs(np.diff(recorded.q, axis=0)).max() <= 1.001 * 0.5 * np.diff(recorded.t).max()
    assert not free_bench.write_poses(tmp_path / "none.csv", irb140, [BENT, BENT], speed)
    assert not (tmp_path / "none.csv").exists()
    assert free_bench.pose_table(irb140, poses)[2][:4] == ["2", "0.00 deg", "17.19 deg", "11.46 deg"]
