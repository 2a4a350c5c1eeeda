"""Statistics of trials: shares with intervals, importance of inputs, and the worst trials."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from twin.studies.sweeps.design import Design, parse_variation
from twin.studies.sweeps.statistics import (
    binomial_interval,
    decisive_figure,
    importances,
    pass_share,
    sobol_indices,
    worst,
)
from twin.studies.sweeps.trial import OUTCOME

SEEDS = 200
DRAWS = 500


def designs(kind, *texts, samples=DRAWS):
    """The points of the same design with each of the seeds; fewer of those that take longer to make."""
    variations = [parse_variation(name, text) for name, text in zip("ab", texts, strict=True)]
    seeds = range(SEEDS if kind == "random" else SEEDS // 2)
    return [Design(variations, samples=samples, kind=kind, seed=seed).points({}) for seed in seeds]


@pytest.fixture(scope="module", params=["random", "latin", "sobol"])
def stratified(request):
    """A kind of design, and its points."""
    return request.param, designs(request.param, "0:5", "0:1")


def coverage(of_seeds, holds, truth):
    """How often the interval of the share, and the middle half of it, contain the true one."""
    shares = [pass_share(holds(*points.values.T), points.draw, points.replicate) for points in of_seeds]
    middle, low, high = (np.array([share[k] for share in shares]) for k in range(3))
    assert np.all((low >= 0.0) & (low <= middle) & (middle <= high) & (high <= 1.0))
    inside, near = (low <= truth) & (truth <= high), np.abs(middle - truth) <= (high - low) / 4.0
    methods = {share.method for share in shares}
    return SimpleNamespace(inside=inside.mean(), near=near.mean(), width=np.mean(high - low), methods=methods)


def binomial_width(share, draws=DRAWS):
    low, high = binomial_interval(share * draws, draws)
    return high - low


def test_a_known_share_is_inside_the_interval(stratified):
    """A limit on a quantity that is linear in uniform inputs, one from 0 to 5, the other from 0 to 1."""
    kind, points = stratified

    half = coverage(points, lambda a, b: 1.0 + 2.0 * a + 0.0 * b <= 6.0, 0.5)
    of_two_inputs = coverage(points, lambda a, b: a / 5.0 + b <= 1.6, 0.92)
    next_to_none_fails = coverage(points, lambda a, b: a <= 4.98, 0.996)
    all_hold = coverage(points, lambda a, b: a <= 5.0, 1.0)

    for found in (half, of_two_inputs, next_to_none_fails, all_hold):
        assert found.inside >= 0.9
    assert all_hold.methods == next_to_none_fails.methods == {"binomial"}
    assert all_hold.width == pytest.approx(binomial_width(1.0), rel=0.03)
    if kind == "random":
        assert half.methods == {"binomial"}
        assert half.width == pytest.approx(binomial_width(0.5), rel=0.01)
        assert 0.55 <= half.near <= 0.8  # no wider than it has to be: 67 %
    else:
        assert half.methods == of_two_inputs.methods == {"replicates"}
        assert half.width < 0.25 * binomial_width(0.5)  # what stratification gains
        assert of_two_inputs.width < {"latin": 0.9, "sobol": 0.6}[kind] * binomial_width(0.92)
        assert 0.55 <= of_two_inputs.near <= 0.8


def test_trials_of_a_draw_are_not_independent():
    """At the 20 points of a grid a draw fares much alike: 20 times the rows tell no more."""
    points = designs("random", "0:10", "0:1.9:20", samples=100)
    found = coverage(points, lambda a, b: a + b <= 8.0, 0.705)
    assert found.inside >= 0.9
    assert found.methods == {"draws"}
    assert 0.55 <= found.near <= 0.8
    assert found.width > 3.0 * binomial_width(0.705, 2000)


def test_an_interval_of_independent_draws_is_the_exact_one():
    for hold, draws in ((0, 1), (1, 1), (0, 50), (7, 50), (50, 50), (1999, 2000)):
        holds = np.arange(draws) < hold
        share = pass_share(holds, np.arange(draws), np.zeros(draws, int))
        exact = stats.binomtest(hold, draws).proportion_ci()
        assert (share.low, share.high) == pytest.approx((exact.low, exact.high), abs=4e-12)  # its root
        assert (share.share, share.draws, share.method) == (hold / draws, draws, "binomial")
    for end in (0, 1):
        assert np.all(np.diff([binomial_interval(k, 50)[end] for k in (6, 6.5, 7)]) > 0)


def test_an_interval_of_replicates_is_students_and_never_of_no_width():
    rng = np.random.default_rng(1)
    holds, draws, replicate = rng.random(600) < 0.7, np.arange(600), np.repeat(np.arange(6), 100)
    share = pass_share(holds, draws, replicate)
    of_replicates = holds.reshape(6, 100).mean(axis=1)
    interval = stats.t.interval(0.95, 5, loc=of_replicates.mean(), scale=stats.sem(of_replicates))
    assert (share.low, share.high) == pytest.approx(interval, rel=1e-12)
    assert share.method == "replicates"
    # Each replicate has exactly 70 of 100: what a whole number hides is left.
    share = pass_share(draws % 100 < 70, draws, replicate)
    half = stats.t.ppf(0.975, 5) * 0.005 / np.sqrt(6)
    assert (share.low, share.share, share.high) == pytest.approx((0.7 - half, 0.7, 0.7 + half), rel=1e-12)
    # With a grid, of which each draw holds the same half.
    share = pass_share(np.arange(200) % 2 == 0, np.arange(200) // 2, np.zeros(200, int))
    assert share == (0.5, *binomial_interval(50, 100), 100, "binomial")
    with pytest.raises(ValueError, match=r"of one shape \(N,\) with N > 0, got \(0,"):
        pass_share([], [], [])


def made_table(names, values):
    """A table with these inputs, whose outcomes are nought."""
    table = np.zeros(len(values), dtype=[(name, "f8") for name in names] + OUTCOME.descr)
    for name, column in zip(names, np.transpose(values), strict=True):
        table[name] = column
    return table


NAMES = ("strong", "payload.x", "middle", "chance", "constant")


@pytest.fixture
def table():
    """A figure that falls with one input, grows weakly with another, and is least amid a third."""
    values = np.random.default_rng(8).random((2000, 5))
    values[:, 4] = 3.0
    table = made_table(NAMES, values)
    z = values - 0.5
    table["joint_error"] = np.exp(-4.0 * z[:, 0] + 0.8 * z[:, 1] + 8.0 * z[:, 2] ** 2)
    table["passes"] = table["joint_error"] < 4.0
    return table


def test_what_matters_comes_first(table):
    rows = importances(table, NAMES, "joint_error")
    assert [row.name for row in rows] == ["strong", "middle", "payload.x", "chance"]
    strong, middle, weak, chance = rows
    for row in rows:
        expected = stats.spearmanr(table[row.name], table["joint_error"]).statistic
        assert row.correlation == pytest.approx(expected, abs=1e-12)
    assert strong.correlation < -0.8
    assert weak.explained == pytest.approx(weak.correlation**2, abs=0.02)
    assert abs(middle.correlation) < 0.05 < 0.15 < middle.explained  # which a correlation overlooks
    assert chance.explained < 0.01
    tenths = np.array_split(table["joint_error"][np.argsort(table["middle"])], 10)
    assert middle.explained == pytest.approx((stats.kruskal(*tenths).statistic - 9) / 1990, rel=1e-12)
    by_holds = importances(table, NAMES, "passes")[0]
    expected = stats.spearmanr(table["strong"], table["passes"]).statistic
    assert (by_holds.name, by_holds.correlation) == ("strong", pytest.approx(expected, abs=1e-12))
    table["joint_error"][table["joint_error"] > np.quantile(table["joint_error"], 0.9)] = np.inf
    table["joint_error"][np.argmax(table["joint_error"])] = np.nan  # which ranks last, too
    again = importances(table, NAMES, "joint_error")
    assert [row.name for row in again] == [row.name for row in rows]
    assert again[0].correlation == pytest.approx(strong.correlation, abs=0.02)


def test_what_is_explained_is_sobols_index():
    """The figure has a uniform distribution, like its ranks."""
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 4, 40_000), rng.random(40_000)
    table = made_table(("a", "b"), np.column_stack([a, b]))
    table["rms_error"] = (a + b) / 4.0  # uniform in 0 to 1: a explains 15/16 of its variance, b 1/16
    explained = {row.name: row.explained for row in importances(table, ("b", "a"), "rms_error")}
    assert explained["a"] == pytest.approx(15 / 16, abs=0.002)
    assert explained["b"] == pytest.approx(1 / 16, abs=0.006)


def test_chance_explains_nothing_on_average():
    """Classes' means scatter by chance; that part is taken off, or ten classes would explain 9 % of 100."""
    rng = np.random.default_rng(4)
    explained = []
    for _ in range(100):
        table = made_table(("a",), rng.random((100, 1)))
        table["rms_error"] = rng.random(100)
        explained.append(importances(table, ("a",), "rms_error")[0].explained)
    assert 0.0 <= np.mean(explained) < 0.03
    assert np.count_nonzero(np.array(explained) == 0.0) > 40


