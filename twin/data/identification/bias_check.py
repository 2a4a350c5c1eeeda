"""Check of identified parameters for bias by noisy positions: instrumental variables.

Noise of measured positions enters the regressor through speeds and accelerations, and pulls parameters of
least squares towards 0, rotors first.  Instrumental variables are free of that:

    beta = (Z^T W Y)^-1 Z^T W tau,

with the weights W of the fit and a regressor Z without noise.  Z is the regressor of the simulated motion.
With an exact model, a controller makes the simulated arm follow its reference, so Z is that of the
reference.  It is as good as the arm follows its reference; the deviations of beta contain that.

Source: A. Janot, P.-O. Vandanjon, M. Gautier, "A generic instrumental variable approach for industrial robot
identification", IEEE Trans. on Control Systems Technology 22 (2014).
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import IdentificationError
from twin.data.identification.measurements import equations
from twin.data.identification.result import Identification

FAR = 3.0
"""Number of deviations by which both estimates differ where least squares is biased."""


class BiasCheck(NamedTuple):
    """Parameters by instrumental variables, beside those of least squares.

    Attributes:
        beta: (r,) base parameters.
        deviations: (r,) their standard deviations, of the kind of the identification.
        differs: (r,) true where both estimates differ by more than `FAR` of these deviations.
    """

    beta: Floats
    deviations: Floats
    differs: np.ndarray


def check_bias(found: Identification) -> BiasCheck:
    """Estimate the base parameters by instrumental variables, and compare them with those of a fit.

    Args:
        found: result of `identify`, from recordings with measured positions and a reference.

    Raises:
        IdentificationError: a recording has no reference, or its reference does not move all joints.

    Example:
        >>> import twin
        >>> from scenarios.joint_tracking import JointTracking
        >>> from scenarios.setup import Setup
        >>> log = JointTracking(duration=4.0).run(Setup(robot="two_link", noise=1e-4)).log
        >>> twin.identification.check_bias(twin.identify(log.robot, log)).differs.any().item()
        False
    """
    r, weights_of_joints = len(found.beta), found.fit.weights
    ZY, ZZ, Ztau = np.zeros((r, r)), np.zeros((r, r)), np.zeros(r)
    scale = 1.0 / np.linalg.norm(found.weighted.R[:, :, :-1] * weights_of_joints[:, None, None], axis=(0, 1))
    for one in found.measured:
        if one.reference is None:
            raise IdentificationError(
                f"{one.name}: a check for bias needs the commanded motion: expected a log of a run with "
                "sensors, or a table with the columns qref1, qref2, ..."
            )
        reference = replace(one.reference, used=one.used, weights=one.weights, row_weights=one.row_weights)
        blocks = zip(equations(found.model, one), equations(found.model, reference), strict=True)
        for block, of_reference in blocks:
            weights = (block.used * weights_of_joints)[..., None]
            Y = (block.rows[..., :-1] * weights * scale).reshape(-1, r)
            Z = (of_reference.rows[..., :-1] * weights * scale).reshape(-1, r)
            ZY += Z.T @ Y
            ZZ += Z.T @ Z
            Ztau += Z.T @ (block.rows[..., -1:] * weights).ravel()
    if not np.linalg.cond(ZY) < 1e10:
        raise IdentificationError(
            "the reference does not determine the parameters: the arm hardly follows it"
        )
    inverse = np.linalg.inv(ZY)
    beta = scale * (inverse @ Ztau)
    spread = np.sqrt(np.diag(inverse @ ZZ @ inverse.T)) * scale
    deviations = spread / np.linalg.norm(found.fit.spread, axis=1) * found.deviations
    return BiasCheck(beta, deviations, np.abs(beta - found.beta) > FAR * deviations)
