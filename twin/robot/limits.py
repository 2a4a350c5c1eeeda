"""Joint ranges: of the joints themselves, and between those of a closed loop."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from twin.arrays import Floats
from twin.errors import LimitError
from twin.robot.joint_units import position_text

if TYPE_CHECKING:
    from twin.robot.robot import Robot

ROUND_OFF = 1e-9
"""A limit is exceeded when it is by more than this, as a fraction of speed or in [rad]: a move made as short
as its limits allow ends on them exactly."""
QUESTIONS = {
    "revolute": "angles are in radians, are these degrees",
    "prismatic": "a sliding joint's positions are in metres, are these millimetres",
}


def check_position(robot: "Robot", q: Floats, where: str = "", *, hint: bool = True) -> None:
    """Check joint positions against the joint ranges of a robot, passive joints included.

    Args:
        robot: as for `check_limits`.
        q: (n,) in [rad].
        where: put into the message behind the position.
        hint: ask whether angles that are far outside may be degrees.

    Raises:
        LimitError: names the joint, the value and the range.
    """
    outside = ~((q >= robot.q_min - ROUND_OFF) & (q <= robot.q_max + ROUND_OFF))
    if outside.any():
        joint = int(np.argmax(outside))
        low, high, kind = robot.q_min[joint], robot.q_max[joint], robot.joint_kinds[joint]
        asked = hint and far_outside(robot, q).any()
        raise LimitError(
            f"{robot.joint_names[joint]} would be at {position_text(q[joint], kind)}{where}, "
            f"its range is {position_text(low, kind)} to {position_text(high, kind)}"
            + f"; {QUESTIONS[kind]}?"
            * bool(asked)
        )
    check_folding(robot, q, where)


def check_folding(robot: "Robot", q: Floats, where: str = "") -> None:
    """Check that no passive joint is beyond its range: there a closed loop folds flat.

    Past the fold the loop could go on in two ways, and what a simulation then does is worthless.

    Args:
        robot: its `passive_min, passive_max` are used, and its loops for the message.
        q: (n,) joint positions, in [rad].
        where: put into the message behind the position.

    Raises:
        LimitError: names the joint, the value and the range; of its loop the link, and its distance.
    """
    beyond = folded(robot, q)
    if not beyond.any():
        return
    passive = int(np.argmax(beyond))
    joint = robot.passive[passive]
    low, high, kind = robot.passive_min[passive], robot.passive_max[passive], robot.tree.kinds[joint]
    raise LimitError(
        f"{robot.tree.names[joint]} ({_combination(robot, joint)}) would be at "
        f"{position_text(robot.passive_angles(q)[passive], kind)}{where}, "
        f"its range is {position_text(low, kind)} to {position_text(high, kind)}"
        f"{_fold(robot, joint, q)}"
    )


def folded(robot: "Robot", q: Floats) -> NDArray[np.bool_]:
    """Return where (..., n_passive) a passive joint is beyond its range."""
    if not robot.passive:
        return np.zeros((*q.shape[:-1], 0), dtype=bool)
    angles = robot.passive_angles(q)
    return ~((angles >= robot.passive_min - ROUND_OFF) & (angles <= robot.passive_max + ROUND_OFF))


def _combination(robot: "Robot", joint: int) -> str:
    """Return what a passive joint's angle is made of: "q3 - q2"."""
    text = ""
    for negated, i in sorted(
        (-weight, i + 1) for i, weight in enumerate(robot.embedding[joint].tolist()) if weight
    ):
        factor = "" if abs(negated) == 1 else f"{abs(negated):g} "
        text += f" {'-' if negated > 0 else '+'} {factor}q{i}"
    return text.removeprefix(" + ").strip()


def _fold(robot: "Robot", joint: int, q: Floats) -> str:
    """Return how far from flat the loop of a passive joint would be, as a part of a sentence."""
    from twin.robot.loops import clearance, is_past_fold

    for loop in robot.loops:
        if joint in loop.joints:
            link = robot.tree.links[loop.joints[0]]
            where = "past" if is_past_fold(robot, loop, q) else "from"
            return f": {link} would be {clearance(robot, loop, q):.3g} m {where} folding {loop.name} flat"
    return ""


def far_outside(robot: "Robot", q: Floats) -> NDArray[np.bool_]:
    """Return where positions (..., n) are beyond twice a joint's range, as angles in degrees are."""
    return np.abs(q) > 2.0 * np.maximum(np.abs(robot.q_min), np.abs(robot.q_max))
