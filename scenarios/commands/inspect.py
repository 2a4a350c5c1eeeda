"""Commands on robots: `irb-twin list`, `formulas`, `check-model`, `friction`, `export-model` and `mass`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from scenarios.options import argument, lock_option, locked_joints, option, output_file, package_path_option
from scenarios.shell.output import Files, console, print_to_stderr
from scenarios.shell.parser import Call, Command, count
from twin.base.errors import WrongUse, describe_error, is_interrupt

if TYPE_CHECKING:
    from twin.physics.robot.link_shapes import Body


class List(Command):
    """List all robots, controllers and scenarios.

    Robots are grouped: ABB's arms, the robots of the laboratory, those of installed packages. The other
    commands accept these names.
    """

    def run(self, call: Call) -> int:
        """Print one line for each."""
        import controllers
        import twin
        from scenarios.report.documents import listing
        from scenarios.running import registry
        from twin.physics.robot.loading import robot_title

        titles = registry.titles(registry.known_names())
        arms, laboratory = twin.robot_names(), twin.robot.laboratory_names()
        installed = twin.plugins.plugin_robots()
        groups = (
            ("ABB", arms, robot_title),
            ("laboratory", laboratory, robot_title),
            ("installed", [name for name in installed if name not in (*arms, *laboratory)], robot_title),
            ("controllers", (*controllers.NAMES, *controllers.plugin_names()), controllers.title),
            ("scenarios", titles, titles.__getitem__),
        )
        rows = [
            (heading if place == 0 else "", name, _title_or_fault(title, name))
            for heading, names, title in groups
            for place, name in enumerate(names)
        ]
        page = console()
        page.print(*listing(rows, page.width), sep="\n")
        return 0


def _title_or_fault(title: Callable[[str], str], name: str) -> str:
    """Return the title of a name, or the reason why it cannot be loaded, so that the list is complete."""
    try:
        return title(name)
    except BaseException as error:
        if is_interrupt(error):
            raise
        text = describe_error(error)
        return text if text.startswith("cannot load") else f"cannot be loaded: {text}"


class Formulas(Command):
    """Print the equations of an arm: as sums to read, or as a function in C or Python.

    Sums are derived symbolically by the method of Euler and Lagrange, for up to three axes: D, C and g of
    D(q) qdd + C(q, qd) qd + g(q) = tau. Code is the recursion of Newton and Euler without its zeros, a few
    hundred operations for six axes. Poses and Jacobians are sums for every arm: of a spherical wrist the
    Jacobian of its centre, of other arms the matrix of each joint, and pose and Jacobian of the flange.
    """

    examples = """examples:
  irb-twin formulas main_axes
  irb-twin formulas irb1600 --axes 3 --axis 2
  irb-twin formulas irb140 --quantity tau --format c > tau.c
  irb-twin formulas irb1400 --quantity J --format latex
  irb-twin formulas youbot --quantity T
