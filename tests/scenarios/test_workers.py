"""Runs in several processes: the same results in the same order, whatever happens to a process."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from scenarios.report.files import write_json
from scenarios.report.results import Results
from scenarios.running import registry
from scenarios.running.execution import run_in_parallel
from scenarios.shell.output import Files
from tests.support import user_scenarios
from tests.support.command_lines import COMMAND, wait, without_notice
from tests.support.full_disk import disk_full_after
from twin.base import jit
from twin.base.worker_processes import Answer, Started, Workers

pytestmark = pytest.mark.slow("runs scenarios in the engine")

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
    """Of a process that is killed once or twice, of output and warnings, of a result that cannot be sent."""
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


@pytest.mark.usefixtures("in_this_process")
def test_full_disk_leaves_no_partial_file(tmp_path, monkeypatch, command):
    """Writing is possible again after each file, so that each of them has its message."""
    write = Files.write

    def limited(self, path, how):
        with disk_full_after(100):
            write(self, path, how)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Files, "write", limited)
    user_scenarios.write(tmp_path / "mine.py")
    words = "validate ./mine.py --robot irb140 --controller pd --json a.json --junit a.xml --markdown a.md"
    printed = command(words.split(), 1)
    said = {f"irb-twin: cannot write {name}: File too large" for name in ("a.json", "a.xml", "a.md")}
    assert set(printed.err.splitlines()) == said
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["mine.py"]
    assert "1 run, " in printed.out
