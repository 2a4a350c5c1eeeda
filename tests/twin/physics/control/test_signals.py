import numpy as np

from twin.physics.control.signals import DEMAND, QD, TAU, joint_without_torque, limit_torque
from twin.physics.robot.drives.drives import Drives
from twin.physics.robot.drives.motors import MotorLimits

TAU_MAX = np.array([10.0, 20.0, np.inf])


def delivered(demand, drives: Drives | None = None, qd: np.ndarray | float = 7.0):
    """The torque that the motors make of a demand, whether it is finite, and where it is another."""
    signals = np.full((4, 3), 7.0)
    signals[DEMAND], signals[QD] = demand, qd
    finite = limit_torque(signals, *MotorLimits.of(drives, TAU_MAX))
    np.testing.assert_array_equal(signals[DEMAND], demand)
    return signals[TAU], finite, signals[TAU] != demand


def test_a_demand_within_the_limits_passes_unchanged():
    for demand in np.array([[9.999, -19.0, 1e9], [-10.0, 20.0, -3.0]]):
        torque, finite, cut = delivered(demand)
        np.testing.assert_array_equal(torque, demand)
        assert finite
        assert not cut.any()


def test_a_demand_beyond_a_limit_is_cut_to_it():
    torque, finite, cut = delivered(np.array([np.nextafter(10.0, 11.0), -20.5, 4.0]))
    np.testing.assert_array_equal(torque, [10.0, -20.0, 4.0])
    assert finite
    np.testing.assert_array_equal(cut, [True, True, False])


def test_infinity_is_cut_where_there_is_a_limit_and_nan_stays():
    for demand, expected, fine in (
        ([np.inf, -np.inf, 1.0], [10.0, -20.0, 1.0], True),
        ([np.inf, -np.inf, np.nan], [10.0, -20.0, np.nan], False),
        ([0.0, 0.0, 1e200], [0.0, 0.0, 1e200], True),
        ([np.nan, 0.0, 0.0], [np.nan, 0.0, 0.0], False),
        ([0.0, 0.0, -np.inf], [0.0, 0.0, -np.inf], False),
    ):
        torque, finite, cut = delivered(np.array(demand))
        np.testing.assert_array_equal(torque, expected)
        assert finite == fine
        np.testing.assert_array_equal(cut, np.array(expected) != np.array(demand))


COUPLED = Drives(
    [50.0, -40.0, 30.0], 1e-4, coupling=[[1, 0, 0], [0, 1, 0], [0, 0.5, 1]], motor_torque_max=[0.2, 0.5, 1.0]
)


def test_coupled_motors_are_limited_by_motor_torque():
    """`tau = R^T own` and `own = R^-T tau`: motor 2 bears half of joint 3's torque less."""
    torque, finite, cut = delivered(np.array([9.0, 22.0, 8.0]), COUPLED)  # own: 9, 18, 8 of 10, 20, 30
    assert finite
    assert not cut.any()
    torque, finite, cut = delivered(np.array([9.0, 18.0, -8.0]), COUPLED)  # own: 9, 22, -8
    np.testing.assert_allclose(torque, [9.0, 20.0 - 4.0, -8.0], rtol=1e-15)
    np.testing.assert_array_equal(cut, [False, True, False])
    assert finite


def test_a_demand_that_is_none_is_that_of_its_joint():
    """It spreads to the motors that have a part in it, and the message names the joint that was demanded."""
    for joint in range(3):
        demand = np.array([1.0, 2.0, 3.0])
        demand[joint] = np.nan
        torque, finite, _ = delivered(demand, COUPLED)
        assert not finite
        assert joint_without_torque(demand, torque) == joint
        assert joint == 0 or torque[0] == 1.0


def test_a_fast_motor_gives_less_and_a_coupled_one_is_as_fast_as_its_joints_together():
    drives = Drives(1.0 * np.ones(3), 0.0, coupling=COUPLED.coupling, motor_torque_max=10.0,
                    motor_speed_rated=2.0, motor_speed_max=4.0)  # fmt: skip
    qd = np.array([0.0, 3.0, 1.5])  # of the motors: 0, 3, 3
    torque, _, cut = delivered(np.array([10.0, 10.0, 10.0]), drives, qd)
    np.testing.assert_allclose(torque, [10.0, 5.0 + 0.5 * 5.0, 5.0], rtol=1e-15)
    assert cut.tolist() == [False, True, True]
    torque, _, cut = delivered(np.array([10.0, -5.0, -10.0]), drives, qd)  # braking: full torque
    assert not cut.any()
