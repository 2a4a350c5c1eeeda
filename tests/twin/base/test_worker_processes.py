"""Tasks in several processes: the same results in the same order, whatever happens to a process."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from scenarios.report.files import write_json
from scenarios.report.results import Results
from scenarios.running import registry
from scenarios.running.execution import run_in_parallel
from tests.support import user_scenarios
from tests.support.command_lines import COMMAND, wait, without_notice
from twin.base import jit, worker_processes
from twin.base.worker_processes import Answer, Started, Workers

pytestmark = pytest.mark.slow("starts processes, and runs scenarios in the engine")

MORTAL = """def run(self, setup):
    import os, signal
    from pathlib import Path
    seen = Path(__file__).with_name("seen")
    with seen.open("a") as file:
        file.write(f"{os.getpid()}\\n")
    if len(seen.read_text().split()) <= DEATHS:
        os.kill(os.getpid(), signal.SIGKILL)
    return super().run(setup)
"""
ASLEEP = """def run(self, setup):
    import os, time
    from pathlib import Path
    Path(__file__).with_name(f"{os.getpid()}.pid").touch()
    time.sleep(600)
"""


def nothing(*_):
    pass


def work(entry, *laws):
    return [entry.task({"controller": law}) for law in laws]


def test_results_do_not_depend_on_number_of_processes(tmp_path):
    mine = registry.find(user_scenarios.write(tmp_path / "mine.py"))
    short = registry.find("joint_tracking")
    runs = [*work(mine, "pd", "pid"), short.task({"duration": 0.1}), mine.task({"bandwidth": 7.0})]
    files, told = [], []
    for jobs in (1, 2):
        done = run_in_parallel(runs, jobs, nothing, lambda *one: told.append(one))
        assert [run.name for run in done] == [
            "irb140, mine, pd", "irb140, mine, pid", "irb140, joint_tracking, computed_torque, duration 0.1",
            "irb140, mine, computed_torque, bandwidth 7.0",
        ]  # fmt: skip
        assert all(run.log is None and run.figures is not None for run in done)
        assert sorted(told) == [(place, True) for place in range(4)]
        told.clear()
        files.append(tmp_path / f"{jobs}.json")
        write_json(Results(done), files[-1])
    assert files[0].read_bytes() == files[1].read_bytes()


def test_each_run_of_user_code_fails_alone(tmp_path, capfd):
    """The runs kill their process once or twice, write and warn, or return what cannot be sent."""
    mortal = [
        user_scenarios.write(tmp_path / deaths / "mortal.py", run=MORTAL.replace("DEATHS", deaths))
        for deaths in "12"
    ]
    loud = "def run(self, setup):\n    print('loud')\n    import warnings\n    warnings.warn('beware')\n"
    loud += "    return super().run(setup)\n"
    odd = "def metrics(self, run):\n    return ()\n\ndef table(self, run):\n    return lambda: 0\n"
    files = [
        *mortal, user_scenarios.write(tmp_path / "loud.py", run=loud),
        user_scenarios.write(tmp_path / "odd.py", metrics=odd), user_scenarios.write(tmp_path / "good.py"),
    ]  # fmt: skip
    runs = [one for file in files for one in work(registry.find(file), "pd")]
    with pytest.warns(UserWarning, match="beware"):
        once, twice, spoke, unsent, good = run_in_parallel(runs, 2, nothing, nothing)
    assert [len((tmp_path / deaths / "seen").read_text().split()) for deaths in "12"] == [2, 2]
    assert once.error is None
    assert twice.error == "the process that ran it was ended by SIGKILL, twice"
    assert spoke.passes
    assert good.passes
    assert "its result cannot be sent" in unsent.error
    assert capfd.readouterr().out == ""


def compile_something():
    jit.on_compiling(True)
    jit.on_compiling(False)
    return 7


def test_what_a_worker_compiles_is_reported_in_the_command(monkeypatch):
    told = []
    monkeypatch.setattr(jit, "on_compiling", told.append)
    with Workers(1) as workers:
        events = [event for _, event in workers.run([(0, (compile_something, ()))])]
    assert events == [Started(), Answer(7)]
    assert told == [True, False]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_worker_process_ends_with_the_command(number, tmp_path):
    file = user_scenarios.write(tmp_path / "asleep.py", run=ASLEEP)
    words = ["validate", file, "--robot", "irb140", "--jobs", "1", "--json", str(tmp_path / "a.json")]
    process = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait(lambda: list(tmp_path.glob("*.pid")))
    (worker,) = (Path("/proc", path.stem) for path in tmp_path.glob("*.pid"))
    assert worker.exists()
    assert worker.name != str(process.pid)
    process.send_signal(number)
    start = time.monotonic()
    _, said = process.communicate(timeout=20)
    assert time.monotonic() - start < 2.0
    expected = (143, "irb-twin: terminated\n") if number == signal.SIGTERM else (-9, "")
    assert (process.returncode, without_notice(said)) == expected
    wait(lambda: not worker.exists() or ") Z " in (worker / "stat").read_text(), 5.0)
    assert not (tmp_path / "a.json").exists()


def answers(workers, *tasks):
    """Return the answers to tasks, in the order of the tasks."""
    found = {number: event for number, event in workers.run(enumerate(tasks)) if isinstance(event, Answer)}
    return [found[number] for number in range(len(tasks))]


def place():
    """Return what a worker took from its parent, and a number drawn without a seed."""
    leads = os.getsid(0) == os.getpid()
    return os.getcwd(), os.environ.get("WORKER_TEST"), leads, sys.stdin.read(), np.random.random()  # noqa: NPY002


def test_a_worker_has_folder_environment_and_session_and_draws_other_numbers(tmp_path, monkeypatch):
    drawn = set()
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setenv("WORKER_TEST", f"value{number}")
        with Workers(1) as workers:
            (found,) = answers(workers, (place, ()))
        assert found.value[:-1] == (str(folder), f"value{number}", True, "")
        drawn.add(found.value[-1])
    assert len(drawn) == 2


def leave_a_process():
    """Start a process that does not end with this one."""
    os.system("setsid sleep 5 &")
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("forks", [True, False])
def test_how_a_worker_ended_is_stated_and_others_go_on_where_they_are_forked_and_where_not(
    forks, monkeypatch
):
    monkeypatch.setattr(worker_processes, "FORKS", forks)
    with Workers(2, tries=1) as workers:
        found = answers(
            workers, (os._exit, (3,)), (signal.raise_signal, (signal.SIGKILL,)), (os.getsid, (0,))
        )
        (again,) = answers(workers, (os.getpid, ()))
        began = time.monotonic()
        (left,) = answers(workers, (leave_a_process, ()))
        assert time.monotonic() - began < 3.0
    killed = "the process that ran it was ended by SIGKILL"
    assert [one.fault for one in found] == ["the process that ran it ended with status 3", killed, ""]
    assert found[-1].value == again.value
    assert left.fault == killed


def prints_to(file):
    """Print to standard output and standard error; return whether the latter is this file."""
    print("to output")
    print("to errors", file=sys.stderr)
    return os.path.samestat(os.fstat(2), os.stat(file))


def test_what_a_worker_prints_goes_to_where_standard_error_goes_when_it_starts(tmp_path, capfd):
    for number in range(2):  # both from one server
        file = tmp_path / str(number)
        former = os.dup(2)
        with file.open("w") as errors, Workers(1) as workers:
            os.dup2(errors.fileno(), 2)
            try:
                (found,) = answers(workers, (prints_to, (file,)))
            finally:
                os.dup2(former, 2)
                os.close(former)
        assert found.value
        assert file.read_text() == "to output\nto errors\n"
    assert capfd.readouterr() == ("", "")


def test_the_status_of_a_worker_is_known_after_its_server_was_replaced(monkeypatch):
    with Workers(1, tries=1) as workers, Workers(1) as others:
        (first,) = answers(workers, (os.getppid, ()))
        monkeypatch.setenv("NUMBA_WORKER_TEST", "1")
        (second,) = answers(others, (os.getppid, ()))
        (ended,) = answers(workers, (os._exit, (3,)))
    assert first.value != second.value
    assert ended.fault == "the process that ran it ended with status 3"


def test_a_worker_goes_on_without_its_server_and_only_its_status_is_unknown(monkeypatch):
    monkeypatch.setattr(worker_processes, "_servers", [])
    with Workers(1, tries=1) as workers:
        (server,) = answers(workers, (os.getppid, ()))
        os.kill(server.value, signal.SIGKILL)
        wait(lambda: not runs(server.value))
        former, last = answers(workers, (os.getpid, ()), (os._exit, (3,)))
        (new,) = answers(workers, (os.getpid, ()))
    worker_processes.close_servers()
    assert last.fault == "the process that ran it ended"
    assert former.value != new.value


def test_threads_get_the_status_of_their_workers():
    def status(number):
        with Workers(1, tries=1) as workers:
            (ended,) = answers(workers, (os._exit, (number,)))
            return ended.fault

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(status, range(1, 31)))
    assert found == [f"the process that ran it ended with status {number}" for number in range(1, 31)]


SERVERS = """
import os, signal
from twin.base.worker_processes import Workers

