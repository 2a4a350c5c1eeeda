"""Replay of logs in PyBullet's window."""

import json
import time

import numpy as np
import pytest

from scenarios.bench.log_window import describe_sample
from tests.support.command_lines import without_notice
from tests.support.example_logs import made_log, swing
from tests.support.forks import Fork
from tests.support.window_process import PREAMBLE
from tests.support.xwindow import RIGHT, SPACE, UP, Display
from twin.studies.views.film import Track

SCRIPT = """
import json, sys
from scenarios.shell.process import main

class Printed(replay.ReplayControls):
    def show(self):
        super().show()
        at = self.playback
        print(json.dumps([at.time, at.playing, at.loop, at.samples]), flush=True)

replay.ReplayControls = Printed
sys.argv = ["irb-twin", "replay", *{words}]
sys.exit(main())
"""
SLIDER = (794, 106), (940, 106)
"""Start and end of dragging the time slider, in pixels."""

PICTURE = slice(90, 590), slice(260, 770)
"""Rows and columns between text and panels."""
SLOW = 50.0  # s, the longest that a window may take to answer


def test_description_of_sample_agrees_with_log(robot):
    q_ref = np.zeros((2, 6))
    q, tau, saturated = q_ref.copy(), np.zeros((2, 6)), np.zeros((2, 6), dtype=bool)
    q[1, 2], q[1, 1] = -0.025, 0.01
    tau[1] = robot.tau_max * [0.1, -0.8, 0.2, 0, 0, 0]
    saturated[1, [1, 4]] = True
    track = Track(made_log(robot, q, q_ref, tau=tau, saturated=saturated), "pd")
    distance = 1e3 * np.linalg.norm(track.log.pose[1, :3] - track.log.pose_ref[1, :3])
    assert distance > 1.0
    told = f"error 0.025 rad in joint_3; tool {distance:.3g} mm; torque 80 % in joint_2"
    assert describe_sample(track, 1) == f"{told}; saturated joint_2, joint_5"
    assert describe_sample(track, 0).startswith("error 0 rad in joint_1; tool 0 mm; torque 0 %")


def is_arm(picture):
    return picture[..., 0] > picture[..., 2] + 100


def is_ghost(picture):
    return (picture[..., 2] > picture[..., 0] + 40) & (picture[..., 1] > picture[..., 0] + 20)


def middle(mask):
    """Return the median column of a mask."""
    return float(np.median(np.nonzero(mask)[1]))


class Replay:
    """Replay command in a process of its own, and the states of its window."""

    def __init__(self, display, *words):
        self.process = Fork(SCRIPT.format(words=words), PREAMBLE, DISPLAY=display)

    def states(self):
        """Return the states `[time, playing, loop, samples]` up to now."""
        lines = self.process.read().split("\n")[:-1]
        return [json.loads(line) for line in lines if line.startswith("[")]

    def until(self, condition):
        """Wait for a new state that fulfils a condition; return it."""
        seen, end = len(self.states()), time.monotonic() + SLOW
        while time.monotonic() < end and self.process.running():
            for state in self.states()[seen:]:
                if condition(*state):
                    return state
            time.sleep(0.02)
        raise AssertionError(f"{self.states()[-1:]}, {self.process.read('stderr')}")

    def drawn(self):
        """Wait until the present state is drawn: until the picture after the next one begins."""
        for _ in range(2):
            self.until(lambda *_: True)


@pytest.mark.display
def test_replay_can_be_paused_and_scrubbed(robot, tmp_path, display):
    for name, angle in (("one", 1.5), ("two", -1.5)):
        swing(robot, 0, angle, samples=4001, controller=name).save(tmp_path / f"{name}.npz")
    shown = Replay(display, str(tmp_path / "one.npz"), str(tmp_path / "two.npz"), "--speed", "2")
    first = shown.until(lambda *_: True)
    began = time.monotonic()
    screen = Display(display)
    window = screen.window("Bullet Physics")
    assert first[1:3] == [True, False]
    later = shown.until(lambda at, *_: at > first[0] + 1.0)
    assert time.monotonic() - began > 0.35, "at twice the speed, no more"
    assert later[3][0] == later[3][1] == round(100 * later[0])
    with screen.held(window, SPACE):
        stopped = shown.until(lambda at, playing, *_: not playing)
    with screen.held(window, RIGHT):
        assert shown.until(lambda at, *_: at > stopped[0])[3] == [k + 1 for k in stopped[3]]
    with screen.held(window, UP):
        shown.until(lambda at, *_: at == pytest.approx(stopped[0] + 0.51, abs=0.011))
    with screen.held(window, "l"):
        shown.until(lambda at, playing, loop, _: loop)
    with screen.held(window, "r"):
        assert shown.until(lambda at, *_: at == 0.0)[3] == [0, 0]
    shown.drawn()
    begun = screen.screenshot()
    screen.drag(window, *SLIDER)
    scrubbed = shown.until(lambda at, *_: at > 25.0)
    assert scrubbed[1] is False
    shown.drawn()
    ended = screen.screenshot()
    assert is_ghost(ended[PICTURE]).sum() > 500
    before, after = (middle(is_arm(shot[PICTURE])) for shot in (begun, ended))
    ghost = middle(is_ghost(ended[PICTURE]))
    assert after > before + 10, "the arm is elsewhere"
    assert ghost < before - 20, "and its ghost on the other side"
    screen.close_from_title_bar(window)  # the normal end of a replay
    ended = shown.process.wait(SLOW)
    assert (ended.returncode, without_notice(ended.stderr)) == (0, "")
