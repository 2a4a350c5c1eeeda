"""`irb-twin identify --payload`: what the flange was found to carry, as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from scenarios.reports.identification_report import with_deviation
from twin.identification.payload import NAMES, UNITS, PayloadEstimate

if TYPE_CHECKING:
    from rich.console import RenderableType


class PayloadReport:
    """What was found at the flange, told.

    Args:
        found: what `identify_payload` returned.
    """

    def __init__(self, found: PayloadEstimate) -> None:
        self.found = found

    def parts(self) -> Iterator[RenderableType]:
        """What rich renders for the terminal."""
        found = self.found
        against = "runs without it" if found.bare else "the robot's own parameters"
        yield Text(f"\n{found.robot.name}: what the flange carries, against {against}", style="bold")
        yield self.values()
        yield self.residuals()
        yield Text("Centre in the flange's frame, inertia about the centre.")
        if not found.possible:
            yield Text("No body has this inertia, which is within its noise: the payload is told as a point.")
        yield Text("")

    def values(self) -> Table:
        """Mass, centre, inertia, a row each."""
        table = _table("payload", "value", "deviation", "unit")
        for name, value, deviation, unit in zip(
            NAMES, self.found.values.tolist(), self.found.deviations.tolist(), UNITS, strict=True
        ):
            table.add_row(Text(name), *with_deviation(value, deviation), unit)
        return table

    def residuals(self) -> Table:
        """What is left of the torques, a row a joint."""
        found = self.found
        table = _table("joint", "torque, rms", "residual, rms", "%", "without payload, %")
        for joint, name in enumerate(found.robot.joint_names):
            table.add_row(
                Text(name),
                f"{found.residuals.torque_rms[joint]:.4g}",
                f"{found.residuals.rms[joint]:.3g}",
                f"{found.residuals.percent[joint]:.3g}",
                f"{found.without.percent[joint]:.3g}",
            )
        return table

    def document(self) -> dict[str, Any]:
        """Everything, for JSON."""
        found = self.found
        return {
            "robot": found.robot.name,
            "payload": found.text,
            "possible": found.possible,
            "values": dict(zip(NAMES, found.values.tolist(), strict=True)),
            "deviations": dict(zip(NAMES, found.deviations.tolist(), strict=True)),
            "covariance": found.covariance.tolist(),
            "residuals_percent": found.residuals.percent.tolist(),
        }

    def write_json(self, path: Path) -> None:
        """Write `document`."""
        path.write_text(json.dumps(self.document(), indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _table(first: str, *others: str) -> Table:
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column(first)
    for heading in others:
        table.add_column(heading, justify="right")
    return table
