"""A step with friction and springs, against every way of sticking and sliding; torques that motors give."""

from dataclasses import replace
from itertools import product
from types import FunctionType

import numpy as np
import pytest

from tests.support.drive_oracles import at_breakaway, equations, oracle_step, random_case
from tests.support.sample_drives import COUPLING, CURVED, by_motor
from twin.physics.robot.drives import drive_step, friction
from twin.physics.robot.drives.drive_step import drive_numbers
from twin.physics.robot.drives.drives import Drives
from twin.physics.robot.drives.motors import MotorLimits, limited_torque

SAME = 1e-10


def stepped(case, step=drive_step.drive_step):
    """The speeds of joints and motors after a step and the arm's torque (3, n); if any sticks."""
    found = np.full((3, case.drives.n), np.nan)
    found[2] = case.tau_before
    numbers = drive_numbers(case.drives, case.mode, case.dt)
    return found, step(numbers, *case[3:10], *found)


def difference(case):
    """How far the step is from the oracle's: speeds over the fastest there is, torques over what turns it.

    Where torques balance, rounding of them moves the arm: speeds are at least 1e-4 of what they would give
    without balance.
    """
    (qd, qd_motor, tau_joint), _ = stepped(case)
    H, b, _, Z, _ = equations(case)
    oracle = oracle_step(case)
    assert oracle.misfit < 1e-11
    speed = max(np.max(np.abs(v)) for v in (Z @ np.linalg.solve(H, b), case.qd, case.qd_motor)) + 1e-9
    pushed = np.concatenate([np.abs(case.h), np.abs(case.tau)])
    speed = max(speed, 1e-4 * np.max(np.abs(Z @ np.linalg.solve(H, case.dt * Z.T @ pushed))))
    torque = np.max(np.abs(case.M) @ np.full(case.drives.n, speed / case.dt)) + np.max(np.abs(case.h))
    return max(
        np.max(np.abs(qd - oracle.qd)) / speed,
        np.max(np.abs(qd_motor - oracle.qd_motor)) / speed,
        np.max(np.abs(tau_joint - oracle.tau_joint)) / torque,
    )


@pytest.mark.parametrize("mode", ["rigid", "elastic"])
def test_step_is_the_one_that_obeys_the_law_of_friction(mode, rng):
    sizes = [1, 2, 3, 4] * 20 + [5] * 4 + [6] * 2
    for coupled, roughness in ((False, 1.0), (True, 0.0), (True, 1000.0)):
        assert max(difference(random_case(rng, n, mode, coupled, roughness)) for n in sizes) < SAME


@pytest.mark.parametrize("mode", ["rigid", "elastic"])
def test_sticking_and_sliding_are_found_in_a_few_rounds(mode, rng):
    """Seen: six at most, in 20,000 cases; more than ten would mean that it goes in circles."""
    rounds, accelerations = counted()
    step = step_with(accelerations)
    for k in range(150):
        case = random_case(rng, 1 + k % 6, mode, coupled=k % 2 == 0, roughness=10.0 ** (k % 4))
        case = at_breakaway(case, rng) if k % 3 == 0 else case
        rounds.clear()
        found, _ = stepped(case, step)
        np.testing.assert_array_equal(found, stepped(case)[0])
        assert 1 <= len(rounds) <= friction.BLOCK_ROUNDS


def test_torques_that_stop_shafts_with_nothing_to_spare_do_not_go_in_circles(rng):
    """Between sticking and sliding it is then rounding that decides."""
    rounds, accelerations = counted()
    for k in range(200):
        n = 2 + k % 7
        L = np.tril(rng.normal(size=(n, n))) + 2 * np.eye(n)
        H, w = L @ L.T, rng.normal(size=n) * rng.choice([0.0, 1e-3, 1.0], n)
        law = np.zeros((friction.TRANSMISSION + n, n))
        law[friction.COULOMB] = 10.0 ** rng.uniform(-2, 1, n)
        rounds.clear()
        f, a = -H @ w / 1e-3 + rng.choice([-1, 1], n) * law[friction.COULOMB], np.empty(n)
        accelerations(H, f, law, w, np.zeros(n), 1e-3, a)
        np.testing.assert_allclose(a, -w / 1e-3, rtol=0, atol=1e-10 * max(np.max(np.abs(w)) / 1e-3, 1e-3))
        assert len(rounds) <= friction.BLOCK_ROUNDS


def counted():
    """A list that grows by one in every round, and the function that goes through them."""
    rounds, solve = [], friction.solve
    counting = vars(friction) | {"solve": lambda *given: (rounds.append(1), solve(*given))[1]}
    return rounds, uncompiled(friction.accelerations_with_friction, counting)


def step_with(accelerations):
    names = vars(drive_step) | {"accelerations_with_friction": accelerations}
    names["drive_accelerations"] = uncompiled(drive_step.drive_accelerations, names)
    return uncompiled(drive_step.drive_step, names)


def uncompiled(function, names):
    """The function as Python runs it, with other names of its module."""
    return FunctionType(getattr(function, "py_func", function).__code__, names)