"""

    model: str = argument("a robot's name or file, or main_axes, two_link", "MODEL")
    quantity: Literal["tau", "M", "C", "g", "T", "J", "Jd"] = option(
        "tau",
        "joint torques, mass matrix, Coriolis matrix, gravity torques, pose, Jacobian and its rate; of sums "
        "tau is D, C and g",
    )
    format: Literal["text", "latex", "c", "python"] = option("text", "sums as text or LaTeX, or code")
    axes: int | None = option(None, "only the first N axes; the others are locked at 0", "N", read=count)
    axis: int | None = option(None, "of sums only those of this axis, from 1", "I", read=count)
    parameters: Literal["numbers", "symbols", "base"] = option(
        "numbers",
        "masses in code: numbers, an argument with ten per link, or an argument with the base parameters, "
        "the fewest that determine the torques",
    )

    lock: tuple[str, ...] = lock_option()
    unphysical: bool = option(False, "accept bodies in a URDF that cannot exist")

    def run(self, call: Call) -> int:
        """Print the formulas."""
        console().print(self._text(), soft_wrap=True, end="")
        return 0

    def _text(self) -> str:
        """Return the formulas or the source.

        Raises:
            WrongUse: options do not fit together.
        """
        given: dict[str, Any] = {"unphysical": self.unphysical, "locked": locked_joints(self.lock)}
        if self.format in ("text", "latex"):
            from twin.physics.dynamics.symbolic.trees import formulas

            if self.parameters != "numbers":
                raise WrongUse("--parameters requires --format c or python")
            if self.quantity == "Jd":
                raise WrongUse("--quantity Jd requires --format c or python")
            if self.quantity in ("T", "J") and not (self.axes is None and self.axis is None):
                raise WrongUse(f"--axes and --axis do not apply to --quantity {self.quantity} as sums")
            return formulas(self.model, self.quantity, self.format, self.axes, self.axis, **given)
        import twin
        from twin.data.identification.torque_model import base_parameters
        from twin.physics.dynamics.formula_code import KINEMATIC, formula_code
        from twin.physics.robot.loops import locked

        if self.axis is not None:
            raise WrongUse("--axis requires --format text or latex")
        if self.parameters != "numbers" and self.quantity in KINEMATIC:
            raise WrongUse(f"--parameters: {self.quantity} has no masses")
        robot = twin.load(self.model, **given)
        robot = robot if self.axes is None else locked(robot, self.axes)
        base = base_parameters(robot).columns.tolist() if self.parameters == "base" else ()
        return formula_code(robot, self.quantity, self.format, self.parameters, base)


class CheckModel(Command):
    """Show the joints and links of a robot file, and report what is wrong or suspicious in it.

    PyBullet is compared with the analytic model at random states. Exit status: 0 the file passes; 1 it fails.
    """

    examples = """examples:
  irb-twin check-model my_robot.urdf
  irb-twin check-model my_arm/robot.toml --json findings.json --picture arm.png
"""

    file: Path = argument("a .urdf, a robot.toml or a dh.toml, or a folder with one", "FILE")
    package_path: str | None = package_path_option()
    json: Path | None = output_file(".json", "write all findings")
    picture: Path | None = output_file(
        ".png", "draw the arm, its joints at 0 or at the nearest angle they reach"
    )

    def run(self, call: Call) -> int:
        """Print the findings."""
        from scenarios.report.model_report import Report

        report = Report(self.file)
        files = Files()
        files.write(self.json, report.write_json)
        files.write(self.picture, report.draw)
        page = console()
        page.print(*report.tables(), sep="\n")
        complete = files.name(page)
        return 0 if complete and report.passes else 1


class Friction(Command):
    """List the friction of a robot's drives at the joints, and draw it over the speed of each joint."""

    usage = "irb-twin friction [ROBOT] [--picture FILE.png]"
    examples = """examples:
  irb-twin friction
  irb-twin friction irb1400 --picture friction.png
"""

    robot: str = argument("name of the robot, or path of its robot.toml", "ROBOT", "irb140")
    picture: Path | None = output_file(".png", "draw friction over speed, a panel per joint")

    def run(self, call: Call) -> int:
        """Print the table, and draw the picture."""
        import numpy as np

        import twin
        from scenarios.report.documents import listing
        from twin.base.formatting import figure
        from twin.physics.robot.drives.drives import MORE_FRICTION
        from twin.studies.views.plots import friction_plot

        robot = twin.load(self.robot).with_drives("rigid")
        drives = robot.active_drives
        assert drives is not None
        columns = {
            "Coulomb N m": drives.coulomb,
            "breakaway N m": drives.static,
            "Stribeck rad/s": drives.stribeck_speed,
            "viscous N m s/rad": drives.viscous,
        }
        columns |= {key: values for key in MORE_FRICTION if np.any(values := getattr(drives, key))}
        rows: list[tuple[str, ...]] = [("joint", *columns)]
        for name, *values in zip(robot.joint_names, *columns.values(), strict=True):
            rows.append((name, *(figure(float(value)) for value in values)))
        files = Files()
        if self.picture is not None:
            plot = friction_plot(robot)
            files.write(self.picture, partial(plot.savefig, dpi=140, format="png"))
        page = console()
        page.print(*listing(rows, page.width), sep="\n")
        return 0 if files.name(page) else 1


