"""Check that an arm keeps its margins to its cell and to itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from scenarios.metric import Metric
from twin.base.errors import CellError

if TYPE_CHECKING:
    from scenarios.running.registry import Task
    from scenarios.setup import Setup
    from twin.physics.robot.robot import Robot
    from twin.studies.cell.cell import Cell, Closest


PARTS = "parts lie where the file places them: a held one is not judged"


def with_cell(task: Task, cell: Cell) -> Task:
    """Return a run in a cell; a program declares tool and payload itself.

    Raises:
        CellError: the setup has its own, or the base is tilted about its x axis.
    """
    return task._replace(setup=setup_in(cell, task.setup, task.scenario.declares_loads))


def setup_in(cell: Cell, setup: Setup, declares_loads: bool = False) -> Setup:
    """Return a setup with the mounting of a cell, and unless loads are declared with its tool and payload.

    Raises:
        CellError: the setup has its own, or the base is tilted about its x axis.
    """
    tool = None if declares_loads else cell.tool
    if tool is not None and tool.T_flange_tool is not None:
        from twin.physics.rotations.rotations import pose_vector

        if setup.tool is not None:
            raise CellError(f"the tool is given twice: by --tool {setup.tool} and by tool.tcp of {cell.file}")
        setup = replace(setup, tool=",".join(map(repr, pose_vector(tool.T_flange_tool).tolist())))
    if tool is not None and tool.mass > 0:
        if setup.payload is not None:
            raise CellError(
                f"the payload is given twice: by --payload {setup.payload} and by tool.mass of {cell.file}"
            )
        setup = replace(setup, payload=tool.payload)
    down = cell.T_world_base[2, :3]  # the world's z axis in the base frame
    if abs(down[2] - 1.0) > 1e-12:
        if abs(down[1]) > 1e-12:
            raise CellError(f"{cell.file}: base: expected a tilt about the base's y axis alone, for gravity")
        if setup.mounting != "floor":
            raise CellError(
                f"the mounting is given twice: by --mounting {setup.mounting} "
                f"and by base.rpy_deg of {cell.file}"
            )
        setup = replace(setup, mounting=repr(float(np.degrees(np.arctan2(-down[0], down[2])))))
    return setup


def from_cell(cell: Cell) -> set[str]:
    """Return the names of the settings that `with_cell` takes from a cell."""
    found = {"mounting"} if abs(cell.T_world_base[2, 2] - 1.0) > 1e-12 else set()
    if cell.tool is not None:
        found |= {"tool"} if cell.tool.T_flange_tool is not None else set()
        found |= {"payload"} if cell.tool.mass > 0 else set()
    return found


def clearance_metric(closest: Closest, cell: Cell, robot: Robot) -> Metric:
    """Return the check of the least distance of a motion."""
    from twin.studies.cell.cell import shapes_accuracy

    nearest = closest.nearest
    accuracy = shapes_accuracy(robot, cell)
    value = -nearest.clearance if closest.proven else -closest.bound
    proof = "proven between the samples" if closest.proven else "not proven between the samples"
    why = f"margin of {cell.file.name}; {proof}"
    if any(one.mass for one in cell.objects):
        why += f"; {PARTS}"
    if closest.lost_at is not None:
        why += f"; checked up to {closest.lost_at:.6g} s, where the log has no finite positions"
    limit = 0.0
    if accuracy is None or nearest.margin < accuracy:
        limit = None
        stated = "unverified" if accuracy is None else f"exact to {1e3 * accuracy:.0f} mm"
        margin = f"{1e3 * nearest.margin:g} mm"
        why += f"; not judged: the shapes of {robot.name} are {stated}, the margin is {margin}"
    return Metric("margin less distance", value, "m", limit, why, place(closest))


def place(closest: Closest) -> str:
    """Return the nearest pair with its distance and time."""
    one = closest.nearest
    return f"{one.names}, {one.text} at {closest.t:.6g} s, margin {1e3 * one.margin:g} mm"


def lines(closest: Closest, metric: Metric, robot: Robot) -> list[str]:
    """Return the result as lines of text."""
    from twin.studies.cell.cell import robot_facts

    one = closest.nearest
    angles = ", ".join(f"{np.degrees(angle):.1f}" for angle in closest.q)
    outcome = {"passes": "passes", "fails": "FAILS"}.get(metric.outcome, metric.outcome)
    found = [
        f"least distance   {one.text}   {one.names}   at {closest.t:.3f} s, "
        f"q = {angles} deg   margin {1e3 * one.margin:g} mm   {outcome}"
    ]
    bound = 1e3 * (closest.bound + one.margin)
    if closest.proven:
        found.append(f"proven between samples: nowhere below {bound:.1f} mm")
    else:
        found.append(
            f"not proven between samples: nowhere below {bound:.1f} mm if no joint exceeds its speed limit"
        )
    found += [PARTS] * (PARTS in metric.why)
    if closest.lost_at is not None:
        found.append(f"checked up to {closest.lost_at:.3f} s: the log has no finite positions from there on")
    if (excess := robot_facts(robot).get("links", {}).get("cover_excess")) is not None:
        found.append(
            f"the shapes of {robot.name} cover its CAD, without cables, "
            f"and stick out of it by {1e3 * excess:.0f} mm at most"
        )
    if metric.limit is None:
        found.append(metric.why.partition("; not judged: ")[2])
    return found
