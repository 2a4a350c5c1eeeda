"""Picture of an arm in its cell."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats
from twin.base.formatting import literal
from twin.studies.cell.clearance import Clearance
from twin.studies.cell.reach import Envelope, PlaneMap
from twin.studies.views.plots import Plot, arm_triangles, draw_solids

OBJECT = (0.35, 0.55, 0.75)
TOOL_COLOUR = (0.85, 0.75, 0.2)


def cell_plot(clearance: Clearance, q: ArrayLike) -> Plot:
    """Return a picture of a robot in its cell, with a line between the nearest points.

    Args:
        clearance: distances of the robot in its cell.
        q: (n,) joint angles, in [rad].
    """
    robot = clearance.robot
    parts = arm_triangles(robot, q)
    for vertices, faces, name in clearance.meshes(q):
        parts.append((vertices[faces], np.array(TOOL_COLOUR if name == "tool" else OBJECT)))
    figure = Plot(figsize=(6.5, 6), layout="constrained")
    axes, _ = draw_solids(figure, parts, "{} of the base  [m]", alpha=0.9)
    nearest = clearance.nearest(q)
    if nearest is not None:
        axes.plot(*nearest.points.T, color="red", lw=2.5, zorder=20)
        axes.set_title(f"{literal(nearest.names)}: {nearest.text}", fontsize=10)
    return figure


def reach_plot(envelope: Envelope, plane: PlaneMap | None, title: str) -> Plot:
    """Return the envelope in side and top view, and the maps of a plane."""
    maps = (
        [] if plane is None else [(name, image) for name, image in _maps(plane) if np.isfinite(image).any()]
    )
    count = 2 + len(maps)
    columns = min(3, count)
    rows = -(-count // columns)
    figure = Plot(figsize=(4.2 * columns, 3.8 * rows + 0.4), layout="constrained")
    figure.suptitle(title)
    grid = figure.subplots(rows, columns, squeeze=False).flat
    side, top, *others = grid
    cells = 0.01
    filled = np.unique(np.round(np.column_stack([envelope.x, envelope.z]) / cells), axis=0) * cells
    side.plot(*filled.T, "s", ms=1.6, color="#9ecae1")
    side.set(xlabel="x [m]", ylabel="z [m]", title="wrist centre, from the side", aspect="equal")
    angles = np.linspace(envelope.sector[0], envelope.sector[1], 200)
    for radius, label in ((envelope.front, "front"), (envelope.rear, "rear, over the arm")):
        top.plot(radius * np.cos(angles), radius * np.sin(angles), label=f"{label}: {1e3 * radius:.1f} mm")
    top.set(xlabel="x [m]", ylabel="y [m]", title="largest reach, from above", aspect="equal")
    top.legend(fontsize=7, loc="upper right")
    for axes, (name, image) in zip(others, maps, strict=False):
        assert plane is not None
        ends = (plane.x[0], plane.x[-1], plane.y[0], plane.y[-1])
        drawn = axes.imshow(image, origin="lower", extent=ends, aspect="equal", cmap="viridis")
        figure.colorbar(drawn, ax=axes, shrink=0.8)
        axes.set(xlabel="x of the plane [m]", ylabel="y of the plane [m]", title=name)
    for axes in others[len(maps) :]:
        axes.set_axis_off()
    return figure


def _maps(plane: PlaneMap) -> list[tuple[str, Floats]]:
    """Return the titles and values of the maps."""
    return [
        ("number of solutions", np.where(plane.solutions > 0, plane.solutions, np.nan)),
        ("manipulability [m^3]", plane.manipulability),
        ("torque left by gravity [%]", 100 * plane.torque_margin),
        ("distance from a singularity", plane.singular),
        ("clearance of the cell [mm]", 1e3 * plane.clearance),
    ]
