"""How quantities vary, and where the trials of a sweep lie."""

import re

import numpy as np
import pytest
from scipy import stats

from twin.base.errors import VariationError
from twin.studies.sweeps.design import MOST_GRID_POINTS, MOST_POINTS, Design, parse_variation

U = np.linspace(0.001, 0.999, 97)
NOMINAL = -4.0


@pytest.mark.parametrize(
    ("text", "distribution"),
    [
        ("0:6", stats.uniform(0.0, 6.0)), ("+-50%", stats.uniform(-6.0, 4.0)),
        ("+-0.5", stats.uniform(-4.5, 1.0)), ("3~0.5", stats.norm(3.0, 0.5)),
        ("~10%", stats.norm(-4.0, 0.4)), ("~0.1", stats.norm(-4.0, 0.1)),
        ("0.1:1000:log", stats.loguniform(0.1, 1000.0)),
    ],
)  # fmt: skip
def test_a_distribution_has_the_quantiles_of_its_kind(text, distribution):
    variation = parse_variation("payload", text)
    assert variation.is_random
    np.testing.assert_allclose(variation.values(U, NOMINAL), distribution.ppf(U), rtol=1e-13, atol=1e-15)
    ends = variation.values([0.0, 1e-300, 0.5, 1.0 - 1e-16, 1.0], NOMINAL)
    assert np.all(np.isfinite(ends))
    assert np.all(np.diff(ends) >= 0.0)
    low, high = distribution.support()
    assert np.all((ends >= low - 1e-15) & (ends <= high + 1e-15))
    with pytest.raises(ValueError, match="which is a distribution"):
        variation.grid()


def test_grid_has_the_given_points_in_order():
    for text, points in (("5:15:3", [5, 10, 15]), ("3, 1,2e0", [3, 1, 2]), ("-7", [-7])):
        variation = parse_variation("bandwidth", text)
        assert not variation.is_random
        assert variation.grid().tolist() == points
        with pytest.raises(ValueError, match="which is a grid"):
            variation.values(U, NOMINAL)


def test_impossible_variation_is_rejected():
    for text, sentence in (
        ("40:5:8", "the range is reversed; write '5:40'"),
        ("-1e308:1e308", "the range is too wide"),
        ("0:1:2.5", "the number of points must be whole and at least 2, got 2.5"),
        ("0:1:1000000", f"a grid has at most {MOST_GRID_POINTS} points; omit the third number for a range"),
        ("1,2,1.0", "the grid has the value 1 twice"),
        ("-2:-1:log", "a logarithmic range must be above 0"),
        ("nan:1", "nan is not a finite number"),
        ("+-0%", "the distance must be above 0"),
    ):
        with pytest.raises(VariationError) as caught:
            parse_variation("payload", text)
        assert str(caught.value) == f"cannot vary payload by {text!r}: {sentence}"


def test_error_of_an_unknown_form_lists_the_forms():
    for text in ("", "much", "1:2:3:4", "1~2~3", "3~10%", "1,,2"):
        with pytest.raises(VariationError, match="expected a form such as ") as caught:
            parse_variation("payload", text)
    examples = re.findall("'([^']*)'", str(caught.value).partition("such as")[2])
    assert [parse_variation("payload", example).text for example in examples] == examples
    assert len(examples) == 9


def test_a_nominal_value_that_does_not_go_with_the_variation():
    for text, nominal, sentence in (
        ("+-50%", 0.0, "its nominal value is 0, and so is any share of it; omit the % to give"),
        ("+-0.5", np.nan, "its nominal value is nan; give a range, as in 'noise=0:1'"),
        ("1e308~1e308", 0.0, "values become too large"),
    ):
        with pytest.raises(VariationError, match=re.escape(f"cannot vary noise by {text}: {sentence}")):
            parse_variation("noise", text).values(U, nominal)
    for absolute in ("0:6", "3~0.5", "1:10:log"):
        assert np.all(np.isfinite(parse_variation("noise", absolute).values(U, np.nan)))


def varied(*texts):
    """Variations of quantities called a, b, c, ..."""
    return [parse_variation(name, text) for name, text in zip("abcdef", texts, strict=False)]


