"""Commands on logs: `irb-twin plot`, `export` and `replay`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.options import argument, option, package_path_option
from scenarios.shell.output import Files, announce_page, apart, console, print_to_stderr, shown, writable
from scenarios.shell.parser import Call, Command, end_option, start_option
from twin.base.errors import NoDisplayError, WrongUse

if TYPE_CHECKING:
    from twin.data.logs.log import Log


class Plot(Command):
    """Plot logs over time in one diagram, and print their errors, torques and speeds in one table.

    Logs are files that `irb-twin run --log` or `Log.save` wrote. There is one panel per joint; it shows the
    limits, and where torques were saturated.
    """

    usage = "irb-twin plot LOG [LOG ...] [options]"
    examples = """examples:
  irb-twin plot run.npz
  irb-twin plot run-pose_path-pd.npz run-pose_path-pid.npz --what error torque
  irb-twin plot run.npz --what position --joint joint_2 joint_3 --from 1 --to 2.5 --picture detail.pdf
  irb-twin plot run.npz --what force moment --joint base joint_2
"""

    logs: tuple[Path, ...] = argument("a log file; logs stand before all options", "LOG")
    what: tuple[str, ...] = option(
        ("error",),
        "quantities to plot, one picture each: error, torque, speed, position, pose, wrench, force, moment "
        "at the joints, or a signal of the controller, as disturbance of dob (default error)",
        "WHAT",
    )
    joint: tuple[str, ...] = option(
        (), "only these joints, at one scale; for force, moment also base", "NAME"
    )
    start: float | None = start_option()
    end: float | None = end_option()
    picture: Path | None = option(
        None,
        "output file, also FILE.pdf or FILE.svg; several pictures are named FILE-WHAT.png (default: the "
        "log's name for one log, comparison-WHAT.png in this folder for several)",
        "FILE.png",
    )

    def run(self, call: Call) -> int:
        """Plot the logs, and print their table."""
        from twin.data.logs.columns import between
        from twin.studies.views.comparison import compare
        from twin.studies.views.curves import FORMATS, panels

        what, joints = list(dict.fromkeys(self.what)), self.joint or None
        pictures = [writable(path, FORMATS, "--picture") for path in self._pictures(what)]
        whole = compare(self.logs)
        part = compare({name: between(log, self.start, self.end) for name, log in whole.logs.items()})
        for one in what:  # raises for an unknown joint before anything is written
            panels(part.logs, one, joints)
        files = Files()
        for one, path in zip(what, pictures, strict=True):
            files.write(path, partial(part.picture, what=one, joints=joints))
        page = console()
        page.print(part.table(page.width))
        return 0 if files.name(page) else 1

    def _pictures(self, what: Sequence[str]) -> list[Path]:
        """Return the path of each picture."""
        if self.picture is not None and len(what) == 1:
            return [self.picture]
        alone = self.logs[0].with_suffix(".png") if len(self.logs) == 1 else Path("comparison.png")
        return apart(self.picture or alone, [(one,) for one in what])


BESIDE = Path()
"""Value of `--csv` or `--parquet` without a file: one file beside each log, with the log's name."""
EXPORTED = "write {}; without FILE beside each log; several logs give one file each, named after the log"


class Export(Command):
    """Write logs as CSV or Parquet, with units in the column names.

    Each row is one sample: time, every joint's reference, position, error, speed and torque, the tool's pose,
    and the columns that the scenario added. Numbers are written without loss. A CSV can be run again:
    `irb-twin run pose_path --csv run.csv`.
    """

    usage = "irb-twin export LOG [LOG ...] --csv [FILE.csv] | --parquet [FILE.parquet] [options]"
    examples = """examples:
  irb-twin export run.npz --csv
  irb-twin export run.npz --csv table.csv --every 10
  irb-twin export run-*.npz --parquet
"""

    logs: tuple[Path, ...] = argument("a log file; logs stand before all options", "LOG")
    csv: Path | None = option(None, EXPORTED.format("CSV"), "FILE.csv", alone=BESIDE)
    parquet: Path | None = option(None, EXPORTED.format("Parquet"), "FILE.parquet", alone=BESIDE)
    every: int = option(1, "write every N-th sample, beginning with the first", "N")
    decimal_comma: bool = option(
        False, "write the CSV with decimal commas (1,5) and semicolons between columns"
    )
    start: float | None = start_option()
    end: float | None = end_option()

    def run(self, call: Call) -> int:
        """Write each log in each requested format."""
        from twin.data.logs.columns import between, import_optional, write_csv, write_parquet
        from twin.data.logs.log import Log

        if self.csv is None and self.parquet is None:
            raise WrongUse("nothing to write: give --csv, --parquet or both")
        if not self.every >= 1:
            raise WrongUse(f"--every {self.every}: expected a whole number of at least 1")
        if self.decimal_comma and self.csv is None:
            raise WrongUse("--decimal-comma requires --csv")
        tables = self._places(self.csv, ".csv")
        archives = self._places(self.parquet, ".parquet")
        if archives:
            import_optional("pyarrow", "Parquet")
        logs = [between(Log.load(path), self.start, self.end) for path in self.logs]
        files = Files()
        as_csv = partial(write_csv, every=self.every, decimal_comma=self.decimal_comma)
        for write, paths in ((as_csv, tables), (partial(write_parquet, every=self.every), archives)):
            for path, log in zip(paths, logs, strict=False):
                files.write(path, partial(write, log=log))
        return 0 if files.name(console()) else 1

    def _places(self, asked: Path | None, suffix: str) -> list[Path]:
        """Return the output path of each log in one format; empty if the format was not requested."""
        name = f"--{suffix[1:]}"
        if asked is None:
            return []
        if asked == BESIDE:
            places = [path.with_suffix(suffix) for path in self.logs]
        else:
            stems = [(path.stem,) for path in self.logs]
            places = [asked] if len(stems) == 1 else apart(asked, stems)
        for place in places:
            writable(place, suffix, name)
            if places.count(place) > 1:
                raise WrongUse(f"{name}: several logs would be written to {place}: give a file name")
        return places


