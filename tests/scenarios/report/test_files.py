"""Results beside earlier ones: what got worse is named, what is rounding is not."""

import dataclasses
import json

import pytest

from scenarios.metric import Metric
from scenarios.report.files import BaselineError, compare, read_baseline, write_json
from scenarios.report.results import Results
from scenarios.running.runs import Run
from scenarios.shell.command_line import main
from scenarios.shell.output import Files
from tests.support import user_scenarios
from tests.support.example_logs import made_up_task
from tests.support.full_disk import disk_full_after
from twin.base.version import __version__

SELECTION = {"scenarios": ["swing"]}


def run_of(*values, law="pd", limit=1.0, error=None, **settings):
    metrics = tuple(Metric(f"m{k}", value, "rad", limit, "why") for k, value in enumerate(values))
    return Run(made_up_task(controller=law, **settings), None, metrics, 0.1, error=error)


def compared(folder, before, now, factor=1.1, selection=SELECTION, **changes):
    path = folder / "before.json"
    write_json(Results(before, SELECTION), path)
    document = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(document))
    return compare(now, read_baseline(path), selection, factor)


def test_a_check_that_held_and_does_not_is_worse(tmp_path):
    found = compared(tmp_path, [run_of(0.5), run_of(2.0, law="pid")], [run_of(1.5), run_of(3.0, law="pid")])
    assert found.worse == ["irb140, swing, pd: m0 passed before and fails now: 0.5 -> 1.5 rad"]
    assert found.grown == ["irb140, swing, pid: m0 grew: 2 -> 3 rad"]
    found = compared(tmp_path, [run_of(0.5)], [run_of(error="it ran away")])
    assert found.worse == ["irb140, swing, pd: it does not finish any more: it ran away"]


def test_a_figure_has_grown_beyond_the_factor_and_beyond_rounding(tmp_path):
    for before, now, factor, grown in (
        (0.5, 0.549, 1.1, False), (0.5, 0.551, 1.1, True), (0.5, 0.551, 1.2, False), (0.5, 0.1, 1.1, False),
        (1e-16, 9e-10, 1.1, False), (0.0, 9e-10, 1.1, False), (0.0, 1e-8, 1.1, True),
        (9e-10, 1.05e-9, 1.1, False), (float("nan"), 0.9, 1.1, False),
    ):  # fmt: skip
        for limit in (1.0, None):
            found = compared(tmp_path, [run_of(before, limit=limit)], [run_of(now, limit=limit)], factor)
            assert (bool(found.grown), found.worse, found.missing, found.compared) == (grown, [], [], 1)


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


def test_a_check_that_is_not_judged_any_more_is_missing(tmp_path):
    for before, now, missing in ((0.5, None, True), (None, None, False), (None, 0.5, False)):
        found = compared(tmp_path, [run_of(before)], [run_of(now)])
        told = ["irb140, swing, pd: m0: this check is not judged any more"] * missing
        assert (found.worse, found.grown, found.missing) == ([], [], told)


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


def test_a_file_that_is_no_baseline_is_refused_in_one_sentence(tmp_path, capsys):
    path = tmp_path / "b.json"
    with pytest.raises(BaselineError, match=r"cannot read the baseline .*: No such file"):
        read_baseline(path)
    for content, told in (
        ("{", "is not valid JSON"),
        ("[]", "is not a file of irb-twin validate --json"),
        ('{"runs": []}', "was written by another version of irb-twin: its format is not named, expected 2"),
        ('{"runs": [{}], "format": 2, "provenance": {}}', "is damaged: KeyError 'name'"),
    ):
        path.write_text(content)
        with pytest.raises(BaselineError, match=told):
            read_baseline(path)
    assert main(["validate", "--baseline", str(path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_with_nothing_in_common_there_is_no_comparison(tmp_path):
    with pytest.raises(BaselineError, match="has none of these 1 runs"):
        compared(tmp_path, [run_of(0.5)], [dataclasses.replace(run_of(0.5), task=made_up_task("nod"))])


@pytest.mark.usefixtures("in_this_process")
def test_on_the_command_line_what_grew_is_a_warning_unless_it_is_to_fail(tmp_path, capsys):
    """The scenario's own limit stands, so that only the comparison can tell."""
    text = user_scenarios.METRICS.replace("len(run.log.t)", "len(run.log.t) * 1.0")
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


@pytest.mark.slow("runs scenarios in the engine")
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
