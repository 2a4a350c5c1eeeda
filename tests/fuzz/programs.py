"""Cases of programs: scenario files whose parts are wrong, or odd and yet right, and control laws in them."""

from typing import NamedTuple

import numpy as np

from tests.fuzz import odd, raw

PROGRAM = """{doc}
import sys
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from scenarios import base
from scenarios.base import Metric, option
from tests.fuzz.stage import TORQUE, driven, held

{top}

class Own(KeyboardInterrupt):
    pass


def fail():
    return fail()


@dataclass(frozen=True)
class Config(base.Config):
    robot: str = option("two_link", "which")
    {field}


def run(config):
    {run}


def metrics(log):
    {metrics}
{end}
"""


class Part(NamedTuple):
    """What stands in one place of a program, and whether that is right; `None` where nobody says."""

    text: str
    right: bool | None


def right(*texts: str) -> list[Part]:
    """Parts with which the program is right."""
    return [Part(text, True) for text in texts]


def wrong(*texts: str) -> list[Part]:
    """Parts with which it is wrong."""
    return [Part(text, False) for text in texts]


def open_(*texts: str) -> list[Part]:
    """Parts of which it is not said: a verdict, but no crash."""
    return [Part(text, None) for text in texts]


RAISED = (
    *(
        "KeyError('x')",
        "ValueError('a\\nb')",
        "TypeError",
        "RuntimeError('[/x]')",
        "AssertionError()",
        "OSError(5, 'x')",
    ),
    *(
        "SystemExit",
        "SystemExit(0)",
        "SystemExit('text')",
        "SystemExit(3.5)",
        "GeneratorExit",
        "Own()",
        "StopIteration",
    ),
    *(
        "BaseException('base')",
        "MemoryError",
        "RecursionError",
        "UnicodeError",
        "ArithmeticError",
        "Exception(object)",
    ),
    *(
        "KeyboardInterrupt",
        "BaseExceptionGroup('g', [SystemExit(0)])",
        "np.linalg.LinAlgError('s')",
        "Warning('w')",
    ),
)
RAISE = [f"raise {error}" for error in RAISED]
FAILURES = wrong(
    *RAISE, "sys.exit()", "sys.exit(0)", "return fail()", "1 / 0", "nowhere", "import nowhere_at_all"
)
METRIC = "return (Metric({}, {}, {}, {}, {}),)"

