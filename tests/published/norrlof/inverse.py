"""Inverse kinematics of the IRB 1400 in Norrlöf's report: section 2.2.2, his `ikin1` and `ikin2`.

With the first theta_1 the wrist centre is in front of axis 1.  With the second it is behind, and
(2.38)-(2.40) reverse the signs of the angles, as `FACING` does here.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from tests.published.items import Finding, Item, against_printed, computes, largest
from tests.published.norrlof.kinematics import configurations, irb1400, modulo_turn, wrist_centres
from twin.physics.kinematics.inverse import main_axis_angles, wrist_axis_angles
from twin.physics.robot.robot import dh_poses
from twin.physics.rotations.euler_angles import matrix_from_axis_angle

Floats = NDArray[np.float64]
FACING = np.array([1.0, 1.0, -1.0, -1.0])
"""Signs of the four rows of `ikin1`: 1 in front of axis 1, -1 behind it."""

SIGN = np.array([1.0, -1.0])
"""Signs of theta_5 in both rows of `ikin2`."""


class Arm(NamedTuple):
    """Wrist centres and the library's four solutions for each, NaN for none.

    Attributes:
        p: wrist centres (N, 3).
        theta: DH angles (N, 4, 3).
        t2: angle theta_2 of Figure 2.8 (N, 4).
        t3: angle theta_3 of Figure 2.8 (N, 4).
        r: horizontal distance (N, 4) of the wrist centre from axis 2, in the plane of the arm.
        z: height (N, 4) of the wrist centre above axis 2.
    """

    p: Floats
    theta: Floats
    t2: Floats
    t3: Floats
    r: Floats
    z: Floats


def arms() -> tuple[Arm, Floats, Floats]:
    """Solve the wrist centres of all configurations; return them with the arm lengths a2 and b3."""
    robot, dh = irb1400()
    p = wrist_centres(configurations())
    theta = main_axis_angles(robot, p)
    t2, t3 = FACING * (theta[..., 1] + np.pi / 2), FACING * (theta[..., 2] + np.arctan2(dh.d[3], dh.a[2]))
    r = np.hypot(p[:, 0], p[:, 1])[:, None] - FACING * dh.a[0]
    z = np.broadcast_to(p[:, 2:] - dh.d[0], r.shape)
    return Arm(p, theta, t2, t3, r, z), dh.a[1], np.hypot(dh.a[2], dh.d[3])


def by_the_report(p: Floats) -> Floats:
    """Compute DH angles (N, 4, 3) of wrist centres (N, 3) by (2.31)-(2.40), reading (2.34) correctly."""
    _, dh = irb1400()
    a2, b3 = dh.a[1], np.hypot(dh.a[2], dh.d[3])
    r, z = np.hypot(p[:, 0], p[:, 1])[:, None] - FACING * dh.a[0], p[:, 2:] - dh.d[0]
    D = (r**2 + z**2 - a2**2 - b3**2) / (2 * a2 * b3)
    D = np.where(np.abs(D) < 1 + 1e-12, np.clip(D, -1, 1), np.nan)
    t3 = np.array([1, -1, 1, -1]) * np.arccos(D)
    t2 = np.arctan2(r, z) - np.arctan2(b3 * np.sin(t3), a2 + b3 * np.cos(t3))
    theta_1 = np.arctan2(FACING * p[:, 1:2], FACING * p[:, :1])
    theta_3 = FACING * t3 - np.arctan2(dh.d[3], dh.a[2])
    return np.stack([theta_1, FACING * t2 - np.pi / 2, theta_3], axis=-1)


def wrongly_lost(arm: Arm) -> int:
    """Count the solutions whose existence differs from that by (2.31)."""
    _, dh = irb1400()
    a2, b3 = dh.a[1], np.hypot(dh.a[2], dh.d[3])
    D = (arm.r**2 + arm.z**2 - a2**2 - b3**2) / (2 * a2 * b3)
    missing = np.any(np.isnan(arm.theta), axis=-1)
    return int(np.sum(missing != (np.abs(D) > 1 + 1e-12)))


def reached(*differences: np.ndarray | int) -> float:
    """Return the largest magnitude over all existing solutions, without NaN rows, which are out of reach."""
    return float(np.max([np.nanmax(np.abs(difference)) for difference in differences]))


@computes("N-ikin1")
def example_1(item: Item) -> Finding:
    """Compute all four solutions."""
    robot, _ = irb1400()
    return against_printed(item, main_axis_angles(robot, item.inputs["p_wrist"]))


@computes("N-ikin1-exact")
def example_1_exactly(item: Item) -> Finding:
    """Compute all four solutions of a wrist centre that rounds to the printed one, and their positions."""
    robot, _ = irb1400()
    p = np.array(item.inputs["p_wrist"])
    found = against_printed(item, main_axis_angles(robot, p))
    met = wrist_centres(np.column_stack([found.computed, np.zeros((4, 3))])) - p
    return Finding(found.computed, largest(found.residual, p - item.inputs["printed_p_wrist"], met))


@computes("N-ikin2")
def example_2(item: Item) -> Finding:
    """Compute both solutions for the rotation nearest to the product of the rounded, printed matrices."""
    robot, _ = irb1400()
    product = np.transpose(item.inputs["R03"]) @ item.inputs["R"]
    theta, s = wrist_axis_angles(robot, Rotation.from_matrix(product).as_matrix())
    return against_printed(item, np.column_stack([theta, s]))


@computes("N-ikin2-exact")
def example_2_exactly(item: Item) -> Finding:
    """Compute both solutions of a pose that rounds to the printed one; the library solves for frame 3."""
    robot, dh = irb1400()
    R = np.array(item.inputs["R"])
    theta = np.append(main_axis_angles(robot, item.inputs["p_wrist"])[0], np.zeros(3))
    angles, s = wrist_axis_angles(robot, dh_poses(dh, theta)[2, :3, :3].T @ R)
    found = against_printed(item, np.column_stack([angles, s]))
    return Finding(found.computed, largest(found.residual, R - item.inputs["printed_R"]))


@computes("N-2.29")
def axis_1(item: Item) -> Finding:
    """Compare the first theta_1; its error times the distance from axis 1 is a position error."""
    arm, _, _ = arms()
    error = modulo_turn(arm.theta[:, :2, 0] - np.arctan2(arm.p[:, 1], arm.p[:, 0])[:, None])
    radius = np.hypot(arm.p[:, 0], arm.p[:, 1])[:, None]
    return Finding(f"{len(arm.p)} wrist centres", reached(error * radius, wrongly_lost(arm)))


@computes("N-2.29b")
def axis_1_behind(item: Item) -> Finding:
    """Compare the second theta_1; its error times the distance from axis 1 is a position error."""
    arm, _, _ = arms()
    x, y, radius = arm.p[:, :1], arm.p[:, 1:2], np.hypot(arm.p[:, :1], arm.p[:, 1:2])
    behind = arm.theta[:, 2:, 0]
    right, same, printed = np.arctan2(y, x) + np.pi, np.arctan2(-y, -x), np.arctan2(x, y) + np.pi
    off, also_off, missed = (modulo_turn(behind - angle) * radius for angle in (right, same, printed))
    return Finding(f"{len(arm.p)} wrist centres", reached(off, also_off, wrongly_lost(arm)), reached(missed))


@computes("N-2.30")
def wrist_centre_from_axis_2(item: Item) -> Finding:
    """Compute the wrist centre relative to the origin of frame 1, which lies on axis 2."""
    _, dh = irb1400()
    theta = configurations()
    frame_1, p, offset = dh_poses(dh, theta)[:, 0], wrist_centres(theta), np.array([dh.a[0], 0.0, dh.d[0]])
    expected = p - frame_1[:, :3, 3]
    right = p - matrix_from_axis_angle([0.0, 0.0, 1.0], theta[:, 0]) @ offset
    printed = p - frame_1[:, :3, :3] @ offset
    return Finding(f"{len(p)} wrist centres", reached(right - expected), reached(printed - expected))


@computes("N-2.31")
def elbow(item: Item) -> Finding:
    """Compare the cosine of the elbow angle in every solution, and check both signs of (2.33)."""
    arm, a2, b3 = arms()
    c_squared = arm.r**2 + arm.z**2
    D = (c_squared - a2**2 - b3**2) / (2 * a2 * b3)
    law = (a2**2 + b3**2 - c_squared) / (2 * a2 * b3) - np.cos(np.pi - arm.t3)
    signs = np.sin(arm.t3[:, ::2]) + np.sin(arm.t3[:, 1::2])
    return Finding(f"{len(arm.p)} wrist centres", reached(np.cos(arm.t3) - D, law, signs, wrongly_lost(arm)))


@computes("N-2.34")
def axis_2(item: Item) -> Finding:
    """Compare theta_2 in every solution; the literal readings use base coordinates or a plain arctan."""
    arm, a2, b3 = arms()
    across, along = b3 * np.sin(arm.t3), a2 + b3 * np.cos(arm.t3)
    right = np.arctan2(arm.r, arm.z) - np.arctan2(across, along)
    with np.errstate(divide="ignore", invalid="ignore"):  # on axis 1
        of_base = np.arctan(arm.p[:, :1] / arm.p[:, 1:2]) - np.arctan(across / along)
        of_plane = np.arctan(arm.r / arm.z) - np.arctan(across / along)
    literal = min(reached(modulo_turn(arm.t2 - of_base)), reached(modulo_turn(arm.t2 - of_plane)))
    residual = reached(modulo_turn(arm.t2 - right), wrongly_lost(arm))
    return Finding(f"{len(arm.p)} wrist centres", residual, literal)


@computes("N-2.36", "N-2.38")
def against_the_report(item: Item) -> Finding:
    """Check two of the report's four solutions by their positions and against those of the library.

    (2.35)-(2.37) give those in front of axis 1, (2.38)-(2.40) those behind.
    """
    rows = {"N-2.36": slice(0, 2), "N-2.38": slice(2, 4)}[item.id]
    arm, _, _ = arms()
    theta = by_the_report(arm.p)[:, rows]
    lost = np.isnan(theta[..., 2])
    reach = np.sum(lost != np.isnan(arm.theta[:, rows, 2]))
    wrist = np.concatenate([theta, np.zeros_like(theta)], axis=-1)
    met = wrist_centres(np.where(lost[..., None], 0.0, wrist)) - arm.p[:, None]
    # Near 1 and -1, arccos loses digits of theta_3 and theta_2 in proportion to 1 / sin(elbow angle).
    errors = modulo_turn(theta - arm.theta[:, rows])[..., 1:] * np.sin(arm.t3[:, rows, None])
    residual = reached(np.where(lost[..., None], 0.0, met), errors, reach, wrongly_lost(arm))
    return Finding(f"{np.sum(~lost)} solutions", residual)


def wrists(theta: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return R36 (N, 3, 3) at DH angles (N, 6), its solutions (N, 2, 3), and their flags s (N, 2)."""
    robot, dh = irb1400()
    T = dh_poses(dh, theta)
    U = T[:, 2, :3, :3].swapaxes(1, 2) @ T[:, 5, :3, :3]
    return U, *wrist_axis_angles(robot, U)


