"""Ctrl-C and its kin end the command at once and once, wherever it is."""

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from scenarios.shell.command_line import main
from scenarios.shell.output import COMPILING
from tests.support import user_scenarios
from tests.support.command_lines import COMMAND, wait, without_notice

pytestmark = pytest.mark.slow("runs commands")

# More of them when asked for by the environment.
TRIES = int(os.environ.get("IRB_TWIN_INTERRUPTS", "4"))
LONGEST = 2.5
"""Time until the last interrupt, in [s]: by then the command runs its last scenario."""
ENDLESS = """def run(self, setup):
    import multiprocessing, time
    import numba
    from pathlib import Path

    @numba.njit(nogil=True)
    def forever(x):
        while x > 0:
            x = x + 1.0 if x < 100 else 1.0
        return x

    forever(-1.0)
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    child.start()
    Path(__file__).with_suffix(".child").write_text(str(child.pid))
    Path(__file__).with_suffix(".reached").touch()
    forever(1.0)
"""


@pytest.fixture
def endless(tmp_path):
    """A scenario that starts a process, and then never returns from compiled code to Python."""
    return Path(user_scenarios.write(tmp_path / "endless.py", run=ENDLESS))


UNIGNORED = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
"""What a new process does first, because a shell's background ignores SIGINT."""


def opened(*command):
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=UNIGNORED
    )


def started(*words):
    """The command, once it listens; SIGTERM is the last signal that it takes in hand but one."""
    process = opened(*COMMAND, *map(str, words))
    wait(lambda: caught(process.pid) >> (signal.SIGTERM - 1) & 1)
    return process


def caught(pid):
    """The signals that a process handles, a bit each."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("SigCgt")).split()[1], 16)


def ended(process, number=signal.SIGINT):
    """Send a signal; status, what was said, and how long the process took to end, in [s]."""
    process.send_signal(number)
    start = time.monotonic()
    _, said = process.communicate(timeout=20)
    return process.returncode, without_notice(said), time.monotonic() - start


def test_at_any_time_it_is_at_once_with_one_sentence_and_status_130(endless):
    """While Python imports, numba compiles, PyBullet steps, and compiled code runs."""
    rng = random.Random(16)

    def one(delay):
        process = started("run", "gravity_hold", endless, "--json", endless.parent / "a.json")
        time.sleep(delay)
        return delay, *ended(process)

    delays = [LONGEST * ((k + rng.random()) / TRIES) ** 2 for k in range(TRIES)]
    with ThreadPoolExecutor(3) as pool:
        for delay, status, said, seconds in pool.map(one, delays):
            assert (status, said) == (130, "irb-twin: interrupted\n"), delay
            assert seconds < 1.0, delay
    left = {file.name for file in endless.parent.iterdir()}
    assert left <= {"endless.py", "endless.reached", "endless.child", "__pycache__"}


@pytest.mark.parametrize(("number", "word"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_compiled_code_without_end_is_ended_with_the_processes_that_it_began(number, word, endless):
    process = started("run", endless)
    wait(endless.with_suffix(".reached").exists)
    child = Path("/proc", endless.with_suffix(".child").read_text())
    assert child.exists()
    status, said, seconds = ended(process, number)
    assert (status, said) == (128 + number, f"irb-twin: {word}\n")
    assert seconds < 1.0
    wait(lambda: not child.exists() or ") Z " in (child / "stat").read_text(), longest=2.0)


SERVER = """
import sys, threading
from scenarios.shell import command_line
from scenarios.shell import process
from twin.base import jit
from twin.base.atomic_file import atomic_write

def serve():
    jit.on_compiling(True)
    stopped = threading.Event()
    with process.graceful_stop(stopped.set) as interrupt, atomic_write(sys.argv[1]) as draft:
        draft.write_text("half")
        print("ready", flush=True)
        stopped.wait()
        print("stopped by", interrupt.number, flush=True)
        threading.Event().wait(None if interrupt.number == 2 else 0.0)
    return 128 + interrupt.number

command_line.main = serve
sys.exit(process.main())
"""
"""Program of a command that is stopped while it writes a file; after SIGINT it does not end."""


@pytest.mark.parametrize(("number", "twice"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_first_signal_stops_gracefully_and_second_removes_drafts_and_keeps_what_was_there(
    number, twice, tmp_path
):
    file = tmp_path / "a.txt"
    file.write_text("good")
    process = opened(sys.executable, "-c", SERVER, file)
    assert process.stdout.readline() == "ready\n"
    assert len(list(tmp_path.iterdir())) == 2
    process.send_signal(number)
    assert process.stdout.readline() == f"stopped by {number.value}\n"
    if twice:
        process.send_signal(number)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert said == f"irb-twin: {COMPILING}\n" + "irb-twin: interrupted\n" * twice
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert file.read_text() == ("good" if twice else "half")


def test_command_preserves_signal_handlers_of_the_caller():
    known = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in known]
    assert main(["list"]) == 0
    assert [signal.getsignal(number) for number in known] == before
    assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.parametrize(
    ("ignored", "expected"), [(True, (0, "7\n", "")), (False, (130, "", "irb-twin: interrupted\n"))]
)
def test_a_signal_ends_the_process_unless_it_is_ignored_even_while_modules_are_half_imported(
    ignored, expected
):
    """A half imported module stands in `sys.modules` before it has its functions."""
    code = (
        "import os, sys, time, types\n"
        "from scenarios.shell.process import listen\n"
        "for name in ('multiprocessing', 'twin.base.worker_processes'):\n"
        "    sys.modules[name] = types.ModuleType('half')\n"
        "listen()\n"
        "os.kill(os.getpid(), 2)\n"
        f"time.sleep({0.0 if ignored else 20.0})\n"
        "print(7)\n"
    )
    begin = partial(signal.signal, signal.SIGINT, signal.SIG_IGN) if ignored else UNIGNORED
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, preexec_fn=begin
    )
    assert (done.returncode, done.stdout, done.stderr) == expected
