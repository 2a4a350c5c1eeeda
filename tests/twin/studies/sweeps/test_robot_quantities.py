"""Quantities of a robot that can vary: each changes exactly what it names."""

import dataclasses

import numpy as np
import pytest

from tests.support.small_robots import SOUND, agrees
from twin.base.errors import UnknownNameError, VariationError
from twin.physics.dynamics.equation_of_motion import gravity_torque, mass_matrix
from twin.physics.robot.quantities import COLUMNS, SCALED_WITH, changed, quantities, quantity
from twin.physics.robot.robot import Payload

LOAD = Payload(4.0, (0.02, -0.03, 0.1), np.diag([0.02, 0.03, 0.01]))
Q = np.array([0.3, -0.2, 0.2, 0.4, 0.5, -0.3])


@pytest.fixture(scope="module")
def rigid(irb140):
    return irb140.with_drives("rigid")


def close(a, b):
    return np.max(np.abs(a - b)) <= 1e-14 * np.max(np.abs(b))


@pytest.mark.parametrize("compute", [gravity_torque, mass_matrix])
def test_a_factor_on_masses_is_one_on_weight_and_inertia_and_not_on_the_payload(irb1400, compute):
    arm = irb1400
    bare, loaded = compute(arm, Q), compute(arm.with_payload(LOAD), Q)
    heavier = changed(arm.with_payload(LOAD), [("mass", 1.1)])
    assert close(compute(heavier, Q), 1.1 * bare + (loaded - bare))
    assert heavier.payload is LOAD


def test_mass_of_a_link_scales_its_inertia(load):
    """By the name of the link, or of its joint; whatever the factor of all."""
    links = SOUND.split("</link>")
    (place,) = [k for k, link in enumerate(links) if 'mass value="3"' in link]
    for number in ("3", "0.004", "0.03"):
        links[place] = links[place].replace(f'"{number}"', f'"{1.5 * float(number)!r}"')
    by_hand, robot = load("</link>".join(links), "by_hand.urdf"), load(SOUND)
    assert not close(by_hand.tree.inertias, robot.tree.inertias)
    for name in ("mass.one", "mass.turn"):
        assert close(changed(robot, [(name, 4.5)]).tree.inertias, by_hand.tree.inertias)
    both = changed(robot, [("mass.one", 4.5), ("mass", 2.0)]).tree.inertias
    assert close(both, by_hand.tree.inertias * [[1.0], [2.0]])


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_of_the_drives_is_multiplied_and_one_number_is_what_it_is(irb140, column):
    """Dependent columns scale in proportion; all other numbers stay equal to the bit."""
    robot = irb140.with_drives("elastic").with_payload(LOAD)
    old = robot.drives
    other = SCALED_WITH.get(column, ("", None))[0]
    factor = 0.9 if column in ("motor_speed_rated", "stiffness") else 1.3
    for name, value, share in (
        (f"drives.{column}", factor, np.full(6, factor)),
        (f"drives.{column}.2", factor * getattr(old, column)[1], np.where(np.arange(6) == 1, factor, 1.0)),
    ):
        result = changed(robot, [(name, value)])
        assert (result.drive_mode, result.payload, result.tree) == ("elastic", LOAD, robot.tree)
        for item in dataclasses.fields(old):
            was, now = getattr(old, item.name), getattr(result.drives, item.name)
            if item.name in (column, other):
                np.testing.assert_allclose(now, share * was, rtol=1e-15)
            else:
                assert np.array_equal(was, now)
        again = dataclasses.replace(result.drives)  # made with every check
        assert np.array_equal(again.reflected_inertia, result.drives.reflected_inertia)


def test_what_goes_along_stays_on_its_side_and_may_vary_by_itself(rigid):
    drives = rigid.drives.with_columns(static=rigid.drives.coulomb)
    level = rigid.with_drives("rigid", drives)
    for factor in (0.1, 0.7, 1.3, 3.0):
        found = changed(level, [("drives.coulomb", factor)]).drives
        assert np.array_equal(found.static, found.coulomb)
    both = changed(rigid, [("drives.static", 1.2), ("drives.coulomb", 1.5)]).drives
    np.testing.assert_allclose(both.static, 1.8 * rigid.drives.static, rtol=1e-15)
    free = rigid.with_drives("rigid", rigid.drives.without_friction())
    assert changed(free, [("drives.coulomb.3", 2.0)]).drives.static.tolist() == [0, 0, 2, 0, 0, 0]
    endless = rigid.drives.with_columns(motor_speed_max=np.full(6, np.inf))
    slower = changed(rigid.with_drives("rigid", endless), [("drives.motor_speed_max", 0.5)]).drives
    assert np.array_equal(slower.motor_speed_rated, rigid.drives.motor_speed_rated)


