"""Reading of a URDF into a `Tree`, its limits, its followers, its frames and its tool.

What is impossible about joints is refused.  A body that no real one can be, or a joint that moves no mass,
only leaves the robot without dynamics.

ROS-Industrial names the tool frame `tool0` (REP 199).  In other URDFs the tool is the end of the longest
chain of moving joints, with the frames that are fixed there.  A gripper is no part of the chain: where the
chain branches into fingers, the tool is the frame fixed to the hand that is named as a tool, or else the last
one before the fingers.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from twin.base.errors import RobotError
from twin.base.formatting import enumerated
from twin.physics.multibody import recursions
from twin.physics.multibody.recursions import ACCEPT, moved_mass_fault
from twin.physics.multibody.tree import (
    Tree,
    body_from_parameters,
    consistent_moments,
    frozen,
    inertial_parameters,
    transformed_parameters,
)
from twin.physics.robot.robot import Frame
from twin.physics.robot.urdf_document import Document, PlacedLink, read_document, snapped

KINDS = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic"}
NOISE = 1e-15
"""Moments of inertia that count as zero, in [kg m^2]; some files have them for links that are frames."""

NEGLIGIBLE = 1e-6
"""Share of the arm's mass below which a body never leaves the arm without dynamics."""

MOST_ROUNDING = 0.05
"""Excess of a moment of inertia over the sum of the others, as a share of it, that counts as rounding."""

ROUND_OFF = 1e-6
"""Such an excess below which moments stay as they are."""

WIDE, WIDEST = 0.6, 0.5
"""Radii of gyration that no link has: as a share of the arm's extent (a rod has 0.58), and in [m]."""

SEEN = 1e-5
"""Shift of the tool frame by rounded angles, in [m], which is mentioned: arms repeat so well."""

MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
NO_INERTIAL = "its URDF has no <inertial>; irb-twin mass computes the masses of CAD meshes"


class Followers(NamedTuple):
    """Positions of all joints as functions of those with a motor, `q_tree = G q + g0`.

    Attributes:
        G: (n_tree, n) matrix.
        g0: (n_tree,) offsets, in [rad].
        driven: indices of the joints with a motor.
    """

    G: np.ndarray
    g0: np.ndarray
    driven: tuple[int, ...]


class UrdfModel(NamedTuple):
    """Contents of a URDF.

    Attributes:
        name: name of the robot.
        tree: all moving joints.
        limits: (n, 4) position range, speed and effort of the joints with a motor, infinite where absent.
        followers: joints that follow others by `<mimic>`.
        frames: frame of every link by its name.
        tool: tool frame.
        inertia_fault: why there are no dynamics, "" if there are.
        notes: a sentence for each odd statement of the file, and what is made of it.
    """

    name: str
    tree: Tree
    limits: np.ndarray
    followers: Followers
    frames: dict[str, Frame]
    tool: ToolFrame
    inertia_fault: str
    notes: tuple[str, ...]


def read_urdf(path: Path, *, unphysical: bool = False, standard_tool: bool = True) -> UrdfModel:
    """Read and check a URDF.

    Fixed joints are merged, so that a link of the tree contains all links fixed to each other.  The flange is
    that of `twin.robot.urdf_reader`.  A speed or effort limit of 0 or -1 counts as absent, and so does
    a range from 0 to 0.

    Args:
        path: path of the file.
        unphysical: accept impossible bodies.
        standard_tool: take the frame `tool0` as the flange if there is one.

    Raises:
        RobotError: the file is missing or malformed, or a joint in it is impossible.
    """
    document = read_document(path)
    links, moving = document.placed
    if not moving:
        raise RobotError(f"{path}: no joint moves; at least one must be revolute, continuous or prismatic")
    frames = {link.name: Frame(link.index, frozen(link.T)) for link in links}
    tool = tool_frame(document.base, document.joints_on, standard_tool)
    if frames[tool.name].joint < 0:
        raise RobotError(
            f"{path}: no joint moves link {tool.name!r}, so no tool or payload could be attached to it; "
            "expected it behind a moving joint, or another --tool-frame (tool_frame=)"
        )
    joints = [joint.joint for joint in moving]
    followers = _followers(path, joints)
    limits = np.array([_limits(path, joints[k]) for k in followers.driven])
    bodies, faults, notes = _bodies(document, unphysical)
    inertias = np.zeros((len(moving) + 1, 10))  # the base, of index -1, is the last
    for name, body in bodies.items():
        frame = frames[name]
        inertias[frame.joint] += transformed_parameters(body, frame.T)
    tree = Tree(
        names=tuple(joint.name for joint in joints),
        links=tuple(joint.child for joint in joints),
        kinds=tuple(KINDS[joint.joint_type] for joint in joints),
        parents=tuple(joint.parent for joint in moving),
        T_parent_joint=frozen([joint.T for joint in moving]),
        axes=frozen([_axis(path, joint) for joint in joints]),
        inertias=frozen(inertias[:-1]),
        flange_joint=frames[tool.name].joint,
        T_joint_flange=frames[tool.name].T,
        base_inertia=frozen(inertias[-1]),
    )
    fault = _inertia_fault(tree, followers, bodies, faults, unphysical)
    if faults or not bodies:  # a joint that moves no mass may still be locked
        tree = replace(tree, inertias=frozen(np.zeros((tree.n, 10))), base_inertia=frozen(np.zeros(10)))
    name = document.root.get("name") or path.stem
    notes += ([] if fault else _wide_bodies(tree, links, bodies)) + _tool_shift(document, tree, tool.name)
    return UrdfModel(name, tree, limits, followers, frames, tool, fault, tuple(notes))


