"""Unusual and invalid numbers and texts for fuzz cases."""

import re

import numpy as np

NUMBERS = (
    "nan", "inf", "-inf", "1e308", "-1e308", "1e-320", "-0.0", "0", "-1", "1e400", "1e16", "1e-9", "1000",
    "9" * 400, "1_000", "1\u00a0", "\u00a01", "\u0661", "\uff11", "\u00bd", "0,5", "0x10", "0x1p3", "1d3",
    "", " ", "1e", "1.5.2", "--1", "+1", ".5", "5.", "1 2", "1 2 3", "1 2 3 4", "true", "None", "1.\t",
    "6.123233995736766e-17", "1.0000000000000002", "3.141592653589793", "12345678901234567890", "1e5",
)  # fmt: skip
TEXTS = (
    "", " ", "[/x]", "[bold]", "[/]", "[red", "]", "x" * 5000, "\u00e4" * 1100, "\U0001f916" * 300,
    "\U0001f600", "\x1b[31m", "\x00", "a\nb", "a\tb", "\x7f", "\u202e", "\ufeff", "%s %d {0} {x}", "<b>&amp;",
    '"', "'", "\\", "../../x", "/", "/dev/zero", "base", "tool0", "world", "payload", "joint_1", "nan",
    "__class__", "link 1",
)  # fmt: skip
DISGUISES = (
    lambda number: number.translate({ord("0") + k: 0xFF10 + k for k in range(10)}),
    lambda number: number.translate({ord("0") + k: 0x0660 + k for k in range(10)}),
    lambda number: re.sub(r"(\d)(\d)", r"\1_\2", number, count=1),
    lambda number: number + "\u00a0",
    lambda number: "\u2003" + number,
    lambda number: number.replace("-", "\u2212"),
    lambda number: number.replace(".", ","),
    lambda number: number + "f",
    lambda number: number + "e0",
    lambda number: "+" + number,
    lambda number: f" {number} ",
)
"""Functions that spell a number differently; the last three spellings are valid."""


def number(rng: np.random.Generator, near: str = "1") -> str:
    """Draw a number as text: an unusual one, `near` in another spelling, or a number derived from `near`."""
    choice = rng.random()
    if choice < 0.4:
        return one_of(rng, NUMBERS)
    if choice < 0.6:
        return one_of(rng, DISGUISES)(near)
    try:
        old = float(near)
    except ValueError:
        old = 1.0
    with np.errstate(all="ignore"):
        new = rng.choice([old * 10.0 ** rng.integers(-6, 7), -old, old + rng.normal(), old * rng.normal()])
    return repr(float(new))


def text(rng: np.random.Generator) -> str:
    """Draw one of `TEXTS`."""
    return one_of(rng, TEXTS)


def one_of(rng: np.random.Generator, known):
    """Draw an element of a sequence."""
    return known[rng.integers(len(known))]
