"""Judge hundreds of reproducible damaged files of every kind; `make fuzz` judges more."""

from collections import Counter

import pytest

from tests.fuzz.cases import KINDS, CaseId
from tests.fuzz.judges import judge
from tests.fuzz.workers import judged

SEED = 1
CASES = dict(zip(KINDS, (60, 25, 50, 100, 30, 4, 40, 20), strict=True))


def test_every_file_is_rejected_with_one_line_or_read_correctly():
    """Judge a sample of each kind, which takes some 15 s, all in one process, which starts in 3 s."""
    outcomes, faults = {kind: Counter() for kind in KINDS}, {}
    ids = [CaseId(kind, SEED, number) for kind in KINDS for number in range(CASES[kind])]
    for id, verdict in judged(judge, ids):
        outcomes[id.kind][verdict.outcome] += 1
        if verdict.is_fault:
            faults.setdefault(verdict.sort, f"{verdict.sort}: {id.command}\n    {verdict.text[:300]}")
    if faults:
        report = "\n".join(faults.values())
        pytest.fail(f"faults of {len(faults)} sorts:\n{report}", pytrace=False)
    for kind, count in outcomes.items():
        # Cases that are all rejected, or all accepted, would test nothing.
        accepted = count["accepted"] + count["compared"]
        assert min(count["refused"], accepted) > 0.05 * CASES[kind], (kind, count)