@computes("N-2.47")
def axes_5_and_6(item: Item) -> Finding:
    """Compare the cosine of theta_5, and theta_6 with errors weighted by sin(theta_5)."""
    U, theta, _ = wrists(configurations())
    u31, u32, u33 = (U[:, 2, i, None] for i in range(3))
    theta_6 = np.arctan2(-SIGN * u32, SIGN * u31)
    errors = modulo_turn(theta[..., 2] - theta_6) * np.sin(theta[..., 1])
    signs = modulo_turn(theta[:, 0, 1] + theta[:, 1, 1])
    return Finding(f"{len(U)} orientations", largest(np.cos(theta[..., 1]) - u33, signs, errors))


@computes("N-2.48")
def axis_4(item: Item) -> Finding:
    """Compare theta_4 with errors weighted by sin(theta_5); the printed first line has u11 for u13."""
    U, theta, _ = wrists(configurations())
    u11, u13, u23 = U[:, 0, 0, None], U[:, 0, 2, None], U[:, 1, 2, None]
    size = np.sin(theta[..., 1])
    right, printed = np.arctan2(-SIGN * u23, -SIGN * u13), np.arctan2(-SIGN * u23, -SIGN * u11)
    errors = (largest(modulo_turn(theta[..., 0] - angle) * size) for angle in (right, printed))
    return Finding(f"{len(U)} orientations", *errors)


@computes("N-2.50")
def singular_wrist(item: Item) -> Finding:
    """Compare theta_4 + s theta_6 for theta_5 = 0 and theta_5 = pi."""
    drawn = configurations()
    drawn[:, 4] = np.resize([0.0, np.pi, -np.pi], len(drawn))
    U, theta, s = wrists(drawn)
    theta, s = theta[:, 0], s[:, 0]
    together = theta[:, 0] + s * theta[:, 2]
    right, printed = np.arctan2(s * U[:, 1, 0], s * U[:, 0, 0]), np.arccos(np.clip(s * U[:, 0, 0], -1, 1))
    residual = largest(modulo_turn(together - right), s - np.sign(np.cos(theta[:, 1])))
    return Finding(f"{len(U)} singular wrists", residual, largest(modulo_turn(together - printed)))


# Velocities and accelerations in Norrlöf's report: section 2.3.
#
# Derivatives of the library's forward kinematics are computed by a complex step, `df = Im f(x + i h dx) / h`
# with h = 1e-30.  They are exact to round-off, since nothing is subtracted.


Floats = NDArray[np.float64]
