"""Export of an identified robot as a file: a `robot.toml` with its URDF, or a `dh.toml`.

The file is that of the given robot with the identified links, rotors and friction, and states their origin.
Geometry, limits, poses and closed loops are unchanged.  A robot that was a URDF remains one, with the
identified bodies, and a `robot.toml` beside it has the drives.  Directions that no torque depends on are as
near to the given robot's as possible bodies permit; comments name them.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from twin.base.arrays import Floats
from twin.base.atomic_file import atomic_write
from twin.base.errors import IdentificationError
from twin.data.identification.least_squares import JointResiduals
from twin.data.identification.physical import PhysicalSolution
from twin.data.identification.result import GearSpring
from twin.physics.multibody.axis_torques import UserColumn
from twin.physics.multibody.tree import body_from_parameters, transformed_parameters
from twin.physics.robot.dh_tables import link_tail
from twin.physics.robot.drives.drives import MORE_FRICTION
from twin.physics.robot.export import file_text, plain_name, urdf_facts, write_urdf
from twin.physics.robot.loading import is_table, is_urdf, robot_facts
from twin.physics.robot.loops import link_frames
from twin.physics.robot.robot import Robot


def write_robot_file(solution: PhysicalSolution, path: str | Path, origin: str = "") -> tuple[Path, ...]:
    """Write the identified robot to a file that `twin.load` accepts.

    Args:
        solution: identified parameters.
        path: path of the file, which ends in `.toml`, or in `dh.toml` for a robot that is defined by a DH
            table; or of a folder, in which it is called `robot.toml`.  The robot is named after the file, or
            after the given robot, and its URDF is written beside it under that name.
        origin: origin of the result for the file's `source`: a command, a date.

    Returns:
        The files that were written; on an error none is written.

    Raises:
        IdentificationError: the robot has no file, or the file or folder does not suit it.
        OSError: a file cannot be written.

    Example:
        >>> from scenarios.joint_tracking import JointTracking
        >>> from twin.data.identification import identify, physical, robot_file
        >>> log = JointTracking(duration=4.0).run(JointTracking.setup(robot="two_link", time_step=0.005)).log
        >>> solution = physical.physical_solution(identify.identify(log.robot, log))
        >>> [path.name for path in robot_file.write_robot_file(solution, "found_dh.toml")]
        ['found_dh.toml']
    """
    from urdf.facts import parsed
    from urdf.urdf_text import urdf

    path, given = file_of(path), solution.found.model.robot
    require_place(given, path)
    facts = facts_of(given)
    facts["name"] = _name(given, path)
    facts["title"] = f"{facts['title']}, identified"
    facts["source"] = f"{_source(solution, origin)} Otherwise as {given.name}: {facts['source']}"
    robot = solution.robot
    bodies = robot.unloaded_tree.inertias
    if given.file is not None and is_table(given.file):
        _set_table_links(facts, robot, bodies)
    elif "urdf" in facts:
        facts |= {"urdf": f"{facts['name']}.urdf", "tool_frame": given.tool_frame}
        facts.pop("unphysical", None)
        facts["joints"].pop("locked", None)  # they are fixed in the URDF
    else:
        _set_links(facts, robot, bodies)
    if not solution.found.model.torque_sensors:
        _set_drives(facts, robot, solution.found.springs)
    _set_torques(facts, robot)
    text = file_text(facts, _comment(solution))
    beside, made = path.with_name(f"{facts['name']}.urdf"), not path.parent.exists()
    path.parent.mkdir(exist_ok=True)
    try:
        with atomic_write(path) as draft:  # appears when the URDF is complete
            draft.write_text(text, encoding="utf-8")
            others: tuple[Path, ...] = ()
            if "urdf" in facts:
                plain = replace(robot.with_payload(None).mounted("floor"), drive_mode="ideal")
                others = write_urdf(replace(plain, tree=replace(plain.tree, torques=())), beside)
            elif not is_table(path):
                with np.errstate(all="ignore"), atomic_write(beside) as urdf_draft:
                    shape = urdf(parsed(path, text, parse_float=Decimal), path.name)
                    urdf_draft.write_text(shape, encoding="utf-8")
                others = (beside,)
    except BaseException:
        with suppress(OSError):  # it holds other files
            if made:
                path.parent.rmdir()
        raise
    return (path, *others)


def file_of(path: str | Path) -> Path:
    """Return the path of the file: `robot.toml` in a folder, unless the path ends in `.toml`."""
    path = Path(path)
    return path if path.suffix == ".toml" else path / "robot.toml"


def facts_of(robot: Robot) -> dict[str, Any]:
    """Return the contents of a robot's TOML file, or those of a `robot.toml` beside its URDF."""
    if robot.file is None:
        return {}
    return urdf_facts(robot) if is_urdf(robot.file) else robot_facts(robot.file)


