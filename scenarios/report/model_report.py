"""Report `irb-twin check-model`: joints, links and findings of a robot file as tables and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from scenarios.report.documents import attributes, table_of, write_document
from scenarios.report.report import verdict
from twin.base.errors import RobotError, TwinError
from twin.base.formatting import figure
from twin.physics.kinematics.dh_fit import FittedDH, fitted_dh
from twin.physics.robot.model_check import ERROR, WARNING, Finding, JointPart, ModelCheck, check_model
from twin.physics.rotations.rotations import pose_vector

if TYPE_CHECKING:
    from scenarios.judging.agreement import Agreement

COLOURS = {"error": "bold red", "warning": "yellow", "note": "dim"}


class Report:
    """Check of a robot file, with a comparison of engine and model if it can be simulated.

    Args:
        path: path of a URDF, a `robot.toml` or a `dh.toml`.

    Raises:
        RobotError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.check: ModelCheck = check_model(path)
        self.findings: list[Finding] = list(self.check.findings)
        self.agreement: Agreement | None = None
        robot = self.check.robot
        if robot is not None and robot.has_inertia:
            from scenarios.judging.agreement import isolated_agreement

            try:
                self.agreement = isolated_agreement(path)
            except TwinError as error:
                self.findings.insert(0, Finding(ERROR, str(error).removeprefix(f"{path}: ")))
            else:
                self.findings += read_otherwise(self.agreement)

        self.dh: FittedDH | str = ""
        """Table that follows from the axes, or why there is none; "" for a robot that states its table."""
        if robot is not None and robot.dh is None:
            try:
                self.dh = fitted_dh(robot)
            except RobotError as error:
                self.dh = str(error)

    @property
    def passes(self) -> bool:
        """Whether no finding is an error, and the engine agrees with the model."""
        agree = self.agreement is None or self.agreement.passes
        return agree and all(finding.severity != ERROR for finding in self.findings)

    def draw(self, path: Path) -> None:
        """Write a picture of the arm, its joints at 0 or at the nearest angle that they reach, as PNG.

        Raises:
            RobotError: the file has an error, or no masses, so that the engine cannot load it.
        """
        from PIL import Image

        from twin.physics.engine.simulation import Simulation

        robot = self.check.robot
        if robot is None:
            raise RobotError("the file has errors")
        with Simulation(robot) as arm:
            arm.reset(np.clip(0.0, robot.q_min, robot.q_max))
            Image.fromarray(arm.picture(800, 800)).save(path, format="PNG")

    def tables(self) -> Iterator[RenderableType]:
        """Yield the tables for the terminal."""
        check = self.check
        name = "" if check.robot is None else check.robot.name
        joints = len(check.moving_joints)
        counted = f"{joints} moving joint{'' if joints == 1 else 's'}"
        unknown = check.robot is not None and not check.robot.has_inertia
        mass = "masses unknown" if unknown else f"{check.mass:.6g} kg"
        yield Text.assemble(
            "\n", (name or check.path.stem, "bold"), f": {counted}, {mass}, base {check.parts.base!r}"
        )
        if check.moving_joints:
            yield joint_table(check)
        if check.massive_links and check.mass > 0:
            yield link_table(check)
        if check.robot is not None and check.robot.loops:
            yield loops_line(check)
        reason = "" if check.robot is None else check.robot.tool_reason
        if reason and all(reason != finding.text for finding in self.findings):
            yield Text(reason)
        yield from self._dh_lines()
        if self.agreement is not None:
            yield agreement_table(self.agreement)
        yield from (
            Text.assemble((f"{finding.severity}: ", COLOURS[finding.severity]), finding.text)
            for finding in self.findings
        )
        yield self.summary()

    def _dh_lines(self) -> Iterator[RenderableType]:
        """Yield the Denavit-Hartenberg table that follows from the axes, or the reason why there is none."""
        if isinstance(self.dh, str):
            if self.dh:
                yield Text(self.dh)
            return
        fit, joints = self.dh, self.check.moving_joints
        numbers = ("sign of q", "theta0, deg", "d, m", "a, m", "alpha, deg")
        table = table_of("Denavit-Hartenberg", numbers=numbers)
        theta0, d, a, alpha = fit.dh
        rows = zip(joints, fit.signs, np.rad2deg(theta0), d, a, np.rad2deg(alpha), strict=True)
        for joint, sign, *numbers in rows:
            table.add_row(Text(joint.name), f"{sign:+.0f}", *(f"{number + 0.0:.9g}" for number in numbers))
        yield table
        for name, T in (("frame 0 in the base", fit.T_base_0), ("flange in frame 6", fit.T_6_flange)):
            placed = ", ".join(f"{number:.9g}" for number in pose_vector(T) + 0.0)
            if not np.array_equal(T, np.eye(4)):
                yield Text(f"{name}: {placed} (m, unit quaternion)")
        rounding = "" if fit.is_exact else "; inverse kinematics corrects its solutions by Newton steps"
        yield Text(f"the table agrees with the URDF within {figure(fit.error)}{rounding}")

    def _dh_document(self) -> dict[str, Any] | None:
        """Return the table that follows from the axes for JSON, or why there is none."""
        if isinstance(self.dh, str):
            return {"reason": self.dh} if self.dh else None
        arrays = self.dh._asdict() | self.dh.dh._asdict()
        return {name: np.asarray(value).tolist() for name, value in arrays.items() if name != "dh"}

    def summary(self) -> Text:
        """Return the last line: the number of findings, and whether the file passes."""
        counts = [(severity, sum(f.severity == severity for f in self.findings)) for severity in COLOURS]
        findings = [f"{count} {severity}{'' if count == 1 else 's'}" for severity, count in counts if count]
        agree = "" if self.agreement is None or self.agreement.passes else ", and PyBullet disagrees"
        text = (", ".join(findings) or "no findings") + agree
        end = Text("the check passes", "green") if self.passes else Text("the check FAILS", "bold red")
        return Text.assemble(f"\n{text}: ", end)

    def document(self) -> dict[str, Any]:
        """Return all findings for JSON; values that are not finite or not given are null."""
        check = self.check
        return {
            "file": str(check.path),
            "passes": self.passes,
            "mass_kg": check.mass,
            "joints": [
                attributes(joint, "name", "kind", "parent", "child", "speed", "effort", "passive")
                | {"range": [joint.low, joint.high]}
                for joint in check.moving_joints
            ],
            "links": [
                {
                    "name": link.name,
                    "mass_kg": link.mass,
                    "com_m": link.com,
                    "principal_moments_kg_m2": link.moments,
                }
                for link in check.massive_links
            ],
            "tool_frame": None if check.robot is None else check.robot.tool_frame,
            "tool_reason": None if check.robot is None else check.robot.tool_reason,
            "dh": self._dh_document(),
            "loops": [loop.name for loop in check.robot.loops] if check.robot is not None else [],
            "findings": [finding._asdict() for finding in self.findings],
            "agreement": None if self.agreement is None else attributes(self.agreement, *FIGURES),
        }

    def write_json(self, path: Path) -> None:
        """Write `document` as JSON."""
        write_document(path, self.document())


