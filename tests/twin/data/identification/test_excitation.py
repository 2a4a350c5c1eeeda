"""Excitations: series at rest at both ends, within limits, that tell the parameters."""

from dataclasses import replace

import numpy as np
import pytest

import twin
from scenarios.excitation import Excitation
from scenarios.setup import Sampling
from twin.base.errors import IdentificationError
from twin.data.identification.excitation import (
    RANGE_SHARE,
    SPEED_SHARE,
    TORQUE_SHARE,
    FourierMotion,
    at_rest_basis,
    excitation_use,
    optimal_excitation,
    read_excitation,
    stored_excitation,
    write_excitation,
)
from twin.data.identification.torque_model import base_parameters

FEW = {"draws": 3, "iterations": 2}


@pytest.fixture(scope="module")
def motion():
    rng = np.random.default_rng(1)
    a, b = np.split(rng.normal(size=(2, 6)) @ at_rest_basis(4).T, 2, axis=1)
    return FourierMotion(np.array([0.3, -0.2]), a, b, 2.5, periods=2)


def samples(motion, count=700):
    return motion(np.linspace(0.0, motion.duration, count))


def within(robot, motion):
    """Whether it keeps ranges, folding, speeds and torques, by the shares that are left for other things."""
    q, qd, qdd = samples(motion)
    tau = twin.inverse_dynamics(robot, q, qd, qdd)
    passive, folded = robot.passive_angles(q), robot.passive_angles(motion.start)
    for way, low, high in (
        (q - motion.start, robot.q_min - motion.start, robot.q_max - motion.start),
        (passive - folded, robot.passive_min - folded, robot.passive_max - folded),
    ):
        if not (np.all(way <= RANGE_SHARE * high * 1.003) and np.all(way >= RANGE_SHARE * low * 1.003)):
            return False
    return np.all(np.abs(qd) <= SPEED_SHARE * robot.qd_max * 1.003) and np.all(
        np.abs(tau) <= TORQUE_SHARE * robot.drive_torque_max * 1.003
    )


def test_a_motion_begins_and_ends_every_period_at_rest_and_holds(motion):
    for t in (-1.0, 0.0, 1e-12, 2.5, 5.0 - 1e-12, 5.0, 9.0):
        q, qd, qdd = motion(t)
        np.testing.assert_allclose(q, motion.start, rtol=0, atol=1e-14)
        np.testing.assert_allclose([qd, qdd], 0.0, atol=1e-10)
    assert np.max(np.abs(motion(0.7)[1])) > 0.1
    for first, second in zip(motion(0.7), motion(3.2), strict=True):
        np.testing.assert_allclose(first, second, rtol=0, atol=1e-13)


def test_speeds_and_accelerations_are_derivatives(motion):
    t, h = np.linspace(0.1, 4.9, 50).reshape(5, 10), 1e-5
    q, qd, qdd = motion(t)
    assert q.shape == (5, 10, 2)
    before, after = motion(t - h), motion(t + h)
    np.testing.assert_allclose((after[0] - before[0]) / (2 * h), qd, rtol=0, atol=1e-7)
    np.testing.assert_allclose((after[1] - before[1]) / (2 * h), qdd, rtol=0, atol=1e-6)


def test_a_series_that_does_not_begin_at_rest_is_refused(motion):
    for changed, told in (
        ({"a": motion.a + np.array([[0.0], [0.1]])}, "joint 2 does not begin at rest: its speed is not 0"),
        ({"b": motion.b + np.array([[0.1], [0.0]])}, "joint 1 does not begin at rest: its acceleration is n"),
        ({"start": np.zeros(3)}, r"expected start \(n,\)"),
        ({"period": 0.0}, "expected a period above 0 s"),
    ):
        with pytest.raises(ValueError, match=told):
            replace(motion, **changed)


def test_optimal_motion_satisfies_limits_and_determines_parameters(irb1400):
    robot, heard = irb1400.with_drives("rigid"), []
    found = optimal_excitation(robot, **FEW, progress=heard.append)
    assert within(robot, found)
    use = excitation_use(robot, *samples(found, 300))
    assert use.condition < 1000
    assert max(use[1:]) <= 1
    assert heard == [0.5, 1.0]


def test_slow_motions_end_where_ranges_and_loops_do(irb1400):
    for seed in range(2):
        slow = optimal_excitation(irb1400, period=30.0, draws=1, iterations=0, seed=seed)
        assert within(irb1400, slow)
        use = excitation_use(irb1400, *samples(slow, 300))
        assert use.speed < 0.9 * SPEED_SHARE
        assert max(use.range, use.folding) > 0.85


