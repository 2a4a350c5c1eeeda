"""Writing of a robot's URDF beside its facts, the `robot.toml`.

    python -m urdf.build irb140                  a robot of this project; all of them when none is named
    python -m urdf.build my_arm/robot.toml       a user's robot: my_arm/<name>.urdf, by the name in the file
    python -m urdf.build --check ...             check whether the URDFs are up to date, write nothing

`urdf/facts.py` describes the `robot.toml`; `urdf/urdf_text.py` derives the URDF.
"""

import argparse
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import NoReturn

from urdf.facts import FactsError, read
from urdf.urdf_text import urdf

HERE = Path(__file__).parent


class Parser(argparse.ArgumentParser):
    """Parser that reports an error as one sentence."""

    def error(self, message: str) -> NoReturn:
        """Raise `FactsError`."""
        raise FactsError(message)


def robots() -> list[str]:
    """Return the names of the built-in robots that have a `robot.toml`."""
    return sorted(path.parent.name for path in HERE.glob("*/robot.toml"))


def facts_file(robot: str) -> Path:
    """Return the `robot.toml` of a built-in robot, or the one at a path."""
    if robot in robots():
        return HERE / robot / "robot.toml"
    path = Path(robot)
    if path.name.endswith("dh.toml"):
        raise FactsError(f"{robot} needs no URDF: load it as it is")
    if path.suffix != ".toml":
        raise FactsError(
            f"unknown robot {robot!r}: known are {', '.join(robots())}, or the path of a robot.toml"
        )
    return path


def built(path: Path) -> tuple[Path, str]:
    """Return the path and the text of the URDF that belongs to a `robot.toml`.

    Raises:
        FactsError: the file is missing or malformed, or describes an impossible body.
    """
    facts = read(path, parse_float=Decimal)
    if "urdf" in facts:
        raise FactsError(f"{path} needs no URDF: it has {facts['urdf']}")
    ours = path.parent.resolve().parent == HERE.resolve()
    if ours and facts["name"] != path.parent.name:
        raise FactsError(f"{path}: expected name = {path.parent.name!r}, got {facts['name']!r}")
    try:
        text = urdf(facts, None if ours else path.name)
    except FactsError as error:
        raise FactsError(f"{path}: {error}") from error
    return path.with_name(f"{facts['name']}.urdf"), text


def is_current(path: Path, text: str) -> bool:
    """Return whether the file contains this text."""
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, ValueError):
        return False


def replace(path: Path, content: str) -> None:
    """Write a file atomically: an existing file remains until the new one is complete.

    Raises:
        OSError: it cannot be written.
    """
    draft = path.with_suffix(".draft")
    try:
        draft.write_text(content, encoding="utf-8", newline="\n")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the URDFs of the named robots.

    Args:
        argv: arguments of the command; `None` for those of the process.

    Returns:
        The exit status: 0; 1 if a file could not be written, or with `--check` if one is not up to date; 2,
        with one sentence on standard error, for bad input.
    """
    assert __doc__ is not None
    title, _, about = __doc__.partition("\n\n")
    parser = Parser(
        "python -m urdf.build",
        description=title,
        epilog=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("robots", nargs="*", metavar="ROBOT", help="a name, or the path of a robot.toml")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; list the URDFs that are out of date"
    )
    try:
        given = parser.parse_args(argv)
        pairs = [built(facts_file(robot)) for robot in given.robots or robots()]
    except FactsError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return check(pairs) if given.check else write(pairs)


def check(pairs: list[tuple[Path, str]]) -> int:
    """Print whether each file is up to date; return 1 if one is not."""
    current = [is_current(path, text) for path, text in pairs]
    for (path, _), holds in zip(pairs, current, strict=True):
        sys.stdout.write(f"{path}: {'up to date' if holds else 'differs, or is missing: write it again'}\n")
    return 0 if all(current) else 1


def write(pairs: list[tuple[Path, str]]) -> int:
    """Write the files; return 1 if one cannot be written, which does not affect the others."""
    status = 0
    for path, text in pairs:
        try:
            replace(path, text)
            sys.stdout.write(f"wrote {path}\n")
        except OSError as error:
            sys.stderr.write(f"error: {path} cannot be written: {error.strerror}\n")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
