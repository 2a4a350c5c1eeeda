"""Values that a user gives to a program: inputs, answers of the operator, files, a backup's configuration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twin.base.errors import WrongUse

if TYPE_CHECKING:
    from twin.abb.rapid.programs import Installation
    from twin.physics.robot.robot import Robot

INPUTS = (
    "values of inputs, also of PERS data, as part_there=1,count=3, or di1=1@2.5 from 2.5 s on; others are 0, "
    "or what the program waits for"
)
OPERATOR = "answers of the operator in order, as 2,yes, or part=2 for questions with this text"
SIGNAL_DELAY = "time after which waits for signals that are not given end, in s"
HOME = "folder that stands for HOME: where the program reads files"
IO = "EIO.cfg of the controller, with the names and types of its signals"
NEAR = 0.051
"""Largest difference in reach of one arm with two names, in [m]."""


def arguments(given: Any, program: Path | None = None) -> dict[str, Any]:
    """Return the options of a program as arguments of `twin.rapid.interpret`.

    Args:
        given: command or scenario with the options `inputs`, `operator`, `signal_delay`, `home` and `io`.
        program: folder of a backup, whose EIO.cfg is read unless another one is given.

    Raises:
        WrongUse: an option is malformed.
        RapidError: EIO.cfg has no signal.
    """
    from twin.abb.rapid.programs import signal_types, system_file
    from twin.abb.rapid.signals import input_values

    if not 0 <= given.signal_delay < float("inf"):
        raise WrongUse(f"--signal-delay {given.signal_delay:g}: expected at least 0 s")
    try:
        inputs = input_values(given.inputs or "")
    except ValueError as error:
        raise WrongUse(f"--inputs: {error}") from None
    if given.home is not None and not Path(given.home).is_dir():
        raise WrongUse(f"--home {given.home}: expected a folder")
    io = given.io
    if io is None and program is not None:
        io = system_file(program, "EIO.cfg")
    return {
        "inputs": inputs,
        "operator": [one.strip() for one in given.operator.split(",")] if given.operator else [],
        "signal_delay": given.signal_delay,
        "home": given.home,
        "signals": None if io is None else signal_types(io),
    }


def installed(program: Path) -> Installation | None:
    """Return the arm in the MOC.cfg of a backup, None if there is none."""
    from twin.abb.rapid.programs import installation, system_file

    path = system_file(program, "MOC.cfg")
    return None if path is None else installation(path)


def named_arm(found: Installation) -> tuple[str, list[str]]:
    """Return the name of the built-in arm of a configuration, and remarks on it.

    Raises:
        WrongUse: no built-in arm has this model.
    """
    import twin

    names = [one for one in twin.robot_names() if one.split("_")[0] == f"irb{found.model.lower()}"]
    if not names:
        raise WrongUse(
            f"MOC.cfg names the arm {found.type}, and no built-in arm is an IRB {found.model or '?'}: "
            f"--robot chooses one of {', '.join(twin.robot_names())}, or a file"
        )

    def difference(name: str) -> tuple[float, float]:
        rating = twin.load(name).rating
        if rating is None or not found.reach:
            return 0.0, 0.0
        return abs((rating.reach or found.reach) - found.reach), abs(rating.payload - found.payload)

    name = min(names, key=difference)
    remarks = [f"MOC.cfg names the arm {found.type}: {name}"]
    if difference(name)[0] > NEAR:
        remarks.append(f"{name} has another reach than {found.type}: --robot chooses a file of this arm")
    return name, remarks


def with_ranges(robot: Robot, found: Installation) -> tuple[Robot, list[str]]:
    """Return a robot with the ranges of a configuration where they differ, and a remark for each."""
    import numpy as np

    low, high, remarks = robot.q_min.copy(), robot.q_max.copy(), []
    for k, (smallest, largest) in found.ranges.items():
        if k < robot.n and max(abs(low[k] - smallest), abs(high[k] - largest)) > np.radians(0.1):
            low[k], high[k] = smallest, largest
            remarks.append(
                f"MOC.cfg gives {robot.joint_names[k]} the range {np.degrees(smallest):.0f} to "
                f"{np.degrees(largest):.0f} deg"
            )
    return (replace(robot, q_min=low, q_max=high) if remarks else robot), remarks
