"""Warning where an identified model must not be extrapolated: beyond the positions that were recorded.

A spring over an axis, a balancer and the weight of a link are alike over a small range of a joint.  A
recording there determines their sum and not the parts, which differ elsewhere.  The deviation of the torque
at rest, `sqrt(y C y^T)` for a row y of the regressor and the covariance C of the base parameters, shows both.
"""

import warnings
from collections.abc import Sequence

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import IdentificationWarning
from twin.data.identification.measurements import Measurements
from twin.data.identification.torque_model import TorqueModel
from twin.physics.robot.units import joint_unit

WORSE = 3.0
"""Ratio of the deviations outside and inside the recorded range above which a warning is given."""

MATTERS = 0.1
"""Smallest deviation that matters, as a share of the torque's root mean square."""

POINTS = 25
"""Number of positions in a range."""


def rest_deviations(
    model: TorqueModel, covariance: Floats, q: Floats, joint: int, positions: Floats
) -> Floats:
    """Return the deviations (m,) of a joint's torque at rest at some of its positions, in [N m].

    Args:
        model: identified model.
        covariance: (r, r) covariance of its base parameters.
        q: (n,) positions of the other joints.
        joint: index of the joint.
        positions: (m,) its positions, in [rad] or [m].
    """
    rows = np.tile(q, (len(positions), 1))
    rows[:, joint] = positions
    zero = np.zeros_like(rows)
    y = model.regressor(rows, zero, zero, zero)[:, joint, model.base.columns]
    return np.sqrt(np.einsum("mi,ij,mj->m", y, covariance, y))


def warn_of_extrapolation(
    model: TorqueModel, covariance: Floats, measured: Sequence[Measurements], torque_rms: Floats
) -> None:
    """Warn of joints whose torque at rest is uncertain at positions that were not recorded.

    Args:
        model: identified model.
        covariance: (r, r) covariance of its base parameters.
        measured: recordings of the fit.
        torque_rms: (n,) root mean square of the torques, in [N m].
    """
    robot = model.robot
    q = np.concatenate([one.q[np.any(one.used, axis=1)] for one in measured])
    middle = np.median(q, axis=0)
    for joint, kind in enumerate(robot.joint_kinds):
        low, high = float(np.min(q[:, joint])), float(np.max(q[:, joint]))
        ends = np.clip([robot.q_min[joint], robot.q_max[joint]], min(low, -np.pi), max(high, np.pi))
        positions = np.linspace(ends[0], ends[1], POINTS)
        inside, outside = (
            rest_deviations(model, covariance, middle, joint, places)
            for places in (np.linspace(low, high, POINTS), positions)
        )
        limit = max(WORSE * float(np.max(inside)), MATTERS * float(torque_rms[joint]))
        uncertain = positions[outside > limit]
        if uncertain.size:
            scale, unit = (1.0, "m") if kind == "prismatic" else (180.0 / np.pi, "deg")
            torque, worst = joint_unit(kind, "torque"), int(np.argmax(outside))
            below, above = uncertain[uncertain < low], uncertain[uncertain > high]
            sides = [f"from {scale * below[-1]:.3g} {unit} down"] if below.size else []
            sides += [f"from {scale * above[0]:.3g} {unit} up"] if above.size else []
            warnings.warn(
                f"joint {joint + 1} was recorded from {scale * low:.3g} to {scale * high:.3g} {unit}; "
                f"{' and '.join(sides)}, its torque at rest has a deviation above {limit:.2g} {torque}, "
                f"{outside[worst]:.2g} {torque} at {scale * positions[worst]:.3g} {unit}: record it over "
                "more of its range, or do not use the result there",
                IdentificationWarning,
                stacklevel=3,
            )
