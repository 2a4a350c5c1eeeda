"""Whether a `robot.toml`, the URDF beside it and the closed loops of both tell of one robot."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from twin.errors import LimitError, RobotError
from twin.multibody import recursions
from twin.multibody.tree import inertial_parameters
from twin.robot import loops
from twin.robot.limits import check_position, folded, joint_unit
from twin.robot.robot import Robot

SAME = 1e-9
"""How far apart, relatively, a limit may be in the two files."""

CLOSED = 1e-9
"""How far apart, in [m], the two points of a closed loop may be where the robot moves."""

HELD = 1e-6
"""What a passive joint must open its loops by at least when the driven ones stand still, in [m/rad]."""

FLAT = 1e-6
"""A loop at the end of a passive range is this far from flat at least, relative to the zero pose."""

AGREE = 1e-9
"""How far apart the two files may have the pose of the flange, in [m] and [1]."""

SAME_BODY = 1e-12
"""How far apart the two files may have a link's mass and tensor, relatively, and centre of mass, in [m]."""


def check(path: Path, robot: Robot, facts: dict[str, Any]) -> None:
    """Check a robot against the file that it was loaded from.

    Args:
        path: of its `robot.toml`, for the message.
        robot: as it was loaded.
        facts: the contents of the file.

    Raises:
        RobotError: the file contradicts itself or the URDF beside it.
    """
    _check_limits(path, robot, facts)
    _check_closed_loops(path, robot)
    _check_passive_joints(path, robot)
    _check_folds(path, robot)
    _check_poses(path, robot)
    _check_flange(path, robot)
    _check_bodies(path, robot, facts)


def _build(path: Path) -> str:
    """What to do where the URDF is another than its facts make it."""
    return f"write the URDF anew with python -m urdf.build {path}"


def _check_limits(path: Path, robot: Robot, facts: dict[str, Any]) -> None:
    """Raise `RobotError` where the URDF has a limit that the facts do not have."""
    for where, told, found, unit in _limits(robot, facts):
        if not (found == told or abs(found - told) <= SAME * abs(told)):  # both may be infinite
            raise RobotError(
                f"{path}: {where} is {told:g} {unit}, in {robot.name}.urdf {found:g} {unit}; {_build(path)}"
            )


def _limits(robot: Robot, facts: dict[str, Any]) -> Iterator[tuple[str, float, float, str]]:
    """Every limit of the facts: where it is told, its value, that of the URDF, and their unit."""
    joints = facts["joints"]
    for key, values, unit in (
        ("q_min_deg", np.rad2deg(robot.q_min), "degrees"),
        ("q_max_deg", np.rad2deg(robot.q_max), "degrees"),
        ("qd_max_deg_s", np.rad2deg(robot.qd_max), "degrees/s"),
        ("effort", robot.tau_max, "N m"),
    ):
        for name, told, found in zip(joints["names"], joints[key], values.tolist(), strict=True):
            yield f"{key} of {name}", told, found, unit
    ends = np.rad2deg([robot.passive_min, robot.passive_max]).T.tolist()
    for joint, range_deg in zip(robot.passive, ends, strict=True):
        name = robot.tree.names[joint]
        for told, found in zip(facts["joint"][name]["range_deg"], range_deg, strict=True):
            yield f"joint.{name}.range_deg", told, found, "degrees"


def _check_bodies(path: Path, robot: Robot, facts: dict[str, Any]) -> None:
    """Raise `RobotError` where a moving link of the URDF is another body than that of the facts."""
    from urdf.solids import bulk, masses
    from urdf.urdf_text import link_name

    tree = robot.tree
    bulks = {link: bulk(values) for link, values in facts["link"].items()}
    told = {link_name(link): (float(mass), bulks[link]) for link, mass in masses(facts, bulks).items()}
    zero = recursions.placements(tree, robot.embedding_offset.tolist(), math)
    frames = recursions.world_frames(tree, zero)
    for joint, link in enumerate(tree.links):
        if link not in told:
            raise RobotError(
                f"{path}: {robot.name}.urdf has a link {link!r} that the file does not have; {_build(path)}"
            )
        mass, spread = told[link]
        R = np.array(frames.R[joint])
        with np.errstate(all="ignore"):  # numbers without meaning agree with nothing
            com = R.T @ (np.array([float(x) for x in spread.com]) - np.array(frames.o[joint]))
            tensor = R.T @ (mass * np.array([[float(x) for x in row] for row in spread.inertia])) @ R
            expected, found = inertial_parameters(mass, com, tensor), tree.inertias[joint]
        for part, what in ((slice(0, 1), "mass"), (slice(1, 4), "centre of mass"), (slice(4, 10), "inertia")):
            scale = np.abs(expected[4:10]).max() if what == "inertia" else mass
            if not np.abs(found[part] - expected[part]).max() <= SAME_BODY * scale:
                raise RobotError(
                    f"{path}: the {what} of {link} is another than in {robot.name}.urdf; {_build(path)}"
                )


def _somewhere(robot: Robot) -> np.ndarray:
    """Positions (n,), in [rad], in no special place."""
    return np.deg2rad(np.round(20 * np.sin(1.0 + np.arange(robot.n))))


