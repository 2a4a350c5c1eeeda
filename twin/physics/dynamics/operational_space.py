"""Dynamics of the arm in operational space, that is, in the motion of its tool.

The tool's twist V = J qd obeys the equation of motion

    Lambda Vd + mu + p = F,    tau = J^T F,

where F is the wrench that the drives exert at the tool.  From `M qdd + C qd + g = tau` and
`Vd = J qdd + Jd qd` follow

    Lambda = (J M^-1 J^T)^-1,    J_bar = M^-1 J^T Lambda,
    mu = J_bar^T C qd - Lambda Jd qd,    p = J_bar^T g.

`J_bar` is the dynamically consistent inverse.  It is the only inverse of J for which the torques
`tau - J^T J_bar^T tau` do not accelerate the tool; with more than six joints they move only the arm.  At a
singularity no wrench accelerates the tool in the lost direction, and Lambda is infinite.  An error is raised
there.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, real_array
from twin.base.errors import SingularityError
from twin.physics.dynamics.environment import DAMPING, SHAPES, STIFFNESS, Environment
from twin.physics.dynamics.equation_of_motion import gravity_torque, inverse_dynamics, mass_matrix
from twin.physics.kinematics.forward import jacobian, jacobian_dot
from twin.physics.robot.evaluation import joint_vectors
from twin.physics.robot.robot import Robot
from twin.physics.rotations.linear_maps import RANK_TOLERANCE


class OperationalSpace(NamedTuple):
    """Dynamics of m components of the tool's motion, in one state or many.

    Attributes:
        Lambda: (..., m, m) inertia matrix, symmetric and positive definite, in [kg] (linear), [kg m] and
            [kg m^2] (angular).
        mu: (..., m) centrifugal and Coriolis forces, in [N, N m].
        p: (..., m) gravity forces, in [N, N m].
        J_bar: (..., n, m) dynamically consistent inverse of the Jacobian, in [1/m] and [1].
    """

    Lambda: Floats
    mu: Floats
    p: Floats
    J_bar: Floats


class MassWeighted(NamedTuple):
    """Singular value decomposition of a Jacobian in mass-weighted coordinates.

    In these coordinates the arm's kinetic energy is half the square of the speed.

    With `M = L L^T`, `L^-1 J^T = U diag(values) V^T`.

    Attributes:
        L: (..., n, n) lower triangular Cholesky factor of M.
        U: (..., n, m) matrix with orthonormal columns.
        values: (..., m) singular values in descending order.
        V: (..., m, m) matrix with orthonormal columns.
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
        task: (m, 6) matrix that selects the components `task @ V` of the twist; all six by default.  The task
            of an arm with n < 6 joints has at most n rows, for instance `numpy.eye(6)[:3]` for the position.

    Raises:
        SingularityError: the arm cannot accelerate the tool in a direction of the task, which the message
            names.
        ValueError: the task has another shape.

    Example:
        >>> import numpy as np
        >>> import twin
        >>> robot = twin.load("two_link")  # two rods of 1 kg and 1 m, at a right angle
        >>> dynamics = twin.operational_space(robot, [0, np.pi / 2], [0, 0], task=np.eye(6)[:2])
        >>> dynamics.Lambda.diagonal().round(4).tolist()  # along x and y, in kg
        [1.3333, 0.3333]

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
    coriolis_torque = inverse_dynamics(robot.arm, q, qd, np.zeros_like(qd)) - gravity  # C qd
    mu = np.einsum("...ji,...j->...i", J_bar, coriolis_torque)
    mu = mu - np.einsum("...ij,...jk,...k->...i", Lambda, J_dot, qd)
    p = np.broadcast_to(np.einsum("...ji,...j->...i", J_bar, gravity), mu.shape)
    return OperationalSpace((Lambda + np.swapaxes(Lambda, -1, -2)) / 2.0, mu, p, J_bar)


def task_matrix(task: ArrayLike | None) -> Floats:
    """Return the checked matrix (m, 6) of a task, the identity for `None`.

    Example:
        >>> from twin.physics.dynamics.operational_space import task_matrix
        >>> task_matrix(None).shape, task_matrix([[0, 0, 1, 0, 0, 0]]).shape
        ((6, 6), (1, 6))
    """
    if task is None:
        return np.eye(6)
    A = real_array(task, "task")
    if A.ndim != 2 or A.shape[1] != 6 or not len(A) or not np.all(np.isfinite(A)):
        raise ValueError(f"expected a finite task of shape (m, 6), got {A.shape}")
    return A


