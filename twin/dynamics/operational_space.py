"""The dynamics of the arm as its tool sees them: operational space.

The tool's twist V = J qd obeys an equation of motion of its own,

    Lambda Vd + mu + p = F,    tau = J^T F,

F being the wrench that the drives exert at the tool.  From `M qdd + C qd + g = tau` and `Vd = J qdd + Jd qd`,

    Lambda = (J M^-1 J^T)^-1,    J_bar = M^-1 J^T Lambda,
    mu = J_bar^T C qd - Lambda Jd qd,    p = J_bar^T g.

`J_bar`, the dynamically consistent inverse, is of all inverses of J the one by which torques `tau - J^T
J_bar^T tau` do not accelerate the tool: with more than six joints they move the arm alone.  Where the tool
loses a direction Lambda is infinite, for no wrench accelerates it that way; there is an error, and no result.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.arrays import Floats, real_array
from twin.dynamics.equation_of_motion import gravity_torque, inverse_dynamics, mass_matrix
from twin.errors import SingularityError
from twin.kinematics.forward import jacobian, jacobian_dot
from twin.robot.evaluation import joint_vectors
from twin.robot.robot import Robot
from twin.rotations.linear_maps import RANK_TOLERANCE


class OperationalSpace(NamedTuple):
    """The dynamics of m components of the tool's motion, at one state or many.

    Attributes:
        Lambda: (..., m, m) inertia, symmetric and positive definite, in [kg] (linear), [kg m] and [kg m^2]
            (angular).
        mu: (..., m) of centrifugal and Coriolis forces, in [N, N m].
        p: (..., m) of gravity, in [N, N m].
        J_bar: (..., n, m) dynamically consistent inverse of the Jacobian, in [1/m] and [1].
    """

    Lambda: Floats
    mu: Floats
    p: Floats
    J_bar: Floats


class MassWeighted(NamedTuple):
    """A Jacobian in coordinates in which the arm's kinetic energy is half the square of the speed.

    With `M = L L^T`, `L^-1 J^T = U diag(values) V^T`.

    Attributes:
        L: (..., n, n) lower triangular.
        U: (..., n, m) orthonormal columns.
        values: (..., m) singular values, from the largest to the least.
        V: (..., m, m) orthonormal columns.
    """

    L: Floats
    U: Floats
    values: Floats
    V: Floats


def operational_space(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike,
    T_flange_tool: ArrayLike | None = None,
    task: ArrayLike | None = None,
) -> OperationalSpace:
    """Return the dynamics of the tool in operational space.

    Args:
        robot: the robot.
        q: (..., n) joint angles, in [rad].
        qd: (..., n) joint velocities, in [rad/s].
        T_flange_tool: (4, 4) pose of the tool on the flange.
        task: (m, 6) which components of the twist are the task, `task @ V`; all six by default.  An arm of
            fewer joints has at most n, for instance `numpy.eye(6)[:3]`, the position.

    Raises:
        SingularityError: the arm cannot accelerate the tool in some direction of the task; it is named.
        ValueError: a task of another shape.

    Source: Khatib 1987, "A unified approach for motion and force control of robot manipulators: the
    operational space formulation".
    """
    q, qd = joint_vectors(robot, q=q, qd=qd)
    A = task_matrix(task)
    J, J_dot = A @ jacobian(robot, q, T_flange_tool), A @ jacobian_dot(robot, q, qd, T_flange_tool)
    weighted = mass_weighted(robot, q, J, "operational space")
    L_T, U, values, V = np.swapaxes(weighted.L, -1, -2), weighted.U, weighted.values, weighted.V
    V_T = np.swapaxes(V, -1, -2)
    Lambda = (V / values[..., None, :] ** 2) @ V_T
    J_bar = np.asarray(np.linalg.solve(L_T, (U / values[..., None, :]) @ V_T), dtype=np.float64)
    gravity = gravity_torque(robot, q)
    of_speed = inverse_dynamics(robot, q, qd, np.zeros_like(qd)) - gravity  # C qd
    mu = np.einsum("...ji,...j->...i", J_bar, of_speed)
    mu = mu - np.einsum("...ij,...jk,...k->...i", Lambda, J_dot, qd)
    p = np.broadcast_to(np.einsum("...ji,...j->...i", J_bar, gravity), mu.shape)
    return OperationalSpace((Lambda + np.swapaxes(Lambda, -1, -2)) / 2.0, mu, p, J_bar)


def task_matrix(task: ArrayLike | None) -> Floats:
    """Return the checked matrix (m, 6) of a task, the identity for `None`."""
    if task is None:
        return np.eye(6)
    A = real_array(task, "task")
    if A.ndim != 2 or A.shape[1] != 6 or not len(A) or not np.all(np.isfinite(A)):
        raise ValueError(f"expected a finite task of shape (m, 6), got {A.shape}")
    return A


def mass_weighted(robot: Robot, q: Floats, J: Floats, what: str) -> MassWeighted:
    """Return a Jacobian (..., m, n) of full row rank in mass-weighted coordinates.

    Nothing is squared that the masses allow to keep: with S = L^-1 J^T, `J M^-1 J^T = S^T S` has the singular
    values of S squared.

    Raises:
        SingularityError: its rows do not have rank m; the direction that is lost is named.
    """
    L = np.linalg.cholesky(mass_matrix(robot, q))
    S = np.linalg.solve(L, np.swapaxes(J, -1, -2))
    U, values, V_T = np.linalg.svd(S, full_matrices=False)
    m = J.shape[-2]
    if S.shape[-2] < m:
        raise SingularityError(f"{what} of {m} directions is too much for an arm of {S.shape[-2]} joints")
    lost = ~(values[..., -1] > RANK_TOLERANCE * values[..., 0])
    if np.any(lost):
        at = tuple(np.argwhere(lost)[0])
        of_sample = f" of sample {list(map(int, at))}" if at else ""
        direction = ", ".join(f"{x:.3g}" for x in V_T[(*at, -1)])
        raise SingularityError(
            f"{what}{of_sample} does not exist: the arm is singular and cannot accelerate along ({direction})"
        )
    return MassWeighted(L, U, values, np.swapaxes(V_T, -1, -2))
