"""Ctrl-C and its kin end the command at once and once, wherever it is."""

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import user_scenarios
from tests.support.command_lines import COMMAND, wait, without_notice

# More of them when asked for by the environment.
TRIES = int(os.environ.get("IRB_TWIN_INTERRUPTS", "24"))
ENDLESS = """def run(config):
    import numba
    from pathlib import Path

    @numba.njit(nogil=True)
    def forever(x):
        while x > 0:
            x = x + 1.0 if x < 100 else 1.0
        return x

    forever(-1.0)
    {before}
    Path(__file__).with_suffix(".reached").touch()
    forever(1.0)
"""


@pytest.fixture
def endless(tmp_path):
    """A scenario in a compiled loop that comes back to Python never again."""
    return Path(user_scenarios.write(tmp_path / "endless.py", run=ENDLESS.format(before="")))


def started(*words):
    """The command, once it listens; SIGTERM is the last signal that it takes in hand but one."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background ignores it
    )
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
        process = started(
            "run", "gravity_hold", "joint_tracking", endless, "--json", endless.parent / "a.json"
        )
        time.sleep(delay)
        return delay, *ended(process)

    delays = [4.0 * rng.random() ** 2 for _ in range(TRIES)]
    with ThreadPoolExecutor(3) as pool:
        for delay, status, said, seconds in pool.map(one, delays):
            assert (status, said) == (130, "irb-twin: interrupted\n"), delay
            assert seconds < 1.0, delay
    assert {file.name for file in endless.parent.iterdir()} <= {
        "endless.py",
        "endless.reached",
        "__pycache__",
    }


@pytest.mark.parametrize(("number", "word"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")])
def test_compiled_code_without_end_is_ended(number, word, endless):
    process = started("run", endless)
    wait(endless.with_suffix(".reached").exists)
    status, said, seconds = ended(process, number)
    assert (status, said) == (128 + number, f"irb-twin: {word}\n")
    assert seconds < 1.0


def test_processes_that_a_scenario_began_end_too(tmp_path):
    before = (
        "import multiprocessing, time\n"
        "    child = multiprocessing.get_context('fork').Process(target=time.sleep, args=(600,))\n"
        "    child.start()\n"
        "    Path(__file__).with_suffix('.child').write_text(str(child.pid))"
    )
    file = Path(user_scenarios.write(tmp_path / "own.py", run=ENDLESS.format(before=before)))
    process = started("run", file)
    wait(file.with_suffix(".reached").exists)
    child = Path("/proc", file.with_suffix(".child").read_text())
    assert child.exists()
    assert ended(process, signal.SIGTERM)[0] == 143
    wait(lambda: not child.exists() or ") Z " in (child / "stat").read_text(), longest=2.0)


def test_a_draft_is_removed_and_what_was_there_stays(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("good")
    code = (
        "import sys, time\n"
        "from scenarios.cli import process\n"
        "from twin.atomic_file import atomic_write\n"
        "def write(words):\n"
        "    with atomic_write(words[-1]) as draft:\n"
        "        draft.write_text('half')\n"
        "        print('ready', flush=True)\n"
        "        time.sleep(600)\n"
        "import scenarios.cli.command_line\n"
        "scenarios.cli.command_line.main = lambda: write(sys.argv)\n"
        "process.main()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, file], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    assert len(list(tmp_path.iterdir())) == 2
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 143
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert file.read_text() == "good"


def test_command_preserves_signal_handlers_of_the_caller():
    code = (
        "import signal\n"
        "from scenarios.cli.command_line import main\n"
        "main(['list'])\n"
        "assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
        "assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL\n"
        "assert signal.set_wakeup_fd(-1) == -1\n"
    )
    # A process that a shell put into the background ignores SIGINT from the start.
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_a_signal_that_is_to_be_ignored_is():
    code = "from scenarios.cli.process import listen, os; listen(); os.kill(os.getpid(), 2); print(7)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "7\n", "")


@pytest.mark.parametrize("module", ["multiprocessing", "twin.worker_processes"])
def test_a_module_that_is_half_imported_hinders_nothing(module):
    """It stands in `sys.modules` before it has its functions."""
    code = (
        "import os, signal, sys, time, types\n"
        "from scenarios.cli.process import listen\n"
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"  # a shell's background process ignores it
        f"sys.modules[{module!r}] = types.ModuleType('half')\n"
        "listen()\n"
        "os.kill(os.getpid(), 2)\n"
        "time.sleep(20)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "irb-twin: interrupted\n")