@pytest.mark.parametrize("N", [10, 57])
def test_inputs_with_ties_and_few_trials(N):
    """Grids, an input of nearly always one value, and truth values fall into classes, too."""
    k = np.arange(N)
    table = made_table(("grid", "rare", "other"), np.column_stack([k % 3, k == N - 1, np.maximum(k, N - 3)]))
    table["speed_ratio"] = k % 3
    rows = importances(table, ("rare", "grid", "other"), "speed_ratio")
    assert {row.name for row in rows} == {"grid", "rare", "other"}
    assert (rows[0].name, rows[0].correlation) == ("grid", pytest.approx(1.0))
    assert all(0.0 <= row.explained <= 1.0 for row in rows)


def test_where_nothing_can_matter():
    table = made_table(("a",), np.arange(50.0)[:, np.newaxis])
    for figure in (0.0, np.inf):
        table["joint_error"] = figure
        assert importances(table, ("a",), "joint_error") == []
    table["joint_error"] = np.arange(50)
    assert importances(table[:9], ("a",), "joint_error") == importances(table, (), "joint_error") == []
    with pytest.raises(ValueError, match="a field of the table, got 'b'; known are a, passes, trouble"):
        importances(table, ("a", "b"), "joint_error")


def test_the_worst_are_those_that_fail_then_the_largest():
    table = np.zeros(8, dtype=OUTCOME)
    table["passes"] = [1, 0, 1, 1, 0, 0, 0, 1]
    table["rms_error"] = [5, 1, 9, 5, np.inf, 1, np.nan, 0]
    for count in (0, 3, 100):
        assert worst(table, "rms_error", count).tolist() == [4, 6, 1, 5, 2, 0, 3, 7][:count]
    with pytest.raises(ValueError, match="at least 0, got -1"):
        worst(table, "rms_error", -1)
    with pytest.raises(ValueError, match="got 'torque'"):
        worst(table, "torque", 1)


