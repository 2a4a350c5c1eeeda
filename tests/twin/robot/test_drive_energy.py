"""Energy through the drives: what the motors give is stored in links, rotors and springs, or becomes heat.

Summed as the step's scheme has it: torques at the mean of the speeds before and after a step, springs half a
step before the positions.  Then rotors, springs, dampers and friction balance to round-off, and what is left
is that of the links, whose inertia changes on the way: of first order in the step, and of none extrapolated.
"""

from itertools import pairwise

import numpy as np
import pytest

import twin
from tests.support.drive_oracles import levels
from tests.support.sample_drives import uncoupled
from twin.control.plant import AnalyticPlant

pytestmark = pytest.mark.filterwarnings("ignore:steps of .* are too long for the springs")

START = np.deg2rad([10, 20, -10, 15, 30, -20])
SPEED = np.array([0.5, -0.4, 0.6, 1.0, -0.8, 1.2])
SECONDS = 0.4


def driven(robot, drives, t, stops=False):
    """Torques over friction and gravity at the start: every joint goes on as it went, or turns back."""
    swing = -2.5 * np.sin(2 * np.pi * t / SECONDS) if stops else 0.3 * np.sin(20 * t)
    return twin.gravity_torque(robot, START) + np.sign(SPEED) * drives.coulomb * (1.1 + swing)


def ledger(robot, dt, stops=False):
    """Work of the motors, heat of friction, of dampers, and what is stored more at the end, in [J]."""
    drives, plant = robot.drives, AnalyticPlant(robot, dt)
    plant.reset(START, SPEED)
    sprung = np.isfinite(drives.stiffness) & (robot.drive_mode == "elastic")
    k, d = np.where(sprung, drives.stiffness, 0.0), np.where(sprung, drives.damping, 0.0)

    def stored():
        (q, qd), (theta, thetad) = plant.state(), plant.motor_state()
        bend = theta - q - dt * (thetad - qd) / 2
        rotors = thetad @ drives.reflected_inertia @ thetad
        return twin.energy(robot.arm, q, qd) + (rotors + bend @ (k * bend)) / 2

    before = stored()
    work = rubbed = damped = 0.0
    for step in range(round(SECONDS / dt)):
        tau, qd, w = driven(robot, drives, step * dt, stops), plant.state()[1], plant.motor_state()[1]
        plant.step(tau)
        next_qd, next_w = plant.state()[1], plant.motor_state()[1]
        mean, stretch = (w + next_w) / 2, (w + next_w - qd - next_qd) / 2
        friction = levels(drives, w, np.zeros(robot.n)) * np.sign(next_w) + drives.viscous * next_w
        stuck = next_w == 0
        friction[stuck] = (drives.reflected_inertia @ w / dt + tau - plant.tau_joint)[stuck]
        work += dt * tau @ mean
        rubbed += dt * friction @ mean
        damped += dt * stretch @ (d * stretch)
    return work, rubbed, damped, stored() - before


@pytest.mark.parametrize(
    ("name", "mode", "stops", "extrapolated"),
    [("irb140", "rigid", True, 1e-6), ("irb1400", "elastic", False, 1e-8)],
)
def test_work_is_stored_or_becomes_heat(name, mode, stops, extrapolated):
    """Joints that keep moving (seen: 9e-12 of the work), and such that stop, stick and turn back (2e-8)."""
    robot = uncoupled(twin.load(name)).with_drives(mode)
    left, works = [], []
    for part in (1, 2, 4, 8):
        work, rubbed, damped, stored = ledger(robot, 1e-3 / part, stops)
        assert rubbed > 0.1 * work > 0
        assert (damped > 0) == (mode == "elastic")
        left.append(work - rubbed - damped - stored)
        works.append(work)
    assert abs(left[0]) < 1e-3 * works[0]
    assert left[1] / left[2] == pytest.approx(2, abs=0.1)
    for order in (1, 2, 3):
        left = [(2**order * fine - coarse) / (2**order - 1) for coarse, fine in pairwise(left)]
    assert abs(left[0]) < extrapolated * works[0]
