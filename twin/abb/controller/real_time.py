"""A virtual controller by the clock of this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from twin.abb.controller.controller import VirtualController
from twin.abb.egm.robot.exchange import Lateness, garbage_collection_frozen
from twin.abb.rapid.language import parse
from twin.abb.rapid.planning import Limits
from twin.abb.rapid.programs import check, interpret
from twin.physics.robot.robot import Robot

SWITCH = 2e-4
"""Time after which a thread lets another one go on, in [s]; Python's 5 ms are longer than a cycle."""


def rehearse(robot: Robot, q: np.ndarray, limits: Limits) -> None:
    """Plan a small motion once, so that everything is compiled and loaded before the first cycle."""
    middle = np.clip(np.zeros(robot.n), robot.q_min, robot.q_max)
    ends = [np.degrees(q + share * (middle - q)).round(6).tolist() for share in (0.0, 0.1)]
    ends[1][4] += 5.0 if ends[1][4] < 0 else -5.0
    moves = "".join(f"MoveAbsJ [{one},[9E9,9E9,9E9,9E9,9E9,9E9]],v100,z1,tool0;\n" for one in (*ends, *ends))
    check(
        interpret(parse(f"MODULE M\nPROC main()\n{moves}ENDPROC\nENDMODULE"), robot, start=q), robot, limits
    )


def run_by_the_clock(
    controller: VirtualController,
    stopping: Callable[[], bool],
    duration: float | None = None,
    *,
    to_end: bool = True,
) -> Lateness:
    """Run cycles by the clock until a stop is wanted, all programs have ended, or a time is over.

    Args:
        controller: the virtual controller, which stays open.
        stopping: function that returns whether the run is to end; called once a cycle.
        duration: duration, in [s]; None for no limit.
        to_end: whether the run ends with the programs of all normal tasks.

    Returns:
        The lateness of the cycles.

    Raises:
        DivergenceError: the motion of the arm diverged.
        TwinError: the window was closed.
    """
    rehearse(controller.robot, controller.arm.q, controller.limits)
    pace, interval = controller.pace, sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        with garbage_collection_frozen(not pace.virtual):
            pace.begin()
            while duration is None or controller.t < duration - 1e-9:
                if to_end and controller.has_ended and controller.rests:
                    break
                pace.sending()
                controller.cycle()
                if not controller.next_cycle(stopping):
                    break
    finally:
        sys.setswitchinterval(interval)
    return pace.lateness()
