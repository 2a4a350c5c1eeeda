"""Runs in several processes: the same results in the same order, whatever happens to a process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scenarios.report.files import write_json
from scenarios.report.results import Results
from scenarios.running import registry
from scenarios.running.execute import run_in_parallel
from tests.support import user_scenarios
from tests.support.command_lines import COMMAND, wait, without_notice
from twin import jit
from twin.worker_processes import Answer, Started, Workers

MORTAL = """def run(config):
    import os, signal
    from pathlib import Path
    seen = Path(__file__).with_name("seen")
    with seen.open("a") as file:
        file.write(f"{os.getpid()}\\n")
    if len(seen.read_text().split()) <= DEATHS:
        os.kill(os.getpid(), signal.SIGKILL)
    return gravity_hold.run(gravity_hold.Config(duration=0.01))
"""
ASLEEP = """def run(config):
    import os, time
    from pathlib import Path
    Path(__file__).with_name(f"{os.getpid()}.pid").touch()
    time.sleep(600)
"""


def nothing(*_):
    pass


def work(scenario, *laws):
    return [(scenario, scenario.Config(controller=law)) for law in laws]


def test_results_do_not_depend_on_number_of_processes(tmp_path):
    mine = registry.find(user_scenarios.write(tmp_path / "mine.py"))
    short = registry.find("joint_tracking")
    runs = [*work(mine, "pd", "pid"), (short, short.Config(duration=0.1)), (mine, mine.Config(bandwidth=7.0))]
    files, told = [], []
    for jobs in (1, 2, 3):
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
    assert len({file.read_bytes() for file in files}) == 1


@pytest.mark.parametrize("deaths", [1, 2])
def test_killed_process_fails_its_run_only(deaths, tmp_path):
    mortal = user_scenarios.write(tmp_path / "mortal.py", run=MORTAL.replace("DEATHS", str(deaths)))
    other = registry.find(user_scenarios.write(tmp_path / "other.py"))
    first, *rest = run_in_parallel(
        [*work(registry.find(mortal), "pd"), *work(other, "pd", "pid")], 2, nothing, nothing
    )
    assert all(run.passes for run in rest)
    assert len((tmp_path / "seen").read_text().split()) == 2
    if deaths == 1:
        assert first.error is None
    else:
        assert first.error == "the process that ran it was ended by SIGKILL, twice"


def test_output_and_results_of_user_code_do_not_disturb_other_runs(tmp_path, capfd):
    loud = "def run(config):\n    print('loud')\n    import warnings\n    warnings.warn('beware')\n"
    file = user_scenarios.write(
        tmp_path / "loud.py", run=loud + "    return gravity_hold.run(gravity_hold.Config(duration=0.01))\n"
    )
    odd = user_scenarios.write(
        tmp_path / "odd.py",
        metrics="def metrics(log):\n    return ()\n\ndef table(log):\n    return lambda: 0\n",
    )
    runs = [*work(registry.find(file), "pd", "pid"), *work(registry.find(odd), "pd")]
    with pytest.warns(UserWarning, match="beware"):
        first, second, third = run_in_parallel(runs, 2, nothing, nothing)
    assert first.passes
    assert second.passes
    assert "its result cannot be sent" in third.error
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_worker_processes_end_with_the_command(number, tmp_path):
    file = user_scenarios.write(tmp_path / "asleep.py", run=ASLEEP)
    words = ["validate", file, "--robot", "irb140", "--jobs", "2", "--json", str(tmp_path / "a.json")]
    process = subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    wait(lambda: len(list(tmp_path.glob("*.pid"))) == 2)
    workers = [Path("/proc", path.stem) for path in tmp_path.glob("*.pid")]
    assert all(worker.exists() and worker.name != str(process.pid) for worker in workers)
    process.send_signal(number)
    start = time.monotonic()
    _, said = process.communicate(timeout=20)
    assert time.monotonic() - start < 2.0
    expected = {
        signal.SIGINT: (130, "irb-twin: interrupted\n"),
        signal.SIGTERM: (143, "irb-twin: terminated\n"),
    }
    assert (process.returncode, without_notice(said)) == expected.get(number, (-9, ""))
    wait(
        lambda: all(not worker.exists() or ") Z " in (worker / "stat").read_text() for worker in workers), 5.0
    )
    assert not (tmp_path / "a.json").exists()


@pytest.mark.parametrize("option", ["--json a.json", "--junit a.xml", "--markdown a.md"])
def test_full_disk_leaves_no_partial_file(option, tmp_path):
    user_scenarios.write(tmp_path / "mine.py")
    words = f"validate ./mine.py --robot irb140 --jobs 1 --controller pd {option}".split()
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from scenarios.report import files, report\n"
        "from scenarios.cli.command_line import main\n"
        "from scenarios.cli import output\n"
        "write = output.Files.write\n"
        "def limited(self, path, how):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))\n"
        "    write(self, path, how)\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)\n"
        "output.Files.write = limited\n"
        "sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (
        1,
        f"irb-twin: cannot write {option.split()[1]}: File too large\n",
    )
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["mine.py"]
    assert "1 run, " in done.stdout
