"""Reports of `irb-twin identify`: tables, JSON and pictures of an arm or a payload, and of a recording."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table
from rich.text import Text

from scenarios.report.documents import attributes, plain_table, table_of, write_document
from twin.base.errors import TwinError
from twin.data.identification.alternatives import found_delay
from twin.data.identification.identify import Source, measured_sources
from twin.data.identification.least_squares import JointResiduals, sample_residuals, without_rest
from twin.data.identification.measurements import Filtering, Measurements
from twin.data.identification.payload import NAMES, UNITS, GainEstimate, PayloadEstimate
from twin.data.identification.result import Identification
from twin.data.identification.torque_model import TorqueModel, friction_of, identifiable
from twin.data.logs.recordings.torque_recording import TorqueRecording
from twin.physics.multibody.tree import body_from_parameters
from twin.physics.robot.robot import Robot
from twin.physics.robot.units import joint_unit
from twin.studies.views.plots import COLOURS

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.console import RenderableType

    from twin.base.arrays import Floats
    from twin.data.identification.deviations import BiasCheck
    from twin.data.identification.physical import PhysicalSolution
    from twin.data.logs.recordings.finding import Finding

MOST_DIGITS = 5
"""Largest number of decimals; smaller values are printed with a power of ten."""

LONGEST_SUM = 40
"""Characters of a sum of parameters in a narrow table."""

POOR = 1000.0
"""Condition number above which parameters are poorly determined."""

MOST_POINTS = 100_000
"""Largest number of points of a curve in the picture; longer recordings are thinned."""

ASSUMED = (
    "Assumed, since no recording of motion and torque shows it: the common scale of all torques, the zeros "
    "of the joints, and that nothing is held that the model lacks."
)
"""What cannot be seen without a known mass."""

VALUES = ("symbol", "stands_for", "value", "deviation", "deviation_by_halves", "unit", "before")
"""Values of a base parameter that the JSON file names alike."""

BIAS = ("deviations", "differs")
"""Values of a `BiasCheck` that the JSON file names alike."""


class Report:
    """Report of an identified arm.

    Args:
        found: result of `twin.identify`.
        physical: the nearest physically consistent parameters, if they were requested.
        bias: comparison with instrumental variables, if it was requested.
        findings: what is wrong with the recordings; by default those of `found`.
        wide: whether sums of parameters are printed whole, in lines of any length.
    """

    def __init__(
        self,
        found: Identification,
        physical: PhysicalSolution | None = None,
        bias: BiasCheck | None = None,
        findings: Sequence[Finding] | None = None,
        wide: bool = True,
    ) -> None:
        self.found, self.physical, self.bias = found, physical, bias
        self.findings = found.findings if findings is None else tuple(findings)
        self.wide = wide

    def tables(self) -> Iterator[RenderableType]:
        """Yield the tables for the terminal."""
        found = self.found
        yield Text(f"\n{found.model.robot.name}: {found.rank} base parameters", style="bold")
        for sentence in (*found.how, *_validation_lines(found)):
            yield Text(sentence)
        yield Text("")
        yield parameter_table(found, self.wide)
        yield residual_table(found)
        if self.physical is not None:
            yield Text("\nnearest physically consistent links and drives", style="bold")
            yield link_table(self.physical)
            yield growth_table(self.physical)
        if found.kept_out:
            yield Text("\nresiduals on the validation recordings, in percent of the torques", style="bold")
            yield validation_table(found, self.physical)
        if self.bias is not None:
            yield Text("\nleast squares beside instrumental variables", style="bold")
            yield bias_table(found, self.bias)
        if any(found.springs):
            yield Text("\nsprings of the gears, from the encoders on both sides", style="bold")
            yield spring_table(found)
        poor = f", above {POOR:g}: small errors become large" if found.condition > POOR else ""
        yield Text(
            f"\n{found.residuals.count} equations, rank {found.rank} of {len(found.beta)}, condition "
            f"{found.condition:.3g}{poor}",
            style="bold",
        )
        yield Text(
            f"Deviations by the bootstrap of {found.blocks} blocks of residuals, for noise that lasts."
            if found.blocks
            else "Deviations for white noise; noise that lasts makes them too small."
        )
        if found.delay is not None:
            yield Text(ASSUMED)
        yield from finding_lines(self.findings)

    def document(self) -> dict[str, Any]:
        """Return all results for JSON."""
        found, bias = self.found, self.bias
        return {
            "robot": found.model.robot.name,
            "rank": found.rank,
            "condition": found.condition,
            "equations": found.residuals.count,
            "parameters": [attributes(one, *VALUES) for one in found.values],
            "covariance": found.covariance,
            "residuals": _residuals(found.residuals),
            "residuals_unweighted": _residuals(found.ordinary),
            "residuals_unfiltered": _residuals(found.unfiltered),
            "noise": found.noise,
            "over_halves": found.growth,
            "residuals_with_rest": _residuals(found.with_rest),
            "validation": _residuals(found.validation),
            "validation_moving": _residuals(found.validation_moving),
            "validation_before": _residuals(found.validation_before),
            "blocks": found.blocks,
            "springs": [None if one is None else one._asdict() for one in found.springs],
            "instrumental": None if bias is None else {"values": bias.beta, **attributes(bias, *BIAS)},
            "physical": None if self.physical is None else _physical(self.physical),
            "recordings": list(found.how),
            "kept_out": _validation_lines(found),
            "delay": None if found.delay is None else attributes(found.delay, "value", "deviation"),
            "findings": [attributes(one, "name", "joints", "text", "stops") for one in self.findings],
            "assumed": ASSUMED,
        }

    def write_json(self, path: Path) -> None:
        """Write `document` as JSON."""
        write_document(path, self.document())

    def draw(self, path: Path) -> None:
        """Draw measured and predicted torques of all samples, and their residuals; what counts is shaded."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        found = self.found
        drawn = [*found.measured[:1], *found.kept_out[:1]]
        names, kinds = found.model.robot.joint_names, found.model.robot.joint_kinds
        figure = Figure(figsize=(6.5 * len(drawn), 2.4 * len(names) + 1.0), layout="constrained")
        FigureCanvasAgg(figure)
        heights = [3, 1] * len(names)
        panels = figure.subplots(
            2 * len(names), len(drawn), sharex="col", squeeze=False, gridspec_kw={"height_ratios": heights}
        )
        for column, measured in enumerate(drawn):
            rest = sample_residuals(found.model, found.beta, measured)
            if measured.weights is None:
                measured = without_rest(measured, found.model.robot, found.min_speed)
            moving = measured.used if measured.weights is None else measured.used & (measured.weights > 0.5)
            t, some = measured.t, slice(None, None, max(1, len(measured.t) // MOST_POINTS))
            for joint, name in enumerate(names):
                above, below = panels[2 * joint : 2 * joint + 2, column]
                for axes, curve, label, colour, wide in (
                    (above, measured.tau, "measured", "0.6", 2.0),
                    (above, measured.tau - rest, "predicted", COLOURS[0], 1.0),
                    (below, rest, "residual", COLOURS[1], 0.7),
                ):
                    axes.plot(t[some], curve[some, joint], color=colour, lw=wide, label=label)
                for axes in (above, below):
                    axes.fill_between(
                        t[some], 0, 1, where=moving[some, joint], transform=axes.get_xaxis_transform(),
                        color="0.9", lw=0, zorder=0, label="moves, and counts",
                    )  # fmt: skip
                    axes.grid(True, color="0.88")
                largest = 1.1 * float(np.max(np.abs(rest[moving[:, joint], joint]), initial=0.0))
                below.set_ylim(*((-largest, largest) if largest > 0 else (None, None)))
                above.set_ylabel(f"{name}  [{joint_unit(kinds[joint], 'torque')}]")
            panels[0, column].set_title("validation" if column else "fitted")
            panels[-1, column].set_xlabel("time  [s]")
        upper, lower = (axes.get_legend_handles_labels() for axes in panels[:2, 0])
        handles, labels = (one[:2] + other[:2] for one, other in zip(upper, lower, strict=True))
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
        figure.savefig(path, dpi=110, format=path.suffix.lower()[1:] or "png")


def finding_lines(findings: Sequence[Finding]) -> Iterator[Text]:
    """Yield findings, those that stop the result last."""
    for one in sorted(findings, key=lambda finding: finding.stops):
        yield Text(f"{'STOP' if one.stops else 'note'} {one.name}: {one.text}", "bold" if one.stops else "")


class PayloadReport:
    """Report of an identified payload.

    Args:
        found: result of `identify_payload`.
    """

    def __init__(self, found: PayloadEstimate) -> None:
        self.found = found

    def parts(self) -> Iterator[RenderableType]:
        """Yield the tables for the terminal."""
        found = self.found
        reference = "recordings without it" if found.bare else "the robot's parameters"
        yield Text(f"\n{found.robot.name}: payload at the flange, relative to {reference}", style="bold")
        yield self.values()
        yield self.residuals()
        yield Text("Centre of mass in the flange frame, inertia about the centre of mass.")
        if not found.possible:
            yield Text(
                "No rigid body has this inertia, which is within the noise: the payload is a point mass."
            )
        yield Text(
            "The deviations contain those of the gains."
            if found.scaled
            else "Assumed, and outside the deviations: the scale of the torques; 1 % more is 1 % more mass. "
            "A known load determines it (--known-load)."
        )
        yield from finding_lines(found.findings)
        yield Text("")

    def values(self) -> Table:
        """Return a table of mass, centre of mass and inertia."""
        found, rows = self.found, [("payload", "value", "deviation", "unit")]
        for name, value, deviation, unit in zip(NAMES, found.values, found.deviations, UNITS, strict=True):
            rows.append((name, *with_deviation(value, deviation), unit))
        return plain_table(rows)

    def residuals(self) -> Table:
        """Return a table of the torque residuals, one row per joint."""
        found = self.found
        columns = _residual_columns(found.residuals) | {"without payload, %": found.without.percent}
        return _joint_table(found.robot, columns)

    def document(self) -> dict[str, Any]:
        """Return all results for JSON."""
        found = self.found
        return {
            "robot": found.robot.name,
            "payload": found.text,
            "possible": found.possible,
            "deviations_contain_gains": found.scaled,
            "values": dict(zip(NAMES, found.values, strict=True)),
            "deviations": dict(zip(NAMES, found.deviations, strict=True)),
            "covariance": found.covariance,
            "residuals_percent": found.residuals.percent,
            "findings": [attributes(one, "name", "joints", "text", "stops") for one in found.findings],
        }

    def write_json(self, path: Path) -> None:
        """Write `document` as JSON."""
        write_document(path, self.document())


class GainReport:
    """Report of identified gains of the drives.

    Args:
        found: result of `identify_gains`.
    """

    def __init__(self, found: GainEstimate) -> None:
        self.found = found

    def parts(self) -> Iterator[RenderableType]:
        """Yield the tables for the terminal."""
        found = self.found
        yield Text(f"\n{found.robot.name}: gains of the drives by a known load", style="bold")
        rows = [("joint", "gain", "deviation", "%")]
        for name, gain, deviation in zip(found.robot.joint_names, found.gains, found.deviations, strict=True):
            rows.append((name, *with_deviation(gain, deviation), f"{100.0 * deviation / abs(gain):.2g}"))
        yield plain_table(rows)
        yield _joint_table(found.robot, _residual_columns(found.residuals))
        yield Text(
            "A gain is the torque per unit of the joint's column, in N m, at the motor with --motor-side."
        )
        yield from finding_lines(found.findings)
        yield Text("")

    def write_json(self, path: Path) -> None:
        """Write all results as JSON, which `--gains` reads."""
        found = self.found
        document = {
            "robot": found.robot.name,
            **attributes(found, "gains", "deviations", "relative_covariance"),
            "residuals_percent": found.residuals.percent,
            "findings": [attributes(one, "name", "joints", "text", "stops") for one in found.findings],
        }
        write_document(path, document)


def parameter_table(found: Identification, wide: bool = True) -> Table:
    """Return a table of the base parameters, with whole sums if it is wide."""
    halves = found.half_factors is not None
    table = table_of(
        "parameter", numbers=("value", "deviation", *(["by halves"] if halves else []), "before")
    )
    table.add_column("unit")
    table.add_column("stands for")
    for one in found.values:
        value, deviation = with_deviation(one.value, one.deviation)
        stands_for = one.stands_for if one.stands_for != one.symbol else ""
        if not wide and len(stands_for) > LONGEST_SUM:
            stands_for = f"{stands_for[:LONGEST_SUM].rpartition(' ')[0].rstrip(' +-')} ..."
        table.add_row(
            Text(one.symbol), value, deviation,
            *([f"{one.deviation_by_halves:.2g}"] if halves else []),
            f"{one.before:.4g}", one.unit, Text(stands_for, style="dim"),
        )  # fmt: skip
    return table


def residual_table(found: Identification) -> Table:
    """Return a table of the torque residuals, one row per joint."""
    columns = _residual_columns(found.residuals)
    if found.unfiltered is not None:
        columns["unfiltered, %"] = found.unfiltered.percent
    if found.unfiltered is not None and found.noise is not None:
        columns["noise, %"] = 100.0 * found.noise / np.maximum(found.unfiltered.torque_rms, 1e-300)
    if found.growth is not None:
        columns["over halves"] = found.growth
    if found.with_rest is not None:
        columns["with rest, %"] = found.with_rest.percent
    columns["unweighted, %"] = found.ordinary.percent
    if found.validation is not None:
        columns["validation, rms"] = found.validation.rms
    return _joint_table(found.model.robot, columns)


def link_table(physical: PhysicalSolution) -> Table:
    """Return a table of the links of the physically consistent solution."""
    robot, given = physical.robot, physical.found.model.robot
    table = table_of("link", numbers=("mass", "before", "centre", "principal moments"))
    for link, row, before in zip(robot.tree.links, robot.inertias, given.tree.inertias, strict=True):
        mass, com, tensor = body_from_parameters(row)
        moments = np.linalg.eigvalsh(tensor)
        table.add_row(
            Text(link),
            f"{mass:.4g} kg",
            f"{before[0]:.4g} kg",
            " ".join(f"{x:.3f}" for x in com) + " m",
            " ".join(f"{x:.3g}" for x in moments) + " kg m^2",
        )
    return table


def growth_table(physical: PhysicalSolution) -> Table:
    """Return a table of the residuals of the consistent, the free, and the robot file's parameters."""
    columns = {
        "residual, rms": physical.residuals.rms,
        "%": physical.residuals.percent,
        "ratio to free fit": [f"{ratio:.4f}" for ratio in physical.growth],
        "robot file, %": physical.residuals_of_file.percent,
    }
    return _joint_table(physical.found.model.robot, columns)


def validation_table(found: Identification, physical: PhysicalSolution | None) -> Table:
    """Return a table of the residuals of the free, the consistent and the given parameters."""
    columns = {"free fit": found.validation, "given robot": found.validation_before}
    if physical is not None:
        columns = {"free fit": found.validation, "robot file": physical.validation} | columns
    if found.min_speed > 0:
        columns["free fit, moving"] = found.validation_moving
    given = {heading: one.percent for heading, one in columns.items() if one is not None}
    return _joint_table(found.model.robot, given)


def _residual_columns(residuals: JointResiduals) -> dict[str, Iterable[Any]]:
    """Return the first columns of a table of torque residuals."""
    torques = [f"{torque:.4g}" for torque in residuals.torque_rms]
    return {"torque, rms": torques, "residual, rms": residuals.rms, "%": residuals.percent}


def _joint_table(robot: Robot, columns: Mapping[str, Iterable[Any]]) -> Table:
    """Return a table with a row per joint; numbers in its columns are shown with three digits."""
    rows = [("joint", *columns)]
    for name, *values in zip(robot.joint_names, *columns.values(), strict=True):
        rows.append((name, *(one if isinstance(one, str) else f"{one:.3g}" for one in values)))
    return plain_table(rows)


def spring_table(found: Identification) -> Table:
    """Return a table of the stiffness of each gear."""
    robot = found.model.robot
    table = table_of("joint", numbers=("stiffness", "deviation", "before", "damping", "unit"))
    assert robot.drives is not None
    for name, kind, one, before in zip(
        robot.joint_names, robot.joint_kinds, found.springs, robot.drives.stiffness.tolist(), strict=True
    ):
        if one is None:
            table.add_row(Text(name), "no twist above its noise")
            continue
        damping = "" if one.damping is None else f"{one.damping:.4g}"
        unit = "N/m" if kind == "prismatic" else "N m/rad"
        table.add_row(
            Text(name), *with_deviation(one.stiffness, one.deviation), f"{before:.4g}", damping, unit
        )
    return table


def bias_table(found: Identification, bias: BiasCheck) -> Table:
    """Return a table of the parameters by least squares and by instrumental variables."""
    table = table_of("parameter", numbers=("least squares", "instrumental", "deviation", ""))
    for one, value, deviation, differs in zip(
        found.values, bias.beta.tolist(), bias.deviations.tolist(), bias.differs.tolist(), strict=True
    ):
        shown = with_deviation(value, deviation)
        fitted = with_deviation(one.value, deviation)[0]
        table.add_row(Text(one.symbol), fitted, *shown, "differs" if differs else "")
    return table


def _validation_lines(found: Identification) -> list[str]:
    """Return how each validation recording was used."""
    return [f"validation, {one.name}: {one.how}" for one in found.kept_out]


def _physical(physical: PhysicalSolution) -> dict[str, Any]:
    """Return the physically consistent solution for JSON."""
    parameters = physical.found.model.parameters
    return {
        "parameters": [
            {"name": name, "value": value, "unit": unit}
            for name, value, unit in zip(
                parameters.names, physical.pi.tolist(), parameters.units, strict=True
            )
        ],
        "residuals": _residuals(physical.residuals),
        "residuals_in_a_file": _residuals(physical.residuals_of_file),
        "validation": _residuals(physical.validation),
    }


def with_deviation(value: float, deviation: float) -> tuple[str, str]:
    """Format a value and its standard deviation, with two uncertain digits."""
    if not (math.isfinite(deviation) and deviation > 0):
        return f"{value:.6g}", f"{deviation:.2g}"
    digits = max(1 - math.floor(math.log10(deviation)), 0)
    if digits <= MOST_DIGITS:
        return f"{value:.{digits}f}", f"{deviation:.{digits}f}"
    size = math.floor(math.log10(max(abs(value), deviation)))
    return f"{value:.{min(max(digits + size, 0), 15)}e}", f"{deviation:.1e}"


def _residuals(residuals: JointResiduals | None) -> dict[str, Any] | None:
    """Return the residuals of every joint for JSON, if there are any."""
    return None if residuals is None else attributes(residuals, "rms", "percent", "torque_rms")


LOOK_POINTS = 4000
"""Largest number of points of a curve of a recording that is looked at."""

PANELS = ("positions / range", "speeds / limit", "torques / largest", "time steps  [ms]", "delay scan")


def draw_recordings(
    path: Path, robot: Robot, sources: Sequence[Source], filtering: Filtering | None = None
) -> None:
    """Draw positions, speeds, torques and time steps of recordings as they are read, and a scan of delays.

    Args:
        path: path of the picture.
        robot: robot of the joints, with the limits that curves are compared with.
        sources: recordings, or measurements of logs.
        filtering: filter settings for the scan of delays.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn: list[Any] = [one for one in sources if isinstance(one, TorqueRecording | Measurements)]
    figure = Figure(figsize=(7.0 * len(drawn), 11.0), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(PANELS), len(drawn), squeeze=False)
    for column, one in enumerate(drawn):
        _draw(panels[:, column], robot, one, filtering)
        panels[0, column].set_title(Path(one.name).name)
    for row, title in enumerate(PANELS):
        panels[row, 0].set_ylabel(title)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 8), frameon=False)
    figure.savefig(path, dpi=110, format=path.suffix.lower()[1:] or "png")


def _draw(panels: NDArray[Any], robot: Robot, one: Any, filtering: Filtering | None) -> None:
    """Draw one recording into a column of panels."""
    t, q, tau = one.t, one.q, one.tau
    some = slice(None, None, max(1, len(t) // LOOK_POINTS))
    middle = 0.5 * (robot.q_max + robot.q_min)
    half = np.where(np.isfinite(robot.q_max - robot.q_min), 0.5 * (robot.q_max - robot.q_min), np.pi)
    middle = np.where(np.isfinite(middle), middle, 0.0)
    speeds = np.diff(q, axis=0) / np.diff(t)[:, None]
    fastest = np.where(np.isfinite(robot.qd_max), robot.qd_max, np.max(np.abs(speeds), axis=0))
    largest = np.maximum(np.max(np.abs(tau), axis=0), 1e-300)
    for joint, name in enumerate(robot.joint_names):
        colour = COLOURS[joint % len(COLOURS)]
        for axes, at, curve in (
            (panels[0], t, (q[:, joint] - middle[joint]) / half[joint]),
            (panels[1], t[1:], speeds[:, joint] / fastest[joint]),
            (panels[2], t, tau[:, joint] / largest[joint]),
        ):
            axes.plot(at[some], curve[some], color=colour, lw=0.9, label=name)
    for axes in panels[:2]:
        for limit in (-1.0, 1.0):
            axes.axhline(limit, color="0.4", lw=0.8, ls="--")
    panels[2].plot(*_saturated(t, tau / largest), ".", color="black", ms=4)
    panels[3].plot(t[1:], 1e3 * np.diff(t), ".", color="0.3", ms=2)
    panels[3].set_ylim(0.0, 1.2e3 * float(np.max(np.diff(t))))
    _draw_delay(panels[4], robot, one, filtering)
    for axes in panels:
        axes.grid(True, color="0.88")
    for axes in panels[:4]:
        axes.set_xlabel("time  [s]")


def _saturated(t: Floats, tau: Floats) -> tuple[Floats, Floats]:
    """Return times and values of torques that stay exactly at their largest or smallest value."""
    from twin.data.identification.requirements import plateau

    flat = np.stack([plateau(column) for column in tau.T], axis=1)
    return np.broadcast_to(t[:, None], tau.shape)[flat], tau[flat]


def _draw_delay(axes: Any, robot: Robot, one: Source, filtering: Filtering | None) -> None:
    """Draw the residuals of fits with delayed torques, or state why there are none."""
    try:
        arm = identifiable(robot)
        model = TorqueModel(arm, friction=friction_of(arm)).without_load
        delay = found_delay(model, measured_sources(one, arm, filtering))
        if delay is None:
            raise TwinError("the steps of this log are exact")
    except TwinError as error:
        axes.text(0.02, 0.5, f"no scan of delays: {str(error)[:90]}", transform=axes.transAxes, wrap=True)
        axes.set_axis_off()
        return
    axes.plot(1e3 * delay.shifts, np.exp(delay.costs - np.min(delay.costs)), "o-", color="0.3", ms=3)
    axes.axvline(1e3 * delay.value, color=COLOURS[1], lw=1.2)
    axes.set_yscale("log")
    axes.set_xlabel(
        f"torques later by  [ms]; found {1e3 * delay.value:.3g} +- {1e3 * delay.deviation:.2g} ms"
    )
