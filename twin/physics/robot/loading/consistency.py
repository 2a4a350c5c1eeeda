"""Consistency of a `robot.toml`, the URDF beside it and the closed loops."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from twin.base.errors import LimitError, RobotError
from twin.physics.multibody import recursions
from twin.physics.multibody.tree import inertial_parameters
from twin.physics.robot import loops
from twin.physics.robot.limits import check_position, folded
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import joint_unit

SAME = 1e-9
"""Relative tolerance between limits in the two files."""

CLOSED = 1e-9
"""Largest gap of a closed loop, in [m], anywhere in the range."""

HELD = 1e-6
"""Smallest rate at which a passive joint that moves alone must open its loops, in [m/rad]."""

FLAT = 1e-6
"""Smallest distance of a loop from folding at the end of a passive range, relative to the zero pose."""

AGREE = 1e-9
"""Tolerance between the poses of the flange in the two files, in [m] and [1]."""

DIGEST = re.compile(rb"Digest of its numbers: ([0-9a-f]{16}) ")
"""Digest of the facts in a URDF that `urdf.build` has written."""

SAME_BODY = 1e-12
"""Tolerance between a link's mass and tensor in the two files, relative, and between its centres, in [m]."""


def check(path: Path, robot: Robot, facts: dict[str, Any]) -> None:
    """Check a robot against the file that it was loaded from.

    Args:
        path: path of its `robot.toml`, for the message.
        robot: the robot as loaded.
        facts: contents of the file.

    Raises:
        RobotError: the file contradicts itself or the URDF beside it.
    """
    built = "urdf" not in facts  # else somebody else has written the URDF
    if built:
        _check_limits(path, robot, facts)
        _check_closed_loops(path, robot)
        _check_passive_joints(path, robot)
        _check_folds(path, robot)
    _check_poses(path, robot)
    if robot.dh is not None:
        right = f"; if the table and its coupling are right, {_build(path)}" if built else ""
        _check_flange(path, robot, right)
    if built:
        _check_bodies(path, robot, facts)
        _check_digest(path, robot, facts)


def _build(path: Path) -> str:
    """Return the instruction for a URDF that differs from its facts."""
    return f"write the URDF again with python -m urdf.build {path}"


def _check_limits(path: Path, robot: Robot, facts: dict[str, Any]) -> None:
    """Raise `RobotError` if a limit in the URDF differs from that in the facts."""
    for where, stated, found, unit in _limits(robot, facts):
        if not (found == stated or abs(found - stated) <= SAME * abs(stated)):  # both may be infinite
            raise RobotError(
                f"{path}: {where} is {stated:g} {unit}, in {robot.name}.urdf {found:g} {unit}; {_build(path)}"
            )


def _limits(robot: Robot, facts: dict[str, Any]) -> Iterator[tuple[str, float, float, str]]:
    """Yield every limit of the facts: its key, its value, that of the URDF, and their unit."""
    joints = facts["joints"]
    for key, values, unit in (
        ("q_min_deg", np.rad2deg(robot.q_min), "degrees"),
        ("q_max_deg", np.rad2deg(robot.q_max), "degrees"),
        ("qd_max_deg_s", np.rad2deg(robot.qd_max), "degrees/s"),
        ("effort", robot.tau_max, "N m"),
    ):
        for name, stated, found in zip(joints["names"], joints[key], values.tolist(), strict=True):
            yield f"{key} of {name}", stated, found, unit
    ends = np.rad2deg([robot.passive_min, robot.passive_max]).T.tolist()
    for joint, range_deg in zip(robot.passive, ends, strict=True):
        name = robot.tree.names[joint]
        for stated, found in zip(facts["joint"][name]["range_deg"], range_deg, strict=True):
            yield f"joint.{name}.range_deg", stated, found, "degrees"


