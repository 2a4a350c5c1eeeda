"""Metrics of a user's scenario are quantities of sweeps and of tune, as the built-in figures are."""

import csv
import json
import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest

from scenarios.running.registry import find
from scenarios.running.runs import run_one
from scenarios.shell import process
from scenarios.shell.command_line import main
from scenarios.studies.sweeps import plan

NOD = '''
import numpy as np
import controllers
import scenarios
import twin


class Nod(scenarios.TrackingScenario):
    """Nod with axis 5."""

    def motion(self, robot):
        start = robot.poses["zero"]
        return twin.quintic(start, start + np.array([0, 0, 0, 0, 0.3, 0]), duration=0.2)

    def metrics(self, run):
        error = float(np.abs(run.log.q_ref - run.log.q)[:, 1].max())
        return (*super().metrics(run), scenarios.Metric("axis 2", error, "rad", LIMIT, "the drawing"))


def python(robot):
    law = controllers.make("pd", robot)  # which takes no bandwidth
    return lambda state, reference: law(state, reference)


def wild(state, reference):
    return np.full(6, np.nan)  # the run ends at once, so that its metrics are unknown
'''
NAME = "axis 2"
SWEEP = "sweep ./nod.py --vary payload=0:6 --samples 20 --worst 0 --jobs 1 --controller"


@pytest.fixture
def nod(tmp_path, monkeypatch):
    """Function that writes the scenario with a limit of its metric."""
    monkeypatch.chdir(tmp_path)

    def write(limit):
        (tmp_path / "nod.py").write_text(NOD.replace("LIMIT", limit), encoding="utf-8")

    return write


def test_a_metric_is_a_column_a_row_and_a_figure_equal_to_that_of_a_run(nod, capsys):
    nod("1e-4")
    words = (
        "sweep ./nod.py --controller pd pid --vary payload=0:6 --samples 12 --worst 0 --jobs 1 --out a.csv"
    )
    assert main([*words.split(), "--figure", NAME, "--json", "a.json"]) == 0
    assert "axis 2 [rad]" in capsys.readouterr().out
    with open("a.csv", encoding="utf-8", newline="") as file:
        row = next(csv.DictReader(file))
    setup = {"controller": "pd", "payload": row["payload"]}
    (found,) = (one for one in run_one(find("./nod.py").task(setup)).metrics if one.name == NAME)
    assert float(row[NAME]) == pytest.approx(found.value, rel=1e-9)  # the sweep is compiled, the run is not
    assert row["check"] == NAME
    for law in json.loads(Path("a.json").read_text(encoding="utf-8"))["laws"]:
        (spread,) = (one for one in law["figures"] if one["figure"] == NAME)
        assert spread["unit"] == "rad"
        assert law["nominal"][NAME] == spread["nominal"] <= spread["worst"]
        assert law["importance"]["of"] == NAME
        assert law["importance"]["inputs"][0]["correlation"] > 0.9


def test_a_metric_has_a_limit_and_is_minimised(nod, capsys):
    nod("None")
    sweep = f"{SWEEP} pd".split()
    assert main([*sweep, "--limit", f"{NAME}=0.0001", "--require-share", "0.5"]) == 1
    assert re.search(r"axis 2 above 1e-4 +20", capsys.readouterr().out)
    tune = "tune pd ./nod.py --vary payload=0:6 --samples 4 --fresh 4 --worst 0 --evaluations 5"
    assert main([*tune.split(), "--minimise", NAME]) == 0
    assert re.search(r"axis 2 +\d.* / +\d", capsys.readouterr().out)
    assert main([*sweep, "--figure", "axis 3"]) == 2
    assert "unknown quantity 'axis 3': known are joint_error" in (err := capsys.readouterr().err)
    assert err.rstrip().endswith("saturated, axis 2")


def test_a_run_of_a_python_law_is_not_compared_with_its_repetition(nod, capsys):
    nod("None")
    words = f"{SWEEP.replace('--worst 0', '--worst 1').replace('payload=0:6', 'payload=1,2')} ./nod.py:python"
    assert main([*words.split(), "--limit", f"{NAME}=1e-9"]) == 0
    out = capsys.readouterr().out
    assert "; this run was in PyBullet\n" in out
    assert "agrees" not in out
    laws = "./nod.py:python computed_torque"
    assert main(f"run ./nod.py --limit joint_error=1e-9 --controller {laws}".split()) == 1
    out = capsys.readouterr().out
    assert "or its gains" in out
    assert "--bandwidth" not in out


def test_tables_of_a_controller_that_knows_no_metrics_have_the_columns_of_the_others(nod):
    nod("None")
    words = f"{SWEEP.replace('payload=0:6', 'payload=1,2')} ./nod.py:python ./nod.py:wild --out a.csv"
    assert main([*words.split(), "--figure", NAME]) == 0
    with open("a.csv", encoding="utf-8", newline="") as file:
        values = [float(row[NAME]) for row in csv.DictReader(file)]
    assert np.isnan(values).tolist() == [False, False, True, True]


def test_a_terminated_sweep_with_a_table_says_how_to_continue(nod, monkeypatch):
    nod("None")
    reader, console = os.pipe()

    def terminated(*_, **__):
        receiver, sender = os.pipe()
        os.write(sender, bytes([signal.SIGTERM]))
        process._wait(receiver, console, [signal.SIGTERM])

    def end(status):
        raise SystemExit(status)

    monkeypatch.setattr(plan, "run_all", terminated)
    monkeypatch.setattr(process, "_exit_functions", [])
    monkeypatch.setattr(process, "_called", lambda *_: None)
    monkeypatch.setattr(os, "_exit", end)
    for files, advice in ((["--out", "a.csv"], "; continue with the same command and --resume"), ([], "")):
        assert main([*f"{SWEEP} pd".split(), *files]) == 128 + signal.SIGTERM
        assert os.read(reader, 200).decode() == f"irb-twin: terminated{advice}\n"