def server():
    with Workers(1) as workers:
        _, (_, answer) = workers.run([(0, (os.getppid, ()))])
        return answer.value

servers = [server()]
os.environ["WORKER_TEST"] = "1"
servers.append(server())
os.environ["NUMBA_NUM_THREADS"] = "1"
servers.append(server())
os.kill(servers[-1], signal.SIGKILL)
os.waitid(os.P_PID, servers[-1], os.WEXITED | os.WNOWAIT)
servers.append(server())
print(*servers)
"""
"""A script without a guard, which a worker must not run again."""


def test_variables_that_modules_read_on_import_or_the_end_of_a_server_start_a_new_one(tmp_path):
    """The folder of the script's process has modules that must not hide others."""
    for name in ("twin", "controllers", "socket", "signal"):
        (tmp_path / f"{name}.py").write_text("raise ZeroDivisionError")
    script = tmp_path / "script" / "mine.py"
    user_scenarios.write_text(script, SERVERS)
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    first, second, third, fourth = map(int, done.stdout.split())
    assert first == second
    assert len({second, third, fourth}) == 3
    wait(lambda: not any(map(runs, (first, third, fourth))), 10.0)


def runs(pid):
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and ") Z " not in state.read_text()


def test_a_worker_ends_with_whoever_started_it():
    """Whatever it is doing, and with the processes that it began; the terminal's signals do not end it."""
    program = (
        "import sys\n"
        "from tests.support.sweep_experiments import sleep_in_two_processes\n"
        "from twin.base.worker_processes import Workers\n"
        "events = Workers(1, tries=1).run([(0, (sleep_in_two_processes, ()))])\n"
        "next(events)\n"
        "print(*next(events)[1].value, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        worker, child = map(int, parent.stdout.readline().split())
        server = int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])
        os.kill(worker, signal.SIGINT)
        time.sleep(0.1)
        assert all(map(runs, (server, worker, child)))
        parent.kill()
    wait(lambda: not any(map(runs, (server, worker, child))), 10.0)


SLOW = """
import pathlib, sys, time
if "serve_forks" in sys.orig_argv:
    pathlib.Path(__file__).with_name("begun").touch()
    time.sleep(600)
"""


def test_ctrl_c_does_not_wait_for_a_server_that_still_imports(tmp_path):
    """The command's output ends too: no process that it started keeps it open."""
    file = user_scenarios.write(tmp_path / "mine.py")
    (tmp_path / "sitecustomize.py").write_text(SLOW)  # which each process runs as it starts
    with subprocess.Popen(
        [*COMMAND, "validate", file, "--robot", "irb140"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), text=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    ) as process:  # fmt: skip
        wait((tmp_path / "begun").exists)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
