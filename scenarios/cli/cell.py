"""Commands on cells: `irb-twin cell` describes one, `irb-twin collide` checks logs in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scenarios.cli.arguments import Call, Command, WrongUse, argument, option, output_file
from scenarios.cli.output import Files, console
from twin.errors import CellError

if TYPE_CHECKING:
    from scenarios.metric import Metric
    from twin.cell.cell import Cell
    from twin.cell.clearance import Clearance
    from twin.cell.closest import Closest
    from twin.logs.log import Log


@dataclass(frozen=True)
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
        from twin.cell.clearance import Clearance

        cell, robot = twin.load_cell(self.cell), twin.load(self.robot)
        if self.pose not in robot.poses:
            raise WrongUse(
                f"robot {robot.name} has no pose {self.pose!r}: known are {', '.join(robot.poses)}"
            )
        clearance = Clearance(robot, cell)
        found = clearance.all_pairs(robot.poses[self.pose])
        page = console()
        for name, T in cell.frames.items():
            at = ", ".join(f"{1e3 * value:.1f}" for value in T[:3, 3])
            page.print(f"frame {name}: origin {at} mm in the world", highlight=False, soft_wrap=True)
        skipped = len([rule for rule in cell.rules if rule.margin is None])
        page.print(
            f"{len(clearance.solids)} convex shapes, {len(clearance.pairs)} pairs judged, "
            f"{skipped} may touch\n",
            highlight=False,
        )
        page.print("mm       margin  pair", highlight=False)
        for one in found:
            shown = f"{1e3 * one.distance:7.1f}" if one.distance > -0.02 else "   < -20"
            near = "  TOO NEAR" if one.clearance < 0 else ""
            page.print(
                f"{shown}  {1e3 * one.margin:6.1f}  {one.pair[0]} - {one.pair[1]}{near}",
                highlight=False,
                soft_wrap=True,
            )
        files = Files()
        files.write(self.picture, partial(_draw, clearance, robot.poses[self.pose]))
        return 0 if files.name(page) and all(one.clearance >= 0 for one in found) else 1


@dataclass(frozen=True)
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
        from scenarios.checks.clearance import clearance_metric, lines

        if self.cell is None:
            raise WrongUse("--cell CELL.toml is required")
        if self.plot is not None and len(self.logs) > 1:
            raise WrongUse("--plot works with one log")
        cell = twin.load_cell(self.cell)
        if self.margin is not None:
            if not 0 <= self.margin < 20:
                raise WrongUse(f"--margin {self.margin:g}: expected 0 to 20 m")
            cell = replace(cell, margin=self.margin)
        page, files, results = console(), Files(), []
        for path in self.logs:
            log = twin.Log.load(path)
            _require_tool(cell, log, path)
            closest = cell.least_distance(log)
            metric = clearance_metric(closest, cell, log.robot)
            results.append((path, closest, metric))
            for line in ([str(path)] if len(self.logs) > 1 else []) + lines(closest, metric):
                page.print(line, highlight=False, soft_wrap=True)
            files.write(self.plot, partial(_plot, cell, log, closest))
        files.write(self.json, partial(_write_json, results))
        return 0 if files.name(page) and all(metric.passes for _, _, metric in results) else 1


def _require_tool(cell: Cell, log: Log, path: Path) -> None:
    tip = None if cell.tool is None else cell.tool.T_flange_tool
    if tip is not None and not np.allclose(tip, log.T_flange_tool, atol=1e-9):
        found, expected = (", ".join(f"{x:.4g}" for x in T[:3, 3]) for T in (log.T_flange_tool, tip))
        raise CellError(
            f"{path} was made with a tool at [{found}] m, {cell.file} has tool.tcp at [{expected}] m"
        )


def _write_json(results: list[tuple[Path, Closest, Metric]], path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {
            "log": str(log),
            "outcome": metric.outcome,
            "distance_m": closest.nearest.distance,
            "margin_m": closest.nearest.margin,
            "pair": list(closest.nearest.pair),
            "points_base_m": closest.nearest.points.tolist(),
            "time_s": closest.t,
            "q_rad": closest.q.tolist(),
            "bound_m": closest.bound + closest.nearest.margin,
            "proven": closest.proven,
            "why": metric.why,
        }
        for log, closest, metric in results
    ]
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


MOST_POINTS = 1000


def _plot(cell: Cell, log: Log, closest: Closest, path: Path) -> None:
    """Draw the least distance over time; the worst moment is marked."""
    from matplotlib.figure import Figure

    from twin.cell.clearance import Clearance

    clearance = Clearance(log.robot, cell)
    stride = max(1, len(log.t) // MOST_POINTS)
    rows = np.flatnonzero(np.isfinite(log.q).all(axis=1))[::stride]
    found = [clearance.nearest_at(poses) for poses in clearance.poses(log.q[rows])]
    distances = [np.nan if one is None else 1e3 * one.distance for one in found]
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(log.t[rows], distances, color="#1f77b4", lw=1.4, label="least distance")
    axes.axhline(1e3 * closest.nearest.margin, color="#d62728", lw=1, ls="--", label="margin")
    axes.plot(closest.t, 1e3 * closest.nearest.distance, "o", color="#d62728", ms=5)
    axes.annotate(
        f"{closest.nearest.pair[0]} - {closest.nearest.pair[1]}, {closest.nearest.text}",
        (closest.t, 1e3 * closest.nearest.distance),
        xytext=(6, 8),
        textcoords="offset points",
        fontsize=8,
    )
    axes.set_xlabel("time [s]")
    axes.set_ylabel("distance [mm]")
    axes.legend(fontsize=8)
    figure.savefig(path, dpi=150)


def _draw(clearance: Clearance, q: np.ndarray, path: Path) -> None:
    """Draw the shapes of the arm, its tool and its cell as boxes of light."""
    from twin.cell.picture import cell_plot

    cell_plot(clearance, q).savefig(path, dpi=150)
