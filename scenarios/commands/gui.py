"""`irb-twin gui`: a controlled robot in a window, to jog, teach, push and load."""

import shlex
from pathlib import Path

from scenarios.options import argument, option, output_file, positive, section
from scenarios.shell.output import Files, announce_page, console
from scenarios.shell.parser import Call, Command
from scenarios.shell.settings import LAWS, LawSettings, setup_of
from twin.base.errors import NoDisplayError, WrongUse

WITHOUT_DISPLAY = (
    "irb-twin gui --browser shows the arm in a browser, and "
    'xvfb-run -s "-screen 0 1280x900x24" irb-twin gui opens the window on a display without a screen'
)


class Bench(Command):
    """Show a controlled robot in PyBullet's window, or with --browser in a browser, which needs no display.

    Jog its joints or its tool, teach poses and move through them, exchange the controller, change its gains,
    push the tool, attach and release a payload, pause, step, slow down. The window shows the keys. To watch a
    scenario use `irb-twin run SCENARIO --gui`, to watch a log `irb-twin replay`. The page of --browser has
    sliders for the joints; only browsers of this machine reach it, others through the printed SSH tunnel.
    """

    usage = "irb-twin gui [ROBOT] [options]"
    examples = """examples:
  irb-twin gui
  irb-twin gui irb1400 --controller pid --drives elastic
  irb-twin gui irb140 --payload 6,0,0,0.08 --model-payload 0
  irb-twin gui --poses taught.csv --log taught.npz
  irb-twin gui irb140 --cell cell.toml
  irb-twin gui irb1400 --drives rigid --browser
  irb-twin run pose_path --csv taught.csv --gui
"""
    besides = (
        "controller", "robot", "gui", "close_window", "seed", "reference",
        "encoder", "noise", "speed_cutoff", "delay", "push", "surface", "force_sensor",
    )  # fmt: skip

    robot: str = argument("name of the robot, or path of its robot.toml or URDF", "ROBOT", "irb140")
    controller: str = option("computed_torque", "the first controller, as in `irb-twin run`", "NAME")
    start: str | None = option(None, "name of the start pose (default the zero pose)", "POSE")
    duration: float = option(
        float("inf"), "simulated time after which the window closes, in s (default: it stays open)", "SECONDS"
    )
    poses: Path | None = output_file(".csv", "write the path through the taught poses")
    log: Path | None = output_file(".npz", "write the last two minutes of the run")
    cell: Path | None = option(
        None, "file of a cell: show the nearest pair and its distance in the window", "CELL.toml"
    )
    browser: int | None = option(None, "jog by sliders in a browser; PORT of its page", "PORT", alone=0)
    laws: LawSettings = section(LawSettings, LAWS)

    def run(self, call: Call) -> int:
        """Show the robot until the window is closed."""
        if self.duration != float("inf"):
            positive(self.duration, "duration", "s")
        setup = setup_of(call.settings | {"robot": self.robot}, self.controller, self.laws)

        from scenarios.bench.free_bench import FreeBench, pose_table, start_pose

        start = start_pose(setup.load_robot(), self.start)
        if self.browser is not None:
            if self.poses is not None or self.log is not None or self.cell is not None:
                raise WrongUse("--browser excludes --poses, --log and --cell, which need the window")
            from scenarios.bench.jogging import jog

            jog(setup, start, self.duration, self.browser, announce_page)
            return 0
        from scenarios.report.documents import plain_table

        cell = None
        if self.cell is not None:
            from scenarios.studies.cell.clearance import setup_in
            from twin.studies.cell.cell import load_cell

            cell = load_cell(self.cell)
            setup = setup_in(cell, setup)
        try:
            session = FreeBench(setup, start, self.poses, self.duration, cell).run()
        except NoDisplayError as error:
            raise WrongUse(f"{error.found}: {WITHOUT_DISPLAY}") from None
        files, page = Files(), console()
        if session.poses:
            page.print("Taught poses")
            page.print(plain_table(pose_table(session.robot, session.poses)))
        if session.touches:
            page.print("Actions: " + ", ".join(f"{what} at {t:.2f} s" for t, what in session.touches))
        if self.log is not None and session.log is not None:
            files.write(self.log, session.log.save)
        if self.poses is not None and self.poses.exists():
            words = ["irb-twin", "run", "pose_path", "--csv", str(self.poses), "--robot", setup.robot]
            page.print("To follow them: " + shlex.join(words), soft_wrap=True)
        return 0 if files.name(page) else 1
