"""Results beside earlier ones: what got worse is named, what is rounding is not."""

import csv
import dataclasses
import json
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import imread

from scenarios.base import Config, Metric
from scenarios.cli.command_line import main
from scenarios.report.baseline import BaselineError, compare, read_baseline
from scenarios.report.files import write_json
from scenarios.report.results import Results
from scenarios.report.worst_moment import WorstMoment, reasons, worst_moment
from scenarios.running import registry
from scenarios.running.diagnosis import diagnose
from scenarios.running.runs import Run
from scenarios.sweeping.findings import Swept, failures, findings, percent
from scenarios.sweeping.pictures import FEW, draw
from tests.support import user_scenarios
from tests.support.example_logs import made_up_run
from twin.errors import TwinError
from twin.logs import columns as log_files
from twin.logs.figures import joint_error
from twin.sweeps.table_files import ROWS, column_names, write_tables
from twin.sweeps.trial import OUTCOME, TROUBLES
from twin.version import __version__

SELECTION = {"scenarios": ["swing"]}


def run_of(*values, law="pd", limit=1.0, error=None, **settings):
    metrics = tuple(Metric(f"m{k}", value, "rad", limit, "why") for k, value in enumerate(values))
    return Run("swing", Config(controller=law, **settings), None, metrics, 0.1, error)


def compared(folder, before, now, factor=1.1, selection=SELECTION, **changes):
    path = folder / "before.json"
    write_json(Results(before, SELECTION), path)
    document = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(document))
    return compare(now, read_baseline(path), selection, factor)


def test_the_same_results_are_not_worse(tmp_path):
    found = compared(tmp_path, [run_of(0.5, 1e-16)], [run_of(0.5, 1e-16)])
    assert (found.worse, found.grown, found.missing, found.notes, found.compared) == ([], [], [], [], 1)


def test_a_check_that_held_and_does_not_is_worse(tmp_path):
    found = compared(tmp_path, [run_of(0.5), run_of(2.0, law="pid")], [run_of(1.5), run_of(3.0, law="pid")])
    assert found.worse == ["irb140, swing, pd: m0 passed before and fails now: 0.5 -> 1.5 rad"]
    assert found.grown == ["irb140, swing, pid: m0 grew: 2 -> 3 rad"]
    found = compared(tmp_path, [run_of(0.5)], [run_of(error="it ran away")])
    assert found.worse == ["irb140, swing, pd: it does not finish any more: it ran away"]


@pytest.mark.parametrize(
    ("before", "now", "factor", "grown"),
    [
        (0.5, 0.549, 1.1, False), (0.5, 0.551, 1.1, True), (0.5, 0.551, 1.2, False), (0.5, 0.1, 1.1, False),
        (1e-16, 9e-10, 1.1, False), (0.0, 9e-10, 1.1, False), (0.0, 1e-8, 1.1, True),
        (9e-10, 1.05e-9, 1.1, False), (float("nan"), 0.9, 1.1, False),
    ],
)  # fmt: skip
def test_a_figure_has_grown_beyond_the_factor_and_beyond_rounding(before, now, factor, grown, tmp_path):
    for limit in (1.0, None):
        found = compared(tmp_path, [run_of(before, limit=limit)], [run_of(now, limit=limit)], factor)
        assert bool(found.grown) is grown
        assert not found.worse


def test_runs_and_checks_that_are_gone_are_named_where_the_same_was_asked_for(tmp_path):
    before = [run_of(0.5, 0.6), run_of(0.5, law="pid")]
    found = compared(tmp_path, before, [run_of(0.5)])
    assert found.missing == [
        "irb140, swing, pd: m1: this check is missing",
        "irb140, swing, pid: this run is missing",
    ]
    found = compared(tmp_path, before, [run_of(0.5, 0.6)], selection={"scenarios": []})
    assert found.missing == []
    assert "only the 1 runs in both are compared" in found.notes[0]


