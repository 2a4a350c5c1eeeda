"""`python -m tests.fuzz`: judge fuzz cases for some time, or repeat one case.

--seconds 600 --seed 7              judge all kinds for ten minutes, with seed 7
--kind urdf --seed 1 --case 4711    judge one case, and write its files to a folder
"""

import argparse
import itertools
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz import cases
from tests.fuzz.cases import KINDS, CaseId
from tests.fuzz.judges import judge
from tests.fuzz.workers import judged


def main() -> int:
    """Run the command; return 0 if no fault was found, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--kind", choices=KINDS, nargs="+", default=KINDS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="judge only the case of this number")
    parser.add_argument("--seconds", type=float, default=60.0, help="total time for all kinds, in s")
    parser.add_argument("--workers", type=int, default=1, help="number of processes")
    parser.add_argument("--out", type=Path, help="folder for the files of the case or of each new fault")
    given = parser.parse_args()
    if given.case is not None:
        folder = given.out or Path(tempfile.mkdtemp(prefix="fuzz-"))
        return judge_one(CaseId(given.kind[0], given.seed, given.case), folder)
    seconds = given.seconds / len(given.kind)
    found = [judge_many(kind, given.seed, seconds, given.workers, given.out) for kind in given.kind]
    return 1 if any(found) else 0


def judge_one(id: CaseId, folder: Path) -> int:
    """Judge one case, write its files to a folder, and return 1 if it is a fault."""
    folder.mkdir(parents=True, exist_ok=True)
    path = cases.make(id).written(folder)
    _, verdict = next(judged(judge, [id]))
    print(f"{verdict.outcome}: {verdict.sort}\n{verdict.text}\nfiles in {path.parent}")
    return 1 if verdict.is_fault else 0


def judge_many(kind: str, seed: int, seconds: float, workers: int, out: Path | None) -> int:
    """Judge cases of a kind for some time, print each sort of fault once, and return the number of sorts."""
    end = time.monotonic() + seconds
    outcomes, sorts = Counter(), Counter()

    ids = (CaseId(kind, seed, number) for number in itertools.count())
    in_time = itertools.takewhile(lambda _: time.monotonic() < end, ids)
    for id, verdict in judged(judge, in_time, workers):
        outcomes[verdict.outcome] += 1
        if verdict.is_fault:
            sorts[verdict.sort] += 1
            if sorts[verdict.sort] == 1:
                print(f"FAULT {verdict.sort}\n  {verdict.text}\n  {id.command}", flush=True)
                if out is not None:
                    folder = out / f"{kind}_{seed}_{id.number}"
                    folder.mkdir(parents=True, exist_ok=True)
                    cases.make(id).written(folder)
    counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    print(f"{kind}, seed {seed}: {sum(outcomes.values())} cases: {counted}", flush=True)
    for sort, count in sorts.most_common():
        print(f"  {count:5} {sort}", flush=True)
    return len(sorts)


if __name__ == "__main__":
    sys.exit(main())
