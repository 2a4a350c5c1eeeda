"""Tuning: the search on figures whose best gains are known, and what is concluded of it."""

from types import SimpleNamespace

import numpy as np
import pytest

from scenarios.studies.sweeps.tuning import conclusions
from twin.base.errors import VariationError
from twin.studies.sweeps import tuning as search
from twin.studies.sweeps.design import Points
from twin.studies.sweeps.trial import OUTCOME
from twin.studies.sweeps.tuning import Gain, Tried, judged, tuned

LOADS = np.array([0.5, 1.0, 2.0, 1.5])
POINTS = Points(("load",), LOADS[:, None], np.arange(4), np.zeros(4, dtype=int))
KP = Gain("law.Kp", 0.1, 10.0)


def table(holds, figure):
    rows = np.zeros(len(holds), dtype=OUTCOME)
    rows["passes"], rows["joint_error"] = holds, figure
    return rows


@pytest.fixture
def known(monkeypatch):
    """A search over runs that are a formula of their names and values: `known(formula, gains, ...)`."""

    def found(formula, gains=(KP,), points=POINTS, nominal=1.0, **settings):
        def run_points(experiment, points, *, progress, **_):
            progress(len(points.values), len(points.values))
            return formula(dict(zip(points.names, points.values.T, strict=True)))

        monkeypatch.setattr(search, "run_points", run_points)
        experiment = SimpleNamespace(nominal=lambda name: nominal)
        return tuned(experiment, points, gains, **settings)

    return found


def saturating(values):
    """The error falls with the gain, until that asks for more than 6 under the load: the best is 6 / 2."""
    return table(values["law.Kp"] * values["load"] <= 6.0, 0.1 * values["load"] / values["law.Kp"])


def bowl(values):
    """Least at Kp = 2, Kd = 0.3, whatever the load, and there as large as the load."""
    away = np.log(values["law.Kp"] / 2.0) ** 2 + np.log(values["law.Kd"] / 0.3) ** 2
    return table(np.ones(len(away), dtype=bool), values["load"] * (1.0 + away))


def test_the_largest_gain_that_holds_under_all_draws_is_found(known):
    """The search ends where the errors of a generation scatter by 1 %; they fall as one over the gain."""
    done = []
    result = known(saturating, evaluations=400, progress=done.append)
    assert result.settled
    assert 0.98 * 3.0 <= result.values["law.Kp"] <= 3.0
    assert result.best.failing == 0
    assert result.best.figure == pytest.approx(0.2 / result.best.values[0], rel=1e-14)
    assert result.default == Tried((1.0,), 0, 0.2)
    assert result.at_ends == ()
    assert done == sorted(done)
    assert done[-1] == result.evaluations * 4 <= 401 * 4


