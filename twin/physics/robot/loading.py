"""Loading of robots: by name, from a URDF, from a `robot.toml` with its URDF, or from a DH table alone.

A `robot.toml`, the URDF beside it and the closed loops must be consistent.
"""

import math
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from twin.base.errors import (
    DriveWarning,
    LimitError,
    ModelWarning,
    RobotError,
    ToolFrameWarning,
    UnknownNameError,
    near,
)
from twin.base.formatting import enumerated
from twin.base.plugins import plugin_robot_file, plugin_robots
from twin.base.sibling_packages import PROJECT
from twin.physics.multibody import recursions
from twin.physics.multibody.axis_torques import AxisTorque, Cylinder, Spring, UserColumn, require_state_only
from twin.physics.multibody.tree import Loop, frozen, inertial_parameters
from twin.physics.robot import loops
from twin.physics.robot.drives.drives import Drives
from twin.physics.robot.limits import check_position, folded
from twin.physics.robot.loops import locked as with_locked
from twin.physics.robot.robot import DH, NamedPoses, PublishedPose, Rating, Robot, dh_poses
from twin.physics.robot.units import joint_unit


def robot_names() -> tuple[str, ...]:
    """Return the names of the built-in arms, all of ABB, which have a URDF and a `robot.toml`.

    Example:
        >>> import twin
        >>> twin.robot_names()[:4]
        ('irb120', 'irb1200', 'irb140', 'irb1400')
    """
    return _folders_with("robot.toml")


def laboratory_names() -> tuple[str, ...]:
    """Return the names of the built-in laboratory robots, which have only a DH table, a `dh.toml`.

    Example:
        >>> import twin
        >>> twin.robot.laboratory_names()
        ('figure_7_1', 'manutec_r3', 'rtr', 'rx90', 'two_link', 'youbot', 'youbot3')
    """
    return _folders_with("dh.toml")


def _folders_with(file: str) -> tuple[str, ...]:
    return tuple(sorted(found.parent.name for found in (PROJECT / "urdf").glob(f"*/{file}")))


def robot_title(name: str) -> str:
    """Return the title of a named robot, or its file name if that is a URDF, which has no title.

    Only the head of the file is read, up to the first table.

    Raises:
        PluginError, RobotError: a package provides the robot, and it does not load.
    """
    from urdf.schema import tomllib

    file = _home(name)
    if is_urdf(file):
        return file.name
    try:
        return str(tomllib.loads(file.read_text(encoding="utf-8-sig").partition("\n[")[0])["title"])
    except (OSError, ValueError, KeyError):  # reading the whole file reports the error
        return robot_facts(file)["title"]


def load(
    name_or_path: str | Path,
    *,
    tool_frame: str | None = None,
    unphysical: bool = False,
    locked: Mapping[str, float] | None = None,
) -> Robot:
    """Load a robot.

    Args:
        name_or_path: name from `robot_names()`, `laboratory_names()` or `plugin_robots()`; path of a `.urdf`
            file, of a `robot.toml` with its URDF, or of a file whose name ends in `dh.toml`; or the path of a
            folder with one of them.
        tool_frame: link whose frame is the tool's; by default `tool0`, or else the end of the longest chain,
            see `twin.robot.urdf_reader`.
        unphysical: accept bodies in a URDF that no real one can be.  Without it, such a file has no dynamics,
            and `robot.inertia_fault` says why.
        locked: joints that do not move, and their positions, in [rad] or [m], see `twin.robot.locked`.

    Raises:
        UnknownNameError: there is no robot, or no link, of that name.
        RobotError: the file is missing, malformed, or describes an impossible joint.
        PluginError: the package that provides the robot does not load.

    Warns:
        DriveWarning: a motor cannot carry the arm's own weight, see `weak_motors`.
        ToolFrameWarning: the file does not name the tool frame; the message has the frame that was taken.
        ModelWarning: the URDF has odd statements, see `remarks`.

    Example:
        >>> import twin
        >>> robot = twin.load("irb140")
        >>> robot.joint_names[0], round(float(robot.qd_max[0]), 3)  # 200 degrees per second
        ('joint_1', 3.491)
    """
    file = robot_file(name_or_path)
    if is_urdf(file):
        robot = _from_urdf(file, unphysical, standard_tool=tool_frame is None)
    else:
        robot = _from_toml(file, unphysical)
    if tool_frame is not None:
        robot = robot.with_tool_frame(tool_frame)
    if locked:
        robot = with_locked(robot, locked)
    for sentence in remarks(robot):
        warnings.warn(f"{robot.name}: {sentence}", ModelWarning, stacklevel=2)
    if robot.tool_reason:
        warnings.warn(f"{robot.name}: {robot.tool_reason}", ToolFrameWarning, stacklevel=2)
    for sentence in weak_motors(robot):
        warnings.warn(sentence, DriveWarning, stacklevel=2)
    return robot


