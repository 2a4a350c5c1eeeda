"""Choice of the tool frame of a URDF that does not name it `tool0`, as ROS-Industrial does (REP 199).

The tool is the end of the longest chain of moving joints, with the frames that are fixed there.  A gripper is
no part of the chain: where the chain branches into fingers, the tool is the last frame before them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

TOOL0 = "tool0"

FINGER = re.compile(r"finger|knuckle|jaw|claw", re.IGNORECASE)
"""Names of links of a gripper, which may have a single moving jaw."""

BESIDE = re.compile(rf"{FINGER.pattern}|camera|optical|depth|sensor|imu|laser|lidar", re.IGNORECASE)
"""Names of links fixed at the end of an arm that are no tool."""

TOOL = re.compile(r"(^|_)(tool|tcp|tip|eef?|end_?effector|flange|grasp)", re.IGNORECASE)
"""Names of frames that makers give to the tool, for a choice among several at one place."""


class ToolFrame(NamedTuple):
    """Frame that is taken as the tool: its name, a sentence with the reason, and the robot's other ends.

    The reason is "" for `tool0`.
    """

    name: str
    reason: str
    others: tuple[str, ...]


def tool_frame(base: str, carried: Mapping[str, Sequence[Any]]) -> ToolFrame:
    """Return the tool frame of a tree of links.

    Args:
        base: name of the base link.
        carried: joints that each link carries, with `child`, `joint_type` and `mimic`, by the link's name.
    """
    order = [base]
    for link in order:
        order += [joint.child for joint in carried[link]]
    moving, fixed, driven = dict.fromkeys(order, 0), dict.fromkeys(order, 0), dict.fromkeys(order, False)
    for link in reversed(order):  # joints beyond each link: in a chain, fixed in a chain, one with a motor
        for joint in carried[link]:
            moves = joint.joint_type != "fixed"
            moving[link] = max(moving[link], moving[joint.child] + moves)
            fixed[link] = max(fixed[link], 0 if moves else fixed[joint.child] + 1)
            driven[link] |= driven[joint.child] or _has_motor(joint)
    ends = tuple(link for link in order if not carried[link])
    if TOOL0 in carried:
        return ToolFrame(TOOL0, "", tuple(end for end in ends if end != TOOL0))

    at, passed, fingers = base, 0, list[str]()
    while moving[at]:
        branches = [joint for joint in carried[at] if moving[joint.child] or joint.joint_type != "fixed"]
        chosen = max(branches, key=lambda joint: moving[joint.child] + (joint.joint_type != "fixed"))
        motors = [driven[joint.child] or _has_motor(joint) for joint in branches]
        branched = len(branches) > 1 and passed >= moving[at] * (1 if sum(motors) > 1 else 2)
        if passed and (branched or (moving[at] == 1 and FINGER.search(chosen.child))):
            fingers = [joint.child for joint in branches]
            break
        at, passed = chosen.child, passed + (chosen.joint_type != "fixed")
    while not fingers and (frames := _ends(carried[at], carried)):
        best = max(map(_rank(fixed, carried), frames))
        frames = [joint for joint in frames if _rank(fixed, carried)(joint) == best]
        if len(frames) > 1:  # a branch of equal frames is no tool
            break
        at = frames[0].child
    reason = f"the tool frame is {at!r}, the end of the longest chain"
    if fingers:
        reason = f"the tool frame is {at!r}, the last frame before the gripper of {', '.join(fingers[:3])}"
    others = tuple(end for end in ends if end != at)
    if others:
        more = f" and {len(others) - 4} more" if others[4:] else ""
        reason += f"; other ends are {', '.join(others[:4])}{more}, and --tool-frame (tool_frame=) names one"
    return ToolFrame(at, reason, others)


def _has_motor(joint: Any) -> bool:
    """Return whether a joint moves by itself."""
    return joint.joint_type != "fixed" and joint.mimic is None


def _ends(joints: Sequence[Any], carried: Mapping[str, Sequence[Any]]) -> list[Any]:
    """Return the fixed joints that may lead to the tool: not to fingers or sensors alone."""
    return [one for one in joints if not BESIDE.search(one.child) or _named(one.child, carried)]


def _rank(fixed: Mapping[str, int], carried: Mapping[str, Sequence[Any]]) -> Callable[[Any], Any]:
    """Return the rank of a fixed joint: by its name, the length of its chain, its own, and a short name."""
    return lambda joint: (
        named := _named(joint.child, carried),
        fixed[joint.child],
        bool(np.any(joint.origin[:3, 3])),
        -len(joint.child) if named else 0,  # link_ee before link_ee_of_a_maker
    )


def _named(link: str, carried: Mapping[str, Sequence[Any]]) -> bool:
    """Return whether a link, or one fixed beyond it, has the name of a tool."""
    return bool(TOOL.search(link)) or any(_named(joint.child, carried) for joint in carried[link])
