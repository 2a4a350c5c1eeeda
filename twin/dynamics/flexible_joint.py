"""A joint whose drive is elastic: two masses, the motor and the arm, with a gear and a spring between them.

    Jm qm'' + fm qm' + r T = tau          motor
    Ja qa'' + fa qa' - T = 0              arm
    T = k (r qm - qa) + d (r qm' - qa')   torque of spring and damper on the arm

Source: Norrlöf 1999, eq. (3.69)-(3.73); Norrlöf, lecture 3, "Friction and joint flexibilities", of which this
is one joint with r = 1 (the signs of its spring are reversed in print, and d multiplies angles).

The report leaves out the r before T.  With its k and Ja as the stiffness and the inertia of the arm its
spring would create power; its equations are those above if they mean r times both, and
`FlexibleJoint.reported` reads them so.  Of the IRB 1400's axis 1, its Table 3.1 then says k = 80.2 kN m/rad
and Ja = 6.16 kg m^2.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats, real_array


@dataclass(frozen=True)
class FlexibleJoint:
    """Motor, gear, spring and arm; motor angles `qm` count before the gear, all else behind it.

    Attributes:
        Jm: moment of inertia of the motor, in [kg m^2].
        Ja: moment of inertia of the arm about the joint, in [kg m^2].
        k: stiffness of the spring, in [N m/rad].
        r: angle of the arm for each radian of the motor where the spring is at rest; not zero.
        fm: viscous friction of the motor, in [N m s/rad].
        fa: viscous friction of the arm, in [N m s/rad].
        d: damping of the spring, in [N m s/rad].
    """

    Jm: float
    Ja: float
    k: float
    r: float = 1.0
    fm: float = 0.0
    fa: float = 0.0
    d: float = 0.0

    def __post_init__(self) -> None:
        for part in fields(self):
            value = getattr(self, part.name)
            if part.name == "r":
                valid, wanted = 0 < abs(value) < inf, "a finite number other than 0"
            elif part.name in ("Jm", "Ja", "k"):
                valid, wanted = 0 < value < inf, "above 0"
            else:
                valid, wanted = 0 <= value < inf, "at least 0"
            if not valid:
                raise ValueError(f"expected {part.name} of a flexible joint to be {wanted}, got {value}")

    @classmethod
    def reported(cls, Jm: float, Ja: float, k: float, r: float, fm: float, fa: float = 0.0) -> FlexibleJoint:
        """The joint that the report's symbols describe: its k, Ja and fa are r times those of the arm.

        Source: Norrlöf 1999, eq. (3.71) and Table 3.1.
        """
        if not 0 < r < inf:
            raise ValueError(f"expected r of the report's joint to be above 0, got {r}")
        return cls(Jm, Ja / r, k / r, r, fm, fa / r)


class StateSpace(NamedTuple):
    """A linear system `x' = A x + B u`, `y = C x`: A is (n, n), B (n, 1), C (1, n)."""

    A: Floats
    B: Floats
    C: Floats


def angle_model(joint: FlexibleJoint) -> StateSpace:
    """From the motor's torque to its angle; the state is `[qm, qm', qa, qa']`.

    Source: Norrlöf 1999, eq. (3.72), (3.73).
    """
    Jm, Ja, k, r, fm, fa, d = _numbers(joint)
    A = [
        [0, 1, 0, 0],
        [-k * r * r / Jm, -(fm + d * r * r) / Jm, k * r / Jm, d * r / Jm],
        [0, 0, 0, 1],
        [k * r / Ja, d * r / Ja, -k / Ja, -(fa + d) / Ja],
    ]
    return StateSpace(np.array(A, dtype=np.float64), _column(0, 1 / Jm, 0, 0), _column(1, 0, 0, 0).T)


def velocity_model(joint: FlexibleJoint) -> StateSpace:
    """From the motor's torque to its velocity; the state is `[qm', qa', r qm - qa]`.

    Source: Norrlöf 1999, section 3.3.2, the model with three states; its entry (2, 3) is printed as -k/Ja.
    """
    Jm, Ja, k, r, fm, fa, d = _numbers(joint)
    A = [
        [-(fm + d * r * r) / Jm, d * r / Jm, -k * r / Jm],
        [d * r / Ja, -(fa + d) / Ja, k / Ja],
        [r, -1, 0],
    ]
    return StateSpace(np.array(A, dtype=np.float64), _column(1 / Jm, 0, 0), _column(1, 0, 0).T)


def poles(model: StateSpace) -> np.ndarray:
    """Eigenvalues (n,) of A, in [1/s], in the order of their real parts."""
    return np.sort_complex(np.linalg.eigvals(model.A))


def zeros(joint: FlexibleJoint) -> np.ndarray:
    """Zeros (2,) from the motor's torque to its motion, in [1/s]: how the arm swings with the motor held."""
    return np.sort_complex(np.linalg.eigvals(angle_model(joint).A[2:, 2:]))


def frequency_response(model: StateSpace, omega: ArrayLike) -> np.ndarray:
    """The complex gain `C (i omega - A)^-1 B` (...,) at frequencies `omega` (...,), in [rad/s]."""
    s = 1j * real_array(omega, "omega")[..., None, None]
    x = np.linalg.solve(
        s * np.eye(len(model.A)) - model.A, np.broadcast_to(model.B, (*s.shape[:-2], *model.B.shape))
    )
    return (model.C @ x)[..., 0, 0]


def energy_matrix(joint: FlexibleJoint) -> Floats:
    """H (4, 4) of the energy `x^T H x / 2` at `x = [qm, qm', qa, qa']`: it changes by `x^T H x'`."""
    r, k = joint.r, joint.k
    return np.array(
        [[k * r * r, 0, -k * r, 0], [0, joint.Jm, 0, 0], [-k * r, 0, k, 0], [0, 0, 0, joint.Ja]],
        dtype=np.float64,
    )


def energy(joint: FlexibleJoint, x: ArrayLike) -> np.ndarray:
    """Kinetic energy of both masses and what the spring stores.

    Args:
        joint: the joint.
        x: (..., 4) state `[qm, qm', qa, qa']`, in [rad, rad/s].

    Returns:
        (...,), in [J].
    """
    qm, qmd, qa, qad = _state(x)
    return (joint.Jm * qmd**2 + joint.Ja * qad**2 + joint.k * (joint.r * qm - qa) ** 2) / 2


def spring_torque(joint: FlexibleJoint, x: ArrayLike) -> np.ndarray:
    """Torque T (...,) of spring and damper on the arm, in [N m], at states `x` (..., 4)."""
    qm, qmd, qa, qad = _state(x)
    return joint.k * (joint.r * qm - qa) + joint.d * (joint.r * qmd - qad)


def _numbers(joint: FlexibleJoint) -> tuple[float, ...]:
    return joint.Jm, joint.Ja, joint.k, joint.r, joint.fm, joint.fa, joint.d


def _column(*entries: float) -> Floats:
    return np.array(entries, dtype=np.float64)[:, None]


def _state(x: ArrayLike) -> np.ndarray:
    array = real_array(x, "x")
    if array.ndim == 0 or array.shape[-1] != 4 or not np.all(np.isfinite(array)):
        raise ValueError(
            f"expected a finite state [qm, qm', qa, qa'] of shape (..., 4), got {array.tolist()}"
        )
    return np.moveaxis(array, -1, 0)
