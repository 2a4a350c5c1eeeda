"""Tuning: the search on figures whose best gains are known, and `irb-twin tune` from words to a file."""

import json
import shlex
from types import SimpleNamespace

import numpy as np
import pytest

import controllers
from scenarios.commands.command_line import main
from scenarios.running import law_settings, registry
from scenarios.sweeping.scenario_experiment import ScenarioExperiment
from scenarios.tuning.conclusions import conclusions
from scenarios.tuning.tuned_law import TunedLaw, chosen_gains
from twin.errors import UnknownNameError, VariationError
from twin.sweeps.design import Points
from twin.sweeps.outcomes import OUTCOME
from twin.tuning import search
from twin.tuning.gains import Gain, Tried
from twin.tuning.search import judged, tuned

LOADS = np.array([0.5, 1.0, 2.0, 1.5])
POINTS = Points(("load",), LOADS[:, None], np.arange(4), np.zeros(4, dtype=int))
KP = Gain("law.Kp", 0.1, 10.0)
SHORT = ["joint_tracking", "--duration", "0.2", "--samples", "4", "--fresh", "10", "--evaluations", "16"]


def table(holds, figure):
    rows = np.zeros(len(holds), dtype=OUTCOME)
    rows["holds"], rows["joint_error"] = holds, figure
    return rows


@pytest.fixture
def known(monkeypatch):
    """A search over runs that are a formula of their names and values: `known(formula, gains, ...)`."""

    def found(formula, gains=(KP,), points=POINTS, nominal=1.0, **settings):
        def run_points(experiment, points, *, progress, **_):
            progress(len(points.values), len(points.values))
            return formula(dict(zip(points.names, points.values.T, strict=True)))

        monkeypatch.setattr(search, "run_points", run_points)
        experiment = SimpleNamespace(nominal=lambda name: nominal)
        return tuned(experiment, points, gains, **settings)

    return found


def saturating(values):
    """The error falls with the gain, until that asks for more than 6 under the load: the best is 6 / 2."""
    return table(values["law.Kp"] * values["load"] <= 6.0, 0.1 * values["load"] / values["law.Kp"])


def bowl(values):
    """Least at Kp = 2, Kd = 0.3, whatever the load, and there as large as the load."""
    away = np.log(values["law.Kp"] / 2.0) ** 2 + np.log(values["law.Kd"] / 0.3) ** 2
    return table(np.ones(len(away), dtype=bool), values["load"] * (1.0 + away))


def test_the_largest_gain_that_holds_under_all_draws_is_found(known):
    """The search ends where the errors of a generation scatter by 1 %; they fall as one over the gain."""
    done = []
    result = known(saturating, evaluations=400, progress=done.append)
    assert result.settled
    assert 0.98 * 3.0 <= result.values["law.Kp"] <= 3.0
    assert result.best.failing == 0
    assert result.best.figure == pytest.approx(0.2 / result.best.values[0], rel=1e-14)
    assert result.default == Tried((1.0,), 0, 0.2)
    assert result.at_ends == ()
    assert done == sorted(done)
    assert done[-1] == result.evaluations * 4 <= 401 * 4


def test_of_two_gains_the_worst_and_the_mean_have_their_own_figure(known):
    gains = (KP, Gain("law.Kd", 0.05, 5.0))
    for of, size in (("worst", 2.0), ("mean", 1.25)):
        result = known(bowl, gains, of=of, evaluations=600)
        # A quadratic bowl in logarithms: a figure within 1 % of the best is within 0.1 of its place.
        assert np.abs(np.log(np.array(result.best.values) / [2.0, 0.3])).max() < 0.1
        assert result.best.figure == pytest.approx(size, rel=0.01)


def test_a_run_more_that_holds_outweighs_any_figure(known):
    """No gain holds under all loads, a large one under most, at an error a thousand times as large."""

    def heavy(values):
        large = values["law.Kp"] > 3.0
        return table(large & (values["load"] < 2.0), np.where(large, 100.0, 0.1))

    result = known(heavy, evaluations=60)
    assert result.best.failing == 1
    assert result.best.values[0] > 3.0
    assert result.best.figure == 100.0


def test_what_runs_away_has_no_figure():
    rows = table([True, False, False], [0.1, 0.3, np.inf])
    rows["trouble"][2] = 1
    assert judged(rows, "joint_error") == (2, 0.3)
    assert judged(rows, "joint_error", "mean") == (2, 0.2)
    assert judged(rows[2:], "joint_error") == (1, np.inf)
    rows["tool_error"] = np.nan
    with pytest.raises(VariationError, match="tool_error was not asked for"):
        judged(rows, "tool_error")