AS_OF_BODY = "moments as of a body of radius"


def _wide_bodies(tree: Tree, links: Sequence[PlacedLink], bodies: Mapping[str, np.ndarray]) -> list[str]:
    """Return a sentence that names the moved links with moments as of a body as large as the arm."""
    extent, wide = float(np.linalg.norm(tree.T_parent_joint[:, :3, 3], axis=1).sum()), {}
    light = NEGLIGIBLE * tree.inertias[:, 0].sum()
    for link in links:
        mass, com, tensor = body_from_parameters(bodies.get(link.name, np.zeros(10)))
        radius = radius_of_gyration(mass, tensor)
        if link.index >= 0 and mass > light and radius > max(WIDE * (extent + np.linalg.norm(com)), WIDEST):
            wide[link.name] = radius, mass
    if not wide:
        return []
    radius, mass = max(wide.values())
    return [
        f"{enumerated('link', wide)}: {mass:.3g} kg and {AS_OF_BODY} {radius:.2g} m, on an arm of "
        f"{extent:.2g} m"
    ]


def _tool_shift(document: Document, tree: Tree, tool: str) -> list[str]:
    """Return a sentence with the shift of the tool frame by rounded angles, if it can be seen."""
    if not document.rounded:
        return []
    printed = read_document(document.path, exact=False)
    links, moving = printed.placed
    raw = replace(
        tree,
        T_parent_joint=frozen([joint.T for joint in moving]),
        axes=frozen([joint.joint.axis for joint in moving]),
        T_joint_flange=next(link.T for link in links if link.name == tool),
    )
    shift, eye = 0.0, np.eye(4).tolist()
    for angle in (0.0, 0.5, -1.0, 1.5, -2.0):
        q = [angle * (kind == "revolute") for kind in tree.kinds]
        at = [
            recursions.tool_frame(
                one, recursions.world_frames(one, recursions.placements(one, q, math)), eye
            )[1]
            for one in (tree, raw)
        ]
        shift = max(shift, math.dist(*at))
    text = f"{rounded_text(document)}; as printed, the tool frame would be up to {1e3 * shift:.2g} mm away"
    return [text] if shift > SEEN else []


def radius_of_gyration(mass: float, tensor: np.ndarray) -> float:
    """Return a body's radius of gyration about the axis of its largest moment, in [m]; 0 without mass."""
    return float(np.sqrt(max(0.0, np.linalg.eigvalsh(tensor)[2]) / mass)) if mass > 0 else 0.0


def rounded_text(document: Document) -> str:
    """Return a sentence that names the rounded numbers of a file."""
    more = f" and {len(document.rounded) - 3} more" if document.rounded[3:] else ""
    return f"rounded, and read as multiples of 15 degrees: {'; '.join(document.rounded[:3])}{more}"


def _inertia_fault(
    tree: Tree, followers: Followers, bodies: Mapping[str, Any], faults: Sequence[str], unphysical: bool
) -> str:
    """Return why a tree has no dynamics, "" if it has."""
    if faults:
        more = f" (and {len(faults) - 1} more)" if faults[1:] else ""
        return f"{faults[0]}{more}; correct it, or {ACCEPT}"
    if not bodies:
        return NO_INERTIAL
    names = [tree.names[joint] for joint in followers.driven]
    fault = "" if unphysical else moved_mass_fault(tree, names, followers.G, followers.g0)
    return f"{fault}, or {ACCEPT}" if fault else ""


