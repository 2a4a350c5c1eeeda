"""Change single lines of the product, and see a test fail for each: `make mutants`.

A mutant is one changed line of the product, with the tests that fail because of it.  The tables of this
folder list them by room.  First the tests of all chosen mutants run on the unchanged product, and must pass.
Then each mutant runs in a copy of the checkout, until its first test fails.  A mutant that no test notices
survives; the exit status is 1 if one does.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from urdf.schema import tomllib

TABLES = Path(__file__).parent
HOUSE = TABLES.parents[1]

LONGEST = 600.0
"""Time after which the tests of a mutant end, in [s]; a mutant that makes the product hang is noticed."""

FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+::.*?)(?: - |$)", flags=re.M)


@dataclass(frozen=True)
class Mutant:
    """One changed line of the product.

    Attributes:
        name: name of the table, a colon, and the mutant's name in it.
        file: path of the file that changes.
        old: text that occurs once in this file.
        new: text that replaces it.
        tests: pytest's names of tests that fail then; empty for a mutant that is known to survive.
        survives: reason why no test notices the mutant; empty if `tests` do.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = ()
    survives: str = ""

    def apply(self, house: Path) -> str:
        """Change the line in a checkout, and return the file's text before."""
        path = house / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            sys.exit(f"{self.name}: the old text is {text.count(self.old)} times in {self.file}, not once")
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")
        return text


def mutants() -> list[Mutant]:
    """Return the mutants of all tables."""
    found = []
    for path in sorted(TABLES.glob("*.toml")):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        for name, entry in table.items():
            tests = tuple(entry.pop("tests", ()))
            found.append(Mutant(f"{path.stem}:{name}", tests=tests, **entry))
    return found


def copy_of_checkout(parent: Path, number: int) -> Path:
    """Copy the files of this checkout that git knows or would add, and return the copy."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=HOUSE, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    house = parent / str(number) / HOUSE.name
    for name in filter(lambda name: (HOUSE / name).is_file(), listed):
        (house / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(HOUSE / name, house / name)
    if (shared := HOUSE.parent / "shared").is_dir():  # measured data beside the checkout
        (house.parent / "shared").symlink_to(shared)
    return house


def run_tests(house: Path, cache: Path, tests: tuple[str, ...], *options: str) -> tuple[int | None, str]:
    """Run tests in a checkout; return pytest's exit status, `None` after `LONGEST`, and the output."""
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", "-rfE", *options, *tests]
    environment = os.environ | {
        "PYTHONPATH": str(house), "XDG_CACHE_HOME": str(cache), "OPENBLAS_NUM_THREADS": "1",
        "COLUMNS": "1000", "PYTHONDONTWRITEBYTECODE": "1",  # byte code is outdated by seconds only
    }  # fmt: skip
    try:
        ended = subprocess.run(
            [sys.executable, *words], cwd=house, env=environment, capture_output=True, text=True,
            timeout=LONGEST, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, ""
    return ended.returncode, ended.stdout + ended.stderr


def judge(
    mutant: Mutant, houses: "SimpleQueue[Path]", cache: Path, tests: tuple[str, ...], most: int
) -> bool:
    """Run the tests of a mutant, print what they notice, and return whether that is as the table says."""
    house = houses.get()
    text = mutant.apply(house)
    try:
        status, output = run_tests(house, cache, tests or mutant.tests, "-n", "0", f"--maxfail={most}")
    finally:
        (house / mutant.file).write_text(text, encoding="utf-8")
        houses.put(house)
    failed = [*dict.fromkeys(FAILED.findall(output))]
    if status is None:
        print(f"{mutant.name}: noticed, its tests do not end", flush=True)
    elif status in (1, 2) and failed:
        print(f"{mutant.name}: noticed by\n    " + "\n    ".join(failed), flush=True)
    elif status == 0:
        print(f"{mutant.name}: SURVIVES {mutant.survives and '(known: ' + mutant.survives + ')'}", flush=True)
        return bool(mutant.survives)
    else:
        print(f"{mutant.name}: its tests do not run, exit status {status}\n{output[-2000:]}", flush=True)
        return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "names", nargs="*", help="mutants or tables, as multibody or multibody:gravity; default: all"
    )
    parser.add_argument(
        "--tests", nargs="+", default=(), help="run these tests instead of those in the table"
    )
    parser.add_argument(
        "--most", type=int, default=1, help="end a mutant after this many failures (default: 1)"
    )
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="mutants at once (default: all cores)"
    )
    given = parser.parse_args()
    names = given.names
    chosen = [m for m in mutants() if not names or m.name in names or m.name.partition(":")[0] in names]
    if not chosen:
        parser.error(f"no mutant is named {' or '.join(names)}")
    with ExitStack() as stack:
        parent = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants")))
        houses: SimpleQueue[Path] = SimpleQueue()
        copies = [copy_of_checkout(parent, number) for number in range(given.jobs)]
        for house in copies:
            houses.put(house)
        every = tuple(dict.fromkeys(given.tests or [test for mutant in chosen for test in mutant.tests]))
        if every:
            print(f"{len(every)} tests on the unchanged product", flush=True)
            status, output = run_tests(copies[0], parent, every, "-n", str(given.jobs))
            if status != 0:
                print(f"they must pass first:\n{output[-5000:]}")
                return 1
        work = partial(judge, houses=houses, cache=parent, tests=tuple(given.tests), most=given.most)
        with ThreadPoolExecutor(given.jobs) as pool:
            as_stated = list(pool.map(work, [m for m in chosen if m.tests or given.tests]))
    known = sum(not (mutant.tests or given.tests) for mutant in chosen)
    print(f"{sum(as_stated)} of {len(as_stated)} mutants are noticed; {known} are known to survive")
    return not all(as_stated)


if __name__ == "__main__":
    sys.exit(main())
