"""`irb-twin tune` from words to a file."""

import json
import shlex

import numpy as np
import pytest

import controllers
from scenarios.setup import Setup
from scenarios.shell.command_line import main
from scenarios.shell.settings import LawSettings
from scenarios.studies.sweeps.scenario_experiment import ScenarioExperiment
from scenarios.studies.sweeps.tuning import TunedLaw, chosen_gains
from tests.support.tasks import task
from tests.support.user_scenarios import given
from twin.base.errors import UnknownNameError, VariationError
from twin.studies.sweeps import tuning as search
from twin.studies.sweeps.tuning import Gain

SHORT = ["joint_tracking", "--duration", "0.2", "--samples", "4", "--fresh", "10", "--evaluations", "16"]


@pytest.fixture(scope="module")
def law():
    """PD in a short run, which is told the payload that it carries."""
    return TunedLaw(ScenarioExperiment(task("joint_tracking", controller="pd", duration=0.2)))


def test_tuned_gains_are_the_same_in_all_draws(law):
    """As in a file; the default ones are derived from the payload of each draw."""
    trials = [law.trial({"payload": mass, "law.Kp": 2.0}) for mass in (0.0, 6.0)]
    nominal = law.numbers["Kp"]
    for trial in trials:
        assert np.array_equal(trial.controller.parameters[0], 2.0 * nominal)
    assert trials[1].controller.parameters[1][0] > trials[0].controller.parameters[1][0]
    assert trials[1].plant.payload.mass == 6.0


def test_what_is_searched(law):
    assert chosen_gains(law, []) == (Gain("law.Kp", 0.1, 10.0), Gain("law.Kd", 0.1, 10.0))
    bandwidth, Kd = chosen_gains(law, ["bandwidth", "law.Kd=0.5:20"])
    assert (bandwidth, Kd) == (Gain("law.bandwidth", 2.0, 200.0), Gain("law.Kd", 0.5, 20.0))
    with pytest.raises(UnknownNameError, match=r"'pd' has no quantity 'Kq': the nearest are K[pd], K[pd]"):
        chosen_gains(law, ["Kq"])
    for word in ("Kp=3:2", "Kp=0:2", "Kp=1:2:5", "Kp=x"):
        with pytest.raises(VariationError, match=r"law\.Kp"):
            chosen_gains(law, [word])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Folder with all files of a search; `out.txt` has its output."""
    folder = tmp_path_factory.mktemp("tune")
    words = [*SHORT, "--vary", "payload=0:6", "--noise", "1e-6", "--drives", "rigid"]
    status, out, err = given(
        ["tune", "pd", *words, "--out", f"{folder}/g.toml", "--json", f"{folder}/g.json"]
    )
    assert status == 0, err
    (folder / "out.txt").write_text(out)
    return folder


def test_the_file_is_what_run_reads(folder, capsys):
    told = json.loads((folder / "g.json").read_text())
    read = dict(LawSettings((), folder / "g.toml").chosen(["pd"])["pd"])
    assert {name: list(value) for name, value in read.items()} == told["settings"]
    factors = {gain["name"]: gain["tuned"] for gain in told["gains"]}
    setup = Setup(controller="pd", drives="rigid")
    nominal = controllers.make("pd", setup.load_robot(), bandwidth=setup.bandwidth).gains
    for name in ("Kp", "Kd"):
        assert read[name] == tuple((factors[f"law.{name}"] * getattr(nominal, name)).tolist())
    comments = [line for line in (folder / "g.toml").read_text().splitlines() if line.startswith("#")]
    assert "varied: payload=0:6" in comments[1]
    command = comments[-1].removeprefix("# ")
    assert command in (folder / "out.txt").read_text()
    assert command.endswith(f" --settings {folder}/g.toml")
    assert "--set " not in command
    assert main([*shlex.split(command)[1:], "--json", str(folder / "run.json")]) == 0
    (run,) = json.loads((folder / "run.json").read_text())["runs"]
    assert run["config"]["noise"] == 1e-6
    assert f"Kp={','.join(map(repr, read['Kp']))}" in run["repeat"]
    capsys.readouterr()


def test_both_gains_are_judged_under_the_same_draws(folder):
    told = json.loads((folder / "g.json").read_text())
    for name, runs in (("tuned_on", 4), ("fresh", 10)):
        default, tuned_ = told[name]["default"], told[name]["tuned"]
        assert (default["runs"], tuned_["runs"]) == (runs, runs)
        assert tuned_["minimised"] < default["minimised"]
    for side in ("default", "tuned"):
        (case,) = told["fresh"][side]["worst"]
        words = shlex.split(case["repeat"])
        assert int(words[words.index("--seed") + 1]) >= 4  # noise of the search had seeds 0 to 3
        assert case["engine"]["agrees"]
        assert case["engine"]["apart"] < 1e-12
    assert told["conclusions"][0].startswith("Tuning helps: on fresh draws the worst joint error is")


def test_where_nothing_varies_there_are_no_fresh_draws():
    status, out, err = given(["tune", "pd", *SHORT, "--gains", "Kp"])
    assert (status, "fresh" in out) == (0, False)
    assert "16 sets of 1 gain x 1 runs" in err
    assert "on the only draw" in out
    assert "--set Kp=" in out


def test_an_interrupted_search_writes_nothing(tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "run_points", interrupted)
    words = ["tune", "pd", *SHORT, "--vary", "payload=0:6", "--out", f"{tmp_path}/g.toml"]
    assert given(words)[0] == 130
    assert not list(tmp_path.iterdir())
