"""Puma 560 of the Robotics Toolbox: torques, inertia and accelerations in the pose `qn` of its tests.

Link 1 has no mass in the model, for no torque depends on it.  The numbers refer to standard frames of Denavit
and Hartenberg, with the centre of mass of link i in frame i.  Friction is that of the motors, with Coulomb
friction that differs between the directions.

Sources: P. Corke, B. Armstrong-Helouvry, "A search for consensus among model parameters reported for the
PUMA 560 robot", IEEE Int. Conf. on Robotics and Automation (1994); the model `DH.Puma560` and its tests
(`tests/test_DHRobot.py`) in the Robotics Toolbox for Python (P. Corke, J. Haviland).
"""

from functools import cache

import numpy as np

import twin
from tests.published.items import Finding, Item, against_printed, computes
from twin.physics.robot.dh_tables import LinkBody, dh_robot
from twin.physics.robot.evaluation import uncompiled
from twin.physics.robot.robot import DH

QN = np.array([0, np.pi / 4, np.pi, 0, np.pi / 4, 0])
D = [0.672, 0.0, 0.15005, 0.4318, 0.0, 0.0]
A = [0.0, 0.4318, 0.0203, 0.0, 0.0, 0.0]
ALPHA = np.pi / 2 * np.array([1.0, 0.0, -1.0, 1.0, -1.0, 0.0])
BODIES = (
    (0.0, (0.0, 0.0, 0.0), (0.0, 0.35, 0.0)),
    (17.4, (-0.3638, 0.006, 0.2275), (0.13, 0.524, 0.539)),
    (4.8, (-0.0203, -0.0141, 0.070), (0.066, 0.086, 0.0125)),
    (0.82, (0.0, 0.019, 0.0), (1.8e-3, 1.3e-3, 1.8e-3)),
    (0.34, (0.0, 0.0, 0.0), (0.3e-3, 0.4e-3, 0.3e-3)),
    (0.09, (0.0, 0.0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3)),
)
"""Mass in [kg], centre of mass in [m], and principal moments in [kg m^2] of each link."""

RATIO = np.array([-62.6111, 107.815, -53.7063, 76.0364, 71.923, 76.686])
ROTOR = np.array([200e-6, 200e-6, 200e-6, 33e-6, 33e-6, 33e-6])  # kg m^2
VISCOUS = np.array([1.48e-3, 0.817e-3, 1.38e-3, 71.2e-6, 82.6e-6, 36.7e-6])  # N m s/rad, at the motors
FORWARD = np.array([0.395, 0.126, 0.132, 11.2e-3, 9.26e-3, 3.96e-3])  # N m, at the motors
BACKWARD = np.array([0.435, 0.071, 0.105, 16.9e-3, 14.5e-3, 10.5e-3])


@cache
def puma() -> twin.Robot:
    """Return the arm with its drives."""
    bodies = [LinkBody(mass, com, np.diag(moments)) for mass, com, moments in BODIES]
    table = DH(np.zeros(6), np.array(D), np.array(A), ALPHA)
    arm = dh_robot("puma_560", table, bodies=bodies, unphysical=True)  # link 1 has inertia without a mass
    gear = np.abs(RATIO)
    drives = twin.Drives(
        ratio=RATIO, rotor_inertia=ROTOR, viscous=gear**2 * VISCOUS,
        coulomb=gear * (FORWARD + BACKWARD) / 2, offset=gear * (FORWARD - BACKWARD) / 2,
    )  # fmt: skip
    return uncompiled(arm.with_drives("rigid", drives))


def still() -> twin.Robot:
    """Return the arm without friction, which the toolbox has only where a joint moves."""
    robot = puma()
    assert robot.drives is not None
    return robot.with_drives("rigid", robot.drives.without_friction())


@computes("P-rne")
def torques(item: Item) -> Finding:
    """Compute the torques at rest, accelerating, moving, both, and both without gravity."""
    zero, one = np.zeros(6), np.ones(6)
    weightless = puma().with_gravity((0.0, 0.0, 0.0))
    cases = (
        (still(), zero, zero),
        (still(), zero, one),
        (puma(), one, zero),
        (puma(), one, one),
        (weightless, one, one),
    )
    return against_printed(item, [twin.inverse_dynamics(robot, QN, qd, qdd) for robot, qd, qdd in cases])


@computes("P-fext")
def torques_against_a_wrench(item: Item) -> Finding:
    """Compute the torques at rest with a wrench of the flange on its surroundings, in its axes."""
    R = twin.forward_kinematics(puma(), QN)[:3, :3]
    on_arm = -np.concatenate([R @ part for part in np.split(np.array(item.inputs["wrench"], dtype=float), 2)])
    return against_printed(item, twin.inverse_dynamics(still(), QN, np.zeros(6), np.zeros(6), on_arm))


@computes("P-inertia")
def joint_inertia(item: Item) -> Finding:
    """Compute the joint inertia matrix, rotors included."""
    return against_printed(item, twin.mass_matrix(puma(), QN))


@computes("P-accel")
def accelerations(item: Item) -> Finding:
    """Compute the accelerations of moving joints under torques."""
    return against_printed(item, twin.forward_dynamics(puma(), QN, item.inputs["qd"], item.inputs["tau"]))