def _check_bodies(path: Path, robot: Robot, facts: dict[str, Any]) -> None:
    """Raise `RobotError` if a moving link of the URDF has another body than in the facts."""
    from urdf.solids import bulk, masses
    from urdf.urdf_text import link_name

    tree = robot.tree
    bulks = {link: bulk(values) for link, values in facts["link"].items()}
    stated = {link_name(link): (float(mass), bulks[link]) for link, mass in masses(facts, bulks).items()}
    frames = loops.link_frames(robot, robot.embedding_offset)
    for joint, link in enumerate(tree.links):
        if link not in stated:
            raise RobotError(
                f"{path}: {robot.name}.urdf has a link {link!r} that is not in the file; {_build(path)}"
            )
        mass, spread = stated[link]
        R = np.array(frames.R[joint])
        with np.errstate(all="ignore"):  # a comparison with NaN is false
            com = R.T @ (np.array([float(x) for x in spread.com]) - np.array(frames.o[joint]))
            tensor = R.T @ (mass * np.array([[float(x) for x in row] for row in spread.inertia])) @ R
            expected, found = inertial_parameters(mass, com, tensor), tree.inertias[joint]
        for part, what in ((slice(0, 1), "mass"), (slice(1, 4), "centre of mass"), (slice(4, 10), "inertia")):
            scale = np.abs(expected[4:10]).max() if what == "inertia" else mass
            if not np.abs(found[part] - expected[part]).max() <= SAME_BODY * scale:
                raise RobotError(
                    f"{path}: the {what} of {link} differs from that in {robot.name}.urdf; {_build(path)}"
                )


def _somewhere(robot: Robot) -> np.ndarray:
    """Return positions (n,), in [rad], without a special posture."""
    return np.deg2rad(np.round(20 * np.sin(1.0 + np.arange(robot.n))))


def _check_closed_loops(path: Path, robot: Robot) -> None:
    """Raise `RobotError` if a loop that is closed at the zero pose opens when the robot moves."""
    q = _somewhere(robot)
    for loop, gap in zip(robot.loops, loops.gaps(robot, robot.tree_positions(q)), strict=True):
        distance = float(np.linalg.norm(gap))
        if not distance < CLOSED:
            first, second = (robot.tree.links[joint] for joint in loop.joints)
            raise RobotError(
                f"{path}: loop {loop.name!r} does not stay closed: at q = {np.rad2deg(q).round().tolist()} "
                f"degrees {first} and {second} are {distance:.3g} m apart where they meet at the zero pose, "
                f"expected less than {CLOSED:g} m; a row q of a passive joint, or {robot.name}.urdf, is wrong"
            )


def _check_passive_joints(path: Path, robot: Robot) -> None:
    """Raise `RobotError` if a passive joint can move while all loops are closed and the motors stand still.

    Its row q determines it only in the model.  In the engine, as on the real arm, only a loop can.
    """
    if not robot.passive:
        return
    rates = loops.gap_rates(robot, robot.tree_positions(_somewhere(robot)))[:, list(robot.passive)]
    _, lengths, motions = np.linalg.svd(rates)
    free = np.flatnonzero(~(np.append(lengths, np.zeros(len(motions) - len(lengths))) >= HELD))
    if len(free):
        moving = np.abs(motions[free]).max(axis=0) > 1e-3
        names = [robot.tree.names[joint] for joint, moves in zip(robot.passive, moving, strict=True) if moves]
        raise RobotError(
            f"{path}: neither a motor nor a closed loop moves {' and '.join(names)}: expected a table "
            f"[loop.<name>] for {'it' if len(names) == 1 else 'them'}"
        )


def _check_folds(path: Path, robot: Robot) -> None:
    """Raise `RobotError` if a loop folds flat between the zero pose and the end of a passive range.

    At a fold the rates of the gaps become singular.  The determinant of their product with those of the zero
    pose changes its sign.
    """
    if not robot.passive:
        return
    passive = list(robot.passive)
    at_zero = loops.gap_rates(robot, robot.embedding_offset)[:, passive]
    for joint, *ends in zip(passive, robot.passive_min, robot.passive_max, strict=True):
        row = robot.embedding[joint]
        for end in ends if row.any() else ():  # a joint that never moves has no path
            q = row * (end - robot.embedding_offset[joint]) / (row @ row)  # the shortest path to the end
            rates = loops.gap_rates(robot, robot.tree_positions(q))[:, passive]
            if not np.linalg.det(at_zero.T @ rates) > FLAT * np.linalg.det(at_zero.T @ at_zero):
                names = " and ".join(loop.name for loop in robot.loops)
                raise RobotError(
                    f"{path}: {names} folds flat before {robot.tree.names[joint]} is at "
                    f"{np.rad2deg(end):.6g} degrees, which its range_deg allows: expected a range that ends "
                    "well before the fold"
                )