def test_torque_limits_are_those_of_the_drives_that_act(irb140, rigid):
    for robot in (irb140, rigid):
        less = changed(robot, [("torque_limit", 0.8), ("torque_limit.4", 7.0)])
        wanted = 0.8 * robot.drive_torque_max
        wanted[3] = 7.0
        np.testing.assert_allclose(less.drive_torque_max, wanted, rtol=1e-15)
    assert np.array_equal(less.tau_max, rigid.tau_max)
    half = changed(rigid, [("drives.ratio.1", 0.5 * rigid.drives.ratio[0]), ("torque_limit.1", 9.0)])
    assert half.drives.torque_max[0] == pytest.approx(9.0, rel=1e-15)


@pytest.mark.parametrize("mode", ["ideal", "rigid", "elastic"])
def test_all_nominal_values_make_the_nominal_robot(irb1400, mode):
    robot = irb1400.with_drives(mode).with_payload(LOAD)
    nominal = [(one.name, one.nominal) for one in quantities(robot)]
    same = changed(robot, nominal)
    assert len(nominal) > (90 if mode == "elastic" else 70 if mode == "rigid" else 12)
    np.testing.assert_allclose(same.tree.inertias, robot.tree.inertias, rtol=1e-15, atol=1e-16)
    np.testing.assert_allclose(same.drive_torque_max, robot.drive_torque_max, rtol=1e-15)
    for column in COLUMNS:
        np.testing.assert_allclose(getattr(same.drives, column), getattr(robot.drives, column), rtol=1e-15)
    assert all(quantity(robot, name).nominal == value for name, value in nominal)
    assert changed(robot, ()) is robot


def test_the_engine_simulates_the_changed_robot(irb140, rng):
    assert agrees(changed(irb140.with_payload(LOAD), [("mass", 0.7), ("mass.link_3", 40.0)]), rng)


def test_what_cannot_be_is_one_sentence(rigid):
    for change, error, told in (
        (("mas", 1.0), UnknownNameError, "robot 'irb140' has no quantity 'mas': the nearest are mass"),
        (("drives.coulomb.0", 1.0), UnknownNameError, "nearest are drives.coulomb"),
        (("mass", 0.0), VariationError, "expected mass to be finite and above 0, got 0"),
        (("drives.viscous", -1.0), ValueError, "viscous of axis 1 is -.*, expected at least 0"),
        (("drives.stiffness", 1.1), VariationError, "has rigid drives, and it acts in elastic drives only"),
    ):
        with pytest.raises(error, match=told):
            changed(rigid, [change])


def test_what_a_robot_has_not_cannot_vary(irb140, load):
    table = dataclasses.replace(irb140, inertia_fault="unknown")
    tree = dataclasses.replace(irb140.tree, inertias=irb140.tree.inertias * np.arange(6)[:, None])
    light = dataclasses.replace(irb140, tree=tree)
    for robot, changes, side, told in (
        (load(SOUND), [("drives.coulomb", 1.1)], "", "robot 'arm' has no drives"),
        (
            irb140,
            [("drives.coulomb", 1.1)],
            "model.",
            r"model\.drives\.coulomb has no effect: .* has ideal drives",
        ),
        (irb140, [("mass.link_2", 9.0), ("mass.joint_2", 9.0)], "", r"mass\.joint_2 is given twice"),
        (table, [("mass", 1.1)], "", "robot 'irb140' has no masses"),
        (light, [("mass.link_1", 1.1)], "", "link_1 has no mass"),
    ):
        with pytest.raises(VariationError, match=told):
            changed(robot, changes, side)
    assert not [one for one in quantities(table) if one.name.startswith("mass")]
    assert "mass.link_1" not in [one.name for one in quantities(light)]
