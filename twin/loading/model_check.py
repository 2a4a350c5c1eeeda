"""What the twin makes of a robot file: its joints and links, what is suspicious, whether it can be used."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

from twin.errors import DriveWarning, RobotError
from twin.loading.loading import load, robot_facts, urdf_beside
from twin.loading.model_findings import ERROR, NOTE, WARNING, Finding, findings
from twin.loading.model_parts import JointPart, LinkPart, Parts, tree_parts, urdf_parts
from twin.loading.motor_strength import weak_motors
from twin.loading.urdf_reader import faults
from twin.robot.robot import Robot

ORDER = (ERROR, WARNING, NOTE)


@dataclass(frozen=True, eq=False)
class ModelCheck:
    """What a robot file says, and what is to be said of it.

    Attributes:
        path: the file.
        parts: its links and joints.
        robot: what `twin.load` makes of it; `None` where it refuses it, which is among the findings.
        findings: the gravest first.
    """

    path: Path
    parts: Parts
    robot: Robot | None
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Whether there is no finding that is an error."""
        return all(finding.severity != ERROR for finding in self.findings)

    @property
    def moving_joints(self) -> tuple[JointPart, ...]:
        """The joints that move."""
        return tuple(joint for joint in self.parts.joints if joint.kind != "fixed")

    @property
    def massive_links(self) -> tuple[LinkPart, ...]:
        """The links with mass properties, or moved by a joint."""
        moved = {joint.child for joint in self.moving_joints}
        return tuple(link for link in self.parts.links if link.mass or link.name in moved)

    @property
    def mass(self) -> float:
        """Of all links, the base included, in [kg]."""
        return sum(link.mass or 0.0 for link in self.parts.links)


def check_model(path: Path) -> ModelCheck:
    """Look a robot file over.

    Args:
        path: of a URDF, a `robot.toml` or a `dh.toml`.

    Raises:
        RobotError: the file cannot be read, or is none of these.
    """
    if path.suffix not in (".urdf", ".toml"):
        raise RobotError(f"{path}: expected a file whose name ends in .urdf, robot.toml or dh.toml")
    if path.name.endswith("dh.toml"):
        robot = _quietly_loaded(path)
        told = _of_table(robot, robot_facts(path).get("unphysical")) + _of_drives(robot)
        return ModelCheck(path, tree_parts(robot), robot, _sorted(told))
    urdf = path
    if path.suffix == ".toml":
        urdf = urdf_beside(path, robot_facts(path))
    told = [Finding(ERROR, text) for text in faults(urdf)]
    parts = urdf_parts(urdf)
    robot = None
    try:
        robot = _quietly_loaded(path)
    except RobotError as error:
        if not told:
            told.append(Finding(ERROR, str(error).removeprefix(f"{path}: ")))
    if robot is not None:
        parts = _passive_marked(parts, robot)
        told += _of_robot(robot, parts) + _of_drives(robot)
    told += findings(parts)
    return ModelCheck(path, parts, robot, _sorted(told))


def _quietly_loaded(path: Path) -> Robot:
    """The robot, whose warnings are among the findings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DriveWarning)
        return load(path)


def _of_drives(robot: Robot) -> list[Finding]:
    """What is to be said of the drive trains."""
    return [Finding(WARNING, sentence.partition(": ")[2]) for sentence in weak_motors(robot)]


def _passive_marked(parts: Parts, robot: Robot) -> Parts:
    passive = {robot.tree.names[i] for i in robot.passive}
    return parts._replace(
        joints=tuple(joint._replace(passive=joint.name in passive) for joint in parts.joints)
    )


def _of_robot(robot: Robot, parts: Parts) -> list[Finding]:
    """What is taken for granted of a URDF that has no link `tool0`."""
    tree = robot.tree
    ends = [name for i, name in enumerate(tree.links) if i not in tree.parents]
    if len(ends) == 1 or any(link.name == "tool0" for link in parts.links):
        return []
    at = tree.links[tree.flange_joint]
    told = [
        Finding(NOTE, f"{len(ends)} ends and no link 'tool0': the tool is taken to be at the end of {at!r}")
    ]
    if len(ends) > 2 and any(link.name == parts.base and link.mass for link in parts.links):
        told.append(Finding(NOTE, f"link {parts.base!r} is fixed to the world here, it does not float"))
    return told


def _of_table(robot: Robot, unphysical: str | None) -> list[Finding]:
    told = list(findings(tree_parts(robot), masses_known=robot.has_inertia))
    if unphysical is not None:
        told.append(Finding(WARNING, f"unphysical, says the file: {' '.join(unphysical.split())}"))
    if not robot.has_inertia:
        told.append(Finding(NOTE, "no masses: kinematics only, nothing to simulate"))
    return told


def _sorted(told: list[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(dict.fromkeys(told), key=lambda finding: ORDER.index(finding.severity)))
