"""Loads of runs: wrenches against logged torques and published masses, and the figures of sweeps."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import controllers
import twin
from scenarios.running.tracking_verdict import limited
from tests.support.sweep_experiments import Swing
from twin.errors import TwinError, UnknownNameError, VariationError
from twin.logs.figures import LOADS
from twin.logs.loads import cubic_mean, load_curves, log_wrenches, torque_residual
from twin.logs.views.curves import draw, panels
from twin.sweeps.evaluation import engine_outcomes, figures_of_log, outcomes
from twin.sweeps.trial import LOAD_FIGURES, Trial

LOAD = twin.Payload(5.0, (0.02, -0.01, 0.1), np.diag([0.02, 0.03, 0.01]))


def swing(robot, duration=0.4):
    """Return a reference that moves all joints."""
    motion = twin.sines(np.full(robot.n, 0.1), 0.2, np.linspace(0.8, 1.6, robot.n), duration)
    return twin.sample_semi_implicit(motion, 1e-3)


def run(robot, law="pd", steps=1, duration=0.4):
    controller = controllers.make(law, robot, bandwidth=20.0, period=steps * 1e-3)
    reference = twin.sines(np.full(robot.n, 0.1), 0.2, np.linspace(0.8, 1.6, robot.n), duration)
    with twin.Simulation(robot) as simulation:
        samples = twin.sample(reference, steps * 1e-3)
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
    found = run(twin.load(name).with_payload(LOAD).with_drives(drives), duration=0.2)
    assert 0 < torque_residual(found) < limit
    other = replace(found, robot=found.robot.with_payload(twin.Payload(5.01)))
    assert torque_residual(other) > 1e-2


def test_several_steps_per_period_use_the_accelerations_of_the_model():
    fine = run(twin.load("irb140"), steps=1)
    coarse = run(twin.load("irb140"), steps=2)
    assert torque_residual(coarse) is None
    tau = twin.gravity_torque(coarse.robot, coarse.q)
    still = replace(coarse, qd=np.zeros_like(coarse.qd), tau=tau, tau_joint=tau)
    weight = log_wrenches(still).base[:, :3]
    np.testing.assert_allclose(weight, np.tile([0, 0, 98 * 9.81], (len(tau), 1)), rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        log_wrenches(coarse).base[10:-10], log_wrenches(fine).base[20:-20:2], atol=20.0
    )


def test_curves_of_loads_are_those_of_the_wrenches(log):
    wrenches, curves = log_wrenches(log), load_curves(log)
    assert list(curves) == list(LOADS)
    np.testing.assert_allclose(curves["base_moment_xy"], np.hypot(*wrenches.base[:, 3:5].T), rtol=1e-15)
    np.testing.assert_allclose(curves["base_force_xy"], np.linalg.norm(wrenches.base[:, :2], axis=1))
    np.testing.assert_array_equal(curves["base_moment_z"], np.abs(wrenches.base[:, 5]))
    pin = np.linalg.norm(wrenches.pins["parallelogram"], axis=1)
    np.testing.assert_array_equal(curves["pin_force"], pin)
    assert np.min(pin) > 100.0


def test_loads_end_where_a_run_diverged(log):
    tau = log.tau.copy()
    tau[50:] = np.nan
    curves = load_curves(replace(log, tau=tau))
    assert all(np.isfinite(curves[name][:50]).all() and np.isnan(curves[name][50:]).all() for name in LOADS)
    assert np.isnan(load_curves(replace(log, tau=np.full_like(tau, np.nan)))["pin_force"]).all()


def test_cubic_mean_of_a_constant_and_of_an_alternating_torque():
    np.testing.assert_allclose(cubic_mean(np.array([[2.0, 1.0], [-2.0, 0.0]])), [2.0, 0.5 ** (1 / 3)])


def test_log_with_a_gap_is_rejected(log):
    t = log.t.copy()
    t[20:] += 0.01
    with pytest.raises(TwinError, match="expected times t in steps of the control period"):
        log_wrenches(replace(log, t=t))


def test_panels_of_forces_have_three_axes_per_joint_and_the_pins(log):
    found = {panel.title: panel for panel in panels({"run": log}, "force")}
    assert len(found) == 3 * (1 + log.robot.tree.n + 1)
    wrenches = log_wrenches(log)
    np.testing.assert_array_equal(found["joint_rod z"].curves[0].values, wrenches["rod"][:, 2])
    np.testing.assert_array_equal(
        found["parallelogram x"].curves[0].values, wrenches.pins["parallelogram"][:, 0]
    )
    moments = panels({"run": log}, "moment", ["base", "joint_2"])
    assert [panel.title for panel in moments] == [
        "base x",
        "base y",
        "base z",
        "joint_2 x",
        "joint_2 y",
        "joint_2 z",
    ]
    np.testing.assert_array_equal(moments[1].curves[0].values, wrenches.base[:, 4])
    with pytest.raises(
        UnknownNameError, match=r"unknown joint 'joint_9': known are base, joint_1, .*, paral"
    ):
        panels({"run": log}, "force", ["joint_9"])


def test_picture_of_forces_is_drawn(log, tmp_path):
    draw({"run": log}, tmp_path / "force.png", "force", ["joint_2"])
    assert (tmp_path / "force.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["irb140", "irb1400"])
def test_loads_of_rollouts_are_those_of_the_engine(name):
    arm = twin.load(name).with_drives("rigid")
    laws = [controllers.make("pd", arm, bandwidth=value) for value in (10.0, 20.0)]
    masses = np.linspace(0.0, 4.5, 10)  # more than are in memory at a time
    trials = [
        Trial(arm.with_payload(twin.Payload(mass)), laws[k % 2], REFERENCES[name], loads=True)
        for k, mass in enumerate(masses)
    ]
    table, engine = outcomes(trials), engine_outcomes(trials[:2])
    for figure in LOAD_FIGURES if arm.loops else LOAD_FIGURES[:-1]:
        np.testing.assert_allclose(table[figure][:2], engine[figure], rtol=1e-8)
    assert np.all(np.diff(table["base_force_z"][::2]) > 0)
    assert np.isnan(table["pin_force"]).all() == (not arm.loops)
    assert np.isnan(outcomes([trials[0]._replace(loads=False)])["base_force_z"]).all()


REFERENCES = {name: swing(twin.load(name), 0.2) for name in ("irb140", "irb1400")}


def test_figures_of_a_log_are_the_largest_loads(log):
    row, curves = figures_of_log(log), load_curves(log)
    assert {name: row[name] for name in LOADS} == {name: np.max(curve) for name, curve in curves.items()}
    share = np.abs(log.tau / log.robot.drive_torque_max)
    np.testing.assert_allclose(row["cubic_torque"], np.mean(share**3) ** (1 / 3), rtol=1e-12)
    (metric,) = limited((), log, (("base_moment_xy", 1.0),))
    assert (metric.unit, metric.outcome) == ("N m", "fails")
    assert metric.value == row["base_moment_xy"]


def test_sweep_computes_and_limits_loads_on_request():
    arm = twin.load("irb140")
    law = partial(controllers.make, "pd")
    given = (arm, law, REFERENCES["irb140"], {"payload": "0,6"})
    swept = twin.sweep(*given, loads=True, limits={"base_force_z": 1050.0})
    assert swept.table["passes"].tolist() == [True, False]
    with pytest.raises(VariationError, match="a limit of base_force_z requires loads=True"):
        twin.sweep(*given, limits={"base_force_z": 1050.0})
    assert not Swing().trial({"payload": 1.0, "bandwidth": 10.0}).loads
