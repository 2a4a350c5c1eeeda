"""`irb-twin sweep` from the command line to its files: small sweeps of a motion of 0.3 s."""

import csv
import json
import shlex

import numpy as np
import pytest

from scenarios.shell import output as progress
from scenarios.studies.sweeps.plan import WorstCase
from tests.support.user_scenarios import given
from twin.studies.sweeps import evaluation, running

pytestmark = pytest.mark.slow("runs commands")

SHORT = ["sweep", "joint_tracking", "--duration", "0.3"]
FEW = [*SHORT, "--controller", "pd", "--vary", "payload=0:6", "--samples", "20", "--worst", "0"]


def rows_of(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder with all files of a sweep of two controllers over two random inputs and a grid."""
    folder = tmp_path_factory.mktemp("sweep")
    words = [
        *SHORT, "--controller", "computed_torque", "pd", "--samples", "20", "--worst", "2", "--seed", "3",
        "--noise", "1e-5", "--with", "mass=1.05",
        "--vary", "payload=0:6", "model.mass=+-10%", "--vary", "bandwidth=15,25",
        "--limit", "joint_error=0.1", "--out", f"{folder}/a.csv",
        "--picture", f"{folder}/a.png", "--json", f"{folder}/a.json",
    ]  # fmt: skip
    status, out, err = given(words)
    assert status == 0, err
    (folder / "out.txt").write_text(out)
    (folder / "err.txt").write_text(err)
    return folder


def test_the_table_has_a_row_a_run(folder):
    rows = rows_of(folder / "a.csv")
    assert len(rows) == 20 * 2 * 2
    assert [row["controller"] for row in rows] == ["computed_torque"] * 40 + ["pd"] * 40
    inputs = [[(row["draw"], row["payload"], row["model.mass"], row["bandwidth"]) for row in part]
              for part in (rows[:40], rows[40:])]  # fmt: skip
    assert inputs[0] == inputs[1]  # both laws under the same draws
    payload = np.array([float(row["payload"]) for row in rows[:40:2]])
    assert 0 <= payload.min() < 0.6
    assert 5.4 < payload.max() <= 6
    assert {row["bandwidth"] for row in rows} == {"15.0", "25.0"}
    for row in rows:
        assert float(row["seed"]) == 3 + int(row["draw"])  # every draw has noise of its own
        assert (row["passes"] == "1") == (float(row["joint_error_rad"]) <= 0.1)
    assert not (folder / "a.csv.parts").exists()


def test_summary_agrees_with_the_table_and_each_law_has_a_picture(folder):
    rows, told = rows_of(folder / "a.csv"), json.loads((folder / "a.json").read_text())
    for place, law in enumerate(told["laws"]):
        own = rows[40 * place : 40 * place + 40]
        held = np.array([row["passes"] == "1" for row in own])
        assert law["pass_share"]["share"] == pytest.approx(held.mean(), abs=1e-15)
        assert law["pass_share"]["low"] <= held.mean() <= law["pass_share"]["high"]
        assert sum(law["failed"].values()) == np.count_nonzero(~held)
        assert {row["name"] for row in law["importance"]["inputs"]} == {"payload", "model.mass", "bandwidth"}
        worst = max(float(row["joint_error_rad"]) for row in own)
        assert law["worst"][0]["outcome"]["joint_error"] == worst
        assert law["figures"][0]["worst"] == worst
    assert told["varied"][1] == {"name": "model.mass", "text": "+-10%"}
    page = (folder / "out.txt").read_text()
    assert "computed_torque" in page
    assert told["laws"][1]["worst"][0]["repeat"] in page
    pictures = [(folder / f"a-{law}.png").read_bytes() for law in ("computed_torque", "pd")]
    assert pictures[0] != pictures[1]
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert "20 draws x 2 grid points x 2 controllers = 80 runs, about" in (folder / "err.txt").read_text()


def test_the_worst_are_the_same_in_pybullet_and_by_their_command(folder):
    told = json.loads((folder / "a.json").read_text())
    cases = [case for law in told["laws"] for case in law["worst"]]
    assert len(cases) == 4
    for case in cases:
        assert case["engine"]["agrees"]
        assert case["engine"]["apart"] < 1e-13
    words = shlex.split(cases[0]["repeat"])
    assert words[:2] == ["irb-twin", "run"]
    assert words[words.index("--seed") + 1] != "3"
    assert "mass=1.05" in words
    given([*words[1:], "--json", str(folder / "run.json")])
    (run,) = json.loads((folder / "run.json").read_text())["runs"]
    error = next(metric["value"] for metric in run["metrics"] if metric["name"] == "largest joint error")
    assert error == pytest.approx(cases[0]["outcome"]["joint_error"], abs=1e-13)


def test_disagreement_with_pybullet_fails_the_sweep(monkeypatch):
    """Rollouts that are a little off: PyBullet finds them out."""
    sound = evaluation.outcomes

    def off(trials, threads=None):
        table = sound(trials, threads)
        table["joint_error"] *= 1 + 1e-9
        return table

    monkeypatch.setattr(evaluation, "outcomes", off)
    status, out, err = given([*FEW[:-1], "1"])
    assert status == 1
    assert "in PyBullet: DISAGREES: largest joint error" in out
    assert "irb-twin: PyBullet disagrees with sample" in err


def test_a_share_can_be_required_and_quantities_that_can_vary_listed():
    status, _, err = given([*FEW, "--require-share", "0.9"])
    assert (status, "--require-share requires a share of at least 0.9, but only 0.83" in err) == (1, True)
    status, out, _ = given([*SHORT, "--list", "--controller", "pd", "--drives", "rigid"])
    names = [line.split()[0] for line in out.splitlines()]
    assert status == 0
    assert {"payload", "bandwidth", "mass", "drives.coulomb", "torque_limit.N", "law.Kp"} <= set(names)


def test_a_table_that_cannot_be_written_costs_no_run(tmp_path, monkeypatch):
    """Finished parts stay beside it; `--resume` goes on with them, and with nothing else."""
    words, outcomes = [*FEW, "--out", str(tmp_path / "a.csv")], evaluation.outcomes

    def of_nominal(trials, threads=None):
        assert all(trial.plant.payload is None or not trial.plant.payload.mass for trial in trials)
        return outcomes(trials, threads)

    with monkeypatch.context() as patch:
        patch.setattr(running, "_write_csv", lambda *_: (_ for _ in ()).throw(OSError(28, "disk full")))
        status, _, err = given(words)
    assert (status, "cannot write" in err) == (1, True)
    assert (tmp_path / "a.csv.parts").is_dir()
    assert given(words)[0] == 2
    monkeypatch.setattr(evaluation, "outcomes", of_nominal)
    assert given([*words, "--resume"])[0] == 0
    assert len(rows_of(tmp_path / "a.csv")) == 20
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_python_function_beside_a_controller_with_a_varied_setting(tmp_path):
    """`law.Kp` varies for `pd` alone, axes one by one, and the figure is the one whose limit decides."""
    (tmp_path / "my.py").write_text("def plain(state, ref):\n    return 40.0 * (ref.q - state.q)\n")
    status, out, err = given([
        *SHORT, "--controller", "pd", f"{tmp_path}/my.py:plain", "--duration", "0.05", "--samples", "10",
        "--vary", "torque_limit=+-10%:each", "law.Kp=0.5,2", "--worst", "1", "--jobs", "1",
        "--limit", "joint_error=1", "tool_error=1e-6",
        "--out", f"{tmp_path}/a.csv", "--json", f"{tmp_path}/a.json",
    ])  # fmt: skip
    assert status == 0, err
    rows = rows_of(tmp_path / "a.csv")
    assert {row["law.Kp"] for row in rows[:20]} == {"0.5", "2.0"}
    assert {row["law.Kp"] for row in rows[20:]} == {"nan"}
    assert [row["torque_limit.3"] for row in rows[:20]] == [row["torque_limit.3"] for row in rows[20:]]
    assert rows[0]["torque_limit.1"] != rows[0]["torque_limit.2"]
    assert "plain keeps its settings: it has no law.Kp" in out
    assert "of the tool error, whose limit most runs exceed: 40 of 40" in " ".join(out.split())
    assert "pd: not computed: needs at least 20 draws for 7 inputs, got 10" in out
    assert "controller plain is a Python function: about " in err
    told = json.loads((tmp_path / "a.json").read_text())
    for law in told["laws"]:
        assert law["importance"]["of"] == law["sobol_indices"]["figure"] == "tool_error"
        assert law["worst"][0]["engine"]["agrees"]
    assert "law.Kp" not in told["laws"][1]["worst"][0]["inputs"]
    assert [at["name"] for at in told["laws"][0]["share_on_grid"]] == ["law.Kp", "law.Kp"]
    assert told["laws"][1]["share_on_grid"] == []
    status, _, err = given([*SHORT, "--controller", f"{tmp_path}/my.py:plain", "--vary", "law.Kp=1:2"])
    assert (status, "no quantity 'law.Kp': it has none of this kind" in err) == (2, True)


def test_progress_shows_finished_runs_and_remaining_time(capsys, monkeypatch):
    clock = iter([0.0, 10.0, 40.0, 80.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.counted("pd", 100) as tell:
        for done in (10, 40, 100):
            tell(done)
    assert capsys.readouterr().err == "irb-twin: pd: 40 of 100 done, about 60 s left\n"
    assert [progress.duration(s) for s in (0.34, 50, 1200, 9000)] == ["0.3 s", "50 s", "20 min", "2.5 h"]


def test_a_worst_run_that_ends_early_does_so_in_pybullet():
    """Agreement of runs without an end: that they end."""
    row = np.zeros(1, dtype=evaluation.OUTCOME)[0]
    run = type("Run", (), {"error": "ran away"})
    early = WorstCase(0, row, "", run, np.inf, np.nan, np.inf)
    assert not early.agrees
    row["trouble"] = 1
    assert early.agrees
    run.error = None
    assert not early.agrees
