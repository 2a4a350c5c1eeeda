"""From a step of the tool to the step of the joints that makes it, in the periods of a control loop.

Joint speeds `J^-1 V` held for a period dt take the tool to where V would but for terms of the order of dt^2.
Here the joint angles are solved for that bring the tool to the pose itself, by Newton's iteration with the
Jacobian of the start, so that the tool obeys a law in steps to round-off.  It starts from where the arm is,
and the steps are small: the arm never goes over to another solution.
"""

import math

import numpy as np

from twin.arrays import Floats
from twin.egm.guidance.guidance import Fault, GuidanceStop
from twin.errors import EgmError
from twin.jit import compiled
from twin.kinematics.forward import tool_pose
from twin.kinematics.numerical_inverse import arm_length
from twin.robot.evaluation import copied
from twin.robot.robot import Robot
from twin.trajectories.joint_paths import nearest_singularity

LEAST_SINGULAR_VALUE = 0.01
"""The least singular value of the Jacobian, lengths in lengths of the arm: below it, one motion of the tool
takes joint speeds that are 100 times as large.  The IRB 140 is there with axis 5 at 2 degrees.  The manual
tells no figure; ours."""

ITERATIONS = 12
ROUND_OFF = 1e-14
"""The round-off of a pose, lengths in lengths of the arm."""

LEAST_SPEED = 1e-9
"""In [rad/s], of all joints: what was made of less cannot be told from round-off."""


class ToolSteps:
    """The tool of one arm, of six joints or more, and how it is moved.

    Attributes:
        robot: the arm.
        T_flange_tool: (4, 4) pose of the tool on the flange, in [m].
        length: of the arm with its tool, in [m].

    Raises:
        EgmError: the arm has fewer joints.
    """

    def __init__(self, robot: Robot, T_flange_tool: Floats | None = None) -> None:
        if robot.n < 6:
            raise EgmError(
                f"a tool is guided by six joints or more, robot {robot.name!r} has {robot.n}: "
                "guide its joints instead"
            )
        self.robot, self.T_flange_tool = robot, copied(tool_pose(T_flange_tool))
        self.length = arm_length(robot, self.T_flange_tool)
        self._units = np.array([1.0 / self.length] * 3 + [1.0] * 3)

    def pose(self, q: Floats) -> Floats:
        """The pose (4, 4) of the tool in the base frame at joint angles q (n,), in [m] and [rad]."""
        T = np.empty((4, 4))
        self.robot.kernels.tool_pose(q, self.T_flange_tool, T)
        return T

    def jacobian(self, q: Floats) -> Floats:
        """The Jacobian (6, n) there, `[v; omega] = J qd`, base axes."""
        J = np.empty((6, self.robot.n))
        self.robot.kernels.jacobian(q, self.T_flange_tool, J)
        return J

    def inverse(self, q: Floats) -> Floats:
        """The inverse (n, 6) of that Jacobian; of more than six joints, that of least norm.

        Raises:
            GuidanceStop: 50026, the arm is close to a singularity.
        """
        U, values, V_transposed = np.linalg.svd(self.jacobian(q) * self._units[:, None], full_matrices=False)
        if not values[-1] >= LEAST_SINGULAR_VALUE:
            raise GuidanceStop(self._singular(q, float(values[-1])))
        return (V_transposed.T / values) @ (U.T * self._units)

    def reach(self, q: Floats, T: Floats, inverse: Floats) -> Floats | None:
        """Joint angles (n,) that bring the tool to a pose close by, `None` where the iteration leads nowhere.

        Args:
            q: (n,) where the arm is, in [rad].
            T: (4, 4) where the tool is to be, in [m].
            inverse: (n, 6) the inverse of the Jacobian at q.
        """
        q, last, way = q.copy(), math.inf, np.empty(6)
        for _ in range(ITERATIONS):
            pose_displacement(self.pose(q), T, way)
            error = largest(way, self.length)
            if error >= 0.5 * last:  # it gets no nearer: by round-off, or lost
                break
            q += inverse @ way
            last = error
            if error < ROUND_OFF:
                break
        return q if last < 100.0 * ROUND_OFF else None

    def _singular(self, q: Floats, value: float) -> Fault:
        named = nearest_singularity(self.robot, q)
        return Fault(
            50026,
            "Close to singularity",
            f"close to a singularity{named}: a motion of the tool would take joint speeds "
            f"{1.0 / max(value, 1e-9):.3g} times as large, at most {1.0 / LEAST_SINGULAR_VALUE:g} times are "
            "allowed; move joint by joint there, or guide the tool around it",
        )