def require_place(robot: Robot, path: str | Path) -> None:
    """Raise `IdentificationError` if the identified robot cannot be represented in this file or folder."""
    path = file_of(path)
    if robot.file is None:
        raise IdentificationError(f"robot {robot.name!r} was not loaded from a file, so none can be written")
    if robot.locked and not is_urdf(robot.file):
        facts = robot_facts(robot.file)
        if is_table(robot.file) or facts["joints"]["names"] != list(robot.joint_names):
            raise IdentificationError(
                f"{robot.file} does not lock {', '.join(robot.locked)}: expected them in its [joints.locked]"
            )
    if not path.parent.parent.is_dir():
        raise IdentificationError(f"{path.parent}: there is no folder {path.parent.parent}")
    expected = "dh.toml" if is_table(robot.file) else ".toml"
    why = ", since the robot is defined by its DH table" if is_table(robot.file) else ", but not in dh.toml"
    if not path.name.endswith(expected) or (is_table(path) and not is_table(robot.file)):
        raise IdentificationError(f"{path}: expected a file whose name ends in {expected}{why}")
    given_files = [robot.file] + ([] if robot.urdf is None else [robot.urdf])
    for file in (path, path.with_name(f"{_name(robot, path)}.urdf")):
        if any(file.absolute().resolve() == given.absolute().resolve() for given in given_files):
            raise IdentificationError(f"{file} is a file of the given robot: expected another name")


def _name(robot: Robot, path: Path) -> str:
    """Return the name of the new robot: that of its file, or one derived from the given robot's."""
    stem = path.stem.removesuffix("dh").rstrip("_.-")
    return plain_name(stem) if stem not in ("", "robot") else f"{plain_name(robot.name)}_identified"


def _source(solution: PhysicalSolution, origin: str) -> str:
    """Describe the origin of the numbers and their quality."""
    found = solution.found
    residuals, validation = _percent(solution.residuals_of_file), ""
    files = "; ".join(found.how)
    if solution.validation is not None:
        kept_out = "; ".join(f"{one.name}: {one.how}" for one in found.kept_out)
        validation = f" On validation recordings: {_percent(solution.validation)} % ({kept_out})."
    return (
        f"Links, rotors and friction identified from {files}.{f' {origin}.' if origin else ''} Residuals of "
        f"the joints: {residuals} % of their torques; condition {found.condition:.3g}, "
        f"{found.residuals.count} equations.{validation} Possible links nearest to the unconstrained "
        "solution."
    )


def _percent(residuals: JointResiduals) -> str:
    """Format the residuals of the joints, in percent."""
    return ", ".join(f"{x:.3g}" for x in residuals.percent)


def _comment(solution: PhysicalSolution) -> list[str]:
    """Return lines that list what the recordings determine and what they do not."""
    found = solution.found
    base, parameters = found.model.base, found.model.parameters
    lines = [
        f"Identified, starting from {found.model.robot.name}: base parameters of this file, which are all "
        "that recordings determine, with their standard deviations.",
        "",
    ]
    values = (base.K @ solution.pi).tolist()
    for one, value, deviation in zip(found.values, values, solution.deviations.tolist(), strict=True):
        lines.append(f"{one.stands_for} = {value:.6g} +- {deviation:.2g} {one.unit}")
    undetermined = [parameters.symbols[k] for k in base.undetermined]
    sums = np.sum(base.K != 0, axis=1) > 1
    shared = [parameters.symbols[k] for k in np.flatnonzero(np.any(base.K[sums] != 0, axis=0))]
    nearest = f"as near to the values of {found.model.robot.name} as possible links permit"
    lines += ["", f"Not determined, {nearest}: {', '.join(undetermined) or 'none'}."]
    lines += [f"Determined only in the sums above, {nearest}: {', '.join(shared) or 'none'}."]
    return lines