def test_worst_and_mean_have_different_optimal_gains(known):
    gains = (KP, Gain("law.Kd", 0.05, 5.0))
    for of, size in (("worst", 2.0), ("mean", 1.25)):
        result = known(bowl, gains, of=of, evaluations=600)
        # A quadratic bowl in logarithms: a figure within 1 % of the best is within 0.1 of its place.
        assert np.abs(np.log(np.array(result.best.values) / [2.0, 0.3])).max() < 0.1
        assert result.best.figure == pytest.approx(size, rel=0.01)
    first, again, other = (known(bowl, gains, evaluations=60, seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert first.best != other.best


def test_a_run_more_that_holds_outweighs_any_figure(known):
    """No gain holds under all loads, a large one under most, at an error a thousand times as large."""

    def heavy(values):
        large = values["law.Kp"] > 3.0
        return table(large & (values["load"] < 2.0), np.where(large, 100.0, 0.1))

    result = known(heavy, evaluations=60)
    assert result.best.failing == 1
    assert result.best.values[0] > 3.0
    assert result.best.figure == 100.0


def test_what_runs_away_has_no_figure():
    rows = table([True, False, False], [0.1, 0.3, np.inf])
    rows["trouble"][2] = 1
    assert judged(rows, "joint_error") == (2, 0.3)
    assert judged(rows, "joint_error", "mean") == (2, 0.2)
    assert judged(rows[2:], "joint_error") == (1, np.inf)
    rows["tool_error"] = np.nan
    with pytest.raises(VariationError, match="tool_error was not computed"):
        judged(rows, "tool_error")


def test_the_default_stays_where_nothing_is_better(known):
    best = known(lambda v: table(v["load"] > 0, 1.0 + np.log(v["law.Kp"]) ** 2), evaluations=40)
    assert best.best == best.default
    flat = known(lambda v: table(v["load"] > 0, v["load"]), evaluations=40)
    assert flat.values == {"law.Kp": 1.0}
    hopeless = known(lambda v: table(v["load"] < 0, np.inf), evaluations=40)
    assert (hopeless.values, hopeless.best.failing) == ({"law.Kp": 1.0}, 4)


def test_a_default_outside_the_range_is_not_an_answer(known):
    result = known(saturating, (Gain("law.Kp", 0.1, 0.5),), evaluations=60)
    assert 0.1 <= result.best.values[0] <= 0.5
    assert result.default.values == (1.0,)
    assert result.at_ends == ((Gain("law.Kp", 0.1, 0.5), 0.5),)


def test_a_search_that_makes_no_sense_is_a_sentence(known):
    for settings, told in (
        ({"gains": ()}, "no gains"),
        ({"gains": (Gain("load", 1, 2),)}, "it varies from draw to draw"),
        ({"gains": (Gain("law.Kp", 0, 2),)}, "above 0"),
        ({"minimise": "duration"}, "cannot minimise 'duration': known are joint_error"),
        ({"evaluations": 4}, "at least 5 evaluations"),
    ):
        with pytest.raises(VariationError, match=told):
            known(saturating, **settings)


def side(failing, figure, runs=100):
    share = SimpleNamespace(share=1 - failing / runs, low=max(0.0, 0.97 - failing / runs))
    found = SimpleNamespace(share=share, swept=SimpleNamespace(table=range(runs)))
    return SimpleNamespace(failing=failing, figure=figure, found=found)


def conclusions_text(draws, fresh, settled=True, at_ends=(), fixed=None):
    """The conclusions of pairs (default, tuned) of failing runs and figure, and of fixed default gains."""
    numbers = {"bandwidth": 20.0, "Kp": np.ones(6)}
    task = SimpleNamespace(of="worst", minimise="joint_error", law=SimpleNamespace(numbers=numbers))
    default = Tried((1.0,), *(fixed or draws[0]))
    tuning = SimpleNamespace(settled=settled, at_ends=at_ends, evaluations=241, default=default)
    pairs = [SimpleNamespace(default=side(*a), tuned=side(*b)) for a, b in (draws, fresh)]
    return " ".join(conclusions(task, tuning, *pairs))


def test_the_conclusions_are_honest():
    better, worse = [(0, 0.3), (0, 0.1)], [(0, 0.3), (1, 0.2)]
    rounding, same = [(0, 3e-14), (0, 1e-14)], [(0, 0.3), (0, 0.3)]
    for draws, fresh, more, told in (
        (better, better, {}, "0.1 instead of 0.3 rad, 0.33 of it. With 95 % confidence, the tuned gains"),
        ([(9, 0.3), (0, 0.4)], [(8, 0.3), (2, 0.4)], {}, "98.0 % of the runs pass instead of 92.0 %"),
        (same, [(0, 0.3), (0, 0.299)], {}, "no gains are better than the default gains"),
        (same, same, {"fixed": (0, 0.5)}, "--gains bandwidth tunes them without fixing them"),
        (better, worse, {}, "(1 instead of 0 of 100 fail, worst joint error 0.2 instead of 0.3 rad)"),
        (rounding, rounding, {}, "is a rounding error: tuning does not help"),
        ([(100, 0.3), (100, 0.1)], [(100, 0.3), (100, 0.1)], {}, "all 100 runs of the search fail"),
        (better, better, {"at_ends": ((KP, 10.0),)}, "Kp is at the end of its range, 10: a wider range may"),
        (better, better, {"settled": False}, "had not converged after 241"),
    ):
        assert told in conclusions_text(draws, fresh, **more)