DOCS = [
    *right(
        '"""A title."""',
        '"""[/x] [bold]"""',
        "",
        '"""{x} %s"""',
        f'"""{"x" * 5000}"""',
        '"""\U0001f600\n\nMore."""',
    ),
    *open_('"""\\x1b[31m \\0"""', "# no docstring", "b'bytes'"),
]
TOPS = [
    *right("", "print('said')", "import os", "VARIANTS = ()", "suits = None"),
    *wrong(
        *RAISE, "sys.exit(0)", "import nowhere_at_all", "1 / 0", "def (:", "x = ", "\t  x", "return", "'open"
    ),
]
FIELDS = [
    *right("", 'far: float = option(0.5, "100 % [/x] %s {0}")', 'word: str = option("a", "b", ("a", "b"))'),
    *right("some: float | None = option(None, 'x')", "flag: bool = option(True, 'x')", "own: list = None"),
    *wrong(
        'far: float = option("far", "x")', "count: int = option(2.5, 'x')", "own: dict = {}", "own: list = []"
    ),
    *open_(
        "far: complex = option(1j, 'x')",
        "far: np.ndarray = option(None, 'x')",
        'far: "Nowhere" = option(1, "x")',
    ),
    *open_(
        "far: float = option(1.0, None)", "far: list[int] = option((), 'x')", "log: str = option('a', 'x')"
    ),
    *open_(
        "json: int = option(1, 'x')",
        "command: str = option('a', 'x')",
        "far: float = option(float('nan'), 'x')",
    ),
    *open_("help: str = option('a', 'x')", "bandwidth: int = option(3, 'x')", "gui: str = option('', 'x')"),
    *open_(
        "_far: float = option(1.0, 'x')",
        "word: str = option('c', 'x', ('a', 'b'))",
        "far: int | str = option(1, 'x')",
    ),
    *open_("word: str = option('a', 'x', (1, None))", "far = option(1.0, 'x')", "bandwidth: float = 20.0"),
    *wrong(
        "bandwidth: float = option(-1.0, 'x')",
        "time_step: float = option(float('nan'), 'x')",
        "robot: int = 3",
    ),
    *wrong(
        "robot: str = option('[/x]', 'x')", "robot: str = option('', 'x')", "mounting: str = option('x', 'y')"
    ),
    *wrong(*(f"def __post_init__(self):\n        {text}" for text in RAISE)),
]
RUNS = [
    *right("return held(config)", "print('said')\n    return held(config)"),
    *FAILURES,
    *wrong("return None", "pass", "return 3", "return [held(config)]", "yield held(config)", "return Config"),
    *wrong(
        "return run(config)",
        "return object.__new__(type(held(config)))",
        "return replace(held(config), q=None)",
    ),
    *open_(
        "return replace(held(config), controller='[/x]' * 9)", "return replace(held(config), controller=None)"
    ),
    *open_("return replace(held(config), tau=np.zeros(3))", "return replace(held(config), t='x')"),
    *open_(
        "log = held(config)\n    log.q[:] = np.nan\n    return log",
        "return replace(held(config), robot=None)",
    ),
    *open_(
        "return replace(held(config), q=held(config).q * 1e300)",
        "return replace(held(config), time_step='x')",
    ),
    *open_(
        "return replace(held(config), arrays={3: 'x'})", "return replace(held(config), steps_per_period=0)"
    ),
]
METRICS = [
    *right(
        METRIC.format("'[/x]'", "0.5", "'[rad]'", "1.0", "'[bold]'"),
        METRIC.format("'a'", "1", "''", "None", "''"),
    ),
    *right(METRIC.format("'a'", "np.float32(1)", "'m'", "1e308", "'x'"), "return ()", "return []"),
    *right(METRIC.format("'x' * 5000", "-1e308", "'\U0001f600'", "0", "'why'")),
    *FAILURES,
    *wrong(
        METRIC.format("'a'", "float('nan')", "'m'", "1.0", "'x'"),
        METRIC.format("'a'", "2.0", "'m'", "1.0", "'x'"),
    ),
    *wrong(
        METRIC.format("'a'", "float('inf')", "'m'", "1.0", "'x'"),
        METRIC.format("'a'", "0.0", "'m'", "np.nan", "'x'"),
    ),
    *wrong(
        METRIC.format("'a'", "'text'", "'m'", "None", "'x'"),
        METRIC.format("'a'", "None", "'m'", "1.0", "'x'"),
    ),
    *wrong(
        METRIC.format("'a'", "np.zeros(3)", "'m'", "1.0", "'x'"),
        METRIC.format("'a'", "1j", "'m'", "1.0", "'x'"),
    ),
    *wrong(METRIC.format("3", "0.0", "'m'", "1.0", "'x'"), METRIC.format("None", "0.0", "'m'", "1.0", "'x'")),
    *wrong(
        METRIC.format("'a'", "0.0", "'m'", "'high'", "'x'"),
        METRIC.format("'a'", "0.0", "'m'", "[1.0]", "'x'"),
    ),
    *wrong(
        "return None",
        "return 3",
        "return 'text'",
        "return (1, 2)",
        "yield 3",
        "return {}",
        "return (Metric,)",
    ),
    *open_(
        METRIC.format("'a'", "0.0", "None", "1.0", "None"),
        METRIC.format("'a'", "np.zeros(())", "'m'", "1.0", "'x'"),
    ),
    *open_(
        METRIC.format("''", "True", "''", "True", "''"),
        METRIC.format("'a\\nb'", "Decimal(1)", "'m'", "1.0", "b'x'"),
    ),
    *open_(
        METRIC.format("'a'", "10 ** 400", "'m'", "1.0", "'x'"),
        METRIC.format("'\\x1b[2J'", "0.0", "'m'", "1.0", "3"),
    ),
]
ENDS = [
    *right("", "\nOTHER = 3"),
    *wrong(
        "\nConfig = 3", "\ndel run", "\ndel metrics", "\nConfig = Config()", "\nrun = None", "\nmetrics = 'x'"
    ),
    *wrong(
        "\nclass Config:\n    pass",
        "\nsys.exit(0)",
        "\nraise Own()",
        "\ndef run():\n    pass",
        "\nConfig = base.Config, 1",
    ),
    *open_(
        "\nclass Config(Config):\n    x = 1",
        "\n__doc__ = 3",
        "\n__file__ = None",
        "\nVARIANTS = 3",
        "\nrun = print",
    ),
]
LAWS = [
    *right(
        "return np.array(TORQUE[:2])",
        "return np.zeros((1, 2))[0]",
        "return [0, 1]",
        "return (0.0, True)",
        "return np.float32([0, 1])",
    ),
    *FAILURES,
    *wrong(
        "return None",
        "pass",
        "return 0.0",
        "return 'ab'",
        "return ['a', 'b']",
        "return np.zeros(3)",
        "return {}",
    ),
    *wrong(
        "return np.zeros((2, 1))",
        "return np.zeros((1, 2))",
        "return [np.nan, 0]",
        "return [0, np.inf]",
        "return [None, 0]",
    ),
    *wrong(
        "return [1j, 0]",
        "return iter([0, 1])",
        "yield 0",
        "return [[0], [1, 2]]",
        "return law(state, reference)",
    ),
    *open_(
        "return [1e308, -1e308]",
        "return np.ma.array([0, 1], mask=[1, 0])",
        "return np.array([0, 1], dtype=object)",
    ),
    *open_(
        "state.q[:] = 7\n        return [0, 1]",
        "reference.q[:] = 7\n        return [0, 1]",
        "return [10 ** 400, 0]",
    ),
    *open_(
        "return np.array([0, 1], 'M8[s]')",
        "return ['0', '1']",
        "return np.array([0, 1], 'm8[s]')",
        "return b'ab'",
    ),
]
LAW = "def law(state, reference):\n        {}\n    {}return driven(config, law)"
NAMED = [*right(""), *open_("law.name = '[/x]'\n    ", "law.name = None\n    ", "law.reset = fail\n    ")]
NAMED += [*wrong("law = 3\n    ", "law = None\n    ", "law = fail\n    ", "law = type\n    ")]
PLACES = {"doc": DOCS, "top": TOPS, "field": FIELDS, "run": RUNS, "metrics": METRICS, "end": ENDS}


