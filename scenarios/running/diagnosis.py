"""Attribute a failed check to the robot's file, the controller, the settings or the twin.

The reference is the run of computed torque on the same robot in the same scenario, if there is one. Of all
controllers of this project, computed torque uses most of the arm's model: a motion that it follows is
feasible, and a motion that it fails to follow may be too demanding for the arm.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.base import Config
from scenarios.checks.feedback import DECAY, RADIUS
from scenarios.running.runs import repeat_command
from twin.robot.limits import joint_unit

if TYPE_CHECKING:
    from scenarios.running.runs import Run

EXACT = "computed_torque"
ENGINE_CHECKS = ("engine - model", "gap of a closed loop")
"""Parts of the names of checks that compare the engine with the model, whatever the controller is."""
FRICTION_CHECK, REPLAY_CHECK = "friction - its law", "samples not replayed"
REFERENCE_CHECKS = "reference "
"""Prefix of the names of checks of the reference."""
TORQUE_CHECK = "samples at the torque limit"


def diagnose(run: Run, runs: Sequence[Run] = ()) -> str:
    """Return the most likely cause of a failed run and the remedy, in a sentence or two; "" if it passes.

    Args:
        run: the run.
        runs: all runs of the same command; one of them may be the reference.
    """
    if run.passes:
        return ""
    robot, controller = run.config.robot, run.config.controller
    failed = [metric.name for metric in run.metrics if not metric.passes]
    if run.outcome == "undetermined":
        return (
            "rounding: runs that differ by rounding alone are on both sides of the limit. Rounding no longer "
            "decides with an inexact controller model, as on a real arm: --with model.drives.coulomb=0.99"
        )
    if run.touched:
        return "the window: a person changed the motion or closed the window, so no check applies to the run"
    if run.refused:
        return "a setting or the robot: the scenario cannot run with them" + _check_model(
            robot, "shows what the robot has"
        )
    if run.error is not None and run.figures is None:
        return "the code of the scenario or of the controller, where the error occurred"
    if any(part in name for name in failed for part in ENGINE_CHECKS):
        return (
            "the twin or the robot's file: PyBullet and the analytic model disagree on this robot, whatever "
            "the controller does" + _check_model(robot, "compares the two on the robot alone")
        )
    if FRICTION_CHECK in failed:
        return "the twin: in the engine's steps the drives violate the friction law of the robot's file"
    if REPLAY_CHECK in failed:
        return f"the controller: {controller} gives other torques when it runs again on the same states"
    if any(name in failed for name in (RADIUS, DECAY)):
        return f"the gains of {controller}: with them an error grows, or does not decay"
    if any(name.startswith(REFERENCE_CHECKS) for name in failed):
        return (
            "the scenario's settings or the robot's limits: the reference itself is beyond the joints' "
            "ranges or speed limits" + _check_model(robot, "shows the limits")
        )
    if has_imperfect_knowledge(run.config):
        return (
            f"the settings: the model of {controller} differs from the plant, or {controller} measures "
            "through sensors, and the error follows from that"
        )
    if controller == EXACT:
        return _diagnose_exact(run, failed)
    return _diagnose_by_comparison(run, runs)


def has_imperfect_knowledge(config: Config) -> bool:
    """Return whether the controller's model differs from the plant, or the controller uses sensors."""
    other_arm = config.controller_drives != config.drives or config.model_payload is not None
    return config.sensors is not None or other_arm or bool(config.changes)


def _diagnose_exact(run: Run, failed: list[str]) -> str:
    """Return the cause of a failure under computed torque with an exact model."""
    if TORQUE_CHECK in failed:
        joints = _saturated(run)
        return (
            f"the torque limits in the robot's file{joints}, or the motion: it needs more torque than "
            "the limits allow, even with exact knowledge of the arm's dynamics"
            + _check_model(run.config.robot, "shows the limits")
        )
    return f"the scenario, its settings or the robot's file: {EXACT} knows the arm's dynamics" + _check_model(
        run.config.robot, "lists suspicious entries of the file"
    )


def _diagnose_by_comparison(run: Run, runs: Sequence[Run]) -> str:
    """Return the cause of a failure under another controller, by comparison with computed torque."""
    exact = dataclasses.replace(run, config=dataclasses.replace(run.config, controller=EXACT))
    compared = next((other for other in runs if other.name == exact.name), None)
    controller = run.config.controller
    if compared is None:
        return (
            "the controller or the motion. This command shows whether the arm can follow the motion at all: "
            f"{repeat_command(exact)}"
        )
    if compared.passes:
        return (
            f"the controller or its gains: {EXACT}, which knows the arm's dynamics, passes every check in "
            "the same motion, so that the robot's file and the scenario are correct. Try "
            f"{controller} with another --bandwidth than {run.config.bandwidth:g} rad/s, or a slower motion"
        )
    return (
        "the scenario, its settings or the robot's file, rather than the controller: "
        f"{EXACT}, which knows the arm's dynamics, fails here, too"
    )


def _saturated(run: Run) -> str:
    """Return the joints whose torque was saturated, with their limits, in parentheses."""
    figures = run.figures
    if figures is None:
        return ""
    saturated = [
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
    return f" ({', '.join(saturated)})" if saturated else ""


def _check_model(robot: str, purpose: str) -> str:
    """Return a sentence on the command that checks a robot's file; "" for a robot of this project."""
    if Path(robot).suffix not in (".urdf", ".toml"):
        return ""
    return f". {shlex.join(['irb-twin', 'check-model', robot])} {purpose}"