class ExportModel(Command):
    """Write a robot as URDF or MJCF, for ROS, Pinocchio, PyBullet, MuJoCo and other programs.

    A URDF has the arm: bodies, joints, limits, shapes, the payload. MJCF is MuJoCo's format; it has gravity,
    closed loops, springs, and with --drives rigid rotors and friction, too. What a format cannot express is
    named. Meshes are written beside the file.
    """

    usage = "irb-twin export-model ROBOT [--urdf FILE.urdf] [--mjcf FILE.xml] [options]"
    examples = """examples:
  irb-twin export-model irb140 --urdf irb140.urdf
  irb-twin export-model irb1400 --drives rigid --payload 5,0,0,0.1 --mjcf irb1400.xml
"""

    robot: str = argument("name of the robot, or path of its file", "ROBOT")
    urdf: Path | None = output_file(".urdf", "write a URDF")
    mjcf: Path | None = output_file(".xml", "write MJCF")
    drives: Literal["ideal", "rigid"] = option(
        "ideal", "torque limits (ideal), plus rotors and friction (rigid)"
    )
    payload: str | None = option(
        None, "payload on the flange, mass,x,y,z or as of run (default none)", "MASS"
    )
    mounting: str = option("floor", "floor, wall, inverted, or degrees about the base's y axis", "HOW")
    tool_frame: str | None = option(None, "link of the robot whose frame is the flange", "LINK")
    lock: tuple[str, ...] = lock_option()
    unphysical: bool = option(False, "accept bodies in a URDF that cannot exist")
    package_path: str | None = package_path_option()

    def run(self, call: Call) -> int:
        """Write the files, and print their names."""
        from scenarios.setup import Setup
        from twin.physics.robot.export import write_mjcf, write_urdf

        if self.urdf is None and self.mjcf is None:
            raise WrongUse("name a file to write: --urdf FILE.urdf, --mjcf FILE.xml, or both")
        names = ("robot", "drives", "payload", "mounting", "tool_frame", "lock", "unphysical")
        robot = Setup(**{name: getattr(self, name) for name in names}).load_robot()
        files = Files()
        for path, write in ((self.mjcf, write_mjcf), (self.urdf, write_urdf)):  # MJCF refuses more
            if path is not None:
                files.write_several(partial(write, robot, path))
        return 0 if files.name(console()) else 1