@pytest.mark.parametrize("mode", ["rigid", "elastic"])
def test_a_torque_that_is_no_number_shows_and_ends(mode, rng):
    case = random_case(rng, 4, mode)
    for tau in (np.nan, np.inf, -np.inf):
        (qd, qd_motor, _), _ = stepped(case._replace(tau=np.array([1.0, tau, 0.0, 2.0])))
        assert not np.all(np.isfinite(np.concatenate([qd, qd_motor])))


def test_one_at_a_time_comes_to_the_same(rng):
    """The way out, should all at once ever go in circles."""
    names = vars(friction) | {"BLOCK_ROUNDS": 0}
    step = step_with(uncompiled(friction.accelerations_with_friction, names))
    for k in range(60):
        case = random_case(rng, 1 + k % 6, "elastic" if k % 2 else "rigid", coupled=k % 3 == 0)
        single, together = stepped(case, step)[0], stepped(case)[0]
        np.testing.assert_allclose(single, together, rtol=0, atol=1e-10 * np.max(np.abs(together)))


def test_a_joint_that_sticks_stands_still_to_the_bit_and_breaks_away_at_its_static_friction():
    drives = Drives([100.0, -50.0], [1e-4, 1e-4], coulomb=[3.0, 2.0], static=[5.0, 4.0], stribeck_speed=0.01)
    M, h, rest = np.array([[2.0, 0.3], [0.3, 0.1]]), np.array([10.0, -4.0]), np.zeros(2)
    numbers, found = drive_numbers(drives, "rigid", 1e-3), np.empty((3, 2))
    for axis, sign, moves in product((0, 1), (-1, 1), (False, True)):
        tau = h.copy()
        tau[axis] += sign * (1 + (1e-9 if moves else -1e-9)) * drives.static[axis]
        assert drive_step.drive_step(numbers, M, h, tau, rest, rest, rest, rest, *found)
        assert found[0, 1 - axis] == 0
        assert np.sign(found[0, axis]) == (sign if moves else 0)
        np.testing.assert_allclose(found[2], h, atol=1e-5)


# What motors make of a demanded torque: limits in the motors' own torques and speeds, coupled or not.


@pytest.mark.parametrize("coupling", [np.eye(6), COUPLING])
def test_torques_are_limited_at_the_motors(coupling, rng):
    drives = replace(CURVED, coupling=coupling, motor_speed_max=[400.0, 300, 350, 500, 450, 1e9])
    motors, limited = MotorLimits.of(drives, np.ones(6)), 0
    for _ in range(500):
        demand = rng.normal(size=6) * drives.torque_max
        qd_motor = rng.normal(size=6) * 4
        tau = np.empty(6)
        assert limited_torque(*motors, demand, qd_motor, tau)
        np.testing.assert_allclose(tau, by_motor(drives, demand, qd_motor), rtol=1e-10, atol=1e-10)
        limited += not np.array_equal(tau, demand)
    assert 300 < limited <= 500


def test_a_motor_that_has_no_falling_torque_gives_all_to_its_top_speed(rng):
    motors, tau = MotorLimits.of(CURVED, np.ones(6)), np.empty(6)
    demand = np.zeros(6)
    demand[2] = 80.0 * 4.0 * 2
    fastest = np.linalg.solve(COUPLING, np.array([0, 0, 300 / 80, 0, 0, 0]))
    assert limited_torque(*motors, demand, 0.999 * fastest, tau)
    assert tau[2] == 80.0 * 4.0
    assert limited_torque(*motors, demand, 1.001 * fastest, tau)
    assert tau[2] == 0
    assert limited_torque(*motors, -demand, 1.001 * fastest, tau)
    assert tau[2] == -80.0 * 4.0, "braking"


def test_a_motor_without_a_top_speed_keeps_its_limit_at_any_speed():
    drives = replace(CURVED, coupling=np.eye(6))
    motors, tau = MotorLimits.of(drives, np.ones(6)), np.empty(6)
    demand, fast = np.array([0.0, 0, 0, 0, 0, 1e3]), np.full(6, 1e3)
    assert limited_torque(*motors, demand, fast, tau)
    assert tau[5] == 40.0 * 1.0


@pytest.mark.parametrize("coupling", [np.eye(6), COUPLING])
def test_a_demand_within_the_limits_is_met_to_the_bit_and_nan_shows(coupling, rng):
    drives = replace(CURVED, coupling=coupling)
    motors, tau = MotorLimits.of(drives, np.ones(6)), np.empty(6)
    demand = coupling.T @ (rng.uniform(-1, 1, 6) * 0.9 * drives.torque_max)
    assert limited_torque(*motors, demand, np.zeros(6), tau)
    np.testing.assert_array_equal(tau, demand)
    demand[3] = np.nan
    assert not limited_torque(*motors, demand, np.zeros(6), tau)


def test_without_drives_torques_are_cut_at_the_joints_limits(rng):
    tau_max, tau = np.arange(1.0, 7.0), np.empty(6)
    motors = MotorLimits.of(None, tau_max)
    demand = rng.normal(size=6) * 10
    assert limited_torque(*motors, demand, np.full(6, 1e6), tau)
    np.testing.assert_array_equal(tau, np.clip(demand, -tau_max, tau_max))
