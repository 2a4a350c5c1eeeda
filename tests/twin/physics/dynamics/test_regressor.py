"""The regressor against inverse dynamics, the parameters there and back, and the regressor for two speeds.

The last one equals M a + C v + g with Christoffel's C, which another computation gives.
"""

from dataclasses import replace

import numpy as np
import pytest

import twin
from tests.support.random_trees import random_urdf
from tests.support.refusals import refused
from tests.support.sample_drives import RUBBING, uncoupled
from twin.physics.control.control_law import Model
from twin.physics.dynamics.regressor import LINK, regressor
from twin.physics.robot.drives.drives import Drives
from twin.physics.robot.evaluation import uncompiled

LINEAR = replace(RUBBING, static=RUBBING.coulomb)
"""Drives whose friction at rest is no higher."""


def agrees(robot, rng, shape=(40,), span=3.0):
    """Whether `Y pi` is inverse dynamics, drives included, to 1e-12."""
    q, qd, qdd = rng.uniform(-span, span, (3, *shape, robot.n))
    tau = twin.inverse_dynamics(robot, q, qd, qdd)
    pi = twin.dynamics.dynamic_parameters(robot)
    Y = twin.dynamics_regressor(robot, q, qd, qdd)
    assert Y.shape == (*shape, robot.n, len(pi.values))
    assert len(set(pi.names)) == len(set(pi.symbols)) == len(pi.names) == len(pi.units) == len(pi.values)
    error = np.max(np.abs(Y @ pi.values - tau), axis=-1) / np.max(np.abs(tau), axis=-1)
    return bool(np.all(error < 1e-12))


def test_every_arm_with_payload_on_a_wall_and_its_drives(arm, rng):
    assert agrees(arm, rng)
    loaded = arm.with_payload(twin.Payload(4.0, (0.05, -0.02, 0.1), np.diag([0.02, 0.03, 0.04])))
    assert agrees(loaded.mounted("wall"), rng, (3, 7))
    assert agrees(loaded.with_drives("rigid", LINEAR), rng)
    own = arm.with_drives("rigid", replace(arm.drives, static=arm.drives.coulomb))
    assert agrees(own, rng)


