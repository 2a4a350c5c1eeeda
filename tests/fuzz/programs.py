"""Fuzz cases of programs: scenario files with unusual or wrong parts, and control laws in them."""

import numpy as np

from tests.fuzz import program_parts as part
from tests.fuzz import raw, unusual
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

class Interrupt(KeyboardInterrupt):
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


def scenario(rng: np.random.Generator) -> tuple[bytes, bool | None]:
    """Make a scenario file with one or two other parts; return it, and whether it is valid, if known."""
    parts = {place: known[0] for place, known in PLACES.items()}
    for _ in range(rng.integers(1, 3)):
        place = unusual.one_of(rng, list(PLACES))
        parts[place] = unusual.one_of(rng, PLACES[place])
    return _program(rng, parts)


def controller(rng: np.random.Generator) -> tuple[bytes, bool | None]:
    """Make a scenario file that is valid apart from its control law."""
    parts = {place: known[0] for place, known in PLACES.items()}
    law = unusual.one_of(rng, part.LAWS)
    named = unusual.one_of(rng, part.NAMED) if rng.random() < 0.2 else part.NAMED[0]
    parts["run"] = Part(LAW.format(law.text, named.text), _both([law, named]))
    return _program(rng, parts)


def _program(rng: np.random.Generator, parts: dict[str, Part]) -> tuple[bytes, bool | None]:
    """Put parts together; rarely damage the bytes, which makes the expectation unknown."""
    text = PROGRAM.format(**{place: chosen.text for place, chosen in parts.items()})
    content, verdict = text.encode("utf-8", "surrogatepass"), _both(list(parts.values()))
    if rng.random() < 0.05:
        return raw.damaged(rng, content), None
    return content, verdict


def _both(parts: list[Part]) -> bool | None:
    """Return False if a part is wrong, else None if one is open, else True."""
    expected = [chosen.right for chosen in parts]
    return False if False in expected else None if None in expected else True
