"""Instruction counts instead of times: they hardly vary with the load of the machine.

The whole run is repeated under valgrind's callgrind, which simulates a processor.  It counts only while a
call is measured, so that imports and checks remain fast.  All instructions count alike, even a division or a
cache miss, and threads run in turn.  Counts show changes between two versions, not which version is faster.
"""

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
"""Environment variable with the folder of the compiled switch and of the counts."""

MISSING = (
    "counting instructions needs valgrind, its header files and a C compiler "
    "(on Debian and Ubuntu: apt-get install valgrind gcc libc6-dev)"
)

SWITCH = """
#include <valgrind/callgrind.h>
void start(void) { CALLGRIND_START_INSTRUMENTATION; }
void stop(void) { CALLGRIND_STOP_INSTRUMENTATION; CALLGRIND_DUMP_STATS; }
"""

# valgrind simulates another processor than the machine's, and numba compiles for the processor it finds.  The
# rehearsal and the run under valgrind therefore get the same processor, with AVX2 and without AVX-512.  Then
# the latter only loads machine code.
ENVIRONMENT = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "", "PYTHONHASHSEED": "0"}


def run_again(rehearsal: list[str], arguments: list[str]) -> int:
    """Run Python under callgrind after a rehearsal without callgrind, and return the exit status.

    Args:
        rehearsal: arguments of the rehearsal, which compiles the measured functions.
        arguments: arguments of the run that counts.

    Raises:
        FileNotFoundError: valgrind or a C compiler is not installed.
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
    """Return whether this process is the run under callgrind."""
    return FOLDER in os.environ


def instructions(call: Callable[[], object], calls: int, most: int = 100) -> float:
    """Return the mean instructions of one of `calls` calls (at most `most`), less those of an empty call."""
    calls = min(calls, most)
    return (_count(call, calls) - _count(_nothing, calls)) / calls


def _nothing() -> None:
    pass


def _count(call: Callable[[], object], calls: int) -> int:
    """Count the instructions of a number of calls and of the switch."""
    folder = Path(os.environ[FOLDER])
    switch = ctypes.CDLL(str(folder / "switch.so"))
    repeat_call(call, min(calls - 1, 20))  # lets Python specialise the bytecode
    switch.start()
    repeat_call(call, calls)
    switch.stop()
    (dump,) = folder.glob("counts.*")
    counted = total(dump.read_text())
    dump.unlink()
    return counted


def total(dump: str) -> int:
    """Read the number of instructions from a callgrind file.

    Raises:
        ValueError: the file has no total.
    """
    found = re.search(r"^totals: (\d+)$", dump, re.MULTILINE)
    if found is None:
        raise ValueError("no total in callgrind's file")
    return int(found[1])
