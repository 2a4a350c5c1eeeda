"""Bounds of the tracking error: their terms, and their distance from the errors of runs."""

import dataclasses

import numpy as np
import pytest
from scipy.integrate import quad

import twin
from controllers.gains import diagonal_inertia
from scenarios.judging import bounds
from scenarios.judging.following import follow
from scenarios.judging.tracking import tracking_metrics
from scenarios.setup import Setup
from tests.support.changed_runs import with_log
from tests.support.tasks import run
from twin.data.logs.figures import joint_error
from twin.physics.dynamics.equation_of_motion import gravity_torque, inverse_dynamics
from twin.physics.trajectories.joint_trajectories import sines


@pytest.mark.parametrize(
    ("reference", "steps", "least"), [("continuous", 1, 0.94), ("continuous", 2, 0.6), ("consistent", 5, 0.6)]
)
def test_sampling_bound_is_tight(reference, steps, least):
    """The error of every joint is near its bound, within a twentieth if only sampling causes it."""
    one = run("joint_tracking", reference=reference, steps_per_period=steps)
    ratio = np.abs(joint_error(one.log)).max(axis=0) / bounds.tracking_bound(one)[0]
    assert np.all((least < ratio) & (ratio <= 1.0))


@pytest.mark.parametrize(
    ("law", "settings", "least", "most"),
    [
        ("pd", {}, 0.25, 1.0),
        ("pd_gravity", {}, 0.4, 1.0),
        ("pid", {"drives": "rigid", "duration": 0.6}, 0.14, 0.5),
    ],
)
def test_bound_for_missing_torque_is_tight(law, settings, least, most):
    """Half of the bound is its margin; some joint is near the other half, and none exceeds the bound.

    A bound without friction would be exceeded.
    """
    one = run("joint_tracking", controller=law, **settings)
    errors, robot = np.abs(joint_error(one.log)).max(axis=0), one.log.robot
    assert least < np.max(errors / bounds.tracking_bound(one)[0]) <= most
    if settings:
        frictionless = dataclasses.replace(robot, drives=robot.drives.without_friction())
        assert np.any(errors > bounds.tracking_bound(with_log(one, robot=frictionless))[0])


def test_kernel_areas_agree_with_quadrature():
    """Integrate kernel (1) for PD and that of `s / (s + omega)^3` for PID, split at its zero."""
    one = run("joint_tracking", controller="pd", duration=0.3)
    omega = one.loop.bandwidth

    def area(kernel):
        pieces = ((0.0, 2.0 / omega), (2.0 / omega, 4.0))
        return sum(quad(lambda t: abs(kernel(t)), *ends, epsabs=1e-14, limit=200)[0] for ends in pieces)

    pd = area(lambda t: t * np.exp(-omega * t))
    pid = area(lambda t: (t - omega * t**2 / 2) * np.exp(-omega * t))
    assert pd == pytest.approx(1 / omega**2, rel=1e-12)
    of_pd, of_pid = (bounds.tracking_bound(with_log(one, controller=law))[0] for law in ("pd", "pid"))
    np.testing.assert_allclose(of_pid / of_pd, pid / pd, rtol=1e-12)


def test_bound_of_a_resting_joint_includes_coupling_torques():
    """From q = 0 only joint 5 moves; the coupling disturbs joint 6 at rest."""
    setup = Setup(controller="pd_gravity")
    robot = twin.load("irb140")
    path = sines(0.2 * np.eye(6)[4], 0.2 * np.eye(6)[4], np.full(6, 0.5), 2.0, phase=-np.pi / 2)
    one = follow(setup, setup.sampling().sampled(path), robot)
    log, error = one.log, np.abs(joint_error(one.log)).max(axis=0)
    assert np.all(error <= bounds.tracking_bound(one)[0])
    assert all(metric.passes for metric in tracking_metrics(one))
    missing = inverse_dynamics(robot, log.q_ref, log.qd_ref, log.qdd_ref) - gravity_torque(robot, log.q_ref)
    uncoupled = bounds.MARGIN * np.abs(missing).max(axis=0) / (20.0**2 * diagonal_inertia(robot))
    assert error[5] > 10 * uncoupled[5]


FRICTION = {
    "static": {"static": [90.0, 90, 50, 30, 50, 30]},
    "root": {"viscous_root": [40.0, 90, 40, 5, 8, 5]},
    "offset": {"offset": [-30.0, 80, 40, -5, 6, 4]},
    "difference": {"viscous": [40.0, 90, 40, 5, 8, 5], "viscous_difference": [40.0, -90, 40, 5, -8, 5]},
    "load": {"coulomb_per_load": [0.3, 0.5, 0.4, 0.3, 0.3, 0.2]},
}


@pytest.mark.parametrize(
    ("law", "part"),
    [
        ("pd", "static"), ("pid", "root"), ("pd_gravity", "offset"), ("pd", "difference"),
        ("cascade", "load"), ("pd", "all"), ("cascade", "all"), ("pid", "all"),
    ],
)  # fmt: skip
def test_bound_knows_every_friction(irb140, law, part):
    """Errors of half a second under strong friction stay within the bound, which every part raises."""
    every = {}
    for one in FRICTION.values() if part == "all" else [FRICTION[part]]:
        every |= one
    plain = irb140.with_drives("rigid")
    robot = irb140.with_drives("rigid", dataclasses.replace(irb140.drives, **every))
    setup = Setup(controller=law, drives="rigid")
    path = sines(np.full(6, 0.3), np.full(6, 0.15), np.full(6, 1.0), 0.5, phase=-np.pi / 2)
    one = follow(setup, setup.sampling().sampled(path), robot)
    bound = bounds.tracking_bound(one)[0]
    assert np.all(np.abs(joint_error(one.log)).max(axis=0) <= bound)
    least = 1.005 / (1 - np.max(robot.drives.coulomb_per_load))  # the load of the error is not all
    assert np.sum(bound) > least * np.sum(bounds.tracking_bound(with_log(one, robot=plain))[0])