def _check_closed_loops(path: Path, robot: Robot) -> None:
    """Raise `RobotError` where a loop, closed at the zero pose, opens when the robot moves."""
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
    """Raise `RobotError` where a passive joint can move though all loops are closed and no motor turns.

    Its row q binds it in the model alone: in the engine, as in the workshop, only a loop can.
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
            f"{path}: no motor turns {' and '.join(names)} and no closed loop holds "
            f"{'it' if len(names) == 1 else 'them'}: expected a table [loop.<name>] that does"
        )


def _check_folds(path: Path, robot: Robot) -> None:
    """Raise `RobotError` where loops fold flat on the way from the zero pose to the end of a passive range.

    There the rates of their gaps turn singular, and the determinant that they make with those of the zero
    pose changes its sign.
    """
    if not robot.passive:
        return
    passive = list(robot.passive)
    at_zero = loops.gap_rates(robot, robot.embedding_offset)[:, passive]
    for joint, *ends in zip(passive, robot.passive_min, robot.passive_max, strict=True):
        row = robot.embedding[joint]
        for end in ends if row.any() else ():  # a joint that never moves has no way
            q = row * (end - robot.embedding_offset[joint]) / (row @ row)  # the shortest way there
            rates = loops.gap_rates(robot, robot.tree_positions(q))[:, passive]
            if not np.linalg.det(at_zero.T @ rates) > FLAT * np.linalg.det(at_zero.T @ at_zero):
                names = " and ".join(loop.name for loop in robot.loops)
                raise RobotError(
                    f"{path}: {names} folds flat before {robot.tree.names[joint]} is at "
                    f"{np.rad2deg(end):.6g} degrees, which its range_deg allows: expected a range that ends "
                    "well before the fold"
                )


def _check_poses(path: Path, robot: Robot) -> None:
    """Raise `RobotError` where a named pose is beyond a limit, or the tour names none."""
    for name, q in robot.poses.items():
        try:
            check_position(robot, q)
        except LimitError as error:
            raise RobotError(f"{path}: pose {name!r}: {error}") from error
    for name in robot.tour:
        if name not in robot.poses:
            raise RobotError(f"{path}: tour names the pose {name!r}, known are {', '.join(robot.poses)}")


def _check_flange(path: Path, robot: Robot) -> None:
    """Raise `RobotError` where the DH table, coupling included, has the flange elsewhere than the URDF."""
    from twin.robot.robot import dh_poses  # not light

    dh = robot.dh
    assert dh is not None
    q = np.linspace(0.1, 0.6, robot.n)  # in no special position
    T_dh = dh_poses(dh, robot.dh_coupling @ q + dh.theta0)[-1]
    at = recursions.placements(robot.tree, robot.tree_positions(q).tolist(), math)
    R, p = recursions.tool_frame(robot.tree, recursions.world_frames(robot.tree, at), np.eye(4).tolist())
    apart = np.max(np.abs(T_dh[:3] - np.column_stack([R, p])))
    if not apart < AGREE:
        raise RobotError(
            f"{path}: its DH table and {robot.name}.urdf differ by {apart:.3g} in the pose of the flange; "
            f"if the table and its coupling are right, {_build(path)}"
        )


POSES = 400
"""Half of them anywhere within the joints' ranges, half at quarter turns, where links lie level."""

TURN = np.pi
"""Joints without ranges are moved so far to either side, in [rad] or [m]."""


def weak_motors(robot: Robot) -> list[str]:
    """A sentence for each motor that cannot hold the arm still somewhere, without payload and friction.

    The arm stands as its gravity says.  At `POSES` poses within its ranges the torque that holds it is
    compared with what the motors give at standstill: the worst pose may ask for a little more.
    """
    if robot.drives is None or not robot.has_inertia:
        return []
    with np.errstate(all="ignore"):  # a robot of any numbers may be loaded
        held = np.abs(_holding_torques(robot) @ np.linalg.inv(robot.drives.coupling))
    needed, given = np.max(held, axis=0, initial=0.0), robot.drives.torque_max
    units = [joint_unit(kind, "torque") for kind in robot.joint_kinds]
    return [
        f"robot {robot.name!r}: the motor of axis {i + 1} gives {given[i]:.4g} {units[i]} at the joint, "
        f"the arm's own weight asks it for {needed[i]:.4g} {units[i]}"
        for i in range(robot.n)
        if not needed[i] <= given[i]
    ]


def _holding_torques(robot: Robot) -> np.ndarray:
    """Torques (N, n) that hold the arm at poses within its ranges, all of them at once."""
    q = _poses(robot)
    columns = list((q @ robot.embedding.T + robot.embedding_offset).T)
    still = [np.zeros(len(q))] * robot.tree.n
    at = recursions.placements(robot.tree, columns, np)
    x, y, z = robot.gravity.tolist()
    tau = recursions.newton_euler(robot.tree, at, still, still, robot.tree.inertias.tolist(), (x, y, z))
    return np.column_stack([np.broadcast_to(torque, len(q)) for torque in tau]) @ robot.embedding


def _poses(robot: Robot) -> np.ndarray:
    """Joint positions (N, n), always the same."""
    rng = np.random.default_rng(1)
    low, high = np.maximum(robot.q_min, -TURN), np.minimum(robot.q_max, TURN)
    low, high = np.minimum(low, high), np.maximum(low, high)
    anywhere = rng.uniform(low, high, (POSES // 2, robot.n))
    quarters = np.clip(rng.choice([-np.pi / 2, 0.0, np.pi / 2, np.pi], anywhere.shape), low, high)
    q = np.vstack([np.clip(np.zeros(robot.n), low, high), anywhere, quarters])
    return q[~folded(robot, q).any(axis=-1)] if robot.passive else q
