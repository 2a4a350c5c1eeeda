"""Tests of the scenario in my_scenario.py; `python -m pytest test_my_scenario.py` runs them."""

import numpy as np
import pytest
from my_scenario import Config, metrics, run


@pytest.fixture(scope="module")
def log():
    """Return the log of a run in PyBullet, with the default settings."""
    return run(Config())


def test_every_check_passes(log):
    """Test every limit that the command line reports."""
    assert [metric.name for metric in metrics(log) if not metric.passes] == []


def test_only_axis_5_moves_down_and_up_again(log):
    """Test the positions of the simulated arm, not those of the reference."""
    assert np.max(log.q[:, 4]) == pytest.approx(Config().angle, abs=1e-6)
    np.testing.assert_allclose(log.q[-1], log.q[0], atol=1e-6)
    np.testing.assert_allclose(np.delete(log.q, 4, axis=1), 0, atol=1e-6)


def test_invalid_settings_raise_an_error():
    """Test that the error occurs before anything runs."""
    with pytest.raises(ValueError, match="duration"):
        Config(duration=0.0)
