"""Curves in few points: nothing that stands out is lost, and gaps stay gaps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from twin.logs.columns import thinned

SERIES = arrays(np.float64, st.integers(0, 300), elements=st.floats(allow_nan=True, width=16))


@given(SERIES, st.integers(5, 60))
def test_no_extreme_is_lost(series, most):
    kept = thinned(series, most)
    assert len(kept) == min(len(series), len(kept)) <= max(most, 0)
    assert np.all(np.diff(kept) > 0)
    if len(series):
        assert (kept[0], kept[-1]) == (0, len(series) - 1)
    numbers, drawn = series[~np.isnan(series)], series[kept][~np.isnan(series[kept])]
    if len(numbers):
        assert (drawn.min(), drawn.max()) == (numbers.min(), numbers.max())
    assert np.isnan(series[kept]).any() == np.isnan(series).any()


@given(SERIES, st.integers(5, 60))
def test_thinning_preserves_the_extremes_of_every_part(series, most):
    """Whatever sample is left out, near it on either side there are one at least as low and one as high."""
    kept, N = thinned(series, most), len(series)
    near = -(-N // ((most - 2) // 3))  # samples: the length of a part
    for k in np.setdiff1d(np.arange(N), kept):
        around = series[kept[np.abs(kept - k) < near]]
        assert np.isnan(series[k]) or (np.nanmin(around) <= series[k] <= np.nanmax(around))
        assert not np.isnan(series[k]) or np.isnan(around).any()


def test_a_spike_of_one_sample_is_there():
    series = np.sin(np.linspace(0, 9, 600_000))
    series[123_456] = 50.0
    assert 123_456 in thinned(series, 1000)


def test_few_samples_stay_as_they_are():
    assert thinned(np.arange(7.0), 7).tolist() == list(range(7))


@pytest.mark.parametrize(
    ("series", "most"), [(np.zeros((3, 2)), 10), (np.zeros(3), 4), (np.zeros(3), np.nan)]
)
def test_what_cannot_be_thinned_is_refused(series, most):
    with pytest.raises(ValueError, match=r"shape \(N,\) and at least 5 points"):
        thinned(series, most)
