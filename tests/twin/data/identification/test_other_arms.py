"""An arm with a prismatic axis, mounted on floor and wall, from one recording and from two."""

import numpy as np
import pytest

import twin
from tests.support.small_robots import SOUND
from twin.data.identification import Filtering

DT = 0.004
COULOMB = np.array([0.5, 2.0])
SETTINGS = {"filtering": Filtering(10.0), "deviations": "white"}


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    path = tmp_path_factory.mktemp("arm") / "sound.urdf"
    path.write_text(SOUND)
    return twin.load(path, tool_frame="two")


def recorded(arm, seed):
    """Three sines per axis, with Coulomb friction and 1 % of noise in the torques."""
    t = np.arange(0.0, 8.0, DT)
    w = 2 * np.pi * np.array([[0.4, 0.7], [0.9, 1.1], [1.3, 0.5]])
    a = np.array([[0.3, 0.04], [0.1, 0.02], [-0.05, 0.03]])
    p = w * t[:, None, None] + np.array([[0, 1], [2, 0.5], [1, 2.5]]) + seed
    q = np.array([0.0, 0.1]) + np.sum(a * np.sin(p), axis=1)
    qd, qdd = np.sum(a * w * np.cos(p), axis=1), -np.sum(a * w * w * np.sin(p), axis=1)
    tau = twin.inverse_dynamics(arm, q, qd, qdd) + COULOMB * np.sign(qd)
    noise = 0.01 * np.sqrt(np.mean(tau**2, axis=0)) * np.random.default_rng(seed).normal(size=q.shape)
    return twin.logs.torque_recording(t, q, tau + noise, f"run{seed}.csv")


def test_a_prismatic_axis_on_a_wall(arm):
    mounted = arm.mounted("wall")
    runs = [recorded(mounted, seed) for seed in range(2)]
    one, both = (twin.identify(mounted, *some, **SETTINGS) for some in (runs[:1], runs))
    assert one.findings == both.findings == ()
    assert [len(found.how) for found in (one, both)] == [1, 2]
    values = {value.symbol: value for value in both.values}
    assert values["Fc2"].unit == "N"
    assert values["m_two"].unit == "kg"
    for symbol, true in (("m_two", 1.0), ("mx_one", 0.45), ("Fc1", 0.5), ("Fc2", 2.0)):
        assert abs(values[symbol].value - true) < 4 * values[symbol].deviation
    assert np.max(both.residuals.percent) < 0.5
    assert 0.5 < np.median(both.deviations / one.deviations) < 0.9  # twice as much of the same