def _size(text: str) -> tuple[int, int]:
    """Read width and height in pixels, such as `640x480`."""
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected width x height in pixels, as 640x480, got {text!r}")
    return int(width), int(height)


class Replay(Command):
    """Replay logs in PyBullet's window, in a browser, or as a film.

    The first log moves the arm, the others move transparent copies of it. The desired and the actual paths of
    the tool are drawn. With --film a file is written instead; --browser shows a page with a time slider. Both
    need no display.
    """

    examples = """examples:
  irb-twin replay run.npz --speed 0.5
  irb-twin replay run-pose_path-computed_torque.npz run-pose_path-pd.npz
  irb-twin replay run.npz --film run.gif --camera 120 -10
  irb-twin replay run.npz --browser
"""

    logs: tuple[Path, ...] = argument("a log file, .npz", "LOG")
    speed: float = option(1.0, "speed as a multiple of real time (default 1)", "FACTOR")
    loop: bool = option(False, "in the window: start again after the end")
    package_path: str | None = package_path_option()
    browser: int | None = option(None, "show a page in a browser; PORT of the page", "PORT", alone=0)
    film: Path | None = option(
        None,
        "write an animated .gif, or an .mp4 (pip install 'irb-twin[film]'), and open no window",
        "FILE",
        group="a film",
    )
    fps: float | None = option(None, "frames per second (default 20)", "N")
    size: tuple[int, int] | None = option(None, "size in pixels (default 640x480)", "WxH", read=_size)
    camera: tuple[float, float] | None = option(
        None, "direction of view in degrees; a negative pitch looks down (default 50 -20)", ("YAW", "PITCH")
    )

    def run(self, call: Call) -> int:
        """Show a window, or write a film."""
        from twin.studies.views.film import check_count, checked_speed

        speed = checked_speed(self.speed)
        settings = self._film_settings()
        check_count(len(self.logs))
        if self.film is not None:
            film_writable(self.film, len(self.logs), speed=speed, **settings)

        from twin.data.logs.log import Log
        from twin.studies.views.film import names_of, tracks

        logs = [Log.load(path) for path in self.logs]
        names = names_of(logs, self.logs)
        moving = tracks(logs, names)  # raises before the work begins if a log cannot be shown
        if self.browser is not None:
            from twin.studies.views.browser import Replay as Page

            Page.of(dict(zip(names, logs, strict=True))).serve(self.browser, announce_page)
            return 0
        if self.film is None:
            from scenarios.bench.log_window import replay

            for track in moving:
                if track.note:
                    print_to_stderr(track.note)
            try:
                replay(moving, speed=speed, loop=self.loop)
            except NoDisplayError as error:
                raise WrongUse(f"{error.found}; --film FILE.gif requires no display") from None
            return 0
        files = Files()
        write_film(files, self.film, logs, names, speed=speed, **settings)
        return 0 if files.name(console()) else 1

    def _film_settings(self) -> dict[str, Any]:
        """Return the settings of the film that were given; the window has none of them."""
        settings = {name: getattr(self, name) for name in ("fps", "size", "camera")}
        settings = {name: value for name, value in settings.items() if value is not None}
        if self.browser is not None and (self.film is not None or self.loop or self.speed != 1.0):
            raise WrongUse("--browser excludes --film, --loop and --speed: the page has its own controls")
        if self.film is None and settings:
            raise WrongUse(f"--{next(iter(settings))} requires --film")
        if self.film is not None and self.loop:
            raise WrongUse("--loop excludes --film: it applies to the window")
        if "camera" in settings:
            settings |= dict(zip(("yaw_deg", "pitch_deg"), settings.pop("camera"), strict=True))
        return settings


def film_writable(path: Path, count: int, **settings: Any) -> None:
    """Check that a film of `count` logs can be made and written to `path`, with settings as of `twin.film`.

    Raises:
        WrongUse, ValueError, TwinError: the film cannot be made; the message gives the reason.
    """
    from twin.studies.views.film import check_count, check_settings

    check_settings(path, **settings)
    writable(path, path.suffix.lower(), "--film")
    check_count(count)


def write_film(files: Files, path: Path, logs: list[Log], names: list[str], **settings: Any) -> None:
    """Write a film, and print what it leaves out, with settings as of `twin.film`."""
    from twin.studies.views.film import Film, film

    done: list[Film] = []
    with shown(1) as begin:
        progress = begin(f"drawing {path.name}")
        files.write(
            path, lambda draft: done.append(film(logs, draft, names=names, progress=progress, **settings))
        )
    for made in done:
        for note in made.notes:
            print_to_stderr(note)
