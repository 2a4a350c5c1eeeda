"""Ljubljana lab manual, chapter 4 and its home exercises on a robot whose drawing is lost."""

import numpy as np

from tests.published.items import Finding, Item, against_printed, computes, largest, rng
from tests.published.ljubljana.kinematics import Floats, arm
from tests.published.norrlof.jacobians import times
from tests.published.norrlof.kinematics import rotations
from twin.physics.kinematics.differential import (
    cross_matrix,
    tool_coordinates,
    twist_transform,
    wrench_transform,
)
from twin.physics.kinematics.forward import forward_kinematics, jacobian
from twin.physics.rotations.euler_angles import euler_rate_matrix
from twin.physics.rotations.rotations import matrix_from_quaternion


def along_z(distance: float) -> Floats:
    """Return the pose of a frame at a distance along z, (4.68) and (4.69)."""
    T = np.eye(4)
    T[2, 3] = distance
    return T


@computes("B-ft2ee")
def wrench_at_handle(item: Item) -> Finding:
    """Transform a wrench from the sensor to the handle, in whose frame the sensor lies at negative z."""
    T_handle_sensor = np.linalg.inv(along_z(item.inputs["T_fe"]))
    return against_printed(item, wrench_transform(T_handle_sensor) @ item.inputs["wrench"])


@computes("B-ft2base")
def wrench_at_base(item: Item) -> Finding:
    """Transform a wrench from the sensor on the RX90 to its base frame."""
    T_base_sensor = forward_kinematics(arm("rx90"), item.inputs["q"]) @ along_z(item.inputs["T_6f"])
    return against_printed(item, wrench_transform(T_base_sensor) @ item.inputs["wrench"])


def poses() -> Floats:
    """Return poses (N, 4, 4), including rotations by exactly and nearly 0 and pi."""
    quats = rotations()
    T = np.tile(np.eye(4), (len(quats), 1, 1))
    T[:, :3, :3] = matrix_from_quaternion(quats)
    T[:, :3, 3] = rng().normal(size=(len(quats), 3))
    return T


@computes("B-4.67")
def transforms(item: Item) -> Finding:
    """Check twist and wrench transforms between frames 1 and 2 of a body step by step, and their power."""
    T_01, T_12 = poses(), rng().permutation(poses())
    T_02 = T_01 @ T_12
    (R_01, R_12, R_02), r = (T[:, :3, :3] for T in (T_01, T_12, T_02)), T_12[:, :3, 3]
    v_1, wrench_2 = rng().normal(size=(2, len(r), 6))
    S = cross_matrix(r)
    r_0 = times(R_01, r)
    p_dot, w = times(R_01, v_1[:, :3]), times(R_01, v_1[:, 3:])
    back = np.swapaxes(R_02, -1, -2)
    v_2 = np.concatenate([times(back, p_dot + np.cross(w, r_0)), times(back, w)], axis=-1)  # (4.47), (4.56)
    X = np.zeros((len(r), 6, 6))
    X[:, :3, :3], X[:, 3:, :3], X[:, 3:, 3:] = R_12, S @ R_12, R_12  # (4.67)
    wrench_1 = times(wrench_transform(T_12), wrench_2)
    residual = largest(
        times(S, v_1[:, 3:]) - np.cross(r, v_1[:, 3:]),
        S + np.swapaxes(S, -1, -2),
        cross_matrix(r_0) - R_01 @ S @ np.swapaxes(R_01, -1, -2),
        times(twist_transform(T_12), v_1) - v_2,
        times(X, wrench_2) - wrench_1,
        np.sum(wrench_1 * v_1, axis=-1) - np.sum(wrench_2 * v_2, axis=-1),
    )
    return Finding(f"{len(r)} pairs of frames", residual)


@computes("B-4.56")
def angular_velocity(item: Item) -> Finding:
    """Check that R_2^0 w_2^2 is the angular velocity of frame 2; that of frame 0, which is at rest, is 0."""
    T_01, T_12 = poses(), rng().permutation(poses())
    w_1 = rng().normal(size=(len(T_01), 3))
    twist = np.concatenate([0 * w_1, w_1], axis=-1)
    w_2 = times(twist_transform(T_12), twist)[:, 3:]
    turned = times((T_01 @ T_12)[:, :3, :3], w_2)
    return Finding(f"{len(w_1)} motions", largest(turned - times(T_01[:, :3, :3], w_1)), largest(turned))


@computes("B-home2")
def cylindrical_robot(item: Item) -> Finding:
    """Compute the results of the exercises for a cylindrical robot in place of the lost drawing."""
    robot, q = arm("figure_7_1"), np.array(item.inputs["q"])
    T, x = forward_kinematics(robot, q), tool_coordinates(robot, q)
    J = jacobian(robot, q)
    force = [0.0, 0.0, item.inputs["force"], 0.0, 0.0, 0.0]
    found = {
        "position": T[:3, 3],
        "jacobian": J,
        "angles": x[3:],
        "T_phi": euler_rate_matrix(x[3:], "zyx"),
        "wrench": wrench_transform(T) @ force,
        "w3": T[:3, :3].T @ J[3:, 0] * item.inputs["rate_1"],
    }
    expected = {name: np.array(value, dtype=float) for name, value in item.inputs["ours"].items()}
    return Finding(found["wrench"], largest(*(found[name] - value for name, value in expected.items())))