def test_every_draw_is_repeated_at_every_point_of_the_grid():
    design = Design(varied("10:20:2", "0:1", "3,1,2", "~10%"), samples=20, kind="random", seed=3)
    points = design.points({"d": 5.0})
    assert points.names == ("a", "b", "c", "d")
    assert (design.draws, design.grid_points) == (20, 6)
    by_draw = points.values.reshape(20, 6, 4)
    for draw in by_draw:
        assert draw[:, [0, 2]].tolist() == [[10, 3], [10, 1], [10, 2], [20, 3], [20, 1], [20, 2]]
    assert np.all(by_draw[:, :, [1, 3]] == by_draw[:, :1, [1, 3]])
    assert len(np.unique(by_draw[:, 0, 1])) == len(np.unique(by_draw[:, 0, 3])) == 20
    assert points.draw.tolist() == np.repeat(range(20), 6).tolist()
    assert np.all(points.replicate == 0)


def test_without_anything_random_there_is_one_draw():
    """Two laws are compared by a sweep of one point, in which nothing at all varies."""
    for kind in ("latin", "sobol", "random"):
        points = Design(varied("1:3:3", "7"), samples=1000, kind=kind).points({})
        assert points.values.tolist() == [[1, 7], [2, 7], [3, 7]]
        assert not np.any([points.draw, points.replicate])
    assert Design([]).points({}).values.shape == (1, 0)


@pytest.mark.parametrize("kind", ["latin", "sobol"])
def test_a_stratified_design_hits_each_stratum_once_in_each_replicate(kind):
    design = Design(varied("0:1", "0:1", "0:1"), samples=640, kind=kind, seed=11)
    points = design.points({})
    replicates = [points.values[points.replicate == k] for k in range(10)]
    for values in replicates:
        strata = np.floor(values * 64).astype(int)
        assert np.all(np.sort(strata, axis=0) == np.arange(64)[:, np.newaxis])
        if kind == "sobol":  # in the first two quantities at a time: 8 by 8 fields, once each
            fields = np.floor(values[:, :2] * 8).astype(int)
            assert len({tuple(field) for field in fields}) == 64
    assert len({values.tobytes() for values in replicates}) == 10
    assert abs(np.corrcoef(points.values, rowvar=False)[np.triu_indices(3, 1)]).max() < 0.1


@pytest.mark.parametrize(
    ("kind", "samples", "replicates", "draws"),
    [("latin", 9, 9, 1), ("sobol", 2000, 16, 128), ("random", 77, 1, 77)],
)
def test_seeds_give_reproducible_bits_and_at_least_the_samples_asked_for(kind, samples, replicates, draws):
    def values(seed):
        return Design(varied("0:1", "~1"), samples=64, kind=kind, seed=seed).points({"b": 2.0}).values

    assert values(5).tobytes() == values(5).tobytes()
    assert not np.any(values(5) == values(6))
    # Noise of the first trial comes from a generator of the plain seed.
    assert not np.isin(values(5)[:, 0], np.random.default_rng(5).random(200)).any()
    design = Design(varied("0:1", "1,2,3"), samples=samples, kind=kind)
    points = design.points({})
    assert design.draws == replicates * draws >= samples
    assert points.draw.tolist() == np.repeat(range(design.draws), 3).tolist()
    assert points.replicate.tolist() == np.repeat(range(replicates), 3 * draws).tolist()


def test_designs_that_cannot_be():
    many = f"10000000 draws at 3 grid points .* 30000000 trials, but at most {MOST_POINTS}"
    for variations, settings, told in (
        ([*varied("0:1"), *varied("1,2")], {}, r"^a is varied twice$"),
        (varied("0:1"), {"samples": 0}, r"^expected at least 1 sample, got 0$"),
        (varied("0:1", "1,2,3"), {"samples": MOST_POINTS}, many),
        (varied("0:1"), {"kind": "grid"}, "expected a design of latin, sobol, random, got 'grid'"),
        (varied("0:1"), {"replicates": 1}, "at least 2 replicates, got 1"),
        (varied("+-10%"), {}, r"cannot vary a by .*: its nominal value is nan"),
    ):
        with pytest.raises((VariationError, ValueError), match=told):
            Design(variations, **settings).points({"b": 1.0})
