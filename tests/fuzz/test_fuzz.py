"""Hundreds of damaged files of every kind, the same ones every time; `make fuzz` goes on for longer."""

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
def test_every_file_is_refused_in_a_sentence_or_read_as_it_stands(kind):
    outcomes, faults = Counter(), {}
    for id, verdict in judged(judge, [CaseId(kind, SEED, number) for number in range(CASES[kind])]):
        outcomes[verdict.outcome] += 1
        if verdict.is_fault:
            faults.setdefault(verdict.sort, f"{verdict.sort}: {id.command}\n    {verdict.text[:300]}")
    if faults:
        told = "\n".join(faults.values())
        pytest.fail(f"{outcomes['fault']} faults, {len(faults)} sorts:\n{told}", pytrace=False)
    # Files that are all refused, or all accepted, would try nothing.
    accepted = outcomes["accepted"] + outcomes["compared"]
    assert min(outcomes["refused"], accepted) > 0.05 * CASES[kind], outcomes
