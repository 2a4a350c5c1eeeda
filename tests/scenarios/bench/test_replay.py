"""Replay of logs in PyBullet's window."""

import json
import os
import subprocess
import sys
import time
from threading import Thread

import numpy as np
import pytest

from scenarios.bench.replay import describe_sample
from tests.support.command_lines import without_notice
from tests.support.example_logs import made_log, swing
from tests.support.xwindow import RIGHT, SPACE, UP, Display, xvfb
from twin.logs.views.playback import Track

SCRIPT = """
import json, sys
from scenarios.bench import replay
from scenarios.cli.process import main

class Printed(replay.ReplayControls):
    def show(self):
        super().show()
        at = self.playback
        print(json.dumps([at.time, at.playing, at.loop, at.samples]), flush=True)

replay.ReplayControls = Printed
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
    text = describe_sample(track, 1)
    distance = 1e3 * np.linalg.norm(track.log.pose[1, :3] - track.log.pose_ref[1, :3])
    assert distance > 1.0
    assert text == (
        f"error 0.025 rad in joint_3; tool {distance:.3g} mm; torque 80 % in joint_2; "
        "saturated joint_2, joint_5"
    )
    assert describe_sample(track, 0).startswith("error 0 rad in joint_1; tool 0 mm; torque 0 %")


def test_description_reports_torque_of_nan(robot):
    log = swing(robot, 0, 1.0, tau=np.full((51, 6), np.nan))
    assert "torque nan % in joint_1" in describe_sample(Track(log, "pd"), 0)


def is_arm(picture):
    return picture[..., 0] > picture[..., 2] + 100


def is_ghost(picture):
    return (picture[..., 2] > picture[..., 0] + 40) & (picture[..., 1] > picture[..., 0] + 20)


def middle(mask):
    """Return the median column of a mask."""
    return float(np.median(np.nonzero(mask)[1]))


class Replay:
    """Replay command in a separate process, and the states of its window."""

    def __init__(self, display, *words):
        environment = os.environ | {"DISPLAY": display}
        self.process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, "replay", *words],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.states = []
        self.reader = Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            if line.startswith("["):
                self.states.append(json.loads(line))

    def end(self):
        """Wait for the end of the process; return its status and its standard error."""
        try:
            status = self.process.wait(SLOW)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self.reader.join()
            with self.process.stdout, self.process.stderr as errors:
                error = errors.read()
        return status, error

    def until(self, condition):
        """Wait for a new state `[time, playing, loop, samples]` that fulfils a condition; return it."""
        seen, end = len(self.states), time.monotonic() + SLOW
        while time.monotonic() < end and self.process.poll() is None:
            for state in self.states[seen:]:
                if condition(*state):
                    return state
            time.sleep(0.02)
        raise AssertionError(f"{self.states[-1:]}, {self.process.poll()}")


@pytest.mark.display
def test_replay_can_be_paused_and_scrubbed(robot, tmp_path):
    for name, angle in (("one", 1.5), ("two", -1.5)):
        swing(robot, 0, angle, samples=4001, controller=name).save(tmp_path / f"{name}.npz")
    with xvfb() as name:
        shown = Replay(name, str(tmp_path / "one.npz"), str(tmp_path / "two.npz"), "--speed", "2")
        display = Display(name)
        first = shown.until(lambda *_: True)
        began = time.monotonic()
        window = display.window("Bullet Physics")
        assert first[1:3] == [True, False]
        later = shown.until(lambda at, *_: at > first[0] + 2.0)
        assert time.monotonic() - began > 0.7, "at twice the speed, no more"
        assert later[3][0] == later[3][1] == round(100 * later[0])
        with display.held(window, SPACE):
            stopped = shown.until(lambda at, playing, *_: not playing)
        with display.held(window, RIGHT):
            assert shown.until(lambda at, *_: at > stopped[0])[3] == [k + 1 for k in stopped[3]]
        with display.held(window, UP):
            shown.until(lambda at, *_: at == pytest.approx(stopped[0] + 0.51, abs=0.011))
        with display.held(window, ord("l")):
            shown.until(lambda at, playing, loop, _: loop)
        with display.held(window, ord("r")):
            assert shown.until(lambda at, *_: at == 0.0)[3] == [0, 0]
        time.sleep(0.5)
        begun = display.screenshot()
        display.drag(window, *SLIDER)
        scrubbed = shown.until(lambda at, *_: at > 25.0)
        assert scrubbed[1] is False
        time.sleep(0.5)
        ended = display.screenshot()
        assert is_ghost(ended[PICTURE]).sum() > 500
        before, after = (middle(is_arm(shot[PICTURE])) for shot in (begun, ended))
        ghost = middle(is_ghost(ended[PICTURE]))
        assert after > before + 10, "the arm is elsewhere"
        assert ghost < before - 20, "and its ghost on the other side"
        display.close_from_title_bar(window)  # the normal end of a replay
        status, error = shown.end()
        assert (status, without_notice(error)) == (0, "")