def test_decisive_figure_is_the_one_with_the_limit():
    """If no run exceeds a limit it is the figure that is closest to it."""
    tables = np.zeros((2, 20), dtype=OUTCOME)
    tables["joint_error"], tables["tool_error"] = np.linspace(0.0, 1.0, 20), np.linspace(0.0, 0.1, 20)
    for joint, tool, last, figure in (
        (0.9, 0.05, 0.1, "tool_error"), (4.0, 0.2, 0.1, "tool_error"),
        (0.4, 5.0, np.inf, "joint_error"), (0.8, 5.0, np.nan, "tool_error"),
    ):  # fmt: skip
        tables[1]["tool_error"][-1 if last == 0.1 else slice(None)] = last
        assert decisive_figure(tables, {"joint_error": joint, "tool_error": tool}) == figure
    assert decisive_figure(tables, {}) == "joint_error"
    assert decisive_figure(tables, {"tool_error": 5.0}) == "tool_error"
    assert decisive_figure(tables, {"saturated": 0.0, "joint_error": 2.0}) == "joint_error"


# Sobol' indices from the runs of a sweep: functions whose indices are known, and runs that have none.


ISHIGAMI = ({"a": 0.3139, "b": 0.4424, "c": 0.0}, {"a": 0.5576, "b": 0.4424, "c": 0.2437})
"""First-order and total indices, published to four digits (Saltelli et al. 2008)."""


def ishigami(x):
    return np.sin(x[:, 0]) + 7.0 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0])