def mass_weighted(robot: Robot, q: Floats, J: Floats, what: str) -> MassWeighted:
    """Return a Jacobian (..., m, n) of full row rank in mass-weighted coordinates.

    The decomposition is that of S = L^-1 J^T, for accuracy: the singular values of `J M^-1 J^T = S^T S` are
    those of S squared.

    Raises:
        SingularityError: the rank of the rows is below m; the message names the lost direction.

    Example:
        >>> import numpy as np
        >>> import twin
        >>> from twin.physics.dynamics.operational_space import mass_weighted
        >>> robot, q = twin.load("two_link"), [0, np.pi / 2]
        >>> mass_weighted(robot, q, twin.jacobian(robot, q)[:2], "the tool").values.round(4).tolist()
        [1.7321, 0.866]
    """
    L = np.linalg.cholesky(mass_matrix(robot, q))
    S = np.linalg.solve(L, np.swapaxes(J, -1, -2))
    U, values, V_T = np.linalg.svd(S, full_matrices=False)
    m = J.shape[-2]
    if S.shape[-2] < m:
        raise SingularityError(f"{what} has {m} directions, more than the {S.shape[-2]} joints of the arm")
    lost = ~(values[..., -1] > RANK_TOLERANCE * values[..., 0])
    if np.any(lost):
        at = tuple(np.argwhere(lost)[0])
        of_sample = f" of sample {list(map(int, at))}" if at else ""
        direction = ", ".join(f"{x:.3g}" for x in V_T[(*at, -1)])
        raise SingularityError(
            f"{what}{of_sample} does not exist: the arm is singular and cannot accelerate along ({direction})"
        )
    return MassWeighted(L, U, values, np.swapaxes(V_T, -1, -2))


NEAR = 0.010
"""[m]: distance within which a motion is said to reach a surface."""
RESTING = 1e-6
"""[m]: depth up to which a tool may rest in a surface at the start."""
STABLE = 2.0
"""Half of the limit of stability."""


def check_contact(
    robot: Robot, environment: Environment, q: ArrayLike, time_step: float, *, known: bool = True
) -> None:
    """Check that a motion touches the surfaces of an environment, and that they are soft enough for the step.

    A contact of the stiffness k and the damping d on the effective mass m is stable in semi-implicit steps T
    if `k T^2 / m + 2 d T / m < 4`.  Half of that is admitted where the motion is nearer than 10 mm.  The mass
    is `1 / (n^T J M^-1 J^T n)`, that of joints that all move: with ideal drives, a wrist can weigh 20 g.

    Args:
        robot: the plant.
        environment: pushes and surfaces.
        q: (N, n) positions along the motion, from its start, in [rad].
        time_step: step of the plant, in [s].
        known: whether q is the whole motion, so that it must come near each surface.

    Raises:
        ValueError: the tool starts inside a body, never comes near a surface, or a surface is too stiff.

    Example:
        >>> import twin
        >>> robot, q = twin.load("irb140"), [[0.0] * 6]  # the flange is at (0.515, 0, 0.712)
        >>> floor = twin.dynamics.surface("plane=0,0,1 at=0,0,0.712 stiffness=1e3")
        >>> twin.dynamics.check_contact(robot, twin.dynamics.Environment(surfaces=[floor]), q, 1e-3)
    """
    (q,) = joint_vectors(robot, q=q)
    depth, normal = environment.depths(robot, q)
    massive = robot.arm if robot.drive_mode == "elastic" else robot  # springs part the rotors from the arm
    for s, row in enumerate(environment.surfaces):
        name, deepest = f"surface {s + 1}, a {SHAPES[int(row[0])]}", float(depth[:, s].max())
        if depth[0, s] > RESTING:
            raise ValueError(f"the tool starts {1e3 * depth[0, s]:.3g} mm inside {name}")
        if known and not deepest > -NEAR:
            raise ValueError(
                f"{name}, is out of reach: the motion comes no nearer than {-1e3 * deepest:.0f} mm"
            )
        near = (depth[:, s] > -NEAR) | (not known)
        J = jacobian(robot, q[near], environment.T_flange_tool)[:, :3]
        across = np.einsum("ki,kij->kj", normal[near, s], J)
        moved = np.linalg.solve(mass_matrix(massive, q[near]), across[..., None])[..., 0]
        per_mass = float(np.max(np.sum(across * moved, axis=-1)))
        k, d, T = row[STIFFNESS], row[DAMPING], time_step
        share = STABLE / (max(k * T**2 + 2 * d * T, np.finfo(float).tiny) * per_mass)
        if not share >= 1.0:
            raise ValueError(
                f"{name}, is too stiff for steps of {1e3 * T:g} ms and {1.0 / per_mass:.3g} kg of the arm: "
                f"expected at most stiffness={share * k:.2g} damping={share * d:.2g}, or shorter steps"
            )
