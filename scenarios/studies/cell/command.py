"""Commands on cells: `irb-twin cell` describes one, `collide` checks logs in it, `reach` maps a plane."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from scenarios.options import argument, lock_option, locked_joints, option, output_file
from scenarios.shell.output import Files, console
from scenarios.shell.parser import Call, Command
from twin.base.errors import CellError, WrongUse, printable
from twin.base.formatting import literal

if TYPE_CHECKING:
    from scenarios.metric import Metric
    from twin.data.logs.log import Log
    from twin.studies.cell.cell import Cell, Closest


class ShowCell(Command):
    """Check the file of a cell, list its frames and pairs, and draw it with a robot.

    Exit status: 0 if no pair is nearer than its margin in the pose; 1 otherwise; 2 for a faulty file.
    """

    examples = """examples:
  irb-twin cell cell.toml
  irb-twin cell cell.toml --robot irb1600 --pose test_1 --picture cell.png
"""

    cell: Path = argument("file of a cell, .toml", "CELL.toml")
    robot: str = option("irb140", "name of a robot, or path of its file")
    pose: str = option("zero", "named pose of the robot", "POSE")
    picture: Path | None = output_file(".png", "draw the robot in its cell")

    def run(self, call: Call) -> int:
        """Print frames and pairs."""
        import twin
        from twin.studies.cell.clearance import Clearance
        from twin.studies.cell.reach import cell_plot

        cell, robot = twin.load_cell(self.cell), twin.load(self.robot)
        if self.pose not in robot.poses:
            raise WrongUse(
                f"robot {robot.name} has no pose {self.pose!r}: known are {', '.join(robot.poses)}"
            )
        clearance, q = Clearance(robot, cell), robot.poses[self.pose]
        found = clearance.all_pairs(q)
        page = console()
        for name, T in cell.frames.items():
            at = ", ".join(f"{1e3 * value:.1f}" for value in T[:3, 3])
            page.print(f"frame {printable(name)}: origin {at} mm in the world", soft_wrap=True)
        skipped = len([rule for rule in cell.rules if rule.margin is None])
        solids, pairs = len(clearance.solids), len(clearance.pairs)
        page.print(f"{solids} convex shapes, {pairs} pairs judged, {skipped} may touch\n")
        page.print("mm       margin  pair")
        for one in found:
            shown = f"{1e3 * one.distance:7.1f}" if one.distance > -0.02 else "   < -20"
            near = "  TOO NEAR" if one.clearance < 0 else ""
            page.print(f"{shown}  {1e3 * one.margin:6.1f}  {one.names}{near}", soft_wrap=True)
        files = Files()
        files.write(self.picture, lambda path: cell_plot(clearance, q).savefig(path, dpi=150))
        return 0 if files.name(page) and all(one.clearance >= 0 for one in found) else 1


class Collide(Command):
    """Check the least distance of recorded motions to a cell, also between the samples.

    Exit status: 0 if every distance keeps its margin, or is not judged; 1 otherwise; 2 for wrong use.
    """

    usage = "irb-twin collide LOG [LOG ...] --cell CELL.toml [options]"
    examples = """examples:
  irb-twin collide run.npz --cell cell.toml
  irb-twin collide run.npz --cell cell.toml --margin 0.05 --plot distance.png --json result.json
"""

    logs: tuple[Path, ...] = argument("a log file; logs stand before all options", "LOG")
    cell: Path | None = option(None, "file of the cell (required)", "CELL.toml")
    margin: float | None = option(None, "margin of pairs without a rule, in m (default: the file's)", "M")
    plot: Path | None = output_file(".png", "plot the least distance over time (one log)")
    json: Path | None = output_file(".json", "write the result")

    def run(self, call: Call) -> int:
        """Print the least distance of every log."""
        from dataclasses import replace

        import twin
        from scenarios.studies.cell.clearance import clearance_metric, lines
        from twin.studies.cell.cell import LARGEST_MARGIN

        if self.cell is None:
            raise WrongUse("--cell CELL.toml is required")
        if self.plot is not None and len(self.logs) > 1:
            raise WrongUse("--plot works with one log")
        cell = twin.load_cell(self.cell)
        if self.margin is not None:
            if not 0 <= self.margin < LARGEST_MARGIN:
                raise WrongUse(f"--margin {self.margin:g}: expected 0 to {LARGEST_MARGIN:g} m")
            cell = replace(cell, margin=self.margin)
        page, files, results = console(), Files(), []
        for path in self.logs:
            log = twin.Log.load(path)
            _require_tool(cell, log, path)
            closest = cell.least_distance(log)
            metric = clearance_metric(closest, cell, log.robot)
            results.append((path, closest, metric))
            for line in ([str(path)] if len(self.logs) > 1 else []) + lines(closest, metric, log.robot):
                page.print(line, soft_wrap=True)
            files.write(self.plot, partial(_plot, cell, log, closest))
        files.write(self.json, partial(_write_json, results))
        return 0 if files.name(page) and all(metric.passes for _, _, metric in results) else 1


class Reach(Command):
    """Show how far a robot reaches, and what it can do with its tool on a plane.

    The plane is a frame of a cell; its x and y axes span it. The tool points against its normal. For every
    point, the solution with the largest manipulability is described.
    """

    examples = """examples:
  irb-twin reach --robot irb140
  irb-twin reach --robot irb140 --cell cell.toml --plane bench --picture reach.png
  irb-twin reach --robot irb1600 --cell cell.toml --plane bench --tool-down --size 1.5 --step 0.01