def _set_links(facts: dict[str, Any], robot: Robot, bodies: Floats) -> None:
    """Write bodies (k, 10) to the tables `[link.*]` of a robot.toml; the base is unchanged."""
    from urdf.solids import bulk, masses
    from urdf.urdf_text import link_name

    tree = robot.tree
    bulks = {link: bulk(values) for link, values in facts["link"].items()}
    before = masses(facts, bulks)
    frames = link_frames(robot, robot.embedding_offset)
    for link, values in facts["link"].items():
        if link_name(link) in tree.links:
            joint = tree.links.index(link_name(link))
            mass, com, tensor = body_from_parameters(bodies[joint])
            R = np.array(frames.R[joint])
            com, tensor = np.array(frames.o[joint]) + R @ com, R @ tensor @ R.T
        else:
            mass, com = float(before[link]), np.array([float(x) for x in bulks[link].com])
            tensor = mass * np.array([[float(x) for x in row] for row in bulks[link].inertia])
        for key in ("solid", "volume_mm3", "mass_printed", "mass_1000"):
            values.pop(key, None)
        facts["link"][link] = _body(mass, com, tensor) | values | _body(mass, com, tensor)
    facts.pop("mass", None)
    facts["links"]["source"] = (
        "identified, see above; the base and all shapes unchanged: " + facts["links"]["source"]
    )


def _set_table_links(facts: dict[str, Any], robot: Robot, bodies: Floats) -> None:
    """Write bodies (n, 10) to the tables `[link.<i>]` of a dh.toml, in DH frames."""
    assert robot.dh is not None
    facts["link"] = {}
    for i, row in enumerate(bodies):
        tail = link_tail(robot.dh.d[i], robot.dh.a[i], robot.dh.alpha[i])
        facts["link"][str(i + 1)] = _body(
            *body_from_parameters(transformed_parameters(row, np.linalg.inv(tail)))
        )
    facts.pop("unphysical", None)
    facts["links"] = {"source": "identified, see above"}


def _body(mass: float, com: Floats, tensor: Floats) -> dict[str, Any]:
    """Return mass, centre and inertia tensor about it in the format of the link tables."""
    six = [tensor[0, 0], tensor[1, 1], tensor[2, 2], tensor[0, 1], tensor[0, 2], tensor[1, 2]]
    return {"mass": float(mass), "com": com.tolist(), "inertia": [float(x) for x in six]}


def _set_drives(facts: dict[str, Any], robot: Robot, springs: Sequence[GearSpring | None]) -> None:
    """Write rotors, friction and springs of the gears to the table `[drives]`."""
    drives = robot.active_drives
    if drives is None:
        return
    table = facts.setdefault("drives", {"ratio": drives.ratio.tolist(), "source": {"ratio": "unknown, so 1"}})
    found = {"rotor_inertia": drives.rotor_inertia, "coulomb": drives.coulomb, "viscous": drives.viscous}
    found |= {key: getattr(drives, key) for key in MORE_FRICTION if np.any(getattr(drives, key))}
    if "static" in table:
        found["static"] = drives.static
    for key in ("stiffness", "damping"):
        values = [None if one is None else getattr(one, key) for one in springs]
        if any(value is not None for value in values):
            found[key] = np.where(np.equal(values, None), getattr(drives, key), values).astype(float)  # type: ignore
    for key, values in found.items():
        table[key] = values.tolist()
        table["source"][key] = "identified, see above" + (
            "; unchanged difference from Coulomb friction" if key == "static" else ""
        )


def _set_torques(facts: dict[str, Any], robot: Robot) -> None:
    """Write the values of springs, cylinders and columns to their tables."""
    keys = {"spring": ("stiffness", "torque"), "cylinder": ("force", "stiffness"), "column": ("value",)}
    tables = [(group, table) for group in keys for table in facts.get(group, {}).values()]
    for (group, table), torque in zip(tables, robot.tree.torques, strict=True):
        table |= dict(zip(keys[group], torque.values, strict=True))
        if isinstance(torque, UserColumn):
            table["function"] = f"{torque.file}:{torque.function}"
        table["source"] = "identified, see above"
