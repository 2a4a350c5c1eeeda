"""The nearest approach of a motion, with its proof, is that of samples many times finer."""

from dataclasses import replace

import numpy as np
import pytest

import twin
from twin.cell.clearance import Clearance
from twin.cell.closest import PRECISION, closest

ROBOT = twin.load("irb140")
TOOL = "[tool]\nshapes = [{ cylinder = 0.002, from = [0, 0, 0], to = [0, 0, 0.2] }]\n"


@pytest.fixture
def cell(tmp_path):
    path = tmp_path / "cell.toml"
    path.write_text(
        TOOL + "[objects.rod]\ncylinder = 0.002\nfrom = [0.65, 0.05, 0.3]\nto = [0.65, 0.05, 1.2]\n"
        "[objects.floor]\nbox = [2, 2, 0.1]\nat = [0, 0, -0.3]\n", encoding="utf-8"
    )  # fmt: skip
    return twin.load_cell(path)


def sweep(N):
    """Return times and angles of a turn of joint 1, in which the tool passes the rod."""
    t = np.linspace(0, 1, N)
    q = np.zeros((N, 6))
    q[:, 0] = -0.3 + 0.6 * t
    return t, q


def test_the_least_distance_is_that_of_finer_samples(cell):
    clearance = Clearance(ROBOT, cell)
    rng = np.random.default_rng(3)
    for _ in range(4):
        q0, q1 = rng.uniform(-0.8, 0.8, (2, 6))
        t = np.linspace(0, 1, 201)
        q = q0 + t[:, None] ** 2 * (q1 - q0)
        found = closest(clearance, t, q, np.zeros(6))
        fine = np.array([np.interp(np.linspace(0, 1, 2001), t, column) for column in q.T]).T
        least = min(one.clearance for one in clearance.nearest_each(fine))
        precision = max(PRECISION, 0.01 * least)
        assert found.bound <= least + 1e-9
        assert found.nearest.clearance <= least + precision
        assert found.nearest.clearance - precision <= found.bound


def test_a_thin_pin_through_a_thin_rod_is_found_between_coarse_samples(cell):
    clearance = Clearance(ROBOT, cell)
    t, q = sweep(24)
    coarse = min(one.distance for one in clearance.nearest_each(q))
    assert coarse > 0.002  # the samples say: free
    found = closest(clearance, t, q, np.zeros(6))
    assert found.nearest.distance < -0.003
    assert set(found.nearest.pair) == {"tool", "rod"}
    assert np.abs(np.interp(found.t, t, q[:, 0]) - found.q[0]) < 1e-12


def test_a_thinned_log_is_not_proven(cell):
    clearance = Clearance(ROBOT, cell)
    t, q = sweep(24)
    slack = ROBOT.qd_max * (t[1] - t[0])
    found = closest(clearance, t, q, slack, refine=False)
    assert not found.proven
    assert found.nearest.distance > 0.002
    assert found.bound < -0.004  # the rod may have been hit


def test_a_log_that_ends_without_finite_positions_is_checked_up_to_there(tmp_path):
    from scenarios import gravity_hold
    from scenarios.checks.clearance import clearance_metric

    log = gravity_hold.run(gravity_hold.Config(duration=0.1))
    q = log.q.copy()
    q[50:] = np.nan
    cell = twin.Cell.empty(margin=0.0)
    assert twin.cell.least_distance(cell, log).lost_at is None
    found = twin.cell.least_distance(cell, replace(log, q=q))
    assert (found.samples, found.lost_at) == (50, log.t[50])
    assert "checked up to 0.05 s" in clearance_metric(found, cell, log.robot).why


def test_a_recorded_run(cell, tmp_path):
    from scenarios.cli.command_line import main

    assert main(["run", "joint_tracking", "--duration", "0.5", "--log", str(tmp_path / "run.npz")]) == 0
    log = twin.Log.load(tmp_path / "run.npz")
    found = cell.least_distance(log)
    assert found.proven
    assert found.nearest.distance == pytest.approx(
        min(one.distance for one in Clearance(log.robot, cell).nearest_each(log.q)), rel=0.01
    )
    thinned = replace(log, steps_per_period=2, time_step=log.time_step / 2)
    assert not cell.least_distance(thinned).proven
    broken = log.q.copy()
    broken[100:] = np.nan
    assert cell.least_distance(replace(log, q=broken)).t <= log.t[99]