def indices(function, texts, samples, kind="latin", seed=0):
    """The indices of a function of the inputs a, b, ... of a design."""
    names = "abcdefghijklmnopqrstuvwxyzABCD"[: len(texts)]
    variations = [parse_variation(name, text) for name, text in zip(names, texts, strict=True)]
    points = Design(variations, samples, kind, seed).points({})
    dtype = [("draw", "i8"), *((name, "f8") for name in names), ("error", "f8")]
    table = np.zeros(len(points.values), dtype=dtype)
    table["draw"], table["error"] = points.draw, function(points.values)
    for name, column in zip(names, points.values.T, strict=True):
        table[name] = column
    found = sobol_indices(table, tuple(names), "error")
    assert bool(found.reason) != bool(found.rows)
    for row in found.rows:
        assert 0.0 <= row.first <= row.total + 1e-12 <= 1.0 + 2e-12
    return found


@pytest.mark.parametrize("kind", ["random", "latin", "sobol"])
def test_ishigami_of_a_thousand_draws(kind):
    """Intervals of all seeds contain the index: two seeds here, 100 in a study."""
    for seed in range(2):
        found = indices(ishigami, [f"{-np.pi}:{np.pi}"] * 3, 1000, kind, seed)
        assert [row.name for row in found.rows] == ["a", "b", "c"]
        for row in found.rows:
            first, total = ISHIGAMI[0][row.name], ISHIGAMI[1][row.name]
            assert abs(row.first - first) <= row.first_half_width + 1e-4
            assert abs(row.total - total) <= row.total_half_width + 1e-4
            assert 2.0 * row.total_half_width <= 0.15
            assert row.total == pytest.approx(total, abs={"random": 0.05}.get(kind, 0.005))
    assert found.rows[2].first < 0.002


def test_grid_without_random_inputs_has_no_sampling_error():
    """The product of two centred inputs has no effect of either alone."""
    found = indices(lambda x: x[:, 0] * x[:, 1], ["-1:1:9", "-2:2:7"], 1)
    for row in found.rows:
        assert (row.first, row.total) == pytest.approx((0.0, 1.0), abs=1e-12)
        assert row.total_half_width < 1e-12


def test_whole_draws_are_left_out_of_the_fit():
    """Noise that all runs of a draw share, three tenths of the variance, is not taken for an effect."""

    def noisy(x):
        noise = np.repeat(np.random.default_rng(1).standard_normal(len(x) // 3), 3)
        return np.sqrt(0.7) * x[:, 0] / np.std(x[:, 0]) + np.sqrt(0.3) * noise

    assert indices(noisy, ["0,1,2", *["0:1"] * 6], 100).reason.startswith("needs more than 100 draws")


def test_an_input_without_effect_has_none_among_thirty():
    found = indices(lambda x: x[:, 0] + 2.0 * x[:, 7], ["0:1"] * 30, 200)
    assert [row.name for row in found.rows[:2]] == ["h", "a"]
    assert found.rows[0].total == pytest.approx(0.8, abs=0.02)
    assert all(row.total < 0.001 for row in found.rows[2:])


def test_what_cannot_be_computed_has_a_reason():
    for function, inputs, samples, reason in (
        (lambda x: x[:, 0], 3, 10, "needs at least 20 draws for 3 inputs, got 10"),
        (lambda x: np.where(x[:, 0] < 0.1, np.nan, x[:, 0]), 2, 50, "5 of 50 runs have no finite error"),
        (lambda x: np.ones(len(x)), 2, 50, "all runs have the same error"),
        (lambda x: np.random.default_rng(1).random(len(x)), 2, 200, "needs more than 200 draws"),
        (lambda x: 1e6 * (np.arange(len(x)) == 7) + x[:, 0], 2, 100, "needs more than 100 draws"),
    ):
        found = indices(function, ["0:1"] * inputs, samples)
        assert found.reason.startswith(reason)
        assert np.isnan(found.unexplained)


def test_extreme_figures_and_inputs_that_do_not_vary():
    for scale in (1e-200, 1e200):
        found = indices(lambda x, scale=scale: scale * (x[:, 0] + x[:, 1]), ["0:1", "0:1"], 100)
        assert found.rows[0].total == pytest.approx(0.5, abs=0.02)
    assert [row.name for row in indices(lambda x: x[:, 0], ["0:1", "3"], 50).rows] == ["a"]
    assert indices(lambda x: x[:, 0], ["3"], 50).reason == "no input varies"
    rounded = indices(lambda x: np.round(3.0 * x[:, 0]), ["0:1", "0,1"], 100)
    assert rounded.reason or rounded.rows[0].total > 0.9
    with pytest.raises(ValueError, match="got 'torque'"):
        sobol_indices(np.zeros(30, dtype=[("draw", "i8"), ("a", "f8")]), ("a",), "torque")
