"""Processes forked from a server: they are what new processes would be, and end with their parent."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.support import user_scenarios
from tests.support.command_lines import COMMAND, wait
from twin.base import fork_server

pytestmark = pytest.mark.slow("starts processes")


def print_place():
    """Print what a forked process took from its parent, and numbers drawn without a seed."""
    print(os.getcwd(), os.environ["FORK_TEST"], os.getsid(0) == os.getpid(), np.random.random())  # noqa: NPY002
    return 3


def sleep():
    time.sleep(600.0)


def forked(name, **environment):
    process = fork_server.fork(f"{__name__}:{name}", environment=os.environ | environment)
    process.stdin.close()
    return process


def test_a_forked_process_has_folder_environment_and_session_and_draws_other_numbers(tmp_path, monkeypatch):
    drawn = set()
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        with (process := forked("print_place", FORK_TEST=f"value{number}")).stdout as output:
            place, value, leads, random = output.read().decode().split()
        assert (place, value, leads) == (str(folder), f"value{number}", "True")
        assert process.wait(10.0) == process.poll() == 3
        drawn.add(random)
    assert len(drawn) == 2


def test_status_of_a_running_and_of_a_killed_process_also_for_threads_at_once():
    process = forked("sleep")
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    with process.stdout, ThreadPoolExecutor(8) as pool:
        assert set(pool.map(process.wait, 50 * [10.0])) == {-signal.SIGKILL}
    with (other := forked("print_place", FORK_TEST="1")).stdout:
        assert other.wait(10.0) == 3  # the server goes on


def test_variables_that_modules_read_on_import_or_the_end_of_a_server_start_a_new_one(monkeypatch):
    def made(environment, modules):
        return SimpleNamespace(imports=fork_server.imports_of(environment), runs=lambda: True)

    variables = ({"FORK_TEST": "1"}, {"FORK_TEST": "2"}, {"FORK_TEST": "1", "NUMBA_NUM_THREADS": "1"})
    with monkeypatch.context() as patch:
        patch.setattr(fork_server, "_servers", [])
        patch.setattr(fork_server, "_Server", made)
        servers = [fork_server._server_for(one, ()) for one in variables]
        servers[2].runs = lambda: False
        servers.append(fork_server._server_for(variables[2], ()))
    assert servers[0] is servers[1] is not servers[2] is not servers[3]


def test_the_server_ends_when_its_parent_is_killed():
    program = (
        "import time\nfrom twin.base import fork_server\n"
        "fork_server.fork('time:time').wait(60.0)\n"
        "print(fork_server._servers[0].process.pid, flush=True)\ntime.sleep(600.0)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        server = int(parent.stdout.readline())
        parent.kill()
    state = Path(f"/proc/{server}/stat")
    wait(lambda: not state.exists() or ") Z " in state.read_text(), 10.0)


SLOW = """
import pathlib, sys, time
if "fork_server" in sys.orig_argv[2]:
    pathlib.Path(__file__).with_name("begun").touch()
    time.sleep(600)
"""


def test_ctrl_c_does_not_wait_for_a_server_that_still_imports(tmp_path):
    """The command's output ends too: no process that it started keeps it open."""
    file = user_scenarios.write(tmp_path / "mine.py")
    (tmp_path / "sitecustomize.py").write_text(SLOW)  # which each process runs as it starts
    with subprocess.Popen(
        [*COMMAND, "validate", file, "--robot", "irb140"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), text=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    ) as process:  # fmt: skip
        wait((tmp_path / "begun").exists)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
