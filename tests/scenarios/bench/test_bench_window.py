"""Bench in its window: watching and changing a scenario, jogging and teaching an arm.

The tests take 9 and 18 s of processor time: pictures are drawn without a graphics card, in 0.06 s each.
"""

import pytest

from tests.support import window_process

pytestmark = pytest.mark.display

PREAMBLE = """
from dataclasses import replace
from pathlib import Path
from twin.physics.trajectories import jogging
from scenarios.bench.free_bench import FreeBench
from scenarios.bench.watched import LoopView
from scenarios.report.results import broken_run
from scenarios.running.runs import run_one
from scenarios.setup import Setup
from tests.support.tasks import run as run_of, task
from twin.physics.engine.window.bench import Bench


class Keys:
    "Presses keys at pictures of given numbers; a tuple holds a key for some pictures, or is for the mouse."

    def __init__(self):
        self.plan, self.made = {}, 0

    def __call__(self, plan):
        self.plan, self.made, self.display, self.ending = plan, 0, Display(os.environ["DISPLAY"]), {}

    def act(self):
        self.made += 1
        if not self.plan:
            return
        window = self.display.window(TITLE)
        for key in self.ending.pop(self.made, ()):
            self.display.press(window, key, (KEY_RELEASE,))
        key = self.plan.get(self.made)
        if isinstance(key, tuple) and len(key) == 3:
            self.display.mouse(window, *key)
        elif isinstance(key, tuple):
            self.display.press(window, key[0], (KEY_PRESS,))
            self.ending[self.made + key[1]] = [key[0]]
        elif key:
            self.display.press(window, key)


def picture(self, original=Bench.picture):
    original(self)
    keys.act()


def after_step(self, original=Bench.after_step):
    "A picture every EVERY steps of the simulation, however slow the machine is."
    self.speed = np.inf
    self._pictures.due = 0.0 if self.steps % EVERY == EVERY - 1 else np.inf
    original(self)


def show_error(self, error, tool_error, original=LoopView._show_error):
    errors.append(np.max(np.abs(error)))
    original(self, error, tool_error)


keys, errors = Keys(), []
LoopView._show_error = show_error
Bench.picture, Bench.after_step = picture, after_step
"""


def passes(script, display):
    window_process.passes(f"{PREAMBLE}\n{script}", display)


def test_watched_scenario_can_be_restarted_and_touched(display):
    """A restarted run, also with a ghost, has the log of a run without a window."""
    passes(
        """
EVERY = 50
plain = run_of("joint_tracking", duration=0.5).log
other = run_of("joint_tracking", duration=0.5, controller="pd").log
shown = task("joint_tracking", duration=0.5, gui=True, close_window=True, beside=(("pd", other),))
keys({3: "l", 6: "r"})
assert shown.scenario.run(shown.setup).log.identical(plain), "a restarted run has the initial settings"
assert keys.made > 12

keys({2: "g", 3: "e", 4: "l", 5: "p"})
run = run_one(shown)
assert not run.passes and not run.metrics
assert run.error.startswith("touched at the window: law pd at "), run.error
assert "payload of 3 kg attached at " in run.error
assert len(run.log.t) == len(plain.t)
broken = broken_run(run, [run])
assert broken.sentences == (run.error,)
assert broken.cause.startswith("the window: a person changed the motion")
k = np.argmax(np.abs(run.log.q - plain.q).max(axis=1) > 1e-12)
assert 10 < k < len(plain.t) - 10, "the runs are equal up to the user's first action"
""",
        display,
    )


def test_arm_is_jogged_and_moves_through_taught_poses(display, tmp_path):
    """By the slider of the last joint, where it is seen in a window of 1024 x 768 pixels, and by keys.

    The window names the nearest pair of the arm and its cell.
    """
    passes(
        f"""
EVERY = 100
folder, y = Path({str(tmp_path)!r}), 326
jogging.SHARE_OF_SPEED = 1.0  # four times as fast as pendants allow
(folder / "cell.toml").write_text("[objects.post]\\nbox = [0.1, 0.1, 1]\\nat = [0.6, 0, 0.5]")
lines, write = {{}}, Bench.write_line

def noted(self, name, text, color=None):
    lines.setdefault(name, text)
    write(self, name, text, color)

Bench.write_line = noted
keys({{3: (MOTION, 890, y), 4: (BUTTON_PRESS, 890, y), 5: (MOTION, 905, y), 6: (MOTION, 920, y),
      7: (BUTTON_RELEASE, 920, y), 9: (RIGHT, 2), 12: "k", 22: (RIGHT, 2), 25: "k", 33: (RIGHT, 2), 44: "o"}})
file, cell = folder / "taught.csv", twin.load_cell(folder / "cell.toml")
session = FreeBench(Setup(), np.zeros(6), file, duration=6.0, cell=cell).run()
assert lines["cell"] == "link_6 - post: 35.0 mm", lines
assert len(session.poses) == 2, session.poses
first, second = session.poses
assert 0.05 < first[0] < second[0] - 0.05
assert not np.any(first[1:5])
assert first[5] > 0.3
assert np.array_equal(first[1:], second[1:])
log = session.log
assert session.touches == []
assert log.arrays["touches"].shape == (0,)
assert max(errors) < 1e-12, "the arm is compared with where it should be after the step"
assert np.abs(log.q - log.q_ref).max() < 1e-13
assert np.allclose(np.diff(log.t), 1e-3)
# The arm moves beyond the second pose, from there to the first, to the second, and stops there.
assert log.q[:, 0].max() > second[0] + 0.05
assert np.abs(log.q[-1] - second).max() < 1e-12
back = np.abs(log.q - first).max(axis=1) < 1e-6
there = np.abs(log.q - second).max(axis=1) < 1e-6
order = np.where(back, 1, np.where(there, 2, 0))
order = order[order > 0]
assert list(order[np.insert(np.diff(order) != 0, 0, True)]) == [1, 2, 1, 2], order
assert file.read_text().startswith("t,q1")
log.save(folder / "log.npz")
""",
        display,
    )
