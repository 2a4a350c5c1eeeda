"""Choice of the tool frame of a URDF that does not name it `tool0`, as ROS-Industrial does (REP 199).

The tool is the end of the longest chain of moving joints, with the frames that are fixed there.  A gripper is
no part of the chain: where the chain branches into fingers, the tool is the frame fixed to the hand that is
named as a tool, or else the last one before the fingers.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

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
        frames := [one for one in joints[at] if not _beside(one.child) or named[one.child]]
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


def _beside(link: str) -> bool:
    """Return whether a link has the name of a finger or a sensor."""
    return BESIDE.search(link) is not None
