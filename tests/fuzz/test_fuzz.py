"""Judge hundreds of reproducible damaged files of every kind; `make fuzz` judges more."""

from collections import Counter

import pytest

from tests.fuzz.cases import KINDS, CaseId
from tests.fuzz.judges import judge
from tests.fuzz.workers import judged

SEED = 1
CASES = {
    "urdf": 180,
    "robot_toml": 50,
    "dh_toml": 160,
    "csv": 350,
    "npz": 80,
    "check_model": 8,
    "scenario": 40,
    "controller": 20,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_is_rejected_with_one_line_or_read_correctly(kind):
    outcomes, faults = Counter(), {}
    for id, verdict in judged(judge, [CaseId(kind, SEED, number) for number in range(CASES[kind])]):
        outcomes[verdict.outcome] += 1
        if verdict.is_fault:
            faults.setdefault(verdict.sort, f"{verdict.sort}: {id.command}\n    {verdict.text[:300]}")
    if faults:
        report = "\n".join(faults.values())
        pytest.fail(f"{outcomes['fault']} faults of {len(faults)} sorts:\n{report}", pytrace=False)
    # Cases that are all rejected, or all accepted, would test nothing.
    accepted = outcomes["accepted"] + outcomes["compared"]
    assert min(outcomes["refused"], accepted) > 0.05 * CASES[kind], outcomes
