"""Loads of runs: wrenches against logged torques and published masses, and the figures of sweeps."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import controllers
import twin
from scenarios.judging.tracking import limited
from tests.support.sweep_experiments import Swing
from twin.base.errors import TwinError, UnknownNameError, VariationError
from twin.data.logs.figures import LOADS
from twin.data.logs.loads import cubic_mean, load_curves, log_wrenches, torque_residual
from twin.studies.sweeps.evaluation import engine_outcomes, figures_of_log, outcomes
from twin.studies.sweeps.trial import LOAD_FIGURES, Trial
from twin.studies.views.curves import draw, panels

LOAD = twin.Payload(5.0, (0.02, -0.01, 0.1), np.diag([0.02, 0.03, 0.01]))


def swing(robot, duration, period=1e-3):
    """Return a reference that moves all joints."""
    motion = twin.sines(np.full(robot.n, 0.1), 0.2, np.linspace(0.8, 1.6, robot.n), duration)
    return twin.sample_semi_implicit(motion, period)


def run(robot, steps=1, duration=0.2):
    controller = controllers.make("pd", robot, bandwidth=20.0, period=steps * 1e-3)
    with twin.Simulation(robot) as simulation:
        samples = swing(robot, duration, steps * 1e-3)
        return twin.run_closed_loop(simulation, controller, samples, steps_per_period=steps)


@pytest.fixture(scope="module")
def log():
    return run(twin.load("irb1400").with_payload(LOAD).with_drives("rigid"))


@pytest.mark.parametrize(
    ("name", "drives", "limit"),
    [("irb140", "ideal", 1e-11), ("irb140", "elastic", 1e-11), ("irb1400", "rigid", 1e-8)],
)
def test_component_along_each_axis_is_the_torque_that_the_engine_applied(name, drives, limit):
    """The engine closes the loop of the IRB 1400 to 1e-9 N m only."""
    found = run(twin.load(name).with_payload(LOAD).with_drives(drives))
    assert 0 < torque_residual(found) < limit
    other = replace(found, robot=found.robot.with_payload(twin.Payload(5.01)))
    assert torque_residual(other) > 1e-2


def test_several_steps_per_period_use_the_accelerations_of_the_model():
    fine, coarse = (run(twin.load("irb140"), steps) for steps in (1, 2))
    assert torque_residual(coarse) is None
    tau = twin.gravity_torque(coarse.robot, coarse.q)
    still = replace(coarse, qd=np.zeros_like(coarse.qd), tau=tau, tau_joint=tau)
    weight = log_wrenches(still).base[:, :3]
    np.testing.assert_allclose(weight, np.tile([0, 0, 98 * 9.81], (len(tau), 1)), rtol=0, atol=1e-9)
    bases = log_wrenches(coarse).base[10:-10], log_wrenches(fine).base[20:-20:2]
    np.testing.assert_allclose(*bases, atol=20.0)


def test_curves_of_loads_are_those_of_the_wrenches(log):
    wrenches, curves = log_wrenches(log), load_curves(log)
    assert list(curves) == list(LOADS)
    np.testing.assert_allclose(curves["base_moment_xy"], np.hypot(*wrenches.base[:, 3:5].T), rtol=1e-15)
    np.testing.assert_allclose(curves["base_force_xy"], np.linalg.norm(wrenches.base[:, :2], axis=1))
    np.testing.assert_array_equal(curves["base_moment_z"], np.abs(wrenches.base[:, 5]))
    pin = np.linalg.norm(wrenches.pins["parallelogram"], axis=1)
    np.testing.assert_array_equal(curves["pin_force"], pin)
    assert np.min(pin) > 100.0
    tau = log.tau.copy()
    tau[50:] = np.nan  # where a run diverged, the loads end
    curves = load_curves(replace(log, tau=tau))
    assert all(np.isfinite(curves[name][:50]).all() and np.isnan(curves[name][50:]).all() for name in LOADS)
    assert np.isnan(load_curves(replace(log, tau=np.full_like(tau, np.nan)))["pin_force"]).all()
    t = log.t.copy()
    t[20:] += 0.01
    with pytest.raises(TwinError, match="expected times t in steps of the control period"):
        log_wrenches(replace(log, t=t))


def test_figures_of_a_log_are_the_largest_loads(log):
    row, curves = figures_of_log(log), load_curves(log)
    assert {name: row[name] for name in LOADS} == {name: np.max(curve) for name, curve in curves.items()}
    share = np.abs(log.tau / log.robot.drive_torque_max)
    np.testing.assert_allclose(row["cubic_torque"], np.mean(share**3) ** (1 / 3), rtol=1e-12)
    np.testing.assert_allclose(cubic_mean(np.array([[2.0, 1.0], [-2.0, 0.0]])), [2.0, 0.5 ** (1 / 3)])
    (metric,) = limited((), log, (("base_moment_xy", 1.0),), {})
    assert (metric.unit, metric.outcome) == ("N m", "fails")
    assert metric.value == row["base_moment_xy"]


def test_panels_of_forces_have_three_axes_per_joint_and_the_pins(log, tmp_path):
    found, wrenches = {panel.title: panel for panel in panels({"run": log}, "force")}, log_wrenches(log)
    assert len(found) == 3 * (1 + log.robot.tree.n + 1)
    pins = wrenches.pins["parallelogram"]
    np.testing.assert_array_equal(found["joint_rod z"].curves[0].values, wrenches["rod"][:, 2])
    np.testing.assert_array_equal(found["parallelogram x"].curves[0].values, pins[:, 0])
    moments = panels({"run": log}, "moment", ["base", "joint_2"])
    titles = [f"{name} {axis}" for name in ("base", "joint_2") for axis in "xyz"]
    assert [panel.title for panel in moments] == titles
    np.testing.assert_array_equal(moments[1].curves[0].values, wrenches.base[:, 4])
    with pytest.raises(UnknownNameError, match=r"joint 'joint_9': known are base, joint_1, .*, paral"):
        panels({"run": log}, "force", ["joint_9"])
    draw({"run": log}, tmp_path / "force.png", "force", ["joint_2"])
    assert (tmp_path / "force.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["irb140", "irb1400"])
def test_loads_of_rollouts_are_those_of_the_engine(name):
    arm = twin.load(name).with_drives("rigid")
    laws = [controllers.make("pd", arm, bandwidth=value) for value in (10.0, 20.0)]
    masses = np.linspace(0.0, 4.5, 10)  # more than are in memory at a time
    trials = [
        Trial(arm.with_payload(twin.Payload(mass)), laws[k % 2], swing(arm, 0.1), loads=True)
        for k, mass in enumerate(masses)
    ]
    table, engine = outcomes(trials), engine_outcomes(trials[:2])
    for figure in LOAD_FIGURES if arm.loops else LOAD_FIGURES[:-1]:
        np.testing.assert_allclose(table[figure][:2], engine[figure], rtol=1e-8)
    assert np.all(np.diff(table["base_force_z"][::2]) > 0)
    assert np.isnan(table["pin_force"]).all() == (not arm.loops)
    assert np.isnan(outcomes([trials[0]._replace(loads=False)])["base_force_z"]).all()


def test_sweep_computes_and_limits_loads_on_request():
    arm = twin.load("irb140")
    given = (arm, partial(controllers.make, "pd"), swing(arm, 0.2), {"payload": "0,6"})
    limits = {"base_force_z": 1050.0}
    assert twin.sweep(*given, loads=True, limits=limits).table["passes"].tolist() == [True, False]
    with pytest.raises(VariationError, match="a limit of base_force_z requires loads=True"):
        twin.sweep(*given, limits=limits)
    assert not Swing().trial({"payload": 1.0, "bandwidth": 10.0}).loads