def share_of(done: Floats, asked: Floats) -> float:
    """Return the share, 0 to 1, that was done (n,) of the joint speeds asked for; 1, if that was nothing."""
    size = float(asked @ asked)
    return min(1.0, max(0.0, float(done @ asked) / size)) if size > LEAST_SPEED**2 else 1.0


@compiled
def pose_displacement(T_from, T_to, out):
    """Fill out (6,) with the way `p_to - p_from` and the rotation vector of `R_to R_from^T`, base axes.

    It is exact to round-off at any angle; at half a turn one of the two directions is taken.
    """
    w, x, y, z = 0.0, 0.0, 0.0, 0.0
    R = np.zeros((3, 3))
    for i in range(3):
        out[i] = T_to[i, 3] - T_from[i, 3]
        for j in range(3):
            for k in range(3):
                R[i, j] += T_to[i, k] * T_from[j, k]
    # The quaternion, from its largest component.
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    if trace >= R[0, 0] and trace >= R[1, 1] and trace >= R[2, 2]:
        w, x, y, z = 1.0 + trace, R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    elif R[0, 0] >= R[1, 1] and R[0, 0] >= R[2, 2]:
        w, x, y, z = R[2, 1] - R[1, 2], 1.0 + 2.0 * R[0, 0] - trace, R[0, 1] + R[1, 0], R[0, 2] + R[2, 0]
    elif R[1, 1] >= R[2, 2]:
        w, x, y, z = R[0, 2] - R[2, 0], R[0, 1] + R[1, 0], 1.0 + 2.0 * R[1, 1] - trace, R[1, 2] + R[2, 1]
    else:
        w, x, y, z = R[1, 0] - R[0, 1], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], 1.0 + 2.0 * R[2, 2] - trace
    if w < 0.0:
        w, x, y, z = -w, -x, -y, -z
    sine = math.sqrt(x * x + y * y + z * z)
    factor = 2.0 * math.atan2(sine, w) / sine if sine > 0.0 else 0.0
    out[3], out[4], out[5] = factor * x, factor * y, factor * z


@compiled
def largest(way, length):
    """The largest component of a way (6,), its first three in lengths of the arm."""
    place = max(abs(way[0]), abs(way[1]), abs(way[2]))
    return max(place / length, abs(way[3]), abs(way[4]), abs(way[5]))


@compiled
def moved_by(T, way, out):
    """Fill out (4, 4) with the pose T after a way (6,): `p + way[:3]`, `exp(way[3:]) R`, base axes."""
    x, y, z = way[3], way[4], way[5]
    angle = math.sqrt(x * x + y * y + z * z)
    a = math.sin(angle) / angle if angle > 0.0 else 1.0
    half = math.sin(0.5 * angle) / angle if angle > 0.0 else 0.5
    b = 2.0 * half * half  # (1 - cos) / angle^2
    for j in range(3):
        u, v, w = T[0, j], T[1, j], T[2, j]
        cx, cy, cz = y * w - z * v, z * u - x * w, x * v - y * u  # way x column
        out[0, j] = u + a * cx + b * (y * cz - z * cy)
        out[1, j] = v + a * cy + b * (z * cx - x * cz)
        out[2, j] = w + a * cz + b * (x * cy - y * cx)
    for i in range(3):
        out[i, 3] = T[i, 3] + way[i]
        out[3, i] = 0.0
    out[3, 3] = 1.0
