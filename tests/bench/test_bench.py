"""The text of `make bench`; only `make bench` measures its rows."""

import sys

import pytest

from tests.bench import closed_loop
from tests.bench.__main__ import main, noise, verdict
from tests.bench.timing import HEADING, Meter, NotComparableError, Row, peer, same, within


def row(ratio, lowest, goal):
    return Row("this", "that", ratio, 1.0, ratio, lowest, 2 * ratio, goal)


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


def test_medians_and_ratios_are_those_of_the_calls():
    def ours() -> object:
        return None

    def theirs() -> object:
        return None

    readings = {ours: iter([3.0, 5.0, 4.0]), theirs: iter([10.0, 8.0, 8.0])}
    meter = Meter(3, lambda call, calls: next(readings[call]) * calls)
    found = meter.compare("a", "b", ours, theirs, ours_per_call=2)
    assert (found.ours, found.theirs) == (2.0, 8.0)
    assert (found.lowest, found.ratio, found.highest) == (0.15, 0.25, 0.3125)
    assert len(str(found)) == len(HEADING)


def nothing() -> object:
    return None


def test_a_row_that_cannot_be_measured_says_why_and_the_next_group_follows(monkeypatch, capsys):
    meter = Meter(1, is_short=True)

    def groups(*_):
        yield meter.compare("sum", "peer", lambda: [1.0, 2.0], lambda: [1.0, 2.1], agree=within(1e-12))
        yield meter.compare("solver", "peer", nothing, lambda: 1 / 0)
        yield meter.compare("last", "peer", nothing, nothing)
        raise OSError("no\n port")

    for name in GROUPS:
        monkeypatch.setattr(sys.modules[f"tests.bench.{name}"], "rows", groups if name == "egm" else no_rows)
    monkeypatch.setattr(closed_loop, "loop_rows", no_rows)
    monkeypatch.setattr(closed_loop, "drive_rows", no_rows)
    monkeypatch.setattr(sys, "argv", ["bench", "--short"])
    assert main() == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "sum peer not comparable: differs by 0.048, limit 1e-12 solver" in printed
    assert "solver peer not run: ZeroDivisionError: division by zero last" in printed
    assert "EGM all rows that follow in this group not run: OSError: no port 1 of 4 rows" in printed


def no_rows(*_):
    return ()


GROUPS = (
    "closed_loop", "dynamics", "egm", "features", "inverse_kinematics", "parallelogram", "rollouts",
    "start_up", "sweeps", "time_laws",
)  # fmt: skip


def test_results_are_comparable_within_their_limit():
    same([1.0, 2.0], [1.0, 2.0 + 1e-13], 1e-12)
    for other in ([1.0, float("nan")], [1.0, 2.0, 3.0]):
        with pytest.raises(NotComparableError):
            same([1.0, 2.0], other, 1e-12)


def test_missing_library_is_reported(capsys):
    assert peer("no_such_library") is None
    assert "no rows against no_such_library" in capsys.readouterr().out
