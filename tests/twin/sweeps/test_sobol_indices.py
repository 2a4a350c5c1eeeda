"""Sobol' indices from the runs of a sweep: functions whose indices are known, and runs that have none."""

import numpy as np
import pytest

from twin.sweeps.design import Design, parse_variation
from twin.sweeps.sobol_indices import sobol_indices

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


def test_distribution_of_an_input_does_not_matter():
    """A sum of independent inputs of equal variance, one of them normal: one half each, alone."""
    found = indices(lambda x: x[:, 0] + x[:, 1] / np.sqrt(1 / 12), ["3~1", "0:1"], 500)
    for row in found.rows:
        assert (row.first, row.total) == pytest.approx((0.5, 0.5), abs=0.02)


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