def remarks(robot: Robot) -> list[str]:
    """Return sentences about a URDF: odd statements, and, without a `robot.toml`, joints beside the tool."""
    found = list(robot.notes)
    if robot.file is not None and is_urdf(robot.file):
        moving = robot.embedding[list(robot.tree.carriers(robot.tree.flange_joint))]
        free = [name for name, column in zip(robot.joint_names, moving.T, strict=True) if not np.any(column)]
        if free:
            found.append(
                f"{enumerated('joint', free)} {'move' if free[1:] else 'moves'} freely, but not the tool "
                f"frame {robot.tool_frame!r}: --lock NAME=POSITION (locked=) holds fingers, and a URDF "
                "cannot have closed loops"
            )
    return found


def robot_file(name_or_path: str | Path) -> Path:
    """Return the file that defines a robot, which may not exist; arguments and errors as of `load`."""
    text = str(name_or_path)
    path = Path(text)
    if path.suffix.lower() in (".urdf", ".toml"):
        return path
    known = (*robot_names(), *laboratory_names(), *plugin_robots())
    if text in known:
        return _home(text)
    if path.is_dir():
        files = [found for name in FILES for found in sorted(path.glob(name))]
        if files and not (is_urdf(files[0]) and len(files) > 1):
            return files[0]
        found = ", ".join(file.name for file in files) or "none"
        raise RobotError(
            f"{path}: expected a folder with a robot.toml, a dh.toml or one .urdf, found {found}"
        )
    raise UnknownNameError(
        f"unknown robot {text!r}{near(text, known)}: known are {', '.join(known)}, "
        "or the path of a .urdf, a robot.toml or a dh.toml, or of a folder with one"
    )


FILES = ("robot.toml", "*dh.toml", "*.urdf", "*.URDF")
"""Files that define the robot of a folder; the first one that exists."""


def _home(name: str) -> Path:
    """Return the file of a named robot; built-in names take precedence."""
    if name not in (*robot_names(), *laboratory_names()):
        return plugin_robot_file(name)
    file = "robot.toml" if name in robot_names() else "dh.toml"
    return PROJECT / "urdf" / name / file


def is_urdf(path: Path) -> bool:
    """Return whether a file is a URDF by its name."""
    return path.suffix.lower() == ".urdf"


def is_table(path: Path) -> bool:
    """Return whether a TOML file defines a robot by its DH table alone."""
    return path.name.endswith("dh.toml")


def robot_facts(path: Path) -> dict[str, Any]:
    """Return the contents of a robot.toml or a dh.toml; raise `RobotError` if they are invalid."""
    from urdf import dh_facts, facts
    from urdf.schema import FactsError

    try:
        return (dh_facts if is_table(path) else facts).read(path)
    except FactsError as error:
        raise RobotError(str(error)) from error


def sibling_urdf(path: Path, facts: dict[str, Any]) -> Path:
    """Return the URDF that belongs to a `robot.toml` with these facts; raise `RobotError` without one."""
    if "urdf" in facts:
        return path.parent / facts["urdf"]
    urdf = path.parent / f"{facts['name']}.urdf"
    if not urdf.exists():
        raise RobotError(
            f"{path}: {urdf.name} beside it is missing; write it with python -m urdf.build {path}"
        )
    return urdf


