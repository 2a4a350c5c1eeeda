"""Commands that show what there is: `irb-twin list`, `formulas` and `check-model`."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scenarios.cli.arguments import Call, Command, argument, output_file
from scenarios.cli.output import Files, console
from twin.errors import describe_error, is_interrupt


@dataclass(frozen=True)
class List(Command):
    """List all robots, controllers and scenarios.

    Those of installed packages are included. The other commands accept these names.
    """

    def run(self, call: Call) -> int:
        """Print one line for each."""
        import controllers
        import twin
        from scenarios.report.report import listing
        from scenarios.running import registry
        from twin.robot.loading.loading import robot_title

        titles = registry.titles() | registry.plugin_titles()
        laws = (*controllers.NAMES, *controllers.plugin_names())
        rows = []
        for heading, names, title in (
            (
                "robots",
                tuple(dict.fromkeys((*twin.robot_names(), *twin.plugins.plugin_robots()))),
                robot_title,
            ),
            ("laboratory", twin.robot.laboratory_names(), robot_title),
            ("controllers", laws, controllers.title),
            ("scenarios", titles, titles.__getitem__),
        ):
            for place, name in enumerate(names):
                rows.append((heading if place == 0 else "", name, _title_or_fault(title, name)))
        page = console()
        page.print(*listing(rows, page.width), sep="\n", highlight=False)
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


@dataclass(frozen=True)
class Formulas(Command):
    """Print the equations of motion of a small arm, derived symbolically.

    D, C and g of D(q) qdd + C(q, qd) qd + g(q) = tau are derived by the method of Euler and Lagrange. The arm
    is main_axes (the first three axes of the IRB 1400), two_link (the planar two-link arm), or a URDF with at
    most three joints.
    """

    examples = "examples:\n  irb-twin formulas main_axes\n  irb-twin formulas my_robot.urdf\n"

    model: str = argument("main_axes, two_link, or the path of a small URDF", "MODEL")

    def run(self, call: Call) -> int:
        """Print the equations as text."""
        from twin.dynamics.symbolic.trees import formulas

        console().print(formulas(self.model), highlight=False, soft_wrap=True)
        return 0


@dataclass(frozen=True)
class CheckModel(Command):
    """Show the joints and links of a robot file, and report what is wrong or suspicious in it.

    PyBullet is compared with the analytic model at random states. Exit status: 0 the file passes; 1 it fails.
    """

    examples = """examples:
  irb-twin check-model my_robot.urdf
  irb-twin check-model my_arm/robot.toml --json findings.json
"""

    file: Path = argument("a .urdf, a robot.toml or a dh.toml", "FILE")
    json: Path | None = output_file(".json", "write all findings")

    def run(self, call: Call) -> int:
        """Print the findings."""
        from scenarios.report.model_report import Report

        report = Report(self.file)
        files = Files()
        files.write(self.json, report.write_json)
        page = console()
        page.print(*report.tables(), sep="\n", highlight=False)
        complete = files.name(page)
        return 0 if complete and report.passes else 1