"""

    robot: str = option("irb140", "name of a robot, or path of its file")
    tool_frame: str | None = option(None, "link of the robot whose frame is the flange")
    lock: tuple[str, ...] = lock_option()
    cell: Path | None = option(None, "file of a cell", "CELL.toml")
    plane: str | None = option(None, "frame of the cell whose x and y axes span the plane", "FRAME")
    tool_down: bool = option(False, "the tool points down in the world, whatever the plane")
    size: float = option(1.0, "side of the square around the frame's origin, in m", "M")
    step: float = option(0.02, "distance of the points, in m", "M")
    picture: Path | None = output_file(".png", "draw the envelope and the maps")

    def run(self, call: Call) -> int:
        """Print the envelope and the figures of the plane."""
        import twin
        from twin.base.errors import near
        from twin.studies.cell.clearance import Clearance
        from twin.studies.cell.reach import envelope, plane_map, reach_plot

        robot = twin.load(self.robot, tool_frame=self.tool_frame, locked=locked_joints(self.lock))
        if not (0 < self.step <= self.size <= 20 and self.size / self.step <= 2000):
            raise WrongUse(
                f"--size {self.size:g} --step {self.step:g}: expected 1 to 2000 steps in 0 to 20 m"
            )
        if self.plane is not None and self.cell is None:
            raise WrongUse("--plane requires --cell, whose frames it names")
        reach = envelope(robot)
        page = console()
        page.print(
            f"wrist centre of {robot.name}: {1e3 * reach.front:.1f} mm in front of axis 1, "
            f"{1e3 * reach.rear:.1f} mm behind it, {1e3 * reach.top:.1f} mm high",
            soft_wrap=True,
        )
        found = None
        if self.cell is not None and self.plane is not None:
            cell = twin.load_cell(self.cell)
            if self.plane not in cell.frames:
                known = ", ".join(cell.frames)
                raise WrongUse(
                    f"there is no frame {self.plane!r}{near(self.plane, cell.frames)}; known are {known}"
                )
            frame, down = cell.frames[self.plane], np.diag([1.0, -1.0, -1.0])
            steps = np.linspace(-self.size / 2, self.size / 2, round(self.size / self.step) + 1)
            found = plane_map(
                robot, np.linalg.inv(cell.T_world_base) @ frame, steps, steps,
                R_plane_tool=frame[:3, :3].T @ down if self.tool_down else None,
                T_flange_tool=None if cell.tool is None else cell.tool.T_flange_tool,
                clearance=Clearance(robot, cell) if cell.objects or cell.tool else None,
            )  # fmt: skip
            share, poses = 100 * found.share, found.solutions.size
            page.print(f"plane {self.plane}: {share:.1f} % of {poses} poses can be reached")
            if np.isfinite(found.clearance).any():
                free = np.nanmean(found.clearance[found.solutions > 0] >= 0)
                page.print(f"{100 * free:.1f} % of these keep their margins")
        files = Files()
        title = f"Reach of {robot.name}"
        files.write(self.picture, lambda path: reach_plot(reach, found, title).savefig(path, dpi=150))
        return 0 if files.name(page) else 1


def _require_tool(cell: Cell, log: Log, path: Path) -> None:
    tip = None if cell.tool is None else cell.tool.T_flange_tool
    if tip is not None and not np.allclose(tip, log.T_flange_tool, atol=1e-9):
        found, expected = (", ".join(f"{x:.4g}" for x in T[:3, 3]) for T in (log.T_flange_tool, tip))
        raise CellError(
            f"{path} was made with a tool at [{found}] m, {cell.file} has tool.tcp at [{expected}] m"
        )


def _write_json(results: list[tuple[Path, Closest, Metric]], path: Path) -> None:
    from scenarios.report.documents import write_document

    rows = [
        {
            "log": str(log),
            "outcome": metric.outcome,
            "distance_m": closest.nearest.distance,
            "margin_m": closest.nearest.margin,
            "pair": list(closest.nearest.pair),
            "points_base_m": closest.nearest.points,
            "time_s": closest.t,
            "q_rad": closest.q,
            "bound_m": closest.bound + closest.nearest.margin,
            "proven": closest.proven,
            "why": metric.why,
        }
        for log, closest, metric in results
    ]
    write_document(path, rows)


MOST_POINTS = 1000


def _plot(cell: Cell, log: Log, closest: Closest, path: Path) -> None:
    """Draw the least distance over time; the worst moment is marked."""
    from matplotlib.figure import Figure

    from twin.studies.cell.clearance import DEEPEST, Clearance

    clearance = Clearance(log.robot, cell)
    stride = max(1, len(log.t) // MOST_POINTS)
    rows = np.flatnonzero(np.isfinite(log.q).all(axis=1))[::stride]
    found = clearance.nearest_each(log.q[rows])
    deepest = -1e3 * DEEPEST
    distances = [np.nan if one is None else max(1e3 * one.distance, deepest) for one in found]
    worst = max(1e3 * closest.nearest.distance, deepest)
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(log.t[rows], distances, color="#1f77b4", lw=1.4, label="least distance")
    axes.axhline(1e3 * closest.nearest.margin, color="#d62728", lw=1, ls="--", label="margin")
    axes.plot(closest.t, worst, "o", color="#d62728", ms=5)
    late = closest.t > 0.5 * (log.t[0] + log.t[-1])
    axes.annotate(
        f"{literal(closest.nearest.names)}, {closest.nearest.text}",
        (closest.t, worst),
        xytext=(-6, 8) if late else (6, 8),
        ha="right" if late else "left",
        textcoords="offset points",
        fontsize=8,
    )
    axes.set_xlabel("time [s]")
    axes.set_ylabel("distance [mm], not below -20")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=150)
