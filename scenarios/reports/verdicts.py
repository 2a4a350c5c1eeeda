"""Verdicts in a word, and those of several runs in a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from scenarios.metric import Outcome

if TYPE_CHECKING:
    from scenarios.running.runs import Run

WORDS: dict[Outcome, str] = {
    "passes": "holds",
    "fails": "FAILS",
    "not judged": "not judged",
    "undetermined": "UNDETERMINED",
    "not computed": "NOT COMPUTED",
}
STYLES = {"passes": "green", "not judged": "yellow"}


def verdict(outcome: Outcome | bool) -> Text:
    """`holds` in green, `FAILS` in red, and the other outcomes; a truth is one of these two."""
    found: Outcome = ("passes" if outcome else "fails") if isinstance(outcome, bool) else outcome
    return Text(WORDS[found], STYLES.get(found, "bold red"))


def summed(runs: Sequence[Run], broken: str) -> str:
    """What came of the checks of runs, and how their tracking was judged.

    Args:
        runs: any number.
        broken: what to say of the checks if some do not hold; empty if all do.

    Returns:
        a sentence, as `all checks pass; tracking: 2 exact, 1 not judged (no bound known with sensors)`.
    """
    found = [run.tracking for run in runs if run.tracking]
    counts = Counter(one.verdict for one in found)
    told = [f"{counts[kind]} {kind.replace('_', ' ')}" for kind in KINDS if counts[kind]]
    whys = ", ".join(dict.fromkeys(one.reason for one in found if one.verdict == "not_judged"))
    said = f"; tracking: {', '.join(told)}" if told else ""
    return (broken or "all checks pass") + said + (f" ({whys})" if whys else "")


KINDS = ("exact", "bounded", "limited", "undetermined", "not_judged")


def unjudged(runs: Sequence[Run]) -> bool:
    """Whether the tracking of some run was not judged, so that nobody can say that everything holds."""
    return any(run.outcome in ("not judged", "undetermined") for run in runs)
