"""Cases of programs: scenario files whose parts are wrong, or odd and yet right, and control laws in them."""

from typing import NamedTuple

import numpy as np

from tests.fuzz import odd, raw
from tests.fuzz import program_parts as part
from tests.fuzz.program_parts import Part

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


LAW = """def law(state, reference):
        {}
    {}
    return driven(config, law)"""
PLACES = {
    "doc": part.DOCS,
    "top": part.TOPS,
    "field": part.FIELDS,
    "run": part.RUNS,
    "metrics": part.METRICS,
    "end": part.ENDS,
}


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
    law = odd.one_of(rng, part.LAWS)
    named = odd.one_of(rng, part.NAMED) if rng.random() < 0.2 else part.NAMED[0]
    parts["run"] = Part(LAW.format(law.text, named.text), _both([law, named]))
    return _program(rng, parts)


def _program(rng: np.random.Generator, parts: dict[str, Part]) -> Program:
    """The program of these parts; seldom with its bytes damaged, and then nobody knows."""
    text = PROGRAM.format(**{place: chosen.text for place, chosen in parts.items()})
    content, verdict = text.encode("utf-8", "surrogatepass"), _both(list(parts.values()))
    if rng.random() < 0.05:
        return Program(raw.damaged(rng, content), None)
    return Program(content, verdict)


def _both(parts: list[Part]) -> bool | None:
    """Whether all are right: not if one is wrong, and unknown if that is so of one."""
    said = [chosen.right for chosen in parts]
    return False if False in said else None if None in said else True
