"""The nearest approach of a motion, with its proof, is that of samples many times finer."""

from dataclasses import replace

import numpy as np
import pytest

import twin
from twin.cell.clearance import Clearance
from twin.cell.closest import PRECISION, closest

ROBOT = twin.load("irb140")
TOOL = "[tool]\nshapes = [{ cylinder = 0.002, from = [0, 0, 0], to = [0, 0, 0.2] }]\n"
ROD = "[objects.rod]\ncylinder = 0.002\nfrom = [{0}, {1}, 0.3]\nto = [{0}, {1}, 1.2]\n"
FLOOR = "[objects.floor]\nbox = [2, 2, 0.1]\nat = [0, 0, -0.3]\n"


def cell_of(folder, text):
    path = folder / "cell.toml"
    path.write_text(text, encoding="utf-8")
    return twin.load_cell(path)


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    return cell_of(tmp_path_factory.mktemp("cell"), TOOL + ROD.format(0.65, 0.05) + FLOOR)


@pytest.fixture(scope="module")
def clearance(cell):
    return Clearance(ROBOT, cell)


def sweep(N):
    """Return times and angles of a turn of joint 1, in which the tool passes the rod."""
    t = np.linspace(0, 1, N)
    q = np.zeros((N, 6))
    q[:, 0] = -0.3 + 0.6 * t
    return t, q


def test_the_least_distance_is_that_of_finer_samples(clearance):
    rng = np.random.default_rng(3)
    for _ in range(3):
        q0, q1 = rng.uniform(-0.8, 0.8, (2, 6))
        t = np.linspace(0, 1, 51)
        q = q0 + t[:, None] ** 2 * (q1 - q0)
        found = closest(clearance, t, q, np.zeros(6))
        fine = np.array([np.interp(np.linspace(0, 1, 501), t, column) for column in q.T]).T
        least = min(one.clearance for one in clearance.nearest_each(fine))
        precision = max(PRECISION, 0.01 * least)
        assert found.bound <= least + 1e-9
        assert found.nearest.clearance <= least + precision
        assert found.nearest.clearance - precision <= found.bound


def test_a_thin_pin_through_a_thin_rod_is_found_between_coarse_samples(clearance):
    t, q = sweep(24)
    coarse = min(one.distance for one in clearance.nearest_each(q))
    assert coarse > 0.002  # the samples say: free
    found = closest(clearance, t, q, np.zeros(6))
    assert found.nearest.distance < -0.003
    assert set(found.nearest.pair) == {"tool", "rod"}
    assert np.abs(np.interp(found.t, t, q[:, 0]) - found.q[0]) < 1e-12


def test_a_rod_beside_the_first_of_two_samples_is_found(tmp_path):
    """The stretched arm moves almost as far as its proof assumes, so nothing less would lead to the rod."""
    touching = '[[pairs]]\nbetween = ["link_4", "tool"]\nmay_touch = true\n'
    rod = ROD.format(*(1.04 * np.array([np.cos(0.036), -np.sin(0.036)])))
    q = np.zeros((2, 6))
    q[:, 0], q[:, 1], q[:, 2] = (-0.045, 0.045), np.pi / 2, -np.pi / 2
    found = closest(
        Clearance(ROBOT, cell_of(tmp_path, TOOL + rod + touching)), np.arange(2.0), q, np.zeros(6)
    )
    assert found.nearest.distance < -0.003


def test_no_point_of_the_arm_is_farther_from_a_joint_than_its_reach(clearance):
    for q in np.random.default_rng(4).uniform(ROBOT.q_min, ROBOT.q_max, (200, 6)):
        joints = twin.kinematics.link_poses(ROBOT, q)[:, :3, 3]
        for solid, T in zip(clearance.solids, clearance.poses(q), strict=True):
            distances = np.linalg.norm(joints - T[:3, 3], axis=1)
            assert np.all(distances[: solid.body + 1] <= clearance.reach[: solid.body + 1])


def test_a_thinned_log_is_not_proven(clearance):
    t, q = sweep(24)
    slack = ROBOT.qd_max * (t[1] - t[0])
    found = closest(clearance, t, q, slack, refine=False)
    assert not found.proven
    assert found.nearest.distance > 0.002
    assert found.bound < -0.004  # the rod may have been hit


def test_a_log_is_checked_along_its_motion_as_far_as_it_has_finite_positions(cell, clearance):
    from scenarios import gravity_hold
    from scenarios.checks.clearance import clearance_metric

    log = gravity_hold.run(gravity_hold.Config(duration=0.1))
    log = replace(log, q=sweep(len(log.t))[1] - np.array([0.3, 0, 0, 0, 0, 0]))  # ends beside the rod
    found = cell.least_distance(log)
    assert found.proven
    assert found.lost_at is None
    least = min(one.distance for one in clearance.nearest_each(log.q))
    assert found.nearest.distance == pytest.approx(least, rel=0.01)
    thinned = replace(log, steps_per_period=2, time_step=log.time_step / 2)
    assert not cell.least_distance(thinned).proven
    q = log.q.copy()
    q[50:] = np.nan
    found = cell.least_distance(replace(log, q=q))
    assert (found.samples, found.lost_at) == (50, log.t[50])
    assert found.t <= log.t[49]
    assert "checked up to 0.05 s" in clearance_metric(found, cell, log.robot).why
