"""Options from a dataclass, and the dataclass from what was typed."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from scenarios.options import argument, option, output_file, section
from scenarios.shell.command_line import COMMANDS, _offered
from scenarios.shell.parser import Commands, Parser, add_options, count, made, output_files
from twin.base.errors import WrongUse


@dataclass(frozen=True)
class Fit:
    """Options of a section; one field is none."""

    order: int = option(2, "degree of the polynomial")
    weights: tuple[float, ...] = option((), "of the points")
    kept: str = "as it is"


@dataclass(frozen=True)
class Example:
    """Options of every kind."""

    logs: tuple[Path, ...] = argument("logs", "LOG")
    what: tuple[Literal["error", "torque"], ...] = option(("error",), "what to draw", "WHAT")
    speed: float | None = option(None, "in rad/s", "S", flag="--from", group="motion")
    loud: bool = option(False, "say more")
    size: tuple[float, float] | None = option(None, "of the page", ("W", "H"))
    csv: Path | None = option(None, "a table", "FILE.csv", alone=Path("beside"), group="files")
    runs: int | None = option(None, "how many", "N", read=count)
    out: Path | None = output_file(".json", "all of it")
    fit: Fit = section(Fit, "the fit")
    last: str = option("end", lambda names: f"after {' and '.join(names)}")


def read(*words):
    parser = Parser()
    add_options(parser, Example)
    given = vars(parser.parse_args(words))
    example = made(Example, given)
    assert given == {}
    return example


def test_values_have_their_types_and_lists_may_be_repeated():
    words = "a b --what torque --what error --from 2 --loud --size 3 4.5 --csv --runs 7 --out x.json"
    found = read(*words.split(), "--order", "5", "--weights", "1", "2", "--weights", "3", "--last=-")
    assert found == Example(
        (Path("a"), Path("b")), ("torque", "error"), 2.0, True, (3.0, 4.5), Path("beside"), 7, Path("x.json"),
        Fit(5, (1.0, 2.0, 3.0)), "-",
    )  # fmt: skip
    assert read("a.npz") == Example((Path("a.npz"),))
    assert read("a", "--csv", "b.csv").csv == Path("b.csv")
    assert read("a", "--what", "error", "torque").what == ("error", "torque")
    assert list(output_files(found)) == [(Path("x.json"), ".json", "--out")]
    assert list(output_files(read("a"))) == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "the following arguments are required: LOG"),
        ("a --what", "argument --what: expected at least one argument"),
        ("a --what speed", r"argument --what: invalid choice: 'speed' \(choose from '?error'?, '?torque'?\)"),
        ("a --size 1", "argument --size: expected 2 arguments"),
        ("a --runs 0", "argument --runs: expected a whole number above 0, got '0'"),
        ("a --kept b", "unrecognized arguments: --kept b"),
        ("a --loud=yes", "argument --loud: ignored explicit argument 'yes'"),
    ],
)
def test_what_does_not_fit_is_refused(words, told):
    with pytest.raises(WrongUse, match=told):
        read(*words.split())


def test_the_help_shows_groups_defaults_and_texts_that_depend_on_scenarios():
    parser = Parser()
    add_options(parser, Example, ["one", "two"])
    text = parser.format_help()
    parts = dict(part.split(":\n", 1) for part in text.split("\n\n") if ":\n" in part)
    for part, words in (
        ("motion", "--from"), ("motion", "--loud"), ("motion", "--size"), ("files", "--csv [FILE.csv]"),
        ("files", "--out FILE.json"), ("the fit", "--order INT"),
        ("the fit", "degree of the polynomial (default 2)"), ("options", "what to draw (default error)"),
        ("options", "after one and two (default end)"),
    ):  # fmt: skip
        assert words in parts[part]
    assert "(default" not in parts["motion"]


def test_a_dataclass_of_another_room_shows_its_choices_and_checks_them_itself():
    mode = field(default="joint", metadata={"help": "what is guided", "choices": ("joint", "pose")})
    kind = dataclasses.make_dataclass("Guided", [("mode", str, mode)])
    parser = Parser()
    add_options(parser, kind)
    assert "--mode joint|pose" in parser.format_help()
    assert made(kind, vars(parser.parse_args(["--mode", "soft"]))).mode == "soft"


@pytest.mark.parametrize("name", COMMANDS.places)
def test_every_command_is_a_frozen_dataclass_that_describes_itself(name, command):
    kind, _ = _offered(Parser(), COMMANDS, [name])
    assert isinstance(kind, Commands) or kind.__dataclass_params__.frozen
    text = command([name, "--help"]).out
    assert text.startswith(f"usage: irb-twin {name}")
    assert "(default )" not in " ".join(text.split())
    assert len(text.splitlines()) >= 8