def test_the_default_stays_where_nothing_is_better(known):
    generations = []

    def least_at_1(values):
        generations.append(values["law.Kp"])
        return table(values["load"] > 0, 1.0 + np.log(values["law.Kp"]) ** 2)

    best = known(least_at_1, evaluations=40)
    assert best.best == best.default
    assert 1.0 in generations[1]  # others are bred of it, too
    flat = known(lambda v: table(v["load"] > 0, v["load"]), evaluations=40)
    assert flat.values == {"law.Kp": 1.0}
    hopeless = known(lambda v: table(v["load"] < 0, np.inf), evaluations=40)
    assert (hopeless.values, hopeless.best.failing) == ({"law.Kp": 1.0}, 4)


def test_a_default_outside_the_range_is_not_an_answer(known):
    result = known(saturating, (Gain("law.Kp", 0.1, 0.5),), evaluations=60)
    assert 0.1 <= result.best.values[0] <= 0.5
    assert result.default.values == (1.0,)
    assert result.at_ends == ((Gain("law.Kp", 0.1, 0.5), 0.5),)


def test_a_seed_gives_the_same_bits(known):
    gains = KP, Gain("law.Kd", 0.05, 5.0)
    first, again, other = (known(bowl, gains, evaluations=60, seed=seed) for seed in (3, 3, 4))
    assert first == again
    assert first.best != other.best


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"gains": ()}, "no gains"),
        ({"gains": (KP, KP)}, "twice"),
        ({"gains": (Gain("load", 1, 2),)}, "it varies from draw to draw"),
        ({"gains": (Gain("law.Kp", 0, 2),)}, "above 0"),
        ({"gains": (Gain("law.Kp", 2, 2),)}, "not empty"),
        ({"minimise": "duration"}, "cannot minimise 'duration': known are joint_error"),
        ({"evaluations": 4}, "at least 5 evaluations"),
    ],
)
def test_a_search_that_makes_no_sense_is_a_sentence(known, settings, told):
    with pytest.raises(VariationError, match=told):
        known(saturating, **settings)


@pytest.fixture(scope="module")
def law():
    """PD in a short run, which is told the payload that it carries."""
    config = registry.find("joint_tracking").Config(controller="pd", duration=0.2)
    return TunedLaw(ScenarioExperiment("joint_tracking", config))


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
    assert chosen_gains(law, ["bandwidth", "law.Kd=0.5:20"]) == (
        Gain("law.bandwidth", 2.0, 200.0),
        Gain("law.Kd", 0.5, 20.0),
    )
    with pytest.raises(UnknownNameError, match=r"'pd' has no quantity 'Kq': the nearest are K[pd], K[pd]"):
        chosen_gains(law, ["Kq"])
    for word in ("Kp=2:2", "Kp=3:2", "Kp=0:2", "Kp=1:2:5", "Kp=x"):
        with pytest.raises(VariationError, match=r"law\.Kp"):
            chosen_gains(law, [word])


