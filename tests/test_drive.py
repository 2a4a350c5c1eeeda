import numpy as np

from twin.drive import drive_torque, saturated

TAU_MAX = np.array([10.0, 20.0, np.inf])


def test_a_demand_within_the_limits_passes_unchanged():
    demand = np.array([[9.999, -19.0, 1e9], [-10.0, 20.0, -3.0]])
    np.testing.assert_array_equal(drive_torque(demand, TAU_MAX), demand)
    assert not saturated(demand, TAU_MAX).any()


def test_a_demand_beyond_a_limit_is_cut_to_it_and_counted():
    demand = np.array([np.nextafter(10.0, 11.0), -20.5, 4.0])
    np.testing.assert_array_equal(drive_torque(demand, TAU_MAX), [10.0, -20.0, 4.0])
    np.testing.assert_array_equal(saturated(demand, TAU_MAX), [True, True, False])


def test_infinity_is_cut_where_there_is_a_limit_and_nan_stays():
    demand = np.array([np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(drive_torque(demand, TAU_MAX), [10.0, -20.0, np.nan])
    np.testing.assert_array_equal(saturated(demand, TAU_MAX), [True, True, True])


def test_out_is_filled_and_the_demand_is_not_touched():
    demand, out = np.array([30.0, 0.0, 1.0]), np.empty(3)
    assert drive_torque(demand, TAU_MAX, out=out) is out
    np.testing.assert_array_equal(out, [10.0, 0.0, 1.0])
    np.testing.assert_array_equal(demand, [30.0, 0.0, 1.0])
