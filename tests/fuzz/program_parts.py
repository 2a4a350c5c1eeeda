"""Parts of generated programs, one per line, each with the expected result.

The first word of a line is the expectation: a program with the part is "right", "wrong" or "open".  An open
part may be accepted, or rejected with a one-line message.  "each" inserts every error of `RAISED` in place of
the braces.  "each failure" stands for these errors and for `FAILURES`.  All of them are wrong.
"""

from typing import NamedTuple


class Part(NamedTuple):
    """Text in one place of a program, and whether it is valid; `None` if both results are allowed."""

    text: str
    right: bool | None


RAISED = (
    "KeyError('x')", r"ValueError('a\nb')", "TypeError", "RuntimeError('[/x]')", "AssertionError()",
    "OSError(5, 'x')", "SystemExit", "SystemExit(0)", "SystemExit('text')", "SystemExit(3.5)",
    "GeneratorExit", "Interrupt()", "StopIteration", "BaseException('base')", "MemoryError", "RecursionError",
    "UnicodeError", "ArithmeticError", "Exception(object)", "KeyboardInterrupt",
    "BaseExceptionGroup('g', [SystemExit(0)])", "np.linalg.LinAlgError('s')", "Warning('w')",
)  # fmt: skip
FAILURES = ("sys.exit()", "sys.exit(0)", "return fail()", "1 / 0", "nowhere", "import nowhere_at_all")
LONG = "x" * 5000
EXPECTED = {"right": True, "wrong": False, "open": None}


def parts(text: str) -> list[Part]:
    """Parse the lines of a text as parts."""
    found = []
    for line in text.splitlines()[1:]:
        expected, code = line[:6].strip(), line[6:].replace("<long>", LONG)
        if expected == "each":
            raised = [f"raise {error}" for error in RAISED]
            codes = [*raised, *FAILURES] if code == "failure" else [code.format(each) for each in raised]
            found += [Part(each, False) for each in codes]
        else:
            found.append(Part(code, EXPECTED[expected]))
    return found


DOCS = parts(r'''
right """A title."""
right
right """{x} %s"""
right """<long>"""
open  """\x1b[31m \0"""
''')
TOPS = parts(r"""
right
right print('said')
right VARIANTS = ()
each  {}
wrong sys.exit(0)
wrong 1 / 0
wrong x =
wrong 'open
""")
FIELDS = parts(r"""
right
right far: float = option(0.5, "100 % [/x] %s {0}")
right own: list = None
wrong far: float = option("far", "x")
wrong count: int = option(2.5, 'x')
open  far: np.ndarray = option(None, 'x')
open  far: float = option(1.0, None)
open  help: str = option('a', 'x')
open  bandwidth: int = option(3, 'x')
open  _far: float = option(1.0, 'x')
open  word: str = option('c', 'x', ('a', 'b'))
wrong bandwidth: float = option(-1.0, 'x')
wrong time_step: float = option(float('nan'), 'x')
wrong robot: str = option('[/x]', 'x')
wrong mounting: str = option('x', 'y')
each  def __post_init__(self): {}
""")
RUNS = parts(r"""
right return held(config)
each  failure
wrong return None
wrong return 3
wrong yield held(config)
wrong return Config
wrong return replace(held(config), q=None)
open  return replace(held(config), controller='[/x]' * 9)
open  log = held(config); log.q[:] = np.nan; return log
open  return replace(held(config), robot=None)
open  return replace(held(config), steps_per_period=0)
""")
METRICS = parts(r"""
right return (Metric('a', 1, '', None, ''),)
right return (Metric('[/x]', 0.5, '[rad]', 1.0, '[bold]'),)
right return ()
right return (Metric('x' * 5000, -1e308, '😀', 0, 'why'),)
each  failure
wrong return (Metric('a', float('nan'), 'm', 1.0, 'x'),)
wrong return (Metric('a', 2.0, 'm', 1.0, 'x'),)
wrong return (Metric('a', 'text', 'm', None, 'x'),)
wrong return (Metric('a', np.zeros(3), 'm', 1.0, 'x'),)
wrong return (Metric(3, 0.0, 'm', 1.0, 'x'),)
wrong return (Metric('a', 0.0, 'm', 'high', 'x'),)
wrong return None
wrong return 3
wrong yield 3
open  return (Metric('a', 0.0, None, 1.0, None),)
open  return (Metric('a\nb', Decimal(1), 'm', 1.0, b'x'),)
open  return (Metric('a', 10 ** 400, 'm', 1.0, 'x'),)
open  return (Metric('\x1b[2J', 0.0, 'm', 1.0, 3),)
""")
ENDS = parts(r"""
right
wrong Config = 3
wrong del run
wrong run = None
wrong sys.exit(0)
wrong raise Interrupt()
open  class Config(Config): x = 1
open  VARIANTS = 3
""")
LAWS = parts(r"""
right return np.array(TORQUE[:2])
right return (0.0, True)
each  failure
wrong return None
wrong pass
wrong return 'ab'
wrong return np.zeros(3)
wrong return np.zeros((1, 2))
wrong return [np.nan, 0]
wrong yield 0
wrong return [[0], [1, 2]]
open  return [1e308, -1e308]
open  return np.ma.array([0, 1], mask=[1, 0])
open  state.q[:] = 7; return [0, 1]
open  return [10 ** 400, 0]
""")
NAMED = parts(r"""
right
open  law.name = '[/x]'
open  law.reset = fail
wrong law = 3
""")