def given(words, capsys):
    status = main(["tune", *words])
    said = capsys.readouterr()
    return status, said.out, said.err


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of a search with all files; what it said is in `out.txt`."""
    folder = tmp_path_factory.mktemp("tune")
    words = [*SHORT, "--vary", "payload=0:6", "--noise", "1e-6", "--drives", "rigid"]
    with pytest.MonkeyPatch.context() as patch, open(folder / "out.txt", "w") as out:
        patch.setattr("sys.stdout", out)
        status = main(["tune", "pd", *words, "--out", f"{folder}/g.toml", "--json", f"{folder}/g.json"])
    assert status == 0
    return folder


def test_the_file_is_what_run_reads(folder, capsys):
    told = json.loads((folder / "g.json").read_text())
    read = dict(law_settings.chosen([], folder / "g.toml", ["pd"])["pd"])
    assert {name: list(value) for name, value in read.items()} == told["settings"]
    factors = {gain["name"]: gain["tuned"] for gain in told["gains"]}
    config = registry.find("joint_tracking").Config(controller="pd", drives="rigid")
    nominal = controllers.make("pd", config.load_robot(), bandwidth=config.bandwidth).gains
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


def test_where_nothing_varies_there_are_no_fresh_draws(capsys):
    status, out, err = given(["pd", *SHORT, "--gains", "Kp"], capsys)
    assert (status, "fresh" in out) == (0, False)
    assert "16 sets of 1 gain x 1 runs" in err
    assert "here, where nothing is random" in out
    assert "--set Kp=" in out


def test_an_interrupted_search_writes_nothing(tmp_path, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(search, "run_points", interrupted)
    words = ["pd", *SHORT, "--vary", "payload=0:6", "--out", f"{tmp_path}/g.toml"]
    assert given(words, capsys)[0] == 130
    assert not list(tmp_path.iterdir())


LAW = '''
def silent(robot):
    """A law without settings."""
    return lambda state, reference: state.q * 0
'''


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "name a law and a scenario"),
        (["pd"], "name one scenario after the law"),
        (["pdd", "joint_tracking"], "unknown controller 'pdd'"),
        (["pd", "joint_tracking", "pose_path"], "name one scenario after the law"),
        (["pd", "joint_tracking", "--gains", "Kq"], "the nearest are Kp"),
        (["pd", "joint_tracking", "--gains", "Kp=2:1"], "backwards"),
        (["pd", "joint_tracking", "--gains", "Kp", "law.Kp"], "searched twice"),
        (["pd", "joint_tracking", "--vary", "paylod=0:6"], "payload"),
        (["pd", "joint_tracking", "--minimise", "rms_torque"], "limit an error, too"),
        (["pd", "joint_tracking", "--limit", "error=1"], "there is no figure 'error'"),
        (["pd", "joint_tracking", "--out", "gains.txt"], "ends in .toml"),
        (["./law.py:silent", "joint_tracking", "--engine"], "no setting that is a number"),
    ],
)
def test_bad_input_is_a_sentence(words, told, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "law.py").write_text(LAW)
    status, out, err = given(words, capsys)
    assert (status, out) == (2, "")
    assert told in err.splitlines()[-1]


def side(failing, figure, runs=100):
    share = SimpleNamespace(share=1 - failing / runs, low=max(0.0, 0.97 - failing / runs))
    found = SimpleNamespace(share=share, swept=SimpleNamespace(table=range(runs)))
    return SimpleNamespace(failing=failing, figure=figure, found=found)


def said(draws, fresh, settled=True, at_ends=(), fixed=None):
    """The conclusions of pairs (default, tuned) of failing runs and figure, and of fixed default gains."""
    numbers = {"bandwidth": 20.0, "Kp": np.ones(6)}
    task = SimpleNamespace(of="worst", minimise="joint_error", law=SimpleNamespace(numbers=numbers))
    default = Tried((1.0,), *(fixed or draws[0]))
    tuning = SimpleNamespace(settled=settled, at_ends=at_ends, evaluations=241, default=default)
    pairs = [SimpleNamespace(default=side(*a), tuned=side(*b)) for a, b in (draws, fresh)]
    return " ".join(conclusions(task, tuning, *pairs))


def test_the_conclusions_are_honest():
    assert said([(0, 0.3), (0, 0.1)], [(0, 0.3), (0, 0.15)]) == (
        "Tuning helps: on fresh draws the worst joint error is 0.15 instead of 0.3 rad, 0.5 of it. They hold "
        "in at least 97.0 % of all draws, with 95 % confidence."
    )
    more = said([(9, 0.3), (0, 0.4)], [(8, 0.3), (2, 0.4)])
    assert "on fresh draws 98.0 % of the runs hold instead of 92.0 %" in more
    assert "fail in 2 of 100 fresh runs" in more
    none = said([(0, 0.3), (0, 0.3)], [(0, 0.3), (0, 0.299)])
    assert "no gains were found that are better" in none
    assert "bandwidth" not in none
    anew = said([(0, 0.3), (0, 0.4)], [(0, 0.3), (0, 0.4)], fixed=(0, 0.5))
    assert "--gains bandwidth goes on with that" in anew
    over = said([(0, 0.3), (0, 0.1)], [(0, 0.3), (1, 0.2)])
    assert "(1 instead of 0 of 100 fail, worst joint error 0.2 instead of 0.3 rad)" in over
    assert "Tuning does not help: tuned gains are better under the draws that they were tuned on" in over
    assert "is rounding: tuning does not help" in said([(0, 3e-14), (0, 1e-14)], [(0, 3e-14), (0, 1e-14)])
    assert "hold for any of the 100" in said([(100, 0.3), (100, 0.1)], [(100, 0.3), (100, 0.1)])
    assert "tuned ones fail in 4." in said([(9, 0.3), (4, 0.1)], [(9, 0.3), (4, 0.1)])
    ended = said([(0, 0.3), (0, 0.1)], [(0, 0.3), (0, 0.1)], settled=False, at_ends=((KP, 10.0),))
    assert "Kp ends at an end of its range, 10: more may be gained beyond it (--gains Kp=0.1:100)" in ended
    assert "had not settled after 241" in ended