@pytest.mark.parametrize("seed", range(2))
def test_random_trees(tmp_path, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path / "random.urdf"
    path.write_text(random_urdf(rng, 6))
    robot = twin.load(path).with_gravity([1.0, -2.0, 9.0])
    assert agrees(uncompiled(robot), rng, (6,))
    assert agrees(uncompiled(robot.with_drives("rigid", LINEAR)), rng, (6,))


def test_friction_may_be_evaluated_at_another_speed(irb140, rng):
    robot = irb140.with_drives("rigid", LINEAR)
    q, qd, qdd = rng.uniform(-1, 1, (3, 20, 6))
    after = qd + 0.5 * qdd
    pi = twin.dynamics.dynamic_parameters(robot).values
    Y = twin.dynamics_regressor(robot, q, qd, qdd)
    difference = twin.dynamics_regressor(robot, q, qd, qdd, after) - Y
    wanted = twin.friction_torque(robot, after) - twin.friction_torque(robot, qd)
    np.testing.assert_allclose(difference @ pi, wanted, rtol=0, atol=1e-12 * np.max(np.abs(wanted)))
    at_rest = twin.dynamics_regressor(robot, *np.zeros((3, 6)))
    np.testing.assert_array_equal(at_rest[:, 63::4], LINEAR.friction_matrix.T)  # the offsets
    np.testing.assert_array_equal(at_rest[:, 62::4], 0)  # Coulomb friction


def test_coulomb_friction_at_rest_opposes_the_acceleration(irb140, rng):
    robot, still = irb140.with_drives("rigid", LINEAR), np.zeros((20, 6))
    q, qdd = rng.uniform(-1, 1, (2, 20, 6))
    Y = twin.dynamics_regressor(robot, q, still, qdd)
    tau = Y @ twin.dynamics.dynamic_parameters(robot).values
    np.testing.assert_allclose(tau, twin.inverse_dynamics(robot, q, still, qdd), rtol=0, atol=1e-11)


def test_the_parameters_are_those_of_the_robot_and_have_readable_names(irb1400):
    robot = irb1400.with_drives("rigid")
    pi = twin.dynamics.dynamic_parameters(robot)
    assert len(pi.values) == 8 * 10 + 6 * 4
    told = dict(zip(pi.names, zip(pi.values, pi.symbols, pi.units, strict=True), strict=True))
    assert told["link_3 mx"] == (robot.tree.inertias[2, 1], "mx3", "kg m")
    assert told["link_rod Ixz"] == (robot.tree.inertias[7, 8], "Ixz_rod", "kg m^2")
    assert told["drive 2 rotor inertia"] == (robot.drives.rotor_inertia[1], "J2", "kg m^2")
    assert told["drive 6 viscous"] == (robot.drives.viscous[5], "Fv6", "N m s/rad")
    assert told["drive 6 Coulomb"] == (robot.drives.coulomb[5], "Fc6", "N m")
    assert len(twin.dynamics.dynamic_parameters(irb1400).values) == 8 * 10


def test_parameters_go_back_into_a_robot_whose_payload_stays_one(irb140, rng):
    payload = twin.Payload(3.0, (0.1, 0.0, 0.05), np.diag([0.02, 0.02, 0.01]))
    robot = irb140.with_payload(payload).with_drives("rigid", LINEAR)
    pi = twin.dynamics.dynamic_parameters(robot).values
    scaled = pi * rng.uniform(0.5, 1.5, pi.shape)
    other = twin.dynamics.with_dynamic_parameters(robot, scaled)
    np.testing.assert_array_equal(twin.dynamics.dynamic_parameters(other).values, scaled)
    assert agrees(other, rng)
    assert other.payload is payload
    body = robot.tree.inertias[5] - irb140.tree.inertias[5]
    unloaded = twin.dynamics.dynamic_parameters(other.with_payload(None)).values[50:60]
    np.testing.assert_allclose(unloaded, scaled[50:60] - body, rtol=0, atol=1e-13)
    same = twin.dynamics.with_dynamic_parameters(irb140, twin.dynamics.dynamic_parameters(irb140).values)
    np.testing.assert_array_equal(same.tree.inertias, irb140.tree.inertias)


def test_static_friction_keeps_its_distance_and_counts_at_low_speed_only(irb140):
    """Friction that falls with speed contributes only its linear part."""
    robot = irb140.with_drives("rigid")
    assert np.any(robot.drives.static > robot.drives.coulomb)
    q, qdd = np.full(6, 0.3), np.zeros(6)
    pi = twin.dynamics.dynamic_parameters(robot).values
    for speed, equal in ((1e-3, False), (40 * np.max(robot.drives.stribeck_speed), True)):
        qd = np.full(6, speed)
        tau = twin.inverse_dynamics(robot, q, qd, qdd)
        assert np.allclose(twin.dynamics_regressor(robot, q, qd, qdd) @ pi, tau, rtol=1e-12) == equal
    pi[62::4] += 1.0  # Coulomb friction
    drives = twin.dynamics.with_dynamic_parameters(robot, pi).drives
    np.testing.assert_allclose(drives.static, robot.drives.static + 1.0, rtol=1e-14)


def test_wrong_use_is_one_sentence(irb140):
    q, robot = np.zeros(6), irb140.with_drives("rigid")
    pi = twin.dynamics.dynamic_parameters(robot).values

    def changed(place, value):
        return twin.dynamics.with_dynamic_parameters(robot, np.where(np.arange(84) == place, value, pi))

    refused(
        (lambda: twin.dynamics_regressor(irb140, q, np.zeros(5), q), r"expected qd of shape .*, got \(5,\)"),
        (lambda: twin.dynamics_regressor(irb140, q, q, q, np.nan * q), "expected qd_friction to be finite"),
        (lambda: twin.dynamics.with_dynamic_parameters(robot, pi[:60]), r"expected pi of shape \(84,\), got"),
        (lambda: changed(1, np.nan), "got nan of link_1 mx"),
        (lambda: changed(60, -1.0), "rotor_inertia of axis 1 is -1"),
    )
    assert changed(63, 2.0).drives.offset.tolist() == [2.0, 0.0, 0.0, 0.0, 0.0, 0.0]


def test_one_drive_and_its_units(tmp_path, rng):
    path = tmp_path / "slide.urdf"
    path.write_text(random_urdf(rng, 1, ("prismatic",)))
    robot = uncompiled(twin.load(path).with_drives("rigid", Drives([50.0], 1e-3)))
    assert twin.dynamics.dynamic_parameters(robot).units[len(LINK) :] == ("kg m^2", "N s/m", "N", "N")
    assert agrees(robot, rng)


def filled(robot, q, qd, v, a, smooth=0.0):
    model = Model.of(robot, 1e-3)
    Y = np.full((robot.n, 10 * robot.tree.n + 4 * robot.n), np.nan)
    regressor(model.tree, model.drives, model.gravity, q, qd, v, a, smooth, Y)
    return Y


@pytest.mark.parametrize("name", ["irb140", "irb1400"])
def test_links_give_the_torque_of_christoffel_symbols(name):
    robot, rng = twin.load(name), np.random.default_rng(4)
    for _ in range(5):
        q, qd, v, a = rng.uniform(-0.5, 0.5, (4, robot.n)) * [[1], [2], [3], [5]]
        links = filled(robot, q, qd, v, a)[:, : 10 * robot.tree.n]
        expected = (
            twin.mass_matrix(robot, q) @ a
            + twin.coriolis_matrix(robot, q, qd) @ v
            + twin.gravity_torque(robot, q)
        )
        np.testing.assert_allclose(links @ robot.inertias.ravel(), expected, rtol=0, atol=1e-12)


def test_equal_speeds_give_the_regressor_of_the_dynamics_with_drives_but_smooth_friction():
    robot, rng = uncoupled(twin.load("irb140")).with_drives("rigid"), np.random.default_rng(5)
    q, qd, a = rng.uniform(-0.5, 0.5, (3, robot.n))
    Y, expected = filled(robot, q, qd, qd, a), twin.dynamics_regressor(robot, q, qd, a)
    links = 10 * robot.tree.n
    np.testing.assert_array_equal(Y[:, :links], expected[:, :links])
    for column in (1, 2, 3):
        np.testing.assert_allclose(Y[:, links + column :: 4], expected[:, links + column :: 4], rtol=1e-15)
    np.testing.assert_array_equal(Y[:, links::4], np.diag(a))  # rotors in joint units
    slow, fast = (filled(robot, q, q, np.full(6, v), q, smooth=0.02)[:, links + 2 :: 4] for v in (0.005, 0.1))
    np.testing.assert_allclose(slow, 0.25 * fast, rtol=1e-14)
