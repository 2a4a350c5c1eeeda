"""Programs in RAPID run as scenarios: tracking, loads, lines, faults, and the command line."""

import json
import pickle
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import twin
from scenarios.abb.rapid.program import measured_times, move_figures
from scenarios.report.page import MOST_MARKS, line_numbers, listing, write_page
from scenarios.report.results import Results
from scenarios.running import registry
from scenarios.running.runs import repeat_command, run_one
from scenarios.shell.command_line import main
from scenarios.studies.sweeps.scenario_experiment import ScenarioExperiment
from tests.support.browser import browser
from tests.support.command_lines import parsed_back
from tests.support.rapid_programs import HEAD, PICK
from tests.support.window_process import passes
from twin.base.errors import TwinError, UnknownNameError, VariationError
from twin.data.identification import measurements_of_log
from twin.data.logs.log import parts
from twin.studies.views.browser import NEAR, _colours_of_speed

pytestmark = pytest.mark.slow("runs scenarios in the engine")

LOADED_LINE = 14  # first line after GripLoad


def entry_of(folder, text, name="pick.mod"):
    """Write a program, and return its entry in the registry."""
    (folder / name).write_text(text)
    return registry.find(name)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return a function that writes a program into the current folder and returns its entry."""
    monkeypatch.chdir(tmp_path)
    return partial(entry_of, tmp_path)


def run(entry, **settings):
    """Return the run of a program; it must finish."""
    done = run_one(entry.task({"drives": "rigid", **settings}))
    assert done.error is None, done.error
    return done


def figure(done, name):
    """Return the check of this name."""
    return next(metric for metric in done.metrics if metric.name == name)


@pytest.fixture(scope="module")
def picked(tmp_path_factory):
    """Return the run of the program with rigid drives and an exact controller."""
    folder = tmp_path_factory.mktemp("pick")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return run(entry_of(folder, PICK))


def times_of(done):
    """Return the planned durations of the moves of a run, in [s]."""
    return [one.time for one in done.run.performance.plan.moves]


def assert_times_of_the_plan(done):
    np.testing.assert_allclose(measured_times(done.run), times_of(done), atol=1e-3)


@pytest.mark.parametrize("robot", ["irb140", "irb1400"])
def test_exact_controller_follows_a_program_to_rounding_and_saturates_nowhere(program, robot):
    done = run(program(PICK.replace("part:=[6", "part:=[4")), robot=robot)
    assert done.passes
    assert figure(done, "largest joint error").value < 1e-12
    assert not done.log.saturated.any()
    assert twin.logs.torque_residual(done.log) < 1e-8 * np.max(np.abs(done.log.tau))
    assert_times_of_the_plan(done)
    assert len(done.run.performance.plan.starts) == 5


def test_times_of_moves_add_up_under_a_controller_that_lags(program):
    text = PICK.replace("WaitTime 0.1", "WaitTime 2")
    done = run(program(text), controller="pid", drives="ideal")
    log, starts, times = done.log, done.run.performance.plan.starts, times_of(done)
    lagging = measured_times(done.run)
    waiting = np.flatnonzero((log.t >= starts[2] + times[2]) & (log.t < starts[3]))
    distance = np.max(np.abs(log.q[waiting] - log.q_ref[waiting[-1]]), axis=1)
    arrived = waiting[np.argmax(distance < 1e-3)]
    assert lagging[1] + lagging[2] == pytest.approx(log.t[arrived] - starts[1], abs=1e-9)
    assert lagging[1] + lagging[2] > times[1] + times[2] + 0.01


def test_a_load_changes_the_later_lines_and_not_a_bit_of_the_earlier_ones(program, picked):
    without = run(program(PICK.replace("GripLoad part", "GripLoad load0"))).log
    loaded = picked.log
    first = int(np.argmax(loaded.program.line == LOADED_LINE))
    assert loaded.payloads.load.tolist() == [0] * first + [1] * (len(loaded.t) - first)
    # The torque of the last sample before the line already leads into it.
    for name, count in (("q", first), ("qd", first), ("tau", first - 1)):
        assert np.array_equal(getattr(loaded, name)[:count], getattr(without, name)[:count])
    assert np.max(np.abs(loaded.tau[first : first + 50] - without.tau[first : first + 50])) > 1.0
    assert np.max(np.abs(loaded.q - loaded.q_ref)) < 1e-12


def test_log_with_two_loads_has_parts_that_survive_a_file(picked, tmp_path):
    log = picked.log
    log.save(tmp_path / "pick.npz")
    again = twin.Log.load(tmp_path / "pick.npz")
    assert again.identical(log)
    first, second = parts(again)
    assert (first.robot.payload.mass, second.robot.payload.mass) == (1.0, 7.0)
    # The part of 6 kg hangs 40 mm beyond the tool's point at 100 mm.
    assert second.robot.payload.com[2] == pytest.approx((1 * 0.05 + 6 * 0.14) / 7)
    assert first.t[-1] == second.t[0]
    assert again.model_residual() < 1e-11
    with pytest.raises(TwinError, match="the payload changes during the run"):
        measurements_of_log(again)
    assert measurements_of_log(second).how
    damaged = replace(again.payloads, loads=again.payloads.loads[:1])
    with pytest.raises(TwinError, match="expected load to be from 0 to 0"):
        replace(again, payloads=damaged).require_consistent()


def test_weight_on_the_foundation_grows_with_the_load(program):
    log = run(program(PICK), settling=0.2).log
    force = twin.logs.log_wrenches(log).base[:, 2]
    waiting = np.flatnonzero(log.program.line == 21)[50]
    assert force[waiting] == pytest.approx(9.81 * (98 + 1), abs=0.2)
    assert force[-1] == pytest.approx(9.81 * (98 + 7), abs=0.2)


def test_another_tool_is_another_load(program):
    text = PICK.replace("GripLoad part;", "").replace("b, v1000, z10, grip", "b, v1000, z10, heavy")
    log = run(program(text)).log
    assert [row[0] for row in log.payloads.loads.tolist()] == [1.0, 2.0, 1.0]
    assert np.max(np.abs(log.q - log.q_ref)) < 1e-12


@pytest.mark.parametrize(("law", "drives"), [("pid", "elastic"), ("cascade", "rigid")])
def test_engine_and_model_agree_with_changing_loads_and_drives(program, law, drives):
    done = run(program(PICK), controller=law, drives=drives)
    failing = [metric.name for metric in done.metrics if not metric.passes]
    assert not {name for name in failing if "engine - model" in name or "replayed" in name}, failing


def test_integral_survives_a_change_of_the_load(program):
    text = PICK.replace("GripLoad part;", "WaitTime 1; GripLoad load0;").replace("WaitTime 0.1", "WaitTime 1")
    light = "PERS loaddata light:=[0.002,[0,0,0],[1,0,0,0],0,0,0]; VAR robtarget"
    heavy = text.replace("GripLoad load0", "GripLoad light").replace("VAR robtarget", light)
    plain = run(program(text), controller="pid", drives="ideal").log
    changed = run(program(heavy), controller="pid", drives="ideal").log
    assert plain.payloads is None
    first = int(np.argmax(changed.payloads.load))
    errors = [(log.q - log.q_ref)[first : first + 100] for log in (plain, changed)]
    assert np.max(np.abs(errors[0] - errors[1])) < 1e-3  # 0.05 rad without the integral


def test_payload_of_the_command_line_is_unknown_to_the_controller(program):
    done = run(program(PICK), payload="3,0,0,0.1")
    payloads = done.log.payloads
    assert payloads is None or {row[0] for row in payloads.loads.tolist()} == {3.0}
    assert figure(done, "largest joint error").limit is None
    assert figure(done, "largest joint error").value > 1e-3
    assert figure(done, "engine - model, one step").passes


def test_fault_stops_the_program_after_the_moves_before_it(program):
    text = PICK.replace("MoveAbsJ b", "MoveL Offs(there,5000,0,0), v100, fine, grip; MoveAbsJ b")
    done = run(program(text))
    fault = figure(done, "faults of the program")
    assert fault.value == 1.0
    assert not done.passes
    assert f"pick.mod, line {LOADED_LINE}" in fault.where
    assert len(done.run.performance.plan.moves) == 3
    assert done.cases[-1][1] == f"pick.mod line {LOADED_LINE}"
    assert done.cases[-1][3] == fault.where


def test_waits_have_their_lines_and_many_moves_a_row_per_line(program, picked):
    assert np.count_nonzero(picked.log.program.line == 21) == 100
    moves = "MoveAbsJ a, vmax, z10, tool0;\nMoveAbsJ b, vmax, z10, tool0;"
    loop = f"{HEAD}PROC main()\nFOR i FROM 1 TO 31 DO\n{moves}\nENDFOR\nENDPROC\nENDMODULE\n"
    done = run(program(loop, "loop.mod"))
    caption, rows = done.table
    assert "62 moves" in caption
    assert [row[1] for row in rows] == ["move", "MoveAbsJ x 31", "MoveAbsJ x 31"]
    torque = move_figures(done.run).torque
    assert [row[-2].split()[1] for row in rows[1:]] == [f"{100 * torque[k::2].max():.0f}" for k in (0, 1)]


def test_settings_survive_a_pickle_and_the_command_repeats_the_run(program):
    task = program(PICK).task({"share": 0.5, "controller": "pd", "settling": 0.1})
    assert pickle.loads(pickle.dumps(task[1:])) == task[1:]
    done = run_one(task)
    assert "pick.mod line" in figure(done, "largest joint error").where
    found = parsed_back(repeat_command(done))
    assert (found.entry.file, *found[1:]) == ("pick.mod", *task[1:])


def test_sweep_varies_payload_and_work_object(program):
    entry = program(PICK)
    with pytest.raises(VariationError, match="loads change"):
        ScenarioExperiment(entry.task({})).trial({"payload": 2.0})
    experiment = ScenarioExperiment(entry.task({"payload": "1", "model_payload": "1"}))
    one, two = (experiment.trial({"payload": 2.0, "work_object_x_mm": x}) for x in (2.0, 0.0))
    # `there` is where the arm is, so that the displacement cancels for it; another work object shifts.
    assert one.plant.payload.mass == 2.0
    assert np.array_equal(one.reference.q, two.reference.q)
    # The work object is turned by 90 degrees about z, and the target is where the arm stands.
    turned = PICK.replace('"",[[0,0,0],[1,0,0,0]]', '"",[[0,0,0],[0.707106781,0,0,0.707106781]]')
    there = "[[0,-592.894,629.5],[0.353553,0.612372,0.612372,-0.353553],[0,0,0,0],[9E9,9E9,9E9,9E9,9E9,9E9]]"
    turned = turned.replace("CRobT(\\Tool:=grip \\WObj:=table1)", there).replace("GripLoad part;", "")
    program(turned, "fixed.mod")
    experiment = ScenarioExperiment(registry.find("fixed.mod").task({}))
    waiting = int(np.median(np.flatnonzero(run(registry.find("fixed.mod")).log.program.line == 21)))
    shift = [experiment.trial({"work_object_x_mm": x}).reference.q[waiting] for x in (0.0, 2.0)]
    y = [twin.forward_kinematics(twin.load("irb140"), q)[1, 3] for q in shift]
    assert y[1] - y[0] == pytest.approx(2e-3, abs=1e-9)


@pytest.mark.usefixtures("in_this_process")
def test_validate_writes_a_case_for_each_line_and_routine(program):
    program(PICK)
    words = ["validate", "pick.mod", "--robot", "irb140", "--controller", "computed_torque", "--jobs", "1"]
    assert main([*words, "--junit", "r.xml", "--json", "r.json"]) == 0
    cases = ElementTree.parse("r.xml").getroot().iter("testcase")
    found = {(case.get("classname").rpartition(".")[2], case.get("name")) for case in cases}
    assert {("pick", "pick.mod line 18 MoveL"), ("main", "pick.mod line 14 MoveAbsJ")} <= found
    (run,) = json.loads(Path("r.json").read_text())["runs"]
    assert "time of the program" in [one["name"] for one in run["metrics"]]


def test_missing_or_invalid_program_and_folder_without_modules_are_refused(program, tmp_path, command):
    with pytest.raises(UnknownNameError, match="no program"):
        registry.find("missing.mod")
    (tmp_path / "empty").mkdir()
    program("MODULE M\n  PROC main()\n    MoveL;;\n  ENDPROC\nENDMODULE\n", "bad.mod")
    for name, told in (("empty", "empty has no module"), ("bad.mod", "bad.mod, line 3")):
        said = "".join(command(["run", name], 1))
        assert told in said
        assert "Traceback" not in said


def test_folder_is_one_program_of_all_its_modules(program, tmp_path):
    (tmp_path / "task").mkdir()
    head, _, rest = PICK.partition("  PROC pick()")
    (tmp_path / "task" / "main.mod").write_text(head + "ENDMODULE\n")
    data = HEAD.replace("MODULE Pick", "MODULE Sub").partition("  PERS")[0]
    (tmp_path / "task" / "pick.mod").write_text(data + "  PROC pick()" + rest)
    done = run(registry.find("task"))
    assert done.passes
    assert sorted(done.log.program.files) == ["main.mod", "pick.mod"]
    assert done.table[1][1][0] == "main.mod:10"


# Page of a program: its text beside the replay, its lines in the curves, its path by speed.


EVIL = 'TPWrite "</pre><script>document.title = 1</script>";'


@pytest.fixture(scope="module")
def page_run(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "pick.mod"
    path.write_text(PICK.replace("SetDO close, 1;", EVIL))
    return run_one(registry.find(str(path)).task({}))


def test_listing_has_every_line_and_the_times_of_the_executed_ones(page_run):
    found = listing(page_run.log)
    assert [number for _, number, _ in found.lines] == list(range(24))
    assert found.lines[0] == (0, 0, "pick.mod")
    assert [line for _, _, line in found.marks] == [10, 18, 19, 21, 14, 15]
    times = [t for t, _, _ in found.marks]
    assert times[1] == pytest.approx(page_run.run.performance.plan.starts[1], abs=1e-3)
    assert times[3] == pytest.approx(page_run.log.t[np.argmax(page_run.log.program.line == 21)])


def test_line_numbers_leave_room_for_each_other(page_run):
    log = page_run.log
    shown = [one["x"] for one in line_numbers(log, "")]
    assert 2 <= len(shown) <= MOST_MARKS
    assert np.min(np.diff(shown)) >= log.t[-1] / MOST_MARKS


def test_path_is_coloured_by_speed_and_red_near_a_singularity(page_run):
    samples = np.arange(0, len(page_run.log.t), 5)
    colours = _colours_of_speed(page_run.log, samples)
    assert colours.shape == (len(samples) - 1, 2, 3)
    waiting = np.flatnonzero(page_run.log.program.line[samples[1:]] == 21)[3:-3]
    assert (colours[waiting] == [68, 1, 84]).all()  # the darkest colour of viridis: at rest
    near = np.abs(np.sin(page_run.log.q[samples[1:], 4])) < 0.1  # axis 5 begins at 0
    assert near.any()
    np.testing.assert_array_equal((colours == NEAR).all(axis=(1, 2)), near)


@pytest.mark.browser
def test_click_on_a_line_goes_there_and_the_running_line_is_marked(page_run, tmp_path):
    file = tmp_path / "page.html"
    write_page(Results([page_run]), file, {"pick": "A program"})
    assert file.stat().st_size < 1e7
    with browser(tmp_path / "profile") as open_page:
        shown = open_page(file.as_uri(), 1200, 900)
        shown.wait_for("document.readyState === 'complete'")
        assert shown.evaluate("document.title") != "1"
        shown.evaluate("document.querySelector('.beside').scrollIntoView()")
        inside = "document.querySelector('iframe').contentDocument"
        shown.wait_for(f"!!document.querySelector('iframe') && !!{inside}.querySelector('[role=slider]')")
        for line in (21, 14):
            shown.evaluate(f"document.querySelector('[data-line=\"0:{line}\"]').click()")
            shown.wait_for(f"document.querySelector('.running')?.dataset.line === '0:{line}'")
        assert EVIL in shown.evaluate("document.querySelector('.program').innerText")
        assert shown.requests() == [file.as_uri()]
        assert shown.complaints() == []


@pytest.mark.display
def test_program_in_the_window_moves_as_without_one_and_shows_its_lines(display, tmp_path):
    """It takes 7 s of processor time: pictures of five moves are drawn without a graphics card."""
    path = tmp_path / "pick.mod"
    path.write_text(PICK.replace("there,0,40", "there,0,10"))
    shown = passes(
        f"""
        from scenarios import Setup
        from scenarios.abb.rapid.program import RapidProgram
        from twin.physics.engine.window.bench import Bench
        seen, write_line = [], Bench.write_line
        def written(bench, name, text, *more):
            if name == "program":
                seen.append(text)
            write_line(bench, name, text, *more)
        Bench.write_line = written
        program = RapidProgram(program={str(path)!r})
        logs = [program.run(Setup(gui=gui, close_window=True)).log for gui in (True, False)]
        print("same:", logs[0].identical(logs[1]))
        print(*seen, sep="\\n")
        """,
        display,
    )
    assert "same: True" in shown
    lines = [line for line in shown.splitlines() if line.startswith("pick.mod")]
    assert lines[0] == "pick.mod line 10: MoveAbsJ a, v1000, fine, grip;"
    assert [line.split(":")[0] for line in lines] == [
        f"pick.mod line {number}" for number in (10, 18, 19, 21, 14, 15)
    ]
