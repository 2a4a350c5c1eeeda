"""What `make bench` says of its rows; the rows themselves are measured by it alone."""

import time

import pytest

from tests.bench.__main__ import verdict
from tests.bench.timing import HEADING, Row, compare, peer, same


def row(ratio, lowest, goal):
    return Row("this", "that", ratio, 1.0, ratio, lowest, 2 * ratio, goal)


def test_where_we_lose_is_said_in_words():
    said = verdict([row(0.5, 0.4, 0.8), row(0.9, 0.7, 0.8), row(1.5, 1.4, 1.2), row(2.0, 1.9, None)])
    assert said.splitlines()[0] == "1 of 3 goals are met."
    assert "this, against that: 0.90, the goal is 0.80 (reached in the best round: 0.70)" in said
    assert "this, against that: 1.50, the goal is 1.20\n" in said
    assert said.endswith("slower than what it is timed against:\n  this, against that: 2.00")
    assert verdict([row(0.5, 0.4, 0.8)]) == "1 of 1 goals are met."


def test_a_ratio_that_is_no_number_is_a_goal_missed():
    assert row(float("nan"), 0.1, 1.0).missed


def test_the_slower_of_two_calls_has_the_larger_time():
    measured = compare(
        "fast", "slow", lambda: time.sleep(1e-3), lambda: time.sleep(4e-3), rounds=3, theirs_per_call=2
    )
    assert measured.lowest <= measured.ratio <= measured.highest
    assert 0.2 < measured.ratio < 0.9  # of 1 ms and 4 ms for two
    assert len(str(measured)) == len(HEADING)


def test_results_that_differ_stop_the_run():
    same([1.0, 2.0], [1.0, 2.0 + 1e-13], 1e-12)
    for other in ([1.0, 2.1], [1.0, float("nan")], [1.0, 2.0, 3.0]):
        with pytest.raises(AssertionError):
            same([1.0, 2.0], other, 1e-12)


def test_a_peer_that_is_not_there_is_named(capsys):
    assert peer("no_such_library") is None
    assert "no rows against no_such_library" in capsys.readouterr().out