def _from_urdf(path: Path, unphysical: bool = False, standard_tool: bool = True) -> Robot:
    from twin.physics.robot.urdf_reader import read_urdf

    model = read_urdf(path, unphysical=unphysical, standard_tool=standard_tool)
    G, g0, driven = model.followers
    endless = np.full(model.tree.n - len(driven), np.inf)  # a follower's range is that of its leader
    q_min, q_max, qd_max, tau_max = (frozen(column) for column in model.limits.T)
    return Robot(
        model.name,
        path,
        model.tree,
        q_min,
        q_max,
        qd_max,
        tau_max,
        dh_coupling=frozen(np.eye(len(driven))),
        embedding=G,
        embedding_offset=g0,
        driven=driven,
        passive_min=frozen(-endless),
        passive_max=frozen(endless),
        file=path,
        inertia_fault=model.inertia_fault,
        frames=MappingProxyType(model.frames),
        tool_frame=model.tool.name,
        tool_reason=model.tool.reason,
        notes=model.notes,
    )


def _from_toml(path: Path, unphysical: bool) -> Robot:
    facts = robot_facts(path)
    if is_table(path):
        from twin.physics.robot.dh_tables import robot_of_table

        return _with_torques(path, replace(robot_of_table(path, facts), drives=_drives(path, facts)), facts)
    urdf = sibling_urdf(path, facts)
    if "urdf" in facts:
        given = _from_urdf(urdf, unphysical or "unphysical" in facts, "tool_frame" not in facts)
        given = with_locked(given, facts["joints"].get("locked", {}))
        robot = _with_limits(path, given, facts)
        robot = robot.with_tool_frame(facts["tool_frame"]) if "tool_frame" in facts else robot
    else:
        robot = _embedded(path, _from_urdf(urdf), facts)
    robot = replace(
        robot,
        name=facts["name"],
        loops=tuple(_loop(path, robot, name, loop) for name, loop in facts.get("loop", {}).items()),
        poses=MappingProxyType(NamedPoses((name, _pose(pose)) for name, pose in facts["poses"].items())),
        published=MappingProxyType(
            {
                name: PublishedPose(frozen(pose["flange"]), float(pose["flange_tolerance"]))
                for name, pose in facts["poses"].items()
                if "flange" in pose
            }
        ),
        tour=tuple(facts["tour"]["poses"]) if "tour" in facts else (),
        rating=Rating(facts["rating"]["payload"], facts["rating"]["reach"]) if "rating" in facts else None,
        file=path,
        drives=_drives(path, facts),
    )
    if (table := facts.get("dh")) is not None:
        theta0, alpha = (frozen(np.deg2rad(table[key])) for key in ("theta0_deg", "alpha_deg"))
        dh = DH(theta0, frozen(table["d"]), frozen(table["a"]), alpha)
        robot = replace(robot, dh=dh, dh_coupling=frozen(table.get("coupling", np.eye(robot.n))))
    robot = _with_torques(path, robot, facts)
    check(path, robot, facts)
    return robot


def _pose(pose: dict[str, Any]) -> np.ndarray:
    """Return the positions (n,) of a table `[poses.name]`, in [rad] or [m]."""
    return frozen(pose["q"] if "q" in pose else np.deg2rad(pose["q_deg"]))


def _with_limits(path: Path, robot: Robot, facts: dict[str, Any]) -> Robot:
    """Return the robot of a URDF with the limits of a `robot.toml`, which names the same joints."""
    joints = facts["joints"]
    if tuple(joints["names"]) != robot.joint_names:
        raise RobotError(
            f"{path}: joints.names are {', '.join(joints['names'])}, expected those of {facts['urdf']} "
            f"that have a motor and are not locked, in its order: {', '.join(robot.joint_names)}"
        )
    keys = {"q_min": "q_min", "q_max": "q_max", "qd_max": "qd_max", "tau_max": "effort"}
    limits = {name: frozen(joints[key]) for name, key in keys.items() if key in joints}
    robot = replace(robot, **limits)
    for i, name in enumerate(robot.joint_names):
        if not (robot.q_min[i] < robot.q_max[i] and robot.qd_max[i] > 0 and robot.tau_max[i] > 0):
            raise RobotError(f"{path}: {name}: expected q_min < q_max, and qd_max and effort above 0")
    return robot


