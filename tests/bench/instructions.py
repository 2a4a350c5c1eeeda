"""Counts of instructions in place of times: they hardly vary, however busy the machine is.

The whole run is repeated under valgrind's callgrind, a processor in software.  It counts only while a call is
measured, so that imports and checks stay affordable.  To a count all instructions are alike, a division or a
miss of the cache too, and threads take turns: it says what changed between two versions, not what is faster.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench.timing import repeat_call

FOLDER = "IRB_TWIN_BENCH_FOLDER"
"""Environment variable by which the repeated run finds the switch, and where the counts are left."""

MISSING = (
    "counting instructions needs valgrind, its header files and a C compiler "
    "(on Debian and Ubuntu: apt-get install valgrind gcc libc6-dev)"
)

SWITCH = """
#include <valgrind/callgrind.h>
void start(void) { CALLGRIND_START_INSTRUMENTATION; }
void stop(void) { CALLGRIND_STOP_INSTRUMENTATION; CALLGRIND_DUMP_STATS; }
"""

# The processor that valgrind shows is not the one underneath, and numba compiles for what it finds.  So that
# the run under valgrind only loads machine code, both it and a rehearsal are told the same processor: the one
# that valgrind knows, with AVX2 and without AVX-512.
ENVIRONMENT = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "", "PYTHONHASHSEED": "0"}


def run_again(rehearsal: list[str], arguments: list[str]) -> int:
    """Run Python with these arguments under callgrind, after a rehearsal without; the exit status.

    Args:
        rehearsal: arguments with which Python compiles whatever is measured.
        arguments: those of the run that counts.

    Raises:
        FileNotFoundError: valgrind or what its switch is compiled with is not installed.
    """
    with tempfile.TemporaryDirectory() as folder:
        if shutil.which("valgrind") is None or not _compile_switch(Path(folder)):
            raise FileNotFoundError(MISSING)
        environment = os.environ | ENVIRONMENT
        rehearsed = subprocess.run([sys.executable, *rehearsal], env=environment, stdout=subprocess.DEVNULL)
        if rehearsed.returncode:
            return rehearsed.returncode
        tool = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no"]
        command = [*tool, f"--callgrind-out-file={folder}/counts", sys.executable, *arguments]
        return subprocess.run(command, env=environment | {FOLDER: folder}).returncode


def _compile_switch(folder: Path) -> bool:
    source = folder / "switch.c"
    source.write_text(SWITCH)
    command = ["cc", "-O1", "-shared", "-fPIC", "-o", folder / "switch.so", source]
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def repeated() -> bool:
    """Whether this is the repeated run."""
    return FOLDER in os.environ


def instructions(call: Callable[[], object], calls: int, most: int = 100) -> float:
    """What one of so many calls, but not more than `most`, takes above a function that does nothing."""
    calls = min(calls, most)
    return (_count(call, calls) - _count(_nothing, calls)) / calls


def _nothing() -> None:
    pass


def _count(call: Callable[[], object], calls: int) -> int:
    """Instructions of so many calls and of the switch."""
    folder = Path(os.environ[FOLDER])
    switch = ctypes.CDLL(str(folder / "switch.so"))
    repeat_call(call, min(calls - 1, 20))  # until Python has specialised the bytecode
    switch.start()
    repeat_call(call, calls)
    switch.stop()
    (dump,) = folder.glob("counts.*")
    counted = total(dump.read_text())
    dump.unlink()
    return counted


def total(dump: str) -> int:
    """The number of instructions in one of callgrind's files.

    Raises:
        ValueError: it has none.
    """
    found = re.search(r"^totals: (\d+)$", dump, re.MULTILINE)
    if found is None:
        raise ValueError("no total in callgrind's file")
    return int(found[1])