def _followers(path: Path, joints: Sequence[Any]) -> Followers:
    """Return the positions of all joints by those that do not follow another one by `<mimic>`.

    Raises:
        RobotError: a multiplier or an offset is not finite.
    """
    index = {joint.name: k for k, joint in enumerate(joints)}
    driven = tuple(k for k, joint in enumerate(joints) if joint.mimic is None)
    G, g0 = np.zeros((len(joints), len(driven))), np.zeros(len(joints))
    for k, joint in enumerate(joints):
        factor, offset, leader = 1.0, 0.0, joint
        while (mimic := leader.mimic) is not None:  # the document has no circle of them
            if not (math.isfinite(mimic.multiplier) and math.isfinite(mimic.offset)):
                raise RobotError(
                    f"{path}: joint {leader.name!r} has a <mimic> of multiplier {mimic.multiplier:g}, offset "
                    f"{mimic.offset:g}: expected finite numbers"
                )
            factor, offset, leader = (
                factor * mimic.multiplier, offset + factor * mimic.offset, joints[index[mimic.joint]]
            )  # fmt: skip
        G[k, driven.index(index[leader.name])], g0[k] = factor, offset
    return Followers(frozen(G), frozen(g0), driven)


def faults(document: Document) -> list[str]:
    """Return a sentence for every impossible body and joint of a URDF."""
    path = document.path
    found = list(_bodies(document, unphysical=False)[1])
    checks: list[Callable[[], object]] = []
    for joint in document.joints:
        checks.append(lambda joint=joint: document.origin(joint))
        if joint.joint_type != "fixed":
            checks.append(lambda joint=joint: _axis(path, joint))
        if joint.joint_type != "fixed" and joint.mimic is None:
            checks.append(lambda joint=joint: _limits(path, joint))
    for check in checks:
        try:
            check()
        except RobotError as error:
            found.append(str(error).removeprefix(f"{path}: "))
    return found


def _bodies(document: Document, unphysical: bool) -> tuple[dict[str, np.ndarray], list[str], list[str]]:
    """Return the inertial parameters (10,) of the links in their frames, and sentences: faults and notes.

    An impossible tensor within `MOST_ROUNDING` is replaced by the nearest one, see `consistent_moments`.
    """
    stated = {
        name: inertial
        for name, link in document.links.items()
        if (inertial := link.find("inertial")) is not None
    }
    masses = [float(mass.get("value", 0)) for one in stated.values() for mass in one.iterfind("mass")]
    light = NEGLIGIBLE * sum(mass for mass in masses if 0 < mass < np.inf)
    bodies, found, changes, weightless = {}, [], {}, {}
    base = [document.base]
    for link in base:
        base += [joint.child for joint in document.joints_on[link] if joint.joint_type == "fixed"]
    for name, inertial in stated.items():
        try:
            bodies[name], change = _body(inertial, light, unphysical)
        except ValueError as error:
            found.append(f"link {name!r} has {error}")
            continue
        if change > 0:
            changes[name] = change
        if bodies[name][0] == 0 and np.max(np.abs(bodies[name])) > light + NOISE and name not in base:
            weightless[name] = np.max(np.abs(bodies[name]))
    notes = []
    if weightless:
        notes.append(
            f"{enumerated('link', weightless)}: an inertia of up to {max(weightless.values()):.3g} kg m^2 "
            "without a mass, which no body has; it counts, as in PyBullet and Pinocchio"
        )
    if changes:
        notes.append(
            f"{enumerated('link', changes)}: moments of inertia that no body has, changed by up to "
            f"{max(changes.values()):.2g} % to the nearest that one has"
        )
    return bodies, found, notes


