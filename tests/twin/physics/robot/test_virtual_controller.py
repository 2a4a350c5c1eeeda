"""The drives of the IRB 140 beside the record of ABB's virtual controller, on the rows that are given."""

from dataclasses import replace

import numpy as np
import pytest

import twin
from tests.support.sample_drives import FORMER
from tests.support.shared_data import shared_folder

pytestmark = pytest.mark.shared
KNEES = np.deg2rad([5.49, 5.44, 5.70, 9.39, 8.35, 8.93])
"""Motor speeds in joint units below which the record ramps its friction, in [rad/s]."""


@pytest.fixture(scope="module")
def rows():
    """Return q, qd, qdd and the motors' torques at the joints (N, 6), and which rows are quiet."""
    table = np.genfromtxt(shared_folder() / "irb140_virtual" / "rows.csv", delimiter=",", names=True)
    q, qd, tau = (np.stack([table[f"{name}{i}"] for i in range(1, 7)], 1) for name in ("q", "qd", "tau"))
    q, qd, qdd = np.deg2rad(q), np.deg2rad(qd), np.zeros_like(q)
    for piece in np.unique(table["piece"]):
        here = np.flatnonzero(table["piece"] == piece)
        qdd[here] = np.gradient(qd[here], table["time"][here], axis=0)
    return q, qd, qdd, tau, np.all(np.abs(qdd) < np.deg2rad(60), axis=1)


def rms(robot, rows):
    """Return the number of quiet rows in which each motor runs above its knee, and the rms error in these."""
    q, qd, qdd, tau, quiet = rows
    drives = robot.drives
    at_joints = twin.inverse_dynamics(robot, q, qd, qdd)
    used = quiet[:, None] & (np.abs(qd @ twin.load("irb140").drives.coupling.T) > KNEES)
    error = np.where(used, tau - np.linalg.solve(drives.coupling.T, at_joints.T).T, 0.0)
    return used.sum(axis=0), np.sqrt(np.sum(error**2, axis=0) / used.sum(axis=0))


def test_torques_in_motion_are_those_of_the_record_but_for_the_gravity_of_axes_2_and_3(rows):
    robot = twin.load("irb140").with_drives("rigid")
    count, error = rms(robot, rows)
    np.testing.assert_array_equal(count, [25, 92, 89, 35, 71, 31])
    np.testing.assert_allclose(error, [0.63, 3.65, 4.82, 0.13, 0.04, 0.02], atol=0.01)
    before = rms(robot.with_drives("rigid", replace(robot.drives, **FORMER)), rows)[1]
    np.testing.assert_allclose(before, [14.2, 10.7, 4.4, 3.5, 8.2, 3.1], atol=0.1)


def test_with_two_other_first_moments_every_torque_is_within_0_7_n_m(rows):
    """The moments of links 2 and 3 give the gravity of the record, as the page about it states."""
    robot = twin.load("irb140").with_drives("rigid")
    found = twin.dynamics.dynamic_parameters(robot)
    values = dict(zip(found.symbols, found.values, strict=True))
    for symbol, change in {"mz2": -0.693, "mx3": 0.584, "mz3": -0.074}.items():
        values[symbol] += change
    other = twin.dynamics.with_dynamic_parameters(robot, list(values.values()))
    assert np.all(rms(other, rows)[1] < 0.7)


@pytest.mark.parametrize("wrong", ["sign", "transpose", "joint speed"])
def test_another_coupling_is_noticed(rows, wrong):
    robot = twin.load("irb140")
    R = robot.drives.coupling
    changed = {"sign": 2 * np.eye(6) - R, "transpose": R.T, "joint speed": np.eye(6)}[wrong]
    worse = rms(robot.with_drives("rigid", replace(robot.drives, coupling=changed)), rows)[1]
    assert worse[5] > 0.1  # five times that of the record