def test_the_search_makes_the_deviations_of_parameters_smaller_and_is_the_same_again(irb140):
    robot = irb140.with_drives("rigid")
    base = base_parameters(robot)

    def deviation(found):
        """The geometric mean of the standard deviations of base parameters."""
        Y = twin.dynamics_regressor(robot, *samples(found, 300))[..., base.columns]
        W = (Y / robot.drive_torque_max[:, None]).reshape(-1, len(base.columns))
        return np.exp(-0.5 * np.linalg.slogdet(W.T @ W)[1] / len(base.columns))

    drawn = optimal_excitation(robot, draws=4, iterations=0)
    better = optimal_excitation(robot, draws=4, iterations=5)
    assert deviation(better) < 0.9 * deviation(drawn)
    again, other = (optimal_excitation(robot, draws=4, iterations=0, seed=seed) for seed in (0, 1))
    np.testing.assert_array_equal(again.a, drawn.a)
    assert not np.array_equal(other.a, drawn.a)


def test_a_motion_that_drives_could_not_make_is_made_smaller(irb140):
    """Within half a second the full motion would need 1.4 times the torque of joint 2.

    The payload is one whose weight and static friction leave torque to the wrist: with 5 kg at 0.2 m they
    alone need 78 % at joint 5, and no motion is small enough.
    """
    robot = irb140.with_drives("rigid").with_payload(twin.Payload(3.0, (0.0, 0.0, 0.1)))
    found = optimal_excitation(robot, period=0.5, draws=3, iterations=0)
    assert within(robot, found)
    assert excitation_use(robot, *samples(found, 300)).torque > 0.95 * TORQUE_SHARE
    heavy = irb140.with_drives("rigid").with_payload(twin.Payload(5.0, (0.0, 0.0, 0.2)))
    with pytest.raises(
        IdentificationError, match="no excitation with a period of 1 s keeps 75% of every torque"
    ):
        optimal_excitation(heavy, period=1.0, draws=3, iterations=0)


def test_a_robot_without_limits_gets_a_motion():
    robot = twin.load("two_link").mounted("wall")
    assert not np.any(np.isfinite(robot.q_max))
    use = excitation_use(robot, *samples(optimal_excitation(robot, harmonics=3, **FEW), 300))
    assert use.condition < 100
    assert use[1:] == (0.0, 0.0, 0.0, 0.0)


def test_start_without_a_feasible_motion_is_rejected(irb140, irb1400):
    folded = irb1400.q_max * [0, 0, 1, 0, 0, 0] + irb1400.q_min * [0, 0.9, 0, 0, 0, 0]
    heavy = irb140.with_payload(twin.Payload(60.0, (0.0, 0.0, 0.3)))
    end = irb140.q_max * [0, 1, 0, 0, 0, 0]
    at_end = "cannot start where joint_2 is at the end of its range"
    for robot, settings, error, told in (
        (irb140, {"start": end}, IdentificationError, at_end),
        (irb1400, {"start": folded}, IdentificationError, "cannot start where joint_"),
        (heavy, {}, IdentificationError, "of its torque to hold the arm"),
        (irb140, {"harmonics": 1}, ValueError, "expected 2 to 20 harmonics, got 1"),
        (irb140, {"period": np.nan}, ValueError, "expected a period above 0 s, got nan"),
        (irb140, {"draws": 0}, ValueError, "expected draws from 1"),
    ):
        with pytest.raises(error, match=told):
            optimal_excitation(robot, **settings)


def test_stored_motion_suits_its_arm(arm):
    robot = arm.with_drives("rigid")
    motion = stored_excitation(robot)
    assert motion is not None
    assert within(robot, motion)
    assert excitation_use(robot, *samples(motion, 300)).condition < 100
    assert Excitation().stored(robot, robot) is not None
    assert Excitation(harmonics=4).stored(robot, robot) is None
    assert Excitation().stored(robot, Sampling(payload="80").loaded(robot)) is None


def test_a_motion_is_read_as_it_was_written(tmp_path, motion):
    path = tmp_path / "excitation.toml"
    write_excitation(motion, path)
    back = read_excitation(path)
    for name in ("start", "a", "b", "period"):
        np.testing.assert_array_equal(getattr(back, name), getattr(motion, name))
    assert stored_excitation(twin.load("two_link")) is None
    path.write_text("period = 2.0\nstart = [0]\na = [[0.0, 1.0]]")
    with pytest.raises(IdentificationError, match=r"excitation.toml: 'b' is missing"):
        read_excitation(path)
    path.write_text("period = 2.0\nstart = [0]\na = [[0.0, 1.0]]\nb = [[0, 0]]")
    with pytest.raises(IdentificationError, match=r"excitation.toml: joint 1 does not begin at rest"):
        read_excitation(path)
    write_excitation(motion, path)
    moved = replace(twin.load("irb140"), file=tmp_path / "robot.toml")
    with pytest.raises(IdentificationError, match="the motion has 2 joints, but robot 'irb140' has 6"):
        stored_excitation(moved)