def _body(inertial: ET.Element, light: float, unphysical: bool) -> tuple[np.ndarray, float]:
    """Return the inertial parameters (10,) of a URDF link, in the link's frame, and their change in percent.

    A body with a mass and moments below `light`, in [kg] and [kg m^2], may be impossible.

    Raises:
        ValueError: no body is like that.
    """
    mass, T, tensor = stated_inertial(inertial)
    if not np.isfinite(mass) or (mass < 0 and not unphysical):
        raise ValueError(f"mass {mass:g} kg, expected a finite number of at least 0")
    if not np.all(np.isfinite(tensor)) or not np.all(np.isfinite(T)):
        raise ValueError("an inertial element that is not finite")
    moments, axes = np.linalg.eigh(tensor)
    excess, largest, change = 2.0 * moments[2] - moments.sum(), abs(moments[2]), 0.0
    if not (unphysical or (mass <= light and np.max(np.abs(moments)) <= light)):
        if not moments[0] >= -MOST_ROUNDING * largest - NOISE:
            raise ValueError(f"a principal moment of inertia of {moments[0]:g} kg m^2, expected at least 0")
        if not excess <= MOST_ROUNDING * largest + NOISE:
            raise ValueError(
                f"principal moments of inertia {', '.join(f'{m:g}' for m in moments)} kg m^2, "
                "which are impossible: the largest must not exceed the sum of the others"
            )
        if excess > ROUND_OFF * largest + NOISE:
            nearest = consistent_moments(moments)
            change = 100.0 * float(np.linalg.norm(nearest - moments) / np.linalg.norm(moments))
            tensor = axes @ np.diag(nearest) @ axes.T
    return inertial_parameters(mass, T[:3, 3], T[:3, :3] @ tensor @ T[:3, :3].T), change


def stated_inertial(inertial: ET.Element) -> tuple[float, np.ndarray, np.ndarray]:
    """Return mass, pose (4, 4) of the centre of mass and tensor (3, 3) about it, as an `<inertial>` has them.

    Raises:
        ValueError: one of them is missing.
    """
    from urchin.utils import parse_origin  # no import of trimesh: the document has loaded urchin

    element, matrix = inertial.find("mass"), inertial.find("inertia")
    words = [None if matrix is None else matrix.get(key) for key in MOMENTS]
    if element is None or element.get("value") is None or None in words:
        raise ValueError("an <inertial> without mass value, or without one of ixx, ixy, ixz, iyy, iyz, izz")
    xx, xy, xz, yy, yz, zz = (float(word) for word in words if word is not None)
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return float(element.get("value", "")), snapped(parse_origin(inertial)), tensor


def _axis(path: Path, joint: Any) -> np.ndarray:
    axis = np.asarray(joint.axis, dtype=float)
    if not abs(np.linalg.norm(axis) - 1) < 1e-6:
        raise RobotError(f"{path}: joint {joint.name!r} has axis {axis.tolist()}, expected a direction")
    return axis


NO_LIMIT = -1.0
"""Speed or effort limit of exporters that know none."""


def stated_limits(joint: Any) -> tuple[float | None, ...]:
    """Return position range, speed limit and effort limit of a joint as read by urchin, `None` if absent."""
    limit = joint.limit
    if limit is None:
        return None, None, None, None
    ranged = joint.joint_type != "continuous" and (limit.lower or limit.upper)  # both 0 is no range
    ends = (limit.lower, limit.upper) if ranged else (None, None)
    rates = (None if rate in (0.0, NO_LIMIT) else rate for rate in (limit.velocity, limit.effort))
    return (*ends, *rates)


def _limits(path: Path, joint: Any) -> tuple[float, ...]:
    """Return position range, speed limit and effort limit of a joint, infinite where absent."""
    stated, absent = stated_limits(joint), (-np.inf, np.inf, np.inf, np.inf)
    limits = tuple(none if one is None else one for one, none in zip(stated, absent, strict=True))
    low, high, *rates = limits
    if not low <= high:
        raise RobotError(
            f"{path}: joint {joint.name!r} has the range {low:g} to {high:g}, expected lower <= upper"
        )
    for what, value in zip(("velocity", "effort"), rates, strict=True):
        if not value > 0:
            raise RobotError(
                f"{path}: joint {joint.name!r} has the {what} limit {value:g}, expected at least 0, or -1 "
                "for none"
            )
    return limits


TOOL0 = "tool0"

FINGER = re.compile(r"finger|knuckle|jaw|claw", re.IGNORECASE)
"""Names of links of a gripper, which may have a single moving jaw."""

GRIPS = re.compile("(?!.*(yaw|roll|pitch|rot|wrist)).*grip", re.IGNORECASE)
"""Names of joints of a gripper that close it, and do not turn it as a wrist."""

BESIDE = re.compile(
    rf"{FINGER.pattern}|camera|optical|depth|sensor|imu|laser|lidar|(^|[_/-])cam([_-]|$)", re.IGNORECASE
)
"""Names of links fixed at the end of an arm that are no tool."""

TOOL = re.compile(r"(^|[_/-])(tool|tcp|tip|eef?|end[_-]?effector|flange|grasp)", re.IGNORECASE)
"""Names of frames that makers give to the tool, for a choice among several at one place."""


