"""Settings of control laws from the command line: `--set Kp=100 pd.Kd=1,2,3,4,5,6`, `--settings FILE.toml`.

A setting without a law's name before it goes to every law of the run that has it; there must be one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import controllers
from twin.errors import TwinError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class WrongUse(Exception):
    """A command line that cannot be understood."""


class Setting(NamedTuple):
    """One setting: of which law ("": of all that have it), its name, its value, and where it was given."""

    law: str
    name: str
    value: Any
    origin: str


def chosen(
    words: Sequence[str], file: Path | None, laws: Sequence[str]
) -> dict[str, tuple[tuple[str, Any], ...]]:
    """The settings of each law, as `Config.law_settings` has them.

    Args:
        words: as `Kp=100`, of `--set`.
        file: of `--settings`.
        laws: names of the laws that are to run.

    Raises:
        WrongUse: a setting is malformed, or none of the laws has it; the message says what there is.
    """
    settings = [*(() if file is None else of_file(file)), *map(of_word, words)]
    if not settings:
        return dict.fromkeys(laws, ())
    offered = {law: _offered(law) for law in laws}
    result: dict[str, dict[str, Any]] = {law: {} for law in laws}
    for setting in settings:
        meant = {law: offered[law] for law in laws if setting.law in ("", law, controllers.label(law))}
        fitting = [law for law, names in meant.items() if names is None or setting.name in names]
        if not meant:
            raise WrongUse(f"{setting.origin}: no law of this run is {setting.law!r}, only {', '.join(laws)}")
        if not fitting:
            told = "; ".join(f"{law} has {', '.join(names or ()) or 'none'}" for law, names in meant.items())
            raise WrongUse(f"{setting.origin}: there is no setting {setting.name!r}: {told}")
        for law in fitting:
            result[law][setting.name] = setting.value
    return {law: tuple(values.items()) for law, values in result.items()}


def of_word(word: str) -> Setting:
    """A setting as it stands on the command line.

    Raises:
        WrongUse: it has no name or no value.
    """
    left, sign, value = word.partition("=")
    law, _, name = left.rpartition(".")
    if not (sign and name.isidentifier() and value):
        raise WrongUse(f"--set {word}: expected NAME=VALUE, as Kp=100 or pd.Kp=9,9,9,4,4,4")
    return Setting(law, name, _value(value), f"--set {word}")


def of_file(path: Path) -> list[Setting]:
    """The settings in a TOML file: keys for all laws, tables for one each.

    Raises:
        WrongUse: the file cannot be read, or a value is neither number, text, truth value nor numbers.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"it is not TOML: {error}"
        raise WrongUse(f"--settings {path}: cannot be read: {reason}") from error
    settings = []
    for key, value in content.items():
        items = value.items() if isinstance(value, dict) else [(key, value)]
        for name, own in items:
            if isinstance(own, list) and all(type(x) in (int, float) for x in own):
                own = tuple(map(float, own))
            if not isinstance(own, (bool, int, float, str, tuple)):
                raise WrongUse(f"--settings {path}: {name} is {own!r}, expected a number, text or numbers")
            law = key if isinstance(value, dict) else ""
            settings.append(Setting(law, name, own, f"--settings {path}"))
    return settings


def _value(text: str) -> Any:
    """A number, numbers between commas, true or false, or the text itself."""
    if text in ("true", "false"):
        return text == "true"
    try:
        numbers = tuple(float(word) for word in text.split(","))
    except ValueError:
        return text
    return numbers[0] if len(numbers) == 1 else numbers


def _offered(law: str) -> tuple[str, ...] | None:
    """The settings of a law, but for the period, which is the run's; `None` where it does not say."""
    try:
        return tuple(name for name in controllers.settings(law) if name != "period")
    except TwinError:  # the run will tell
        return None
