"""Triggers: outputs and interrupts at places on the way of a move (TriggIO, TriggInt, TriggL and others)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from twin.abb.rapid.arguments import Arguments
from twin.abb.rapid.frames import frame_of
from twin.abb.rapid.moves import Instruction
from twin.abb.rapid.targets import Segment
from twin.abb.rapid.values import NUM
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.fastest_motion import PathMotion

if TYPE_CHECKING:
    from twin.abb.controller.live_recorder import LiveRecorder

STEP = 2e-3
"""Time between the places of the tool of which the length of the way is made, in [s]."""

OPTIONS = "t2", "t3", "t4", "t5", "t6", "t7", "t8"
"""Optional arguments of moves that are triggers."""


@dataclass(frozen=True, eq=False)
class Trigger:
    """Trigger of a move.

    Attributes:
        act: function that is called.
        before: way of the tool in [m], or time in [s], before the end of the move, or behind its beginning.
        from_start: whether the beginning counts.
        by_time: whether `before` is a time.
        lead: time by which it comes earlier, in [s].
    """

    act: Callable[[], object]
    before: float = 0.0
    from_start: bool = False
    by_time: bool = False
    lead: float = 0.0


class Timed(NamedTuple):
    """Trigger with its time on a path, in [s], and the index of its move."""

    t: float
    k: int
    trigger: Trigger


def timed(
    robot: Robot, segments: Sequence[Segment], motion: PathMotion, starts: Sequence[float]
) -> list[Timed]:
    """Return the triggers of the moves of a path with their times.

    Args:
        robot: the arm.
        segments: the moves.
        motion: joint angles over time.
        starts: times at which the moves begin, in [s].
    """
    found = []
    ends = (*starts[1:], motion.duration)
    for k, (segment, start, end) in enumerate(zip(segments, starts, ends, strict=True)):
        if not segment.move.triggers:
            continue
        t = np.linspace(start, end, max(2, int(np.ceil((end - start) / STEP)) + 1))
        places = forward_kinematics(robot, motion(t)[0], frame_of(segment.move.tool["tframe"]))[:, :3, 3]
        way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(places, axis=0), axis=1))])
        for one in segment.move.triggers:
            if one.by_time:
                at = start + one.before if one.from_start else end - one.before
            else:
                at = np.interp(one.before if one.from_start else way[-1] - one.before, way, t)
            found.append(Timed(float(np.clip(at - one.lead, start, end)), k, one))
    return found


def triggers_of(given: Arguments, place: Mapping[str, int]) -> tuple[Trigger, ...]:
    """Return the triggers among the arguments of a move."""
    found = [given.opaque(place["Trigg_1"], Trigger, None)] if "Trigg_1" in place else []
    found += [given.interpreter.evaluate(given.named[one].value) for one in OPTIONS if one in given]
    return tuple(one for one in found if isinstance(one, Trigger))


def _put(given: Arguments, act: Callable[[], object], lead: float = 0.0) -> None:
    by_time = "time" in given
    before = given.value(1, NUM) * (1.0 if by_time else 1e-3)
    given.cell(0).value = Trigger(act, before, "start" in given, by_time, lead)


def _output(lag: int, value: int) -> Callable[[LiveRecorder, Arguments], None]:
    """Return an instruction that sets an output.

    Args:
        lag: place of the time by which the output comes earlier, 0 without one.
        value: place of the value.
    """

    def run(recorder: LiveRecorder, given: Arguments) -> None:
        names = [given.signal(one) for one in ("dop", "gop", "aop") if one in given]
        wanted, delay = given.value(value, NUM), given.optional("dodelay", NUM, 0.0)

        def act() -> None:
            for name in names:
                recorder.signals.schedule(delay, name, wanted)

        _put(given, act, given.value(lag, NUM) if lag else 0.0)

    return run


def _interrupt(recorder: LiveRecorder, given: Arguments) -> None:
    interrupts, number = given.interpreter.interrupts, int(given.value(2, NUM))
    _put(given, lambda: interrupts.interrupt(number))


INSTRUCTIONS: dict[str, Instruction] = {
    name: Instruction(tuple(arguments.split()), run)  # type: ignore[arg-type]
    for name, arguments, run in (
        ("TriggIO", "TriggData Distance SetValue", _output(0, 2)),
        ("TriggEquip", "TriggData Distance EquipLag SetValue", _output(2, 3)),
        ("TriggInt", "TriggData Distance Interrupt", _interrupt),
    )
}
"""Instructions by their names."""