READ_ALIKE = 1e-5
"""Difference of the mass matrix, and of the tool frame in [m], from which PyBullet reads a file otherwise."""


def read_otherwise(agreement: Agreement) -> list[Finding]:
    """Return a warning if PyBullet itself reads the URDF as another robot."""
    differs = agreement.file_mass >= READ_ALIKE or agreement.file_tool >= READ_ALIKE
    text = (
        f"PyBullet itself reads another robot: its mass matrix differs by {100 * agreement.file_mass:.2g} %, "
        f"its tool frame by {1e3 * agreement.file_tool:.2g} mm; it takes 1 kg for a link without <inertial>, "
        "no inertia for an impossible one, and rounded angles as printed"
    )
    if np.isinf(agreement.file_mass):
        text = "PyBullet itself cannot read this file; the simulation gives it the numbers of the model"
    return [Finding(WARNING, text)] if differs else []


FIGURES = (
    *("states", "passes", "step", "step_limit", "pose", "pose_limit", "engine", "model"),
    *("file_mass", "file_tool"),
)


def joint_table(check: ModelCheck) -> Table:
    """Return a table of the moving joints."""
    table = table_of("joint", "kind", "from", "to", numbers=("range", "speed", "effort"))
    for joint in check.moving_joints:
        kind = f"{joint.kind}, passive" if joint.passive else joint.kind
        kind = kind if joint.leader is None else f"{joint.kind}, follows {joint.leader}"
        # `Text`, because rich would parse a plain string as markup.
        names = (Text(name) for name in (joint.name, kind, joint.parent, joint.child))
        table.add_row(*names, *_limits(joint))
    return table


def _limits(joint: JointPart) -> tuple[str, str, str]:
    """Return range, speed and effort with their units, in degrees for revolute joints."""
    turns = joint.kind != "prismatic"
    unit, scale, effort = ("deg", 180 / math.pi, "N m") if turns else ("m", 1.0, "N")
    range_ = "-"
    if joint.low is not None and joint.high is not None:
        range_ = f"{joint.low * scale:.4g} to {joint.high * scale:.4g} {unit}"
    speed = "-" if joint.speed is None else f"{joint.speed * scale:.4g} {unit}/s"
    return range_, speed, "-" if joint.effort is None else f"{joint.effort:.4g} {effort}"


def link_table(check: ModelCheck) -> Table:
    """Return a table of the links that have a mass or move."""
    table = table_of("link", numbers=("mass, kg", "centre of mass, m", "principal moments, kg m^2"))
    for link in check.massive_links:
        com, moments = (" ".join(f"{x:.4g}" for x in values) for values in (link.com, link.moments))
        table.add_row(Text(link.name), "-" if link.mass is None else f"{link.mass:.6g}", com, moments)
    return table


def loops_line(check: ModelCheck) -> Text:
    """Return a line that names the closed loops."""
    assert check.robot is not None
    links = check.robot.tree.links
    loops = (
        f"{loop.name} ({' and '.join(links[j] for j in loop.joints)} share a point)"
        for loop in check.robot.loops
    )
    return Text(f"closed loops: {', '.join(loops)}")


def agreement_table(agreement: Agreement) -> Table:
    """Return a table that compares the engine with the model, and each with itself."""
    table = table_of(f"from {agreement.states} random states", numbers=("largest error", "limit", ""))
    of_step, of_pose = agreement.step_limit, agreement.pose_limit
    for what, value, limit in (
        ("acceleration in one step, PyBullet - model, relative", agreement.step, of_step),
        ("tool pose, PyBullet - model (position in m, rotation matrix)", agreement.pose, of_pose),
        ("acceleration in one step, PyBullet - a second PyBullet, relative", agreement.engine, of_step),
        ("model: inverse dynamics of forward dynamics, relative", agreement.model, of_step),
    ):
        table.add_row(what, figure(value), figure(limit), verdict(bool(value <= limit)))
    if np.isfinite(agreement.file_mass):
        as_read = "the URDF as PyBullet reads it - model"
        table.add_row(f"mass matrix, {as_read}, relative", figure(agreement.file_mass), "-", "not judged")
        table.add_row(f"tool frame, {as_read}, m", figure(agreement.file_tool), "-", "not judged")
    return table