def _with_torques(path: Path, robot: Robot, facts: dict[str, Any]) -> Robot:
    """Return the robot with the springs, cylinders and columns of its file."""
    tree, torques = robot.tree, list[AxisTorque]()
    frames = loops.link_frames(robot, robot.embedding_offset)
    for one in facts.get("spring", {}).values():
        torques.append(Spring(int(one["joint"]) - 1, float(one["stiffness"]), float(one.get("torque", 0.0))))
    for name, one in facts.get("cylinder", {}).items():
        joint = robot.driven[int(one["joint"]) - 1]
        if tree.kinds[joint] != "revolute":
            raise RobotError(f"{path}: cylinder.{name}: expected a revolute joint, got {tree.names[joint]}")
        R, origin = np.array(frames.R[joint]), np.array(frames.o[joint])
        a, b = (np.array(one[key], dtype=float) - origin for key in ("from", "to"))
        numbers = (float(one[key]) for key in ("length", "force", "stiffness"))
        cylinder = Cylinder.between(int(one["joint"]) - 1, R @ tree.axes[joint], a, b, R, *numbers)
        if not cylinder.d > 2.0 * math.hypot(cylinder.c, cylinder.s) * (1.0 + 1e-9):
            raise RobotError(f"{path}: cylinder.{name}: its ends meet at some angle of the joint")
        torques.append(cylinder)
    for name, one in facts.get("column", {}).items():
        file, _, function = one["function"].rpartition(":")
        torques.append(UserColumn.of_file(name, path.parent / file, function, float(one["value"])))
    robot = replace(robot, tree=replace(tree, torques=tuple(torques)))
    for torque in torques:
        require_state_only(torque, robot.n)
    return robot


def _drives(path: Path, facts: dict[str, Any]) -> Drives | None:
    """Return the drives of a table `[drives]`, `None` without one."""
    if "drives" not in facts:
        return None
    try:
        return Drives(**{key: value for key, value in facts["drives"].items() if key != "source"})
    except ValueError as error:
        raise RobotError(f"{path}: {error}") from error


def _embedded(path: Path, robot: Robot, facts: dict[str, Any]) -> Robot:
    """Return the robot of the URDF with the teach pendant's joints as coordinates of all joints."""
    tree, names = robot.tree, facts["joints"]["names"]
    rows = {name: joint["q"] for name, joint in facts.get("joint", {}).items() if "q" in joint}
    for name in (*names, *rows):
        if name not in tree.names:
            raise RobotError(
                f"{path}: {facts['name']}.urdf has no moving joint {name!r}, only {', '.join(tree.names)}"
            )
    for name in tree.names:
        if name not in names and name not in rows:
            raise RobotError(
                f"{path}: joint {name!r} of {facts['name']}.urdf is neither in joints.names nor has a table "
                f"[joint.{name}] with its row q"
            )
    driven = tuple(tree.names.index(name) for name in names)
    passive = [i for i in range(tree.n) if i not in driven]
    G = np.zeros((tree.n, len(driven)))
    G[list(driven)] = np.eye(len(driven))
    for i in passive:
        G[i] = rows[tree.names[i]]
    return replace(
        robot,
        embedding=frozen(G),
        driven=driven,
        q_min=frozen(robot.q_min[list(driven)]),
        q_max=frozen(robot.q_max[list(driven)]),
        qd_max=frozen(robot.qd_max[list(driven)]),
        tau_max=frozen(robot.tau_max[list(driven)]),
        passive_min=frozen(robot.q_min[passive]),
        passive_max=frozen(robot.q_max[passive]),
        unjudged=MappingProxyType(
            {
                tree.names.index(name): one["unjudged"]
                for name, one in facts.get("joint", {}).items()
                if "unjudged" in one
            }
        ),
    )


def _loop(path: Path, robot: Robot, name: str, facts: dict[str, Any]) -> Loop:
    """Return the loop of a table `[loop.name]`, whose points are in the base frame at the zero pose."""
    tree, joints, points = robot.tree, [], []
    frames = loops.link_frames(robot, robot.embedding_offset)
    for link, point in zip(facts["links"], facts["at"], strict=True):
        if f"link_{link}" not in tree.links:
            raise RobotError(f"{path}: no joint of the URDF moves link {link!r} of loop {name!r}")
        joint = tree.links.index(f"link_{link}")
        joints.append(joint)
        points.append(np.array(frames.R[joint]).T @ (np.array(point) - np.array(frames.o[joint])))
    return Loop(name, (joints[0], joints[1]), frozen(points))


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
