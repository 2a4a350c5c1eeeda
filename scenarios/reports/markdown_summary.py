"""A validation as a page of Markdown, for the summary of a CI: the verdict, what fails, and a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.reports.broken_runs import broken_runs
from scenarios.reports.validation_report import HEADINGS, comparison_line, rows
from scenarios.reports.verdicts import WORDS, summed, unjudged
from scenarios.running.provenance import in_a_line

if TYPE_CHECKING:
    from scenarios.reports.baseline import Comparison
    from scenarios.running.runs import Run

MOST_FAILURES = 20
"""In full; a page of a CI has a limited size, and the files have them all."""


def write_markdown(
    runs: Sequence[Run],
    path: Path,
    comparison: Comparison | None = None,
    factor: float = 1.0,
    unsuited: str = "",
) -> None:
    """Write the page.

    Args:
        runs: what was run.
        path: where to.
        comparison: with a baseline, if there was one.
        factor: that a figure must have grown by to be named there.
        unsuited: a sentence on what was not run.
    """
    lines = [*_verdict(runs), *_failing(runs)]
    if comparison is not None:
        lines += _compared(comparison, factor)
    lines += _table(runs)
    lines += [plain(unsuited), ""] if unsuited else []
    lines += [f"Made with {plain(in_a_line())}.", ""]
    path.write_text("\n".join(lines), encoding="utf-8", errors="backslashreplace")


def _verdict(runs: Sequence[Run]) -> Iterator[str]:
    broken = sum(not run.holds for run in runs)
    checks = sum(metric.limit is not None for run in runs for metric in run.metrics)
    held = "every check passes, not all was judged" if unjudged(runs) else "everything holds"
    yield "## irb-twin validate: " + (f"{broken} FAIL" if broken else held)
    yield ""
    kept = summed(runs, f"{broken} FAIL" if broken else "")
    yield f"{len(runs)} runs, {checks} checks: {plain(kept)}."
    yield ""


def _failing(runs: Sequence[Run]) -> Iterator[str]:
    found = broken_runs(runs)
    if found:
        yield from ("### What does not hold", "")
    for broken in found[:MOST_FAILURES]:
        yield f"- **{plain(broken.title)}**"
        yield from (f"  - {plain(sentence)}" for sentence in broken.sentences)
        yield f"  - Whose fault: {plain(broken.cause)}"
        yield f"  - Repeat it: {code(broken.repeat)}"
    if len(found) > MOST_FAILURES:
        yield f"- and {len(found) - MOST_FAILURES} more"
    if found:
        yield ""


def _compared(comparison: Comparison, factor: float) -> Iterator[str]:
    yield from ("### Beside the baseline", "", plain(comparison_line(comparison, factor)), "")
    for what, sentences in (
        ("Worse", comparison.worse),
        ("Warning", comparison.grown),
        ("Warning", comparison.missing),
        ("Note", comparison.notes),
    ):
        yield from (f"- {what}: {plain(sentence)}" for sentence in sentences)
    yield ""


def _table(runs: Sequence[Run]) -> Iterator[str]:
    if not runs:
        return
    yield "| " + " | ".join(HEADINGS) + " |"
    yield "|---|---|---|---:|---:|---|"
    for run, cells in zip(runs, rows(runs), strict=True):
        judged = WORDS[run.outcome] if run.holds else f"**{WORDS[run.outcome]}**"
        yield "| " + " | ".join(plain(cell) for cell in cells) + f" | {judged} |"
    yield ""


def plain(text: str) -> str:
    """A text on one line whose signs are no Markdown."""
    one_line = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#" else letter for letter in one_line)


def code(text: str) -> str:
    """A text as code, whatever backquotes are in it."""
    longest = max(map(len, "".join(sign if sign == "`" else " " for sign in text).split()), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {text} {fence}" if longest else f"`{text}`"
