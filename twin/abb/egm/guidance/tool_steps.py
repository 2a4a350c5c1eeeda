"""Conversion of tool steps to joint steps, in the periods of a control loop.

Joint speeds `J^-1 V`, held for a period dt, move the tool to the desired pose except for terms of order dt^2.
This module solves for the joint angles of the desired pose itself, by a Newton iteration with the Jacobian at
the start.  The tool then obeys its control law up to round-off.  The iteration starts at the present joint
angles and the steps are small, so the arm never switches to another inverse kinematics solution.
"""

import math

import numpy as np

from twin.abb.egm.guidance.guidance import Fault, GuidanceStop
from twin.base.arrays import Floats
from twin.base.errors import EgmError
from twin.base.jit import compiled
from twin.physics.kinematics.forward import tool_pose
from twin.physics.kinematics.inverse import arm_length
from twin.physics.robot.evaluation import copied
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.joint_paths import nearest_singularity

LEAST_SINGULAR_VALUE = 0.01
"""Smallest allowed singular value of the Jacobian, with lengths in arm lengths.

Below it, a tool motion needs joint speeds more than 100 times as large.  The IRB 140 reaches it with axis 5
at 2 degrees.  The manual states no value; this one is ours."""

ITERATIONS = 12
ROUND_OFF = 1e-14
"""Round-off of a pose, with lengths in arm lengths."""

LEAST_SPEED = 1e-9
"""Smallest norm of joint speeds, in [rad/s], whose completed fraction exceeds round-off."""


class ToolSteps:
    """Tool kinematics of an arm with six joints or more.

    Attributes:
        robot: arm that moves the tool.
        T_flange_tool: (4, 4) pose of the tool on the flange, in [m].
        length: length of the arm with its tool, in [m].

    Raises:
        EgmError: the arm has fewer than six joints.
    """

    def __init__(self, robot: Robot, T_flange_tool: Floats | None = None) -> None:
        if robot.n < 6:
            raise EgmError(
                f"guiding a tool requires six joints or more, robot {robot.name!r} has {robot.n}: "
                "use mode joint instead"
            )
        self.robot, self.T_flange_tool = robot, copied(tool_pose(T_flange_tool))
        self.length = arm_length(robot, self.T_flange_tool)
        self._units = np.array([1.0 / self.length] * 3 + [1.0] * 3)

    def pose(self, q: Floats) -> Floats:
        """Return the pose (4, 4) of the tool in the base frame, in [m], at joint angles q (n,), in [rad]."""
        T = np.empty((4, 4))
        self.robot.kernels.tool_pose(q, self.T_flange_tool, T)
        return T

    def jacobian(self, q: Floats) -> Floats:
        """Return the Jacobian (6, n) of the tool, `[v; omega] = J qd`, base axes."""
        J = np.empty((6, self.robot.n))
        self.robot.kernels.jacobian(q, self.T_flange_tool, J)
        return J

    def inverse(self, q: Floats) -> Floats:
        """Return the inverse (n, 6) of the Jacobian; the minimum-norm inverse for more than six joints.

        Raises:
            GuidanceStop: the arm is close to a singularity (event 50026).
        """
        U, values, V_transposed = np.linalg.svd(self.jacobian(q) * self._units[:, None], full_matrices=False)
        if not values[-1] >= LEAST_SINGULAR_VALUE:
            raise GuidanceStop(self._singular(q, float(values[-1])))
        return (V_transposed.T / values) @ (U.T * self._units)

    def reach(self, q: Floats, T: Floats, inverse: Floats) -> Floats | None:
        """Return joint angles (n,) that bring the tool to a nearby pose; `None` if the iteration diverges.

        Args:
            q: (n,) present joint angles, in [rad].
            T: (4, 4) desired pose of the tool, in [m].
            inverse: (n, 6) inverse of the Jacobian at q.
        """
        q, last, displacement = q.copy(), math.inf, np.empty(6)
        for _ in range(ITERATIONS):
            pose_displacement(self.pose(q), T, displacement)
            error = displacement_size(displacement, self.length)
            if error >= 0.5 * last:  # no further progress: round-off is reached, or the iteration diverges
                break
            q += inverse @ displacement
            last = error
            if error < ROUND_OFF:
                break
        return q if last < 100.0 * ROUND_OFF else None

    def _singular(self, q: Floats, value: float) -> Fault:
        """Return the fault of a Jacobian with this smallest singular value."""
        singularity = nearest_singularity(self.robot, q)
        return Fault(
            50026,
            "Close to singularity",
            f"close to a singularity{singularity}: the motion of the tool needs joint speeds "
            f"{1.0 / max(value, 1e-9):.3g} times as large, at most {1.0 / LEAST_SINGULAR_VALUE:g} times are "
            "allowed; guide the tool around the singularity, or use mode joint",
        )


def completed_fraction(done: Floats, asked: Floats) -> float:
    """Return the completed fraction, 0 to 1, of requested joint speeds (n,); 1 for a request of 0."""
    size = float(asked @ asked)
    return min(1.0, max(0.0, float(done @ asked) / size)) if size > LEAST_SPEED**2 else 1.0


@compiled
def pose_displacement(T_from, T_to, out):
    """Fill out (6,) with `p_to - p_from` and the rotation vector of `R_to R_from^T`, base axes.

    The result is exact to round-off at any angle.  At half a turn one of the two directions is chosen.
    """
    w, x, y, z = 0.0, 0.0, 0.0, 0.0
    R = np.zeros((3, 3))
    for i in range(3):
        out[i] = T_to[i, 3] - T_from[i, 3]
        for j in range(3):
            for k in range(3):
                R[i, j] += T_to[i, k] * T_from[j, k]
    # The largest component of the quaternion comes first, which avoids cancellation.
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
def displacement_size(displacement, length):
    """Return the largest absolute component of a displacement (6,), with lengths in arm lengths."""
    place = max(abs(displacement[0]), abs(displacement[1]), abs(displacement[2]))
    return max(place / length, abs(displacement[3]), abs(displacement[4]), abs(displacement[5]))


@compiled
def displaced_pose(T, displacement, out):
    """Fill out (4, 4) with the pose T displaced by d (6,): `p + d[:3]`, `exp(d[3:]) R`, base axes."""
    x, y, z = displacement[3], displacement[4], displacement[5]
    angle = math.sqrt(x * x + y * y + z * z)
    a = math.sin(angle) / angle if angle > 0.0 else 1.0
    half = math.sin(0.5 * angle) / angle if angle > 0.0 else 0.5
    b = 2.0 * half * half  # (1 - cos) / angle^2
    for j in range(3):
        u, v, w = T[0, j], T[1, j], T[2, j]
        cx, cy, cz = y * w - z * v, z * u - x * w, x * v - y * u  # displacement x column
        out[0, j] = u + a * cx + b * (y * cz - z * cy)
        out[1, j] = v + a * cy + b * (z * cx - x * cz)
        out[2, j] = w + a * cz + b * (x * cy - y * cx)
    for i in range(3):
        out[i, 3] = T[i, 3] + displacement[i]
        out[3, i] = 0.0
    out[3, 3] = 1.0
