"""The family of arms whose inverse kinematics is known in closed form: an elbow and a spherical wrist.

It is every arm whose Denavit-Hartenberg table, A = Rz(theta) Tz(d) Tx(a) Rx(alpha), reads

    alpha = (-90, 0, +-90, +-90, -alpha_4, 0) degrees,  a = (a1, a2, a3, 0, 0, 0),  d = (d1, 0, 0, d4, 0, d6)

with lengths of any sign, a2 and hypot(a3, d4) not zero.
"""

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from twin.errors import RobotError

if TYPE_CHECKING:
    from twin.robot.robot import Robot


@lru_cache(maxsize=16)
def arm_constants(robot: "Robot") -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return what the kernel needs of an arm of the family.

    Remembered for the last robots asked for (they are immutable): the checks cost as much as twenty poses.

    Args:
        robot: any robot.

    Returns:
        arm: (8,) d1, a1, a2, d6 and the forearm's length hypot(a3, d4) in [m]; the forearm's direction in
            frame 3, seen in the arm's plane, in [rad]; sin alpha_3; -sin alpha_4.
        theta0: (6,) DH angles at q = 0, in [rad].
        inverse_S: (6, 6) inverse of the matrix S in theta = S q + theta0, whole numbers.

    Raises:
        RobotError: the robot has no DH table, or one outside the family; the message names the entry.
    """
    dh = robot.dh
    if dh is None:
        raise RobotError(f"robot {robot.name!r} has no DH table, which inverse kinematics needs")
    outside = f"robot {robot.name!r} is outside the family of closed-form inverse kinematics:"
    if len(dh.d) != 6:
        raise RobotError(f"{outside} it has {len(dh.d)} DH rows, expected 6")
    if "prismatic" in robot.joint_kinds:
        raise RobotError(f"{outside} joint {robot.joint_kinds.index('prismatic') + 1} is prismatic")
    right = math.pi / 2
    allowed = {
        "alpha": ((-right,), (0.0,), (-right, right), (-right, right), (-dh.alpha[3],), (0.0,)),
        "a": (None, None, None, (0.0,), (0.0,), (0.0,)),
        "d": (None, (0.0,), (0.0,), None, (0.0,), None),
    }
    for letter, entries in allowed.items():
        for axis, (value, choices) in enumerate(zip(getattr(dh, letter), entries, strict=True), start=1):
            if choices is None or any(abs(value - choice) <= 1e-12 for choice in choices):
                continue
            unit, scale = ("degrees", 180.0 / math.pi) if letter == "alpha" else ("m", 1.0)
            wanted = " or ".join(f"{choice * scale:g}" for choice in choices)
            raise RobotError(f"{outside} DH {letter}_{axis} is {value * scale:g} {unit}, expected {wanted}")
    for name, length in (("a_2", abs(dh.a[1])), ("hypot(a_3, d_4)", math.hypot(dh.a[2], dh.d[3]))):
        if not length > 0:
            raise RobotError(f"{outside} DH {name} is {length:g} m, expected more than 0")
    # Then a full turn of any DH angle is full turns of joints, and the other way round.
    if not (
        np.all(np.rint(robot.dh_coupling) == robot.dh_coupling)
        and abs(abs(np.linalg.det(robot.dh_coupling)) - 1.0) <= 1e-9
    ):
        raise RobotError(f"{outside} S must hold whole numbers and have determinant 1 or -1")
    sigma, kappa = np.sign(dh.alpha[2]), -np.sign(dh.alpha[3])
    forearm, beta = math.hypot(dh.a[2], dh.d[3]), math.atan2(-sigma * dh.d[3], dh.a[2])
    arm = np.array([dh.d[0], dh.a[0], dh.a[1], dh.d[5], forearm, beta, sigma, kappa])
    return arm, np.array(dh.theta0), np.ascontiguousarray(np.rint(np.linalg.inv(robot.dh_coupling)))