class Program(NamedTuple):
    """A program, and whether it is right; `None` where that is not known."""

    text: bytes
    right: bool | None


def scenario(rng: np.random.Generator) -> Program:
    """A scenario file with one or two parts that are not as in the first of each list."""
    parts = {place: known[0] for place, known in PLACES.items()}
    for _ in range(rng.integers(1, 3)):
        place = odd.one_of(rng, list(PLACES))
        parts[place] = odd.one_of(rng, PLACES[place])
    return _program(rng, parts)


def controller(rng: np.random.Generator) -> Program:
    """A scenario file that is right, but for the control law in it."""
    parts = {place: known[0] for place, known in PLACES.items()}
    law, named = odd.one_of(rng, LAWS), odd.one_of(rng, NAMED) if rng.random() < 0.2 else NAMED[0]
    parts["run"] = Part(LAW.format(law.text, named.text), _both([law, named]))
    return _program(rng, parts)


def _program(rng: np.random.Generator, parts: dict[str, Part]) -> Program:
    """The program of these parts; seldom with its bytes damaged, and then nobody knows."""
    text = PROGRAM.format(**{place: part.text for place, part in parts.items()})
    content, verdict = text.encode("utf-8", "surrogatepass"), _both(list(parts.values()))
    if rng.random() < 0.05:
        return Program(raw.damaged(rng, content), None)
    return Program(content, verdict)


def _both(parts: list[Part]) -> bool | None:
    """Whether all are right: not if one is wrong, and unknown if that is so of one."""
    said = [part.right for part in parts]
    return False if False in said else None if None in said else True
