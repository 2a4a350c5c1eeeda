import numpy as np

from twin.control.closed_loop import saturated
from twin.control.rollout_loop import DEMAND, TAU, saturate

TAU_MAX = np.array([10.0, 20.0, np.inf])


def delivered(demand):
    """The torque that the drives saturate, and whether it is finite."""
    signals = np.full((4, 3), 7.0)
    signals[DEMAND] = demand
    finite = saturate(signals, TAU_MAX)
    np.testing.assert_array_equal(signals[DEMAND], demand)
    return signals[TAU], finite


def test_a_demand_within_the_limits_passes_unchanged():
    for demand in np.array([[9.999, -19.0, 1e9], [-10.0, 20.0, -3.0]]):
        torque, finite = delivered(demand)
        np.testing.assert_array_equal(torque, demand)
        assert finite
        assert not saturated(demand, TAU_MAX).any()


def test_a_demand_beyond_a_limit_is_cut_to_it_and_counted():
    demand = np.array([np.nextafter(10.0, 11.0), -20.5, 4.0])
    torque, finite = delivered(demand)
    np.testing.assert_array_equal(torque, [10.0, -20.0, 4.0])
    assert finite
    np.testing.assert_array_equal(saturated(demand, TAU_MAX), [True, True, False])


def test_infinity_is_cut_where_there_is_a_limit_and_nan_stays():
    for demand, expected, fine in (
        ([np.inf, -np.inf, 1.0], [10.0, -20.0, 1.0], True),
        ([np.inf, -np.inf, np.nan], [10.0, -20.0, np.nan], False),
        ([0.0, 0.0, 1e200], [0.0, 0.0, 1e200], True),
        ([np.nan, 0.0, 0.0], [np.nan, 0.0, 0.0], False),
        ([0.0, 0.0, -np.inf], [0.0, 0.0, -np.inf], False),
    ):
        torque, finite = delivered(np.array(demand))
        np.testing.assert_array_equal(torque, expected)
        assert finite == fine
    np.testing.assert_array_equal(saturated(np.array([np.inf, -np.inf, np.nan]), TAU_MAX), [True, True, True])
