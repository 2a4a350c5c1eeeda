"""`irb-twin replay`: logs shown again, in PyBullet's window or as a film."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenarios.console.output import Files, complain, console, writable
from scenarios.running.options import WrongUse
from twin.errors import NoDisplayError

if TYPE_CHECKING:
    from scenarios.running.registry import Scenario
    from twin.logs.log import Log

EXAMPLES = """examples:
  irb-twin replay run.npz --speed 0.5
  irb-twin replay run-pose_path-computed_torque.npz run-pose_path-pd.npz
  irb-twin replay run.npz --film run.gif --camera 120 -10
"""


def add_parser(parsers: Any, scenarios: list[Scenario]) -> None:
    """Add the command to the command line."""
    parser = parsers.add_parser(
        "replay",
        help="show logs again, in PyBullet's window or as a film",
        description="Show what `irb-twin run --log` wrote in PyBullet's window: the first log as the arm, "
        "others as ghosts, with the tool's path that was wanted and those that were followed. With --film it "
        "becomes a file instead, and no display is needed.",
        epilog=EXAMPLES,
    )
    parser.set_defaults(parser=parser, carry_out=replay)
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG", help="a log, .npz")
    parser.add_argument(
        "--speed", type=float, default=1.0, metavar="FACTOR", help="times real time (default 1)"
    )
    parser.add_argument("--loop", action="store_true", help="in the window: begin anew at the end")
    film = parser.add_argument_group("a film")
    film.add_argument(
        "--film",
        type=Path,
        metavar="FILE",
        help="write an animated .gif, or an .mp4 (pip install 'irb-twin[film]'), and open no window",
    )
    film.add_argument("--fps", type=float, metavar="N", help="frames a second (default 20)")
    film.add_argument("--size", type=_size, metavar="WxH", help="in pixels (default 640x480)")
    film.add_argument(
        "--camera",
        type=float,
        nargs=2,
        metavar=("YAW", "PITCH"),
        help="where from, in degrees; a negative pitch looks down (default 50 -20)",
    )


def replay(given: argparse.Namespace, scenarios: list[Scenario]) -> int:
    """`replay`: a window, or a film."""
    from twin.views.playback import check_count, checked_speed

    speed = checked_speed(given.speed)
    settings = _film_settings(given)
    check_count(len(given.logs))
    if given.film is not None:
        film_writable(given.film, len(given.logs), speed=speed, **settings)

    from twin.logs.log import Log
    from twin.views.playback import names_of, tracks

    logs = [Log.load(path) for path in given.logs]
    names = names_of(logs, given.logs)
    shown = tracks(logs, names)  # what cannot be shown is said before the work begins
    if given.film is None:
        from scenarios.bench.replay import replay as show

        for track in shown:
            if track.note:
                complain(track.note)
        try:
            show(shown, speed=speed, loop=given.loop)
        except NoDisplayError as error:
            raise WrongUse(f"{error.found}; --film FILE.gif needs none") from None
        return 0
    files = Files()
    write_film(files, given.film, logs, names, speed=speed, **settings)
    return 0 if files.name(console()) else 1


def _film_settings(given: argparse.Namespace) -> dict[str, Any]:
    """What was given of a film; the window has none of it, and a film has no end to begin anew at."""
    settings = {name: getattr(given, name) for name in ("fps", "size", "camera")}
    settings = {name: value for name, value in settings.items() if value is not None}
    if given.film is None and settings:
        raise WrongUse(f"--{next(iter(settings))} is for a film: give --film, too")
    if given.film is not None and given.loop:
        raise WrongUse("--loop is for the window: leave it out, or leave --film out")
    if "camera" in settings:
        settings |= dict(zip(("yaw_deg", "pitch_deg"), settings.pop("camera"), strict=True))
    return settings


def _size(text: str) -> tuple[int, int]:
    """`640x480`."""
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected width x height in pixels, as 640x480, got {text!r}")
    return int(width), int(height)


def film_writable(path: Path, count: int, **settings: Any) -> None:
    """Check that a film of so many logs can be made and written there; settings as of `twin.film`.

    Raises:
        WrongUse, ValueError, TwinError: if it cannot, with the reason.
    """
    from twin.views.film import check_settings
    from twin.views.playback import check_count

    check_settings(path, **settings)
    writable(path, path.suffix.lower(), "--film")
    check_count(count)


def write_film(files: Files, path: Path, logs: list[Log], names: list[str], **settings: Any) -> None:
    """Write it, and tell what it leaves out; settings as of `twin.film`."""
    from scenarios.console.progress import shown
    from twin.views.film import Film, film

    done: list[Film] = []
    with shown(1) as begin:
        progress = begin(f"drawing {path.name}")
        files.write(
            path,
            lambda draft: done.append(film(logs, draft, names=names, progress=progress, **settings)),
        )
    for made in done:
        for note in made.notes:
            complain(note)
