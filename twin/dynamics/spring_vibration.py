"""How fast the springs of elastic joints vibrate, and whether a time step can follow them."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike

from twin.dynamics.equation_of_motion import mass_matrix
from twin.errors import DriveWarning, RobotError
from twin.robot.robot import Robot

MOST_TURNS = 0.25
"""Of a vibration, in a step: see `frequency_in_steps`, by which it is then 15 % too slow."""


def spring_frequencies(robot: Robot, q: ArrayLike) -> np.ndarray:
    """Undamped frequency (n,) of every elastic joint's motor against the arm, in [Hz]; 0 of a rigid joint.

    One spring at a time: its stretch is pulled back by the stiffness k at the motor, whose inertia is `A_ii`,
    and at the arm, all other joints of which are free, so that

        (2 pi f)^2 = k_i (1 / A_ii + 1 / m_i),    1 / m_i = (M + A_r)^-1_ii,

    with the rotors `A_r` of the drives that are rigid.  The fastest vibration of the whole is at least as
    fast as each of these, and no faster than the root of the sum of their squares.

    Args:
        robot: with known drives, whichever of them act.
        q: (n,) joint positions, in [rad].

    Raises:
        RobotError: its drives are not known.
    """
    drives = robot.drives
    if drives is None:
        raise RobotError(f"robot {robot.name!r} has no springs: its drives are not known")
    A, rigid = drives.reflected_inertia, np.isinf(drives.stiffness)
    arm = np.diag(np.linalg.inv(mass_matrix(robot, q) + np.where(np.outer(rigid, rigid), A, 0.0)))
    with np.errstate(divide="ignore"):  # a rotor without inertia has no end to it
        squared = np.where(rigid, 0.0, drives.stiffness) * (1.0 / np.diag(A) + arm)
    return np.where(rigid, 0.0, np.sqrt(squared) / (2 * np.pi))


def frequency_in_steps(frequency: float, time_step: float) -> float:
    """What the constant average acceleration of `twin/drives/drive_step.py` makes of a frequency, in [Hz].

    With `omega = 2 pi f` that is `tan(omega' dt / 2) = omega dt / 2`, always slower: by 3 % where a turn is
    ten steps, by 15 % where it is four (N. Newmark 1959, beta = 1/4).
    """
    return float(np.arctan(np.pi * frequency * time_step) / (np.pi * time_step))


def warn_of_unresolved_springs(robot: Robot, time_step: float) -> bool:
    """Warn, in one sentence, where steps are too long for the vibrations of elastic joints at `q = 0`.

    The simulation stays stable then, but such a joint vibrates slower than it should.  Returns whether it
    warned.
    """
    if robot.drive_mode != "elastic":
        return False
    frequencies = spring_frequencies(robot, np.zeros(robot.n)).tolist()
    names = zip(robot.joint_names, frequencies, strict=True)
    fast = {joint: f for joint, f in names if f * time_step > MOST_TURNS}
    if fast:
        told = ", ".join(
            f"{joint} at {f:.0f} Hz ({frequency_in_steps(f, time_step):.0f} Hz in such steps)"
            for joint, f in fast.items()
        )
        warnings.warn(
            f"steps of {time_step:g} s are too long for the springs of {told}; where their vibration "
            "matters, take at least 4 steps for each of its turns",
            DriveWarning,
            stacklevel=3,
        )
    return bool(fast)