class ToolFrame(NamedTuple):
    """Frame that is taken as the tool: its name, a sentence with the reason, and the robot's other ends.

    The reason is "" for `tool0`.
    """

    name: str
    reason: str
    others: tuple[str, ...]


def tool_frame(base: str, joints: Mapping[str, Sequence[Any]], standard: bool = True) -> ToolFrame:
    """Return the tool frame of a tree of links.

    Args:
        base: name of the base link.
        joints: joints on each link, with `name`, `child`, `joint_type`, `mimic` and `origin`, by the name
            of the link.
        standard: take the frame `tool0` if there is one.
    """
    order = [base]
    for link in order:
        order += [joint.child for joint in joints[link]]
    # Beyond each link: joints in a chain, fixed ones in a chain, whether one has a motor; the name of a tool.
    moving, fixed, driven = dict.fromkeys(order, 0), dict.fromkeys(order, 0), dict.fromkeys(order, False)
    named = {link: _is_tool(link) for link in order}
    for link in reversed(order):
        for joint in joints[link]:
            moves = joint.joint_type != "fixed"
            moving[link] = max(moving[link], moving[joint.child] + moves)
            fixed[link] = max(fixed[link], 0 if moves else fixed[joint.child] + 1)
            driven[link] |= driven[joint.child] or _has_motor(joint)
            named[link] |= named[joint.child]
    ends = tuple(link for link in order if not joints[link])
    if standard and TOOL0 in joints:
        return ToolFrame(TOOL0, "", tuple(end for end in ends if end != TOOL0))

    at, passed, fingers, path = base, 0, list[str](), [base]
    while moving[at]:
        branches = [joint for joint in joints[at] if moving[joint.child] or joint.joint_type != "fixed"]
        chosen = max(branches, key=lambda joint: moving[joint.child] + (joint.joint_type != "fixed"))
        motors = [driven[joint.child] or _has_motor(joint) for joint in branches]
        branched = len(branches) > 1 and passed >= moving[at] * (1 if sum(motors) > 1 else 2)
        if passed and (branched or (moving[at] == 1 and _is_jaw(chosen))):
            fingers = [joint.child for joint in branches]
            break
        at, passed = chosen.child, passed + (chosen.joint_type != "fixed")
        path = [at] if chosen.joint_type != "fixed" else [*path, at]

    def rank(joint: Any) -> tuple[bool, int, bool, int]:
        """Return the rank of a fixed frame: named as a tool, in a long chain, apart from its link, short."""
        child = joint.child  # link_ee comes before link_ee_of_a_maker
        apart = bool(np.any(joint.origin[:3, 3]))
        return named[child], fixed[child], apart, -len(child) if named[child] else 0

    body = path[:1] if fingers else []  # links fixed to the hand; those below the last frame come first
    for link in body:
        body += [joint.child for joint in joints[link] if joint.joint_type == "fixed"]
    below = [one.child for one in joints[at]]
    tools = [one for one in body if _is_tool(one) and one not in path and "flange" not in one.lower()]
    reason = f"the tool frame is {at!r}, the last frame before the gripper of {', '.join(fingers[:3])}"
    if tools:
        at = min(tools, key=lambda one: (one not in below, len(one)))
        reason = f"the tool frame is {at!r}, which is fixed to the gripper of {', '.join(fingers[:3])}"

    while not fingers and (
        frames := [one for one in joints[at] if not BESIDE.search(one.child) or named[one.child]]
    ):
        best = max(map(rank, frames))
        frames = [joint for joint in frames if rank(joint) == best]
        if len(frames) > 1:  # a branch of equal frames is no tool
            break
        at = frames[0].child
    reason = reason if fingers else f"the tool frame is {at!r}, the end of the longest chain"
    others = tuple(end for end in ends if end != at)
    if others:
        more = f" and {len(others) - 4} more" if others[4:] else ""
        reason += f"; other ends are {', '.join(others[:4])}{more}, and --tool-frame (tool_frame=) names one"
    return ToolFrame(at, reason, others)


def _has_motor(joint: Any) -> bool:
    """Return whether a joint moves by itself."""
    return joint.joint_type != "fixed" and joint.mimic is None


def _is_jaw(joint: Any) -> bool:
    """Return whether a joint closes a gripper, by the name of its link, or of both."""
    closes = joint.joint_type != "fixed" and GRIPS.match(joint.name) and GRIPS.match(joint.child)
    return bool(closes or FINGER.search(joint.child))


def _is_tool(link: str) -> bool:
    """Return whether a link has the name of a tool, and not that of a finger."""
    return TOOL.search(link) is not None and FINGER.search(link) is None