class Mass(Command):
    """Compute mass, centre of mass and inertia of the solids in CAD meshes, or of the links of a URDF.

    The mesh of each solid must be closed. Mass properties of several meshes, drawn in one frame, are also
    given for all together. The shapes of a URDF are its <visual> elements; --total is shared between its
    links by volume, and --out writes a copy of the file with these masses, centres and inertias.
    """

    usage = "irb-twin mass MESH [MESH ...] --unit UNIT --density DENSITY | mass URDF --total MASS [options]"
    examples = """examples:
  irb-twin mass link_2.stl --unit mm --density 7850
  irb-twin mass housing.stl motor.stl --unit mm --density 2700 7850
  irb-twin mass arm.urdf --total 98 --out weighed.urdf
"""

    files: tuple[Path, ...] = argument("mesh files, as .stl or .obj, or one .urdf", "FILE")
    unit: Literal["m", "cm", "mm", "inch"] | None = option(
        None, "unit of length of the mesh files, which do not state any; a URDF is in m"
    )
    density: tuple[float, ...] = option((), "density in kg/m^3: one for all, or one per file", "DENSITY")
    mass: tuple[float, ...] = option((), "mass of each file in kg, in place of its density", "MASS")
    total: float | None = option(None, "mass of all together in kg, shared by volume", "MASS")
    out: Path | None = output_file(".urdf", "write the URDF with these masses, beside its meshes")
    package_path: str | None = package_path_option()
    json: Path | None = output_file(".json", "write the results")

    def run(self, call: Call) -> int:
        """Print one row per body."""
        from scenarios.report.documents import listing
        from twin.base.formatting import figure
        from twin.physics.robot.link_shapes import joined, unweighed, write_weighed

        is_urdf = self._check_use()
        bodies = self._weighed(self._bodies())
        if len(bodies) > 1 and not is_urdf:
            bodies["together"] = joined(list(bodies.values()))
        rows = [
            ("", "volume m³", "mass kg", "centre of mass m", "inertia xx, yy, zz, xy, xz, yz about it, kg m²")
        ]
        for name, body in bodies.items():
            inertia = [body.density * body.inertia[place] for place in INERTIA.values()]
            com, inertia = (", ".join(map(figure, map(float, vector))) for vector in (body.com, inertia))
            rows.append((name, figure(body.volume), figure(body.mass), com, inertia))
        files = Files()
        files.write(self.json, partial(_write_bodies, bodies))
        if self.out is not None:
            files.write(self.out, partial(write_weighed, self.files[0], bodies))
        page = console()
        page.print(*listing(rows, page.width), sep="\n")
        if is_urdf:
            page.print(f"{sum(body.mass for body in bodies.values()):.6g} kg in {len(bodies)} links")
        for remark in dict.fromkeys(remark for body in bodies.values() for remark in body.remarks):
            print_to_stderr(remark)
        for name, mass in unweighed(self.files[0], bodies).items() if is_urdf else ():
            print_to_stderr(f"link {name!r} has {mass:g} kg, but no <visual> shape to weigh: it gets no mass")
        return 0 if files.name(page) else 1

    def _check_use(self) -> bool:
        """Return whether the only file is a URDF.

        Raises:
            WrongUse: options are missing, or do not fit the files or each other.
        """
        is_urdf = self.files[0].suffix.lower() == ".urdf"
        if is_urdf and len(self.files) > 1:
            raise WrongUse("expected mesh files, or one URDF alone")
        if sum((bool(self.density), bool(self.mass), self.total is not None)) != 1:
            raise WrongUse("give one of --density, --mass and --total")
        if is_urdf and self.mass:
            raise WrongUse("--mass requires mesh files: for a URDF, give --density or --total")
        for name in ("density", "mass"):
            if len(getattr(self, name)) not in (0, len(self.files), 1 if name == "density" else 0):
                raise WrongUse(f"--{name}: expected one number per file, {len(self.files)}")
        given = (*self.density, *self.mass, *(() if self.total is None else (self.total,)))
        if not all(0 < number < float("inf") for number in given):
            raise WrongUse("expected finite numbers above 0 for --density, --mass and --total")
        if is_urdf != (self.unit is None):
            raise WrongUse(
                "--unit requires mesh files: a URDF is in m, with a scale per mesh"
                if is_urdf
                else "mesh files state no unit: give --unit m, cm, mm or inch"
            )
        if self.out is not None and not is_urdf:
            raise WrongUse("--out requires a URDF")
        if self.out is not None and self.out.absolute().parent != next(iter(self.files)).absolute().parent:
            raise WrongUse("--out: expected a file beside the URDF, from where its meshes are found")
        return is_urdf

    def _bodies(self) -> dict[str, Body]:
        """Read the bodies, of density 1."""
        from twin.physics.robot.link_shapes import bodies_of_urdf, body_of_file

        if self.unit is None:
            return bodies_of_urdf(self.files[0])
        return {str(path): body_of_file(path, self.unit) for path in self.files}

    def _weighed(self, bodies: dict[str, Body]) -> dict[str, Body]:
        """Return the bodies with their densities."""
        if self.total is not None:
            densities = [self.total / sum(body.volume for body in bodies.values())] * len(bodies)
        elif self.mass:
            densities = [mass / body.volume for mass, body in zip(self.mass, bodies.values(), strict=True)]
        else:
            densities = [*self.density] * (1 if len(self.density) > 1 else len(bodies))
        return {
            name: body._replace(density=density)
            for (name, body), density in zip(bodies.items(), densities, strict=True)
        }


INERTIA = {"xx": (0, 0), "yy": (1, 1), "zz": (2, 2), "xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}
"""Components of an inertia tensor, by their names, as places in the matrix."""


def _write_bodies(bodies: dict[str, Body], path: Path) -> None:
    """Write bodies as JSON, in SI units."""
    from scenarios.report.documents import write_document

    content = {
        name: {
            "volume_m3": body.volume,
            "mass_kg": body.mass,
            "com_m": body.com,
            "inertia_kg_m2": {key: body.density * body.inertia[at] for key, at in INERTIA.items()},
            "remarks": body.remarks,
        }
        for name, body in bodies.items()
    }
    write_document(path, {"format": 2, "bodies": content})
