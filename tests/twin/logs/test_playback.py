"""Which sample of which log is shown when: no window, no picture."""

import numpy as np
import pytest

from tests.support.example_logs import made_log, swing
from twin.errors import TwinError
from twin.logs.views.playback import Playback, Track, names_of, tracks


def playback(*logs, **settings):
    return Playback(tracks(logs), **settings)


def test_the_nearest_sample_is_shown(robot):
    track = Track(swing(robot, 0, 1.0, samples=11, time_step=0.1, start=2.0), "pd")
    shown = {0.0: 0, 2.0: 0, 2.04: 0, 2.06: 1, 2.1: 1, 2.94: 9, 3.0: 10, 9.0: 10}
    assert [track.sample(time) for time in shown] == list(shown.values())


def test_logs_of_other_periods_and_lengths_are_shown_by_time(robot):
    long, short = swing(robot, 0, 1.0, samples=101), swing(robot, 0, 1.0, samples=6, time_step=0.04)
    shown = playback(long, short)
    assert (shown.start, shown.end) == (0.0, 1.0)
    shown.seek(0.12)
    assert shown.samples == (12, 3)
    shown.seek(0.7)
    assert shown.samples == (70, 5), "the short one stands at its end"


def test_time_runs_at_the_speed_and_stands_at_the_end(robot):
    shown = playback(swing(robot, 0, 1.0), speed=0.5)
    shown.advance(0.2)
    assert shown.time == pytest.approx(0.1)
    shown.play_or_pause()
    shown.advance(5.0)
    assert shown.time == pytest.approx(0.1), "it was paused"
    shown.play_or_pause()
    shown.speed = 10.0
    shown.advance(0.03)
    assert shown.time == pytest.approx(0.4)
    shown.advance(1.0)
    assert (shown.time, shown.playing, shown.at_end) == (shown.end, False, True)
    shown.play_or_pause()
    assert (shown.time, shown.playing) == (shown.start, True), "from the end it begins anew"


def test_loop_restarts_with_the_remaining_time(robot):
    shown = playback(swing(robot, 0, 1.0, start=3.0), loop=True)
    shown.advance(1.2)  # of 0.5 s
    assert shown.playing
    assert shown.time == pytest.approx(3.2)
    still = playback(made_log(robot, np.zeros((1, robot.n))), loop=True)
    still.advance(1.0)
    assert (still.time, still.samples) == (0.0, (0,))


def test_steps_are_samples_of_the_longest_log(robot):
    shown = playback(swing(robot, 0, 1.0, samples=3), swing(robot, 0, 1.0))
    shown.seek(0.104)
    for count, time in ((1, 0.11), (1, 0.12), (-1, 0.11), (10, 0.21), (-100, 0.0), (100, 0.5)):
        shown.step(count)
        assert shown.time == pytest.approx(time)
        assert not shown.playing


def test_non_finite_and_folded_samples_are_omitted_and_reported(robot, irb1400):
    log = swing(robot, 0, 1.0)
    assert Track(log, "pd").note == ""
    log.q[40:] = np.nan
    track = Track(log, "pid")
    assert track.sample(9.0) == 39
    assert track.note == (
        "pid: 11 of 51 samples are not shown (not finite or folded); the last one shown is at 0.39 s"
    )
    log.q[:] = np.inf
    with pytest.raises(TwinError, match=r"pid cannot be shown: no sample"):
        Track(log, "pid")
    folded = np.zeros((3, 6))
    folded[1, 2] = 3.0
    assert Track(made_log(irb1400, folded), "pd").samples.tolist() == [0, 2]


def test_labels_of_logs_are_distinct(robot, irb1400):
    still = np.zeros((2, 6))
    pd, pid, other = (
        made_log(robot, still),
        made_log(robot, still, controller="pid"),
        made_log(irb1400, still),
    )
    assert names_of([pd, pid]) == ["pd", "pid"]
    assert names_of([pd, other]) == ["pd, irb140", "pd, irb1400"]
    assert names_of([pd, pd], ["a/soft.npz", "a/hard.npz"]) == ["soft", "hard"]
    assert names_of([pd, pd], ["a/run.npz", "b/run.npz"]) == ["a/run.npz", "b/run.npz"]
    assert names_of([pd, pd]) == ["pd 1", "pd 2"]


def test_what_cannot_be_shown_is_a_sentence(robot):
    log = swing(robot, 0, 1.0, samples=2)
    for given, sentence in (
        (([log] * 7,), "expected 1 to 6 logs, one per colour, got 7"),
        (([],), "expected 1 to 6 logs"),
        ((log, ["a", "b"]), "expected a name for each of 1 logs, got 2"),
    ):
        with pytest.raises(ValueError, match=sentence):
            tracks(*given)
    for speed in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="expected a speed above 0"):
            playback(log, speed=speed)
