"""Attribute a failed check to the robot's file, the controller, the settings or the twin.

A cause is named only where a check or a traceback shows it. The reference is the run of computed torque on
the same robot in the same scenario, if there is one: a motion that it follows is feasible.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import controllers
from scenarios.judging.feedback import DECAY, RADIUS
from scenarios.running.runs import repeat_command
from scenarios.scenario import TrackingScenario
from scenarios.setup import Setup
from twin.physics.robot.units import joint_unit

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
    """Return the cause of a failed run or what excludes one, in a sentence or two; "" if it passes.

    Args:
        run: the run.
        runs: all runs of the same command; one of them may be the reference.
    """
    if run.passes:
        return ""
    robot, controller = run.setup.robot, run.setup.controller
    failed = [metric.name for metric in run.metrics if not metric.passes]
    if run.outcome == "undetermined":
        advice = ""
        if run.setup.controller_drives != "ideal" and isinstance(run.task.scenario, TrackingScenario):
            advice = (
                ". Rounding no longer decides with an inexact controller model, as on a real arm: "
                "--with model.drives.coulomb=0.99"
            )
        return f"rounding: runs that differ by rounding alone are on both sides of the limit{advice}"
    if run.touched:
        return "the window: a person changed the motion or closed the window, so no check applies to the run"
    if run.refused:
        return "a setting or the robot: the scenario cannot run with them" + _check_model(
            robot, "shows what the robot has"
        )
    if run.raised:
        return run.raised
    if run.error is not None and run.figures is None:
        return "not determined: the run ended before anything was recorded"
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
    if has_imperfect_knowledge(run.setup):
        return (
            f"not determined: the model of {controller} differs from the plant, or {controller} measures "
            "through sensors, which changes the error by an unknown amount"
        )
    if controller == EXACT:
        return _diagnose_exact(run, failed)
    return _diagnose_by_comparison(run, runs)


def has_imperfect_knowledge(setup: Setup) -> bool:
    """Return whether the controller's model differs from the plant, or the controller uses sensors."""
    other_arm = setup.controller_drives != setup.drives or setup.model_payload is not None
    return setup.sensors is not None or other_arm or bool(setup.changes)


def _diagnose_exact(run: Run, failed: list[str]) -> str:
    """Return the cause of a failure under computed torque with an exact model."""
    if TORQUE_CHECK in failed:
        joints = _saturated(run)
        return (
            f"the torque limits in the robot's file{joints}, the motion, or a bandwidth too high for the "
            "period" + _check_model(run.setup.robot, "shows the limits")
        )
    if any(part in metric.name for metric in run.metrics for part in ENGINE_CHECKS):
        return (
            f"the law of {EXACT}, the scenario or its limits; not the robot's file, on which PyBullet and "
            "the analytic model agree in every step"
        )
    return "not determined: no check compares PyBullet with the model" + _check_model(
        run.setup.robot, "compares the two on the robot alone"
    )


def _diagnose_by_comparison(run: Run, runs: Sequence[Run]) -> str:
    """Return the cause of a failure under another controller, by comparison with computed torque."""
    # Without settings of the other controller, which computed torque may lack.
    exact = dataclasses.replace(
        run, task=run.task.with_setup(controller=EXACT, law_settings=(), learned=None)
    )
    compared = next((other for other in runs if other.name == exact.name), None)
    if compared is None:
        return (
            "not determined. This command shows whether the arm can follow the motion at all: "
            f"{repeat_command(exact)}"
        )
    if compared.passes:
        return (
            f"the controller or its gains: {EXACT}, which knows the arm's dynamics, passes every check in "
            "the same motion, so that the robot's file and the scenario are correct. Try "
            f"{_other_gains(run)}a slower motion"
        )
    return f"not determined: {EXACT} fails in the same motion, too, so that its cause comes first"


def _other_gains(run: Run) -> str:
    """Return the advice to change the bandwidth; "" for a controller that takes none."""
    setup = run.setup
    if "bandwidth" not in controllers.settings(setup.controller):
        return ""
    return f"{setup.controller} with another --bandwidth than {setup.bandwidth:g} rad/s, or "


def _saturated(run: Run) -> str:
    """Return the joints whose torque was saturated, with their limits, in parentheses."""
    figures = run.figures
    if figures is None:
        return ""
    kinds, limits = figures.joint_kinds, figures.torque_limit
    saturated = [
        f"{name}: {limits[joint]:.4g} {joint_unit(kinds[joint], 'torque')}"
        for joint, name in enumerate(figures.joint_names)
        if figures.saturated_samples[joint]
    ]
    return f" ({', '.join(saturated)})" if saturated else ""


def _check_model(robot: str, purpose: str) -> str:
    """Return a sentence on the command that checks a robot's file; "" for a robot of this project."""
    if Path(robot).suffix.lower() not in (".urdf", ".toml") and not Path(robot).is_dir():
        return ""
    return f". {shlex.join(['irb-twin', 'check-model', robot])} {purpose}"
