"""Tests of the scenario in my_scenario.py; `python -m pytest test_my_scenario.py` runs them."""

import numpy as np
import pytest
from my_scenario import MyScenario


@pytest.fixture(scope="module")
def run():
    """Return a run in PyBullet, with the default options and setup."""
    return MyScenario().run()


def test_every_check_passes(run):
    """Test every limit that the command line reports."""
    assert [metric.name for metric in MyScenario().metrics(run) if not metric.passes] == []


def test_only_axis_5_moves_down_and_up_again(run):
    """Test the positions of the simulated arm, not those of the reference."""
    q = run.log.q
    assert np.max(q[:, 4]) == pytest.approx(MyScenario().angle, abs=1e-6)
    np.testing.assert_allclose(q[-1], q[0], atol=1e-6)
    np.testing.assert_allclose(np.delete(q, 4, axis=1), 0, atol=1e-6)


def test_invalid_options_raise_an_error():
    """Test that the error occurs before anything runs."""
    with pytest.raises(ValueError, match="duration"):
        MyScenario(duration=0.0)
