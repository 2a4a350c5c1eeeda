"""Velocities and accelerations in Norrlöf's report: section 2.3.

Derivatives of the library's forward kinematics are computed by a complex step, `df = Im f(x + i h dx) / h`
with h = 1e-30.  They are exact to round-off, since nothing is subtracted.
"""

import cmath
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.published.items import Finding, Item, against_printed, computes, largest, rng
from tests.published.norrlof.kinematics import configurations, irb1400
from twin.base.errors import SingularityError
from twin.physics.kinematics.differential import inverse_acceleration, inverse_velocity
from twin.physics.kinematics.forward import jacobian, jacobian_dot, joint_from_dh_angles
from twin.physics.multibody import recursions
from twin.physics.robot.dh_tables import dh_robot
from twin.physics.robot.robot import DH, Robot, dh_poses
from twin.physics.rotations.linear_maps import singular_values

Floats = NDArray[np.float64]
STEP = 1e-30
FLANGE = np.eye(4).tolist()


def turning(robot: Robot, q: NDArray) -> tuple[recursions.WorldFrames, Any, recursions.Vector]:
    """Return the frames of all links, and the flange's rotation and position; q may be complex."""
    functions = cmath if np.iscomplexobj(q) else math
    at = recursions.placements(robot.tree, robot.tree_positions(q).tolist(), functions)
    frames = recursions.world_frames(robot.tree, at)
    return frames, *recursions.tool_frame(robot.tree, frames, FLANGE)


def differentiated(robot: Robot, q: Floats) -> Floats:
    """Return the Jacobian (6, n) as the derivative of the flange's position and orientation."""
    J = np.empty((6, robot.n))
    for joint, direction in enumerate(np.eye(robot.n)):
        _, R, p = turning(robot, q + 1j * STEP * direction)
        S = np.imag(R) / STEP @ np.real(R).T
        J[:, joint] = *(np.imag(p) / STEP), S[2, 1], S[0, 2], S[1, 0]
    return J


def by_columns(T: Floats) -> Floats:
    """Return the Jacobian (..., 6, n) of DH angles by (2.54), (2.63), (2.64) from DH poses (..., n, 4, 4)."""
    base = np.broadcast_to(np.eye(4), (*T.shape[:-3], 1, 4, 4))
    before = np.concatenate([base, T[..., :-1, :, :]], axis=-3)
    z, arm = before[..., :3, 2], T[..., -1:, :3, 3] - before[..., :3, 3]
    return np.concatenate([np.cross(z, arm), z], axis=-1).swapaxes(-1, -2)


@computes("N-Jv", "N-Jw", "N-jacob0")
def zero_pose_jacobian(item: Item) -> Finding:
    """Compute the linear, the angular or all rows at q = 0, for DH angles, by both methods of the report."""
    robot, dh = irb1400()
    rows = {"N-Jv": slice(0, 3), "N-Jw": slice(3, 6), "N-jacob0": slice(0, 6)}[item.id]
    J = jacobian(robot, np.zeros(6)) @ np.linalg.inv(robot.dh_coupling)
    found = against_printed(item, J[rows])
    by_loop = by_columns(dh_poses(dh, dh.theta0))[rows]
    return Finding(found.computed, largest(found.residual, by_loop - item.expected))


@computes("N-2.51")
def columns(item: Item) -> Finding:
    """Compare the printed columns and the derivative of the pose with the library's Jacobian."""
    robot, dh = irb1400()
    theta = configurations()[::5]
    q = joint_from_dh_angles(robot, theta)
    J = jacobian(robot, q)
    derivative = np.array([differentiated(robot, one) for one in q])
    printed = by_columns(dh_poses(dh, theta)) @ robot.dh_coupling
    return Finding(f"{len(q)} configurations", largest(printed - J, derivative - J))


@computes("N-2.58")
def prismatic_columns(item: Item) -> Finding:
    """Compare the library's columns, the printed ones and the derivative for arms with prismatic joints."""
    random, kinds = rng(), item.inputs["kinds"]
    prismatic = [i for i, kind in enumerate(kinds) if kind == "prismatic"]
    errors = []
    for table in random.uniform(-1, 1, (30, 4, len(kinds))):
        dh = DH(*table * [[np.pi], [1], [1], [np.pi]])
        robot = dh_robot("random", dh, kinds=kinds)
        q = random.uniform(-np.pi, np.pi, len(kinds))
        frames, _, p = turning(robot, q)
        J = np.array(recursions.jacobian(robot.tree, frames, p)).reshape(-1, 6).T
        slid = dh._replace(d=dh.d + np.where(robot.dh_coupling.diagonal() == 0, q, 0))
        frames = np.concatenate([np.eye(4)[None], dh_poses(slid, robot.dh_coupling @ q + dh.theta0)])
        z = frames[prismatic, :3, 2]
        errors += [J - differentiated(robot, q), J[:, prismatic] - np.column_stack([z, 0 * z]).T]
    return Finding("30 arms", largest(*errors))


@computes("N-2.67")
def inverse_motion(item: Item) -> Finding:
    """Check accelerations against the pose's second derivative, their inverse, and the rank test."""
    robot, _ = irb1400()
    q = joint_from_dh_angles(robot, configurations()[::5])
    qd, qdd = rng().uniform(-1, 1, (2, *q.shape))
    J, J_dot = jacobian(robot, q), jacobian_dot(robot, q, qd)
    V, A = times(J, qd), times(J, qdd) + times(J_dot, qd)
    derivative = np.array([accelerated(robot, *sample) for sample in zip(q, qd, qdd, strict=True)])
    velocity_met = times(J, inverse_velocity(robot, q, V)) - V
    acceleration_met = times(J, inverse_acceleration(robot, q, qd, A)) + times(J_dot, qd) - A
    wrong, singular = rank_test(robot)
    residual = largest(derivative - A, velocity_met, acceleration_met, wrong)
    return Finding(f"{len(q)} motions, {singular} singular configurations", residual)


def times(matrices: Floats, vectors: Floats) -> Floats:
    """Return the products of matrices (..., m, n) and vectors (..., n)."""
    return np.einsum("...ij,...j->...i", matrices, vectors)


def accelerated(robot: Robot, q: Floats, qd: Floats, qdd: Floats) -> Floats:
    """Return the derivative (6,) of `J qd` along a motion."""
    frames, _, p = turning(robot, q + 1j * STEP * qd)
    J = np.array(recursions.jacobian(robot.tree, frames, p)).reshape(-1, 6).T
    return np.imag(J @ robot.embedding @ (qd + 1j * STEP * qdd)) / STEP


def rank_test(robot: Robot) -> tuple[int, int]:
    """Return how often the library contradicts `rank J = rank [J x]` for J qd = x, and the number of J.

    All these Jacobians are singular.
    """
    theta = configurations()
    theta = theta[singular_values(jacobian(robot, joint_from_dh_angles(robot, theta))).rank < 6]
    wrong = 0
    for q in joint_from_dh_angles(robot, theta):
        outputs, _, _, rank = singular_values(J := jacobian(robot, q))
        for x in (J @ rng().uniform(-1, 1, 6), outputs[:, -1]):
            same = singular_values(np.column_stack([J, x])).rank == rank
            try:
                inverse_velocity(robot, q, x)
                wrong += not same
            except SingularityError:
                wrong += bool(same)
        wrong += bool(same)  # no motion gives the last x
    return wrong, len(theta)
