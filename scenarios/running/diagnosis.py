"""Whose fault it is that a run does not hold: the robot's file, the control law, the settings, or the twin.

A run is judged beside the run of computed torque on the same robot in the same scenario, if there is one,
which of our laws knows most of the arm: what it does the arm can do, what it cannot may be too much for it.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.base import Config
from scenarios.running.runs import repeat_command
from twin.robot.limits import joint_unit

if TYPE_CHECKING:
    from scenarios.running.runs import Run

EXACT = "computed_torque"
ENGINE_CHECKS = ("engine - model", "gap of a closed loop")
"""In the names of checks that compare the engine with the model, whatever the control law is."""
FRICTION_CHECK, REPLAY_CHECK = "friction - its law", "samples not replayed"
REFERENCE_CHECKS = "reference "
"""At the beginning of the names of checks of what is asked of the arm."""
TORQUE_CHECK = "samples at the torque limit"


def cause(run: Run, runs: Sequence[Run] = ()) -> str:
    """Whose fault it most likely is, and what to do about it, in a sentence or two; empty if the run holds.

    Args:
        run: the run.
        runs: the others of the same command, which it is compared with.
    """
    if run.passes:
        return ""
    robot, law = run.config.robot, run.config.controller
    broken = [metric.name for metric in run.metrics if not metric.passes]
    if run.outcome == "undetermined":
        return (
            "nobody's: runs that differ by rounding alone lie on both sides of the limit; it ends where the "
            "controller's model is not exact, as no real one is: --with model.drives.coulomb=0.99"
        )
    if run.touched:
        return "nobody's: a person changed the motion or closed its window, and nothing is claimed of it"
    if run.refused:
        return "the setting or the robot: the scenario cannot be run like this" + _check_model(
            robot, "shows what the robot has"
        )
    if run.error is not None and run.figures is None:
        return "the code that is named there, of the scenario or of the control law"
    if any(part in name for name in broken for part in ENGINE_CHECKS):
        return (
            "the twin or the robot's file: PyBullet and the model are not the same robot here, whatever the "
            "control law does" + _check_model(robot, "compares them on the robot alone")
        )
    if FRICTION_CHECK in broken:
        return "the twin: in its steps the drives do not keep the law of friction of the robot's file"
    if REPLAY_CHECK in broken:
        return f"the control law: on the same states {law} gives other torques when it runs once more"
    if any(name.startswith(REFERENCE_CHECKS) for name in broken):
        return (
            "the scenario's settings or the robot's limits: what is asked of the arm is beyond its ranges or "
            "speed limits before any control law acts" + _check_model(robot, "shows them")
        )
    if unknowing(run.config):
        return (
            f"the settings: {law} believes in another robot than there is, or measures it through sensors, "
            "and this is what comes of it"
        )
    if law == EXACT:
        return _too_much(run, broken)
    return _beside_exact(run, runs)


def unknowing(config: Config) -> bool:
    """Whether the settings keep the control law from knowing the arm and its state as they are."""
    other_arm = config.controller_drives != config.drives or config.model_payload is not None
    return config.sensors is not None or other_arm or bool(config.changes)


def _too_much(run: Run, broken: list[str]) -> str:
    """Of a law that knows the arm exactly."""
    if TORQUE_CHECK in broken:
        joints = _saturated(run)
        return (
            f"the torque limits in the robot's file{joints}, or the motion, which needs more torque than "
            "they allow even where the arm's dynamics are known"
            + _check_model(run.config.robot, "shows the limits")
        )
    return f"the scenario, its settings or the robot's file: {EXACT} knows the arm's dynamics" + _check_model(
        run.config.robot, "tells what is suspicious in the file"
    )


def _beside_exact(run: Run, runs: Sequence[Run]) -> str:
    """Of another law: what computed torque did in its place."""
    exact = dataclasses.replace(run, config=dataclasses.replace(run.config, controller=EXACT))
    beside = next((other for other in runs if other.name == exact.name), None)
    law = run.config.controller
    if beside is None:
        return (
            f"the control law, or what is asked of the arm; whether the arm can do it at all is shown by "
            f"{repeat_command(exact)}"
        )
    if beside.passes:
        return (
            f"the control law or its gains: {EXACT}, which knows the arm's dynamics, keeps every limit in "
            f"the same motion, so that the robot's file and the scenario are sound. Try {law} with another "
            f"--bandwidth than {run.config.bandwidth:g} rad/s, or in a slower motion"
        )
    return (
        f"the scenario, its settings or the robot's file, rather than the control law: {EXACT} does not hold "
        f"here, either, though it knows the arm's dynamics"
    )


def _saturated(run: Run) -> str:
    """The joints whose torque was cut, with their limits."""
    figures = run.figures
    if figures is None:
        return ""
    cut = [
        f"{name}: {limit:.4g} {joint_unit(kind, 'torque')}"
        for name, kind, limit, count in zip(
            figures.joint_names,
            figures.joint_kinds,
            figures.torque_limit,
            figures.saturated_samples,
            strict=True,
        )
        if count
    ]
    return f" ({', '.join(cut)})" if cut else ""


def _check_model(robot: str, does: str) -> str:
    """A sentence about the command that looks a robot's file over; nothing for a robot of this project."""
    if Path(robot).suffix not in (".urdf", ".toml"):
        return ""
    return f". {shlex.join(['irb-twin', 'check-model', robot])} {does}"