def _check_poses(path: Path, robot: Robot) -> None:
    """Raise `RobotError` if a named pose exceeds a limit, or the tour contains an unknown name."""
    for name, q in robot.poses.items():
        try:
            check_position(robot, q)
        except LimitError as error:
            raise RobotError(f"{path}: pose {name!r}: {error}") from error
    for name in robot.tour:
        if name not in robot.poses:
            raise RobotError(f"{path}: tour contains the pose {name!r}, known are {', '.join(robot.poses)}")


def _check_flange(path: Path, robot: Robot, right: str) -> None:
    """Raise `RobotError` if the DH table, with its coupling, and the URDF disagree on the flange's pose."""
    from twin.physics.robot.dh import dh_poses

    dh, urdf = robot.dh, robot.urdf
    assert dh is not None
    assert urdf is not None
    q = np.linspace(0.1, 0.6, robot.n)  # no special posture
    T_dh = dh_poses(dh, robot.dh_coupling @ q + dh.theta0)[-1]
    frames = loops.link_frames(robot, robot.tree_positions(q))
    R, p = recursions.tool_frame(robot.tree, frames, np.eye(4).tolist())
    apart = np.max(np.abs(T_dh[:3] - np.column_stack([R, p])))
    if not apart < AGREE:
        raise RobotError(
            f"{path}: its DH table and {urdf.name} differ by {apart:.3g} in the pose of the flange{right}"
        )


def _check_digest(path: Path, robot: Robot, facts: dict[str, Any]) -> None:
    """Raise `RobotError` if the URDF was written from other facts; one without a digest is the user's."""
    from urdf.facts import digest

    assert robot.urdf is not None
    with robot.urdf.open("rb") as file:
        written = DIGEST.search(file.read(1000))
    if written and written[1].decode() != digest(facts):
        raise RobotError(f"{path} has changed since {robot.urdf.name} was written from it; {_build(path)}")


POSES = 400
"""Number of poses: half of them random, half at quarter turns, where links are horizontal."""

TURN = np.pi
"""Range of joints without limits, to either side, in [rad] or [m]."""


def weak_motors(robot: Robot) -> list[str]:
    """Return a sentence for each motor that cannot hold the arm everywhere, without payload and friction.

    At `POSES` poses within the ranges, the holding torque is compared with the motors' torque at standstill.
    The worst pose may require slightly more.
    """
    if robot.drives is None or not robot.has_inertia:
        return []
    with np.errstate(all="ignore"):  # a robot with any numbers may be loaded
        held = np.abs(_holding_torques(robot) @ np.linalg.inv(robot.drives.coupling))
    needed, given = np.max(held, axis=0, initial=0.0), robot.drives.torque_limits(robot.tau_max)
    units = [joint_unit(kind, "torque") for kind in robot.joint_kinds]
    return [
        f"robot {robot.name!r}: the motor of axis {i + 1} gives {given[i]:.4g} {units[i]} at the joint, but "
        f"holding the arm's weight requires {needed[i]:.4g} {units[i]}"
        for i in range(robot.n)
        if not needed[i] <= given[i]
    ]


def _holding_torques(robot: Robot) -> np.ndarray:
    """Return the torques (N, n) that hold the arm at N poses within its ranges."""
    q = _poses(robot)
    columns = list((q @ robot.embedding.T + robot.embedding_offset).T)
    still = [np.zeros(len(q))] * robot.tree.n
    at = recursions.placements(robot.tree, columns, np)
    x, y, z = robot.gravity.tolist()
    tau = recursions.newton_euler(robot.tree, at, still, still, robot.tree.inertias.tolist(), (x, y, z))
    return np.column_stack([np.broadcast_to(torque, len(q)) for torque in tau]) @ robot.embedding


def _poses(robot: Robot) -> np.ndarray:
    """Return joint positions (N, n), the same at every call."""
    rng = np.random.default_rng(1)
    low, high = np.maximum(robot.q_min, -TURN), np.minimum(robot.q_max, TURN)
    low, high = np.minimum(low, high), np.maximum(low, high)
    anywhere = rng.uniform(low, high, (POSES // 2, robot.n))
    quarters = np.clip(rng.choice([-np.pi / 2, 0.0, np.pi / 2, np.pi], anywhere.shape), low, high)
    q = np.vstack([np.clip(np.zeros(robot.n), low, high), anywhere, quarters])
    return q[~folded(robot, q).any(axis=-1)] if robot.passive else q