def test_other_versions_are_reported_and_other_defaults_are_not_compared(tmp_path):
    old = {"irb-twin": "0.0.1", "numpy": "1.0"}
    (note,) = compared(tmp_path, [run_of(0.5)], [run_of(0.5)], provenance=old).notes
    assert note.startswith(
        f"the baseline was made with irb-twin 0.0.1 (here {__version__}), numpy 1.0 (here "
    )
    path = tmp_path / "before.json"
    document = json.loads(path.read_text())
    document["runs"][0]["config"]["bandwidth"] = 30.0
    found = compared(tmp_path, [run_of(0.5)], [run_of(0.9)], runs=document["runs"])
    assert found.grown == []
    assert found.notes == [
        "irb140, swing, pd: not compared, because its settings were different: bandwidth 30.0 (here 20.0)"
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot read the baseline .*: No such file"),
        ("{", "is not valid JSON"),
        ("[]", "is not a file of irb-twin validate --json"),
        ('{"runs": []}', "was written by another version of irb-twin: its format is not named, expected 2"),
        ('{"runs": [], "format": 99}', "another version of irb-twin: its format is 99, expected 2"),
        ('{"runs": [{}], "format": 2, "provenance": {}}', "is damaged: KeyError 'name'"),
        ('{"runs": [3], "format": 2, "provenance": {}}', "is damaged: TypeError"),
    ],
)
def test_a_file_that_is_no_baseline_is_refused_in_one_sentence(content, told, tmp_path, capsys):
    path = tmp_path / "b.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BaselineError, match=told):
        read_baseline(path)
    assert main(["validate", "--baseline", str(path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_with_nothing_in_common_there_is_no_comparison(tmp_path):
    with pytest.raises(BaselineError, match="has none of these 1 runs"):
        compared(tmp_path, [run_of(0.5)], [dataclasses.replace(run_of(0.5), scenario="nod")])


@pytest.mark.usefixtures("in_this_process")
def test_on_the_command_line_what_grew_is_a_warning_unless_it_is_to_fail(tmp_path, capsys):
    """The scenario's own limit stands, so that only the comparison can tell."""
    text = user_scenarios.PARTS["metrics"].replace("len(log.t)", "len(log.t) * 1.0")
    file = user_scenarios.write(tmp_path / "mine.py", metrics=text)
    words = ["validate", file, "--robot", "irb140", "--controller", "pd", "--jobs", "1"]
    results = str(tmp_path / "a.json")
    assert main([*words, "--json", results]) == 0
    assert main([*words, "--baseline", results]) == 0
    assert "1 results compared with the baseline: nothing got worse" in capsys.readouterr().out
    user_scenarios.write(tmp_path / "mine.py", metrics=text.replace("* 1.0", "* 1.5"))
    assert main([*words, "--baseline", results, "--markdown", str(tmp_path / "a.md")]) == 0
    assert "warning: irb140, mine, pd: length grew: 11 -> 16.5\n" in capsys.readouterr().out
    assert "Warning: irb140, mine, pd: length grew" in (tmp_path / "a.md").read_text()
    assert main([*words, "--baseline", results, "--grown", "2"]) == 0
    assert main([*words, "--baseline", results, "--grown-fails"]) == 1


# Sweeps' tables in files, and what is found in them: made-up outcomes whose answers are known.


NAMES = ("payload", "model.mass")
FLOATS = [name for name in OUTCOME.names if OUTCOME[name].kind == "f"]


def made(count, seed=0):
    """A table of runs that all hold, with an error that is the payload; each a draw of its own."""
    rng = np.random.default_rng(seed)
    own = [("draw", "i8"), ("replicate", "i4"), *((name, "f8") for name in NAMES)]
    table = np.zeros(count, dtype=own + OUTCOME.descr)
    table["draw"], table["replicate"] = np.arange(count), np.arange(count) * 10 // count
    for name in NAMES:
        table[name] = rng.random(count)
    table["joint_error"], table["passes"] = table["payload"], True
    table["tool_error"] = table["tool_error_time"] = np.nan
    return table


def swept(table, grid=(), **limits):
    return Swept("pd", Config(), NAMES, grid, (), table, table[0], limits, False, "joint_error")


def test_a_csv_gives_every_bit_back(tmp_path):
    tables = {"pd": made(ROWS + 3), "./my law.py:A,B": made(2, seed=1)}
    tables["pd"]["joint_error"][:4] = [np.inf, 5e-324, 0.1 + 0.2, -0.0]
    tables["pd"]["trouble"][0] = TROUBLES.index("ran away")
    tables["pd"]["passes"][0] = False
    write_tables(tmp_path / "table.csv", tables)
    with open(tmp_path / "table.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == column_names(tables["pd"])
    assert [row["sample"] for row in rows] == [*map(str, range(ROWS + 3)), "0", "1"]
    assert {row["controller"] for row in rows} == set(tables)
    assert [(row["trouble"], row["passes"]) for row in rows[:2]] == [("ran away", "0"), ("", "1")]
    expected = np.concatenate(list(tables.values()))
    for column, name in (("joint_error_rad", "joint_error"), ("model.mass", "model.mass")):
        assert [float(row[column]).hex() for row in rows] == [float(x).hex() for x in expected[name]]
    assert rows[5]["tool_error_m"] == "nan"


def test_parquet_has_the_same_columns_and_bits(tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    tables = {"pd": made(5), "pid": made(5, seed=1)}
    write_tables(tmp_path / "table.parquet", tables)
    read = parquet.read_table(tmp_path / "table.parquet").to_pydict()
    assert list(read) == column_names(tables["pd"])
    assert read["controller"] == ["pd"] * 5 + ["pid"] * 5
    assert read["payload"] == [*tables["pd"]["payload"], *tables["pid"]["payload"]]
    assert (read["trouble"][0], read["passes"][0]) == ("", True)

    monkeypatch.setattr(log_files, "import_module", lambda name: exec("raise ImportError"))
    with pytest.raises(TwinError, match=r"Parquet requires pyarrow, .* pip install 'irb-twin\[tables\]'"):
        write_tables(tmp_path / "other.parquet", tables)
    with pytest.raises(ValueError, match=r"ends in \.csv or \.parquet"):
        write_tables(tmp_path / "table.xlsx", tables)
    assert [path.name for path in tmp_path.iterdir()] == ["table.parquet"]  # nor a draft


def test_how_runs_fail():
    """Each way to fail is counted; what ended early failed in no other way; what no figure tells is told."""
    table = made(9)
    table["joint_error"] = 0.001
    table["trouble"][0], table["joint_error"][0] = TROUBLES.index("ran away"), np.inf
    table["saturated"][[0, 1]] = 3
    table["beyond_range"][[1, 2]] = 1e-3
    table["speed_ratio"] = 1 + 1e-10  # round-off
    table["speed_ratio"][3] = 1.1
    table["joint_error"][4] = 0.02
    table["passes"][[0, 1, 2, 3, 4, 5]] = False
    found = {
        one.name: np.flatnonzero(one.rows).tolist() for one in failures(table, {"joint_error": 0.01}, False)
    }
    assert {name: rows for name, rows in found.items() if rows} == {
        "ran away": [0], "beyond its range": [1, 2], "too fast": [3], "a drive saturated": [1],
        "joint error above 0.01": [4], "joint error above rounding errors": [5],
    }  # fmt: skip
    free = {one.name for one in failures(table, {}, True)}
    assert not free & {"beyond its range", "too fast"}


def test_findings_of_a_known_table():
    """The error is the payload, a limit on it holds for the share that is below; the mass matters nothing."""
    table = made(1000)
    table["passes"] = table["joint_error"] <= 0.25
    table["joint_error"][table["payload"] > 0.97] = np.inf
    found = findings(swept(table, joint_error=0.25))
    assert found.share.share == np.count_nonzero(table["payload"] <= 0.25) / 1000
    assert found.share.low < 0.25 < found.share.high
    assert found.failed == (("joint error above 0.25", np.count_nonzero(~table["passes"])),)
    spread = next(one for one in found.spreads if one.figure == "joint_error")
    assert (spread.median, spread.most) == tuple(np.sort(table["payload"])[[499, 949]])
    assert (spread.worst, spread.unit, spread.nominal) == (np.inf, "rad", table["joint_error"][0])
    assert "tool_error" not in [one.figure for one in found.spreads]  # nobody asked
    first, *_ = found.importance
    assert first.name == "payload"
    assert first.correlation > 0.99


def test_the_share_at_each_point_of_a_grid():
    table = made(60)
    table["model.mass"] = np.tile([0.9, 1.0, 1.1], 20)
    table["draw"] = np.repeat(np.arange(20), 3)
    table["passes"] = table["model.mass"] < 1.05
    found = findings(swept(table, grid=("model.mass",)))
    assert [(at.value, at.share) for at in found.on_grid] == [(0.9, 1.0), (1.0, 1.0), (1.1, 0.0)]


def test_pictures_show_what_failed(tmp_path):
    """Blue where all hold, and marks or red where not; of few runs and of many."""

    def drawn(table):
        draw(swept(table, joint_error=0.5), tmp_path / "a.png", "title")
        return imread(tmp_path / "a.png")[..., :3]

    few, many = made(50), made(FEW + 1)
    sound = drawn(few)
    for table in (few, many):
        table["passes"] = table["payload"] < 0.25
    assert not np.array_equal(drawn(few), sound)
    red = np.all(np.abs(drawn(many) - [165 / 255, 0, 38 / 255]) < 0.01, axis=-1)
    # The lower left panel, of three quarters of whose width no run holds, takes some eighth of the picture.
    assert red.mean() == pytest.approx(0.75 / 8, abs=0.02)


def test_shares_near_the_ends_have_their_digits():
    shares = [percent(share) for share in (0, 0.0004, 0.874, 0.9996, 1)]
    assert shares == ["0.0 %", "0.040 %", "87.4 %", "99.960 %", "100.0 %"]


# Diagnosis of a failed check: model, controller or settings.


def failing(name, law="pd", **settings):
    run = made_up_run(law, Metric(name, 2.0, "", 1.0, "why"))
    return dataclasses.replace(run, config=Config(controller=law, **settings))


def undetermined(name):
    run = failing(name)
    return dataclasses.replace(run, metrics=(dataclasses.replace(run.metrics[0], span=(0.5, 2.0)),))


def test_passing_run_has_no_diagnosis():
    assert diagnose(made_up_run()) == ""


@pytest.mark.parametrize(
    ("run", "whose"),
    [
        (failing("engine - model, one step"), "the twin or the robot's file"),
        (failing("largest gap of a closed loop"), "the twin or the robot's file"),
        (failing("reference speed / its limit"), "the scenario's settings or the robot's limits"),
        (failing("my check", "computed_torque"), "the scenario, its settings or the robot's file"),
        (
            failing("samples at the torque limit", "computed_torque"),
            "the torque limits in the robot's file (jo",
        ),
        (failing("my check", noise=1e-4), "the settings: the model of pd differs from the plant, or pd meas"),
        (failing("my check", changes=(("mass", 1.1),)), "the settings: the model of pd differs"),
        (failing("my check", drives="rigid", model_drives="ideal"), "the settings: the model of pd differs"),
        (failing("friction - its law"), "the twin: in the engine's steps the drives"),
        (failing("samples not replayed"), "the controller: pd gives other torques"),
        (undetermined("largest joint error"), "rounding: runs that differ by rounding"),
        (Run("swing", Config(), None, (), 0.1, "no", refused=True), "a setting or the robot"),
        (Run("swing", Config(), None, (), 0.1, "mine.py, line 3: no"), "the code of the scenario or of the"),
    ],
)
def test_failed_check_determines_the_diagnosis(run, whose):
    assert diagnose(run, [run]).startswith(whose)


def test_a_law_is_judged_beside_computed_torque():
    run = failing("my check")
    assert "can follow the motion at all: irb-twin run swing --controller computed_torque" in (
        diagnose(run, [run])
    )
    good = made_up_run("computed_torque")
    assert diagnose(run, [run, good]).startswith(
        "the controller or its gains: computed_torque, which knows the"
    )
    bad = failing("my check", "computed_torque")
    assert "rather than the controller: computed_torque, which knows" in diagnose(run, [run, bad])
    other = dataclasses.replace(good, config=Config(controller="computed_torque", bandwidth=30.0))
    assert diagnose(run, [run, other]) == diagnose(run, [run])


def test_a_file_can_be_looked_over_and_a_robot_of_ours_has_none():
    command = "irb-twin check-model 'my arm.urdf'"
    assert command in diagnose(failing("engine - model, one step", robot="my arm.urdf"))
    assert "check-model" not in diagnose(failing("engine - model, one step"))


# The report's account of the worst moment: torques that add up, and the causes of the error.


TRACKING = registry.find("joint_tracking")


def log_of(**settings):
    return TRACKING.run(TRACKING.Config(**{"duration": 0.4} | settings))


@pytest.fixture(scope="module")
def pd():
    return log_of(controller="pd", drives="rigid")


def moment_and_text(log):
    moment = worst_moment(log)
    return moment, " ".join(reasons(moment))


def test_the_worst_moment_is_that_of_the_largest_error(pd):
    moment, size = worst_moment(pd), np.abs(joint_error(pd))
    assert size[moment.sample, moment.joint] == moment.size == size.max()
    assert moment.name == pd.robot.joint_names[moment.joint]
    assert moment.t == pd.t[moment.sample]


def test_an_error_that_is_no_number_is_passed_over(pd):
    q = pd.q.copy()
    q[-1] = np.nan
    broken = replace(pd, q=q, q_seen=q, q_motor=q)
    assert np.isfinite(worst_moment(broken).size)
    q[:] = np.nan
    assert worst_moment(broken) is None


def test_parts_of_the_torque_are_those_of_the_motion_in_the_engine(pd):
    """The acceleration is taken from the engine's speeds, of which the parts know nothing."""
    import twin

    period = pd.time_step
    for sample in (0, 57, 200, 398):
        q, qd = pd.q[sample], pd.qd[sample]
        qdd = (pd.qd[sample + 1] - qd) / period
        M = twin.mass_matrix(pd.robot, q)
        for joint in range(6):
            weight, speed, own, others, drive = WorstMoment(pd, sample, joint).torque_parts().values()
            near = {"rel": 1e-9, "abs": 1e-9 * float(np.abs(M @ qdd).max())}
            assert own == pytest.approx(M[joint, joint] * qdd[joint], **near)
            assert others == pytest.approx((M @ qdd)[joint] - M[joint, joint] * qdd[joint], **near)
            assert weight == pytest.approx(twin.gravity_torque(pd.robot, q)[joint], rel=1e-12, abs=1e-12)
            assert weight + speed + own + others + drive == pytest.approx(pd.tau[sample, joint], rel=1e-9)
            assert speed == pytest.approx((twin.coriolis_matrix(pd.robot, q, qd) @ qd)[joint], abs=1e-9)


def test_friction_that_the_law_does_not_know_is_found(pd):
    _, told = moment_and_text(pd)
    assert "remained in the drive (friction, rotor, spring)" in told
    assert "at its limit" not in told


def test_a_delay_is_found():
    moment, told = moment_and_text(log_of(controller="computed_torque", delay=4))
    assert "The measured position of the joint differed" in told
    seen = moment.at(moment.log.q_seen - moment.log.q_motor)
    assert abs(seen) > 0.9 * moment.size


def test_a_motor_at_its_limit_is_found(pd):
    moment, saturated = worst_moment(pd), np.zeros_like(pd.saturated)
    saturated[moment.sample - 30 : moment.sample, moment.joint] = True
    _, told = moment_and_text(replace(pd, saturated=saturated))
    assert f"The motor of {moment.name} was at its limit in 30 of the " in told
    _, told = moment_and_text(replace(pd, saturated=np.roll(saturated, 1, axis=1)))
    assert "had a motor at its limit, which affects " in told


def test_a_loop_that_swings_is_found(pd):
    moment = worst_moment(pd)
    q = pd.q.copy()
    q[:, moment.joint] += 0.9 * moment.size * np.sin(2 * np.pi * 25 * pd.t)
    _, told = moment_and_text(replace(pd, q=q, q_motor=q, q_seen=q))
    assert "The error oscillates at about 2" in told


def test_a_law_without_a_model_goes_with_the_torque_it_must_bring():
    _, told = moment_and_text(log_of(controller="pd", bandwidth=80.0, duration=2.0))
    assert "correlates with the torque at the joint" in told


def test_rounding_is_not_explained():
    moment, told = moment_and_text(log_of(controller="computed_torque"))
    assert moment.size < 1e-12
    assert told == "This is a rounding error: there is nothing to explain."
