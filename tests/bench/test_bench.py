"""The text of `make bench`; only `make bench` measures its rows."""

import json

import pytest

from tests.bench.__main__ import noise, verdict
from tests.bench.instructions import run_again
from tests.bench.timing import Meter, Row, heading, peer, same


def row(ratio, lowest, goal):
    return Row("this", "that", ratio, 1.0, "us", ratio, lowest, 2 * ratio, goal)


def test_verdict_lists_missed_goals_and_slower_rows():
    text = verdict([row(0.5, 0.4, 0.8), row(0.9, 0.7, 0.8), row(1.5, 1.4, 1.2), row(2.0, 1.9, None)])
    assert text.splitlines()[0] == "1 of 3 goals are met."
    assert "this, against that: 0.90, the goal is 0.80 (reached in the best round: 0.70)" in text
    assert "this, against that: 1.50, the goal is 1.20\n" in text
    assert text.endswith("slower than the other library:\n  this, against that: 2.00")
    assert verdict([row(0.5, 0.4, 0.8)]) == "1 of 1 goals are met."
    assert row(float("nan"), 0.1, 1.0).missed
    rows = [row(1.0, lowest, None) for lowest in (0.8, 1.9, 1.0)]
    assert noise(rows) == "Between the rounds the ratio of the median row varied by 100.00%."


def test_meter_with_another_unit_gives_rows_in_that_unit():
    def ours() -> object:
        return None

    def theirs() -> object:
        return None

    readings = {ours: iter([3.0, 5.0, 4.0]), theirs: iter([10.0, 8.0, 8.0])}
    meter = Meter(3, "instructions", lambda call, calls: next(readings[call]) * calls)
    counted = meter.compare("a", "b", ours, theirs, calls=2, ours_per_call=4)
    assert (counted.ours, counted.theirs, counted.unit) == (2.0, 16.0, "instructions")
    assert (counted.lowest, counted.ratio, counted.highest) == (0.075, 0.125, 0.15625)
    assert not meter.timed
    assert len(str(counted)) == len(heading("us")) == len(heading("instructions"))


COUNT = """
import json
from tests.bench.instructions import instructions

ONES = (1,) * 2000  # nothing is allocated to add them
def work(): sum(ONES)
def again(): work(), work()

print(json.dumps([instructions(call, 50) for call in (work, again, lambda: None, work)]))
"""


@pytest.mark.valgrind
def test_twice_the_work_takes_twice_the_instructions(capfd):
    assert run_again(["-c", "pass"], ["-c", COUNT]) == 0
    once, twice, nothing, once_again = json.loads(capfd.readouterr().out)
    assert once > 2000  # additions
    assert twice == pytest.approx(2 * once, rel=0.02)  # plus two calls
    assert abs(nothing) < 20
    assert once_again == pytest.approx(once, rel=1e-3)
    assert run_again(["-c", "raise SystemExit(3)"], ["-c", "print('counted')"]) == 3
    assert "counted" not in capfd.readouterr().out  # a failed rehearsal ends the run


def test_different_results_stop_the_run():
    same([1.0, 2.0], [1.0, 2.0 + 1e-13], 1e-12)
    for other in ([1.0, 2.1], [1.0, float("nan")], [1.0, 2.0, 3.0]):
        with pytest.raises(AssertionError):
            same([1.0, 2.0], other, 1e-12)


def test_missing_library_is_reported(capsys):
    assert peer("no_such_library") is None
    assert "no rows against no_such_library" in capsys.readouterr().out
