"""Logs side by side: figures for programs, a table for people, and pictures of their curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from twin.logs.figures import Figures, figures_of
from twin.logs.log import Log
from twin.logs.parts import finite_part
from twin.views import curves
from twin.views.comparison_table import table, wrapped
from twin.views.differences import differences


@dataclass(frozen=True, eq=False)
class Comparison:
    """Logs side by side; make it with `twin.compare`.

    Attributes:
        logs: by name, in order.
        figures: of each log, by name; of a run with numbers that are not finite, of its samples before them.
        notes: sentences on what cannot be compared, and why; empty where all can.
    """

    logs: Mapping[str, Log]
    figures: Mapping[str, Figures]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        return self.table()

    def table(self, width: int | None = None) -> str:
        """The table and the notes as text, a column a log.

        Args:
            width: characters of a line; logs that do not fit beside the others go below them. `None` for all
                abreast.
        """
        notes = [wrapped(f"note: {note}", width) for note in self.notes]
        return "\n".join([table(self.logs, self.figures, width), *notes])

    def picture(
        self, path: str | Path, what: str = "error", joints: Sequence[str] | None = None
    ) -> Comparison:
        """Draw the logs over time, overlaid, a panel a joint; whole or not at all.

        Args:
            path: of a PNG, PDF or SVG file.
            what: "error", "torque", "speed", "position" or "pose".
            joints: names of those to draw; `None` for all, and for the error also that of the tool.

        Returns:
            The comparison itself.

        Raises:
            ValueError: there is nothing of that name to draw, or no such kind of file.
            UnknownNameError: none of the robots has such a joint.
            OSError: the file cannot be written.
        """
        curves.draw(self.logs, path, what, joints)
        return self


def compare(
    logs: Log | str | Path | Iterable[Log | str | Path] | Mapping[str, Log | str | Path],
) -> Comparison:
    """Put logs side by side: `print(twin.compare(logs))`, `twin.compare(logs).picture("error.png")`.

    Robots, lengths and periods may differ: joints are matched by name, and every figure is of its own run.

    Args:
        logs: runs, or the files that `Log.save` or `irb-twin run --log` wrote; a mapping gives them names.
            Without one they are called after their controllers if these differ and none of them is a file
            of another's name, else after their files; equal names are numbered.

    Raises:
        ValueError: there is no log, or something else in its place.
        TwinError: a file is missing or no log, or its robot is not there any more.
    """
    if isinstance(logs, (Log, str, Path)):
        logs = [logs]
    given = list(logs.values()) if isinstance(logs, Mapping) else list(logs)
    if not given:
        raise ValueError("expected at least one log to compare, got none")
    read = [_log(one) for one in given]
    names = [str(name) for name in logs] if isinstance(logs, Mapping) else _names(given, read)
    named = MappingProxyType(dict(zip(names, read, strict=True)))
    figures = {name: figures_of(finite_part(log)) for name, log in named.items()}
    return Comparison(named, MappingProxyType(figures), differences(named))


def _log(given: object) -> Log:
    if isinstance(given, Log):
        return given
    if isinstance(given, (str, Path)):
        return Log.load(given)
    raise ValueError(f"expected a Log or the path of one, got {type(given).__name__}")


def _names(given: Sequence[object], logs: Sequence[Log]) -> list[str]:
    """The controllers' names if they differ, else those of the files; equal ones are numbered."""
    names = [log.controller for log in logs]
    if len(set(names)) < len(names):
        names = [Path(one).stem if isinstance(one, (str, Path)) else log.controller
                 for one, log in zip(given, logs, strict=True)]  # fmt: skip
    taken: list[str] = []
    for name in names:
        numbered = (name if number == 1 else f"{name} ({number})" for number in range(1, len(names) + 2))
        taken.append(next(one for one in numbered if one not in taken))
    return taken
