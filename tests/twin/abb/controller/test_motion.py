"""Motion on planned paths: the rest of a path from where the arm is, and a path that is cleared meanwhile."""

import threading
import time
from collections import deque

import numpy as np
import pytest

from tests.support import rapid_programs
from twin.abb.controller.motion import Motion, Path
from twin.abb.egm.robot.exchange import RealTime
from twin.abb.rapid.planning import Limits

POINTS = "".join(
    f"MoveAbsJ [[{20 * np.sin(k):.3f},{10 * np.cos(k):.3f},0,0,30,0],"
    "[9E9,9E9,9E9,9E9,9E9,9E9]],v400,z20,tool0;\n"
    for k in range(8)
)


@pytest.fixture(scope="module")
def path(abb_robot):
    """Return the path of eight moves, with its segments."""
    program = rapid_programs.program(POINTS, abb_robot)
    assert program.fault is None
    return Path.planned(abb_robot, list(program.segments), Limits(0.9))


def test_the_rest_of_a_path_is_planned_as_the_path_was(abb_robot, path):
    """From the last straight part on before some times, at the speed that the arm has there."""
    for t in np.linspace(0.3, path.duration - 0.05, 7):
        rest = path.rest(t)
        again = Path.planned(abb_robot, rest.segments, Limits(0.9), rest.begin)
        i = next(i for k, _, i in path.straight if k == rest.first)
        assert again.motion.x[0] == pytest.approx(path.motion.x[i], rel=1e-12)
        assert again.motion.q == pytest.approx(path.motion.q[i:], abs=1e-12)
        assert np.abs(again.motion.x - path.motion.x[i:]).max() < 1e-4 * path.motion.x.max()


def test_place_and_time_of_a_motion_are_inverse(path):
    motion = path.motion
    for t in np.linspace(0.0, motion.duration - 1e-3, 50):
        speed, again = motion.speed_and_time(motion.place(t))
        assert again == pytest.approx(t, abs=1e-9)
        moved = motion.place(min(t + 1e-6, motion.duration)) - motion.place(max(t - 1e-6, 0.0))
        assert speed == pytest.approx(moved / 2e-6, rel=1e-2, abs=1e-3)


def test_a_path_that_is_not_the_last_or_whose_end_the_arm_brakes_for_is_not_extended(abb_robot, path):
    short = Path.planned(abb_robot, path.segments[:4], Limits(0.9))
    for share, is_extended in ((0.5, True), (0.98, False)):
        motion = Motion(path.motion.q[0], 1e-3)
        motion.paths.append(short)
        motion.t = share * short.duration
        motion.q = short.motion(motion.t)[0]
        rest = short.rest(motion.t)
        longer = Path.planned(abb_robot, [*rest.segments, *path.segments[4:]], Limits(0.9), rest.begin)
        for paths in ([], [short, path]):
            beside = Motion(path.motion.q[0], 1e-3)
            beside.paths = deque(paths)
            assert not beside.extend(rest, short, longer)
            assert list(beside.paths) == paths
        assert motion.extend(rest, short, longer) == is_extended
        assert motion.paths[0].motion(motion.t)[0] == pytest.approx(motion.q, abs=1e-9)
        assert short.begun == 0


def test_a_path_that_is_cleared_while_it_is_planned_is_not_made(cell, monkeypatch):
    live = cell(T_ROB1="MoveAbsJ c, v1000, fine, tool0; WaitTime 100;")
    live.controller.tasks["t_rob1"].pace = RealTime(4e-3)  # plans are made aside
    planned = Path.planned
    begun, cleared, done = (threading.Event() for _ in range(3))

    def waiting(*given):
        begun.set()
        assert cleared.wait(10.0)
        path = planned(*given)
        done.set()
        return path

    monkeypatch.setattr(Path, "planned", waiting)
    while not begun.wait(1e-3):
        live.controller.cycle()
    live.controller.unit.clear_path()
    cleared.set()
    assert done.wait(60.0)
    for _ in range(50):
        time.sleep(4e-3)
        live.controller.cycle()
    assert not live.controller.unit.motion.paths
    assert np.abs(live.controller.arm.q - live.log.q[0]).max() < 1e-6
