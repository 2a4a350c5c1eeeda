"""An elastic joint as samples see it: what its motor's speed makes of torques that are held for a period.

    y[k] = -a1 y[k-1] - a2 y[k-2] - a3 y[k-3] + b1 u[k-1] + b2 u[k-2] + b3 u[k-3]

of `twin.dynamics.flexible_joint.velocity_model`, without approximation: `exact`, by the matrix exponential,
as a real arm moves; or `in_steps`, by the step of elastic drives in engine and analytic plant
(`twin/drives/drive_step.py`), which is what such a log obeys to round-off.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import expm

from twin.dynamics.flexible_joint import FlexibleJoint, velocity_model


class SampledJoint(NamedTuple):
    """`x[k+1] = A x[k] + B u[k]`, `y = x[0]`, for `x = [qm', qa', r qm - qa]`: A is (3, 3), B (3,)."""

    A: np.ndarray
    B: np.ndarray


def exact(joint: FlexibleJoint, period: float) -> SampledJoint:
    """The joint under torques of its motor that are held for a period, in [s]."""
    model = velocity_model(joint)
    both = np.zeros((4, 4))
    both[:3, :3], both[:3, 3:] = period * model.A, period * model.B
    held = expm(both)
    return SampledJoint(held[:3, :3], held[:3, 3])


def in_steps(joint: FlexibleJoint, period: float, steps: int) -> SampledJoint:
    """The joint as engine and analytic plant move it, in a number of steps a period, in [s]."""
    r, k, d, dt = joint.r, joint.k, joint.d, period / steps
    # What spring and damper give for the state before the step, and for both accelerations in it:
    # T = before @ x + within @ [qm'', qa'']
    before = np.array([d * r, -d, k])
    within = (dt / 2 * d + dt**2 / 4 * k) * np.array([r, -1.0])
    sides = np.array([r, -1.0])
    inertia = np.diag([joint.Jm + dt * joint.fm, joint.Ja + dt * joint.fa]) + np.outer(sides, within)
    friction = np.array([[joint.fm, 0.0, 0.0], [0.0, joint.fa, 0.0]])
    accelerations = np.linalg.solve(inertia, np.column_stack([-np.outer(sides, before) - friction, [1, 0]]))
    one = np.eye(4)
    one[:2] += dt * accelerations
    one[2] += dt * (r * one[0] - one[1])
    whole = np.linalg.matrix_power(one, steps)
    return SampledJoint(whole[:3, :3], whole[:3, 3])


def difference_equation(model: SampledJoint) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients `[0, b1, b2, b3]` and `[1, a1, a2, a3]` of a sampled joint."""
    A, B = model
    minors = A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0] + A[0, 0] * A[2, 2] - A[0, 2] * A[2, 0]
    minors += A[1, 1] * A[2, 2] - A[1, 2] * A[2, 1]
    a = np.array([1.0, -np.trace(A), minors, -np.linalg.det(A)])
    y = np.array([B[0], (A @ B)[0], (A @ A @ B)[0]])  # the first three of the response to a pulse
    b = np.array([0.0, y[0], y[1] + a[1] * y[0], y[2] + a[1] * y[1] + a[2] * y[0]])
    return b, a
