"""Tests of the scenario in my_scenario.py; `python -m pytest test_my_scenario.py` runs them."""

import numpy as np
import pytest
from my_scenario import Config, metrics, run


@pytest.fixture(scope="module")
def log():
    """A run in PyBullet, with the settings as they are."""
    return run(Config())


def test_every_limit_holds(log):
    """Of all figures that the command line shows."""
    assert [metric.name for metric in metrics(log) if not metric.passes] == []


def test_axis_5_alone_goes_down_and_up_again(log):
    """Where the arm was, by the engine: not where it was sent."""
    assert np.max(log.q[:, 4]) == pytest.approx(Config().angle, abs=1e-6)
    np.testing.assert_allclose(log.q[-1], log.q[0], atol=1e-6)
    np.testing.assert_allclose(np.delete(log.q, 4, axis=1), 0, atol=1e-6)


def test_settings_that_make_no_sense_are_refused():
    """With a sentence, before anything runs."""
    with pytest.raises(ValueError, match="duration"):
        Config(duration=0.0)
