"""Verdict on the tracking error: by theory, by a limit or undecided; its text in every report."""

import dataclasses
import html
import itertools
import json
import pickle
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from scipy.signal import residue

import twin
from controllers.gains import cascade_gains, diagonal_inertia
from scenarios.judging import bounds
from scenarios.judging.tracking import ERROR, error_metrics, limited, tracking_verdict
from scenarios.metric import Metric
from scenarios.report import page
from scenarios.report.files import compare, read_baseline, write_json, write_junit, write_markdown
from scenarios.report.report import scenario_report, total, validation_total
from scenarios.report.results import Results
from scenarios.running.runs import Run, diagnose, repeat_command, run_one
from scenarios.setup import Setup
from scenarios.shell.command_line import main
from tests.support import tasks
from tests.support.changed_runs import with_log, with_loop, with_rounding
from tests.support.example_logs import made_up_task, rendered
from twin.data.logs.figures import joint_error


def tracked(**settings):
    return tasks.run("joint_tracking", **{"duration": 0.3, "drives": "rigid", **settings})


@pytest.fixture(scope="module")
def runs():
    """Return short runs with three controllers and rigid drives, by the controller's name."""
    return {law: tracked(controller=law) for law in ("pd", "cascade", "computed_torque")}


def unknown_law(run, undetermined=False):
    """Return the run of a controller that is not known; rounding decides its path if it is undetermined."""
    run = with_loop(run, known_law=False)
    return with_rounding(run, undetermined_from=0.25) if undetermined else run


def verdict_on(run, span=None, limits=(), **settings):
    metrics = error_metrics(run)
    metrics = tuple(dataclasses.replace(one, span=span) if one.name == ERROR else one for one in metrics)
    return tracking_verdict(Setup(**settings), run, limited(metrics, run.log, limits, {}))


# The bound.


def test_cascade_area_agrees_with_its_gains():
    """Compute the kernel from a disturbing torque to the error by partial fractions of the loop."""
    robot, omega = twin.load("irb140").with_drives("rigid"), 7.0
    gains, Mbar = cascade_gains(robot, omega), diagonal_inertia(robot)
    t = np.linspace(0.0, 140.0 / omega, 200_001)
    for joint in (0, 5):
        kp, Kv, Ti = (row[joint] for row in gains)
        r, p, _ = residue([1.0, 0.0], [Mbar[joint], Kv, Kv * (kp + 1 / Ti), Kv * kp / Ti])
        kernel = np.real(sum(part * np.exp(pole * t) for part, pole in zip(r, p, strict=True)))
        area = np.trapezoid(np.abs(kernel), t) * Mbar[joint] * omega**2
        assert area == pytest.approx(bounds.AREAS["cascade"], rel=1e-6)
        assert np.count_nonzero(np.diff(np.sign(kernel[1:-1]))) == 1


@pytest.mark.parametrize("law", ["pd", "pd_gravity", "cascade"])
def test_missing_torque_uses_worst_signs_of_friction(runs, law):
    """Test one sample with coupled motors; the friction of each shaft may have either sign."""
    coupling = np.eye(6)
    coupling[4, 3], coupling[5, 3], coupling[5, 4] = -0.3, 0.2, -0.7
    side, robot, omega = ("motor",) * 4 + ("joint", "motor"), runs["pd"].log.robot, 20.0
    drives = dataclasses.replace(robot.drives, coupling=coupling, friction_at=side, stiffness=np.inf)
    robot = dataclasses.replace(robot, drives=drives)
    q, qd, qdd = np.random.default_rng(4).normal(size=(3, 1, 6)) * [[[0.5]], [[1.0]], [[20.0]]]
    motion = {"t": np.zeros(1), "q_ref": q, "qd_ref": qd, "qdd_ref": qdd}
    run = with_log(runs["pd"], robot=robot, controller=law, **motion)
    R, A = np.where(np.array(side)[:, None] == "motor", coupling, np.eye(6)), drives.reflected_inertia
    M, V = twin.mass_matrix(robot.arm, q[0]) + A, R.T @ np.diag(drives.viscous) @ R
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=6)))
    if law == "cascade":
        torques = 2 * (signs * drives.static) @ R
    else:
        friction = signs * drives.static + drives.viscous * (R @ qd[0])
        torques = twin.inverse_dynamics(robot.arm, q[0], qd[0], qdd[0]) + A @ qdd[0] + friction @ R
        torques = torques - (twin.gravity_torque(robot, q[0]) if law == "pd_gravity" else 0.0)
    d, Mbar = np.abs(torques).max(axis=0), diagonal_inertia(robot)
    others = (np.abs(M) + np.abs(V) / omega) * (1 - np.eye(6)) / Mbar
    disturbing = sum(np.linalg.matrix_power(others, k) @ d for k in range(7))
    expected = bounds.MARGIN * bounds.AREAS[law] * disturbing / (omega**2 * Mbar)
    np.testing.assert_allclose(bounds.tracking_bound(run)[0], expected, rtol=1e-12)


def test_bound_is_rounding_if_no_torque_is_missing():
    for settings in ({"controller": "pd_gravity"}, {"steps_per_period": 5}, {"reference": "continuous"}):
        run = tasks.executed(duration=0.02, **settings)
        assert (run.tracking.verdict, run.tracking.limit) == ("bounded", bounds.ROUND_OFF), settings
        assert run.outcome == "passes", settings


def test_bound_beyond_the_range_of_a_joint_is_not_judged(runs):
    """With soft gains the bound is several turns; an error beyond the bound of another joint still fails."""
    soft = with_loop(runs["pd"], bandwidth=4.0)
    robot = soft.log.robot
    bound, width = bounds.tracking_bound(soft)[0], robot.q_max - robot.q_min
    (within,) = np.flatnonzero(bound <= width)[:1]
    found = verdict_on(soft)
    assert (found.verdict, found.outcome, found.limit) == ("not_judged", "not judged", None)
    first = robot.joint_names[np.flatnonzero(bound > width)[0]]
    assert found.reason == f"the bound of {first} is beyond its range"
    q = soft.log.q.copy()
    q[-1, within] = soft.log.q_ref[-1, within] - 1.1 * bound[within]
    fails = verdict_on(with_log(soft, q=q))
    assert (fails.outcome, fails.joint) == ("fails", robot.joint_names[within])


# The verdict.


def test_verdict_states_the_limit_of_the_error(runs):
    run = runs["pd"]
    found = verdict_on(run)
    errors, (bound, _) = np.abs(joint_error(run.log)).max(axis=0), bounds.tracking_bound(run)
    worst = int(np.argmax(errors))
    assert (found.verdict, found.outcome, found.reason, found.from_s) == ("bounded", "passes", "", None)
    assert (found.range, found.limit) == ((errors[worst],) * 2, bound[worst])
    text = f"largest error {errors[worst]:.3g} rad, within its estimated bound of {bound[worst]:.3g} rad"
    assert found.sentence == text
    exact = verdict_on(runs["computed_torque"])
    assert (exact.verdict, exact.outcome, exact.limit) == ("exact", "passes", 1e-10)
    assert exact.sentence.startswith("exact, largest error ")
    assert exact.sentence.endswith(" rad; 1 mrad decays to a tenth in 0.20 s")


def test_verdict_names_the_joint_that_exceeds_its_bound(runs):
    """Joint 6, with the widest bound, stays within it; joint 1 exceeds its bound."""
    log, (bound, _) = runs["pd"].log, bounds.tracking_bound(runs["pd"])
    q = log.q.copy()
    q[-1, 0] = log.q_ref[-1, 0] - 1.1 * bound[0]
    q[-1, 5] = log.q_ref[-1, 5] - 0.9 * bound[5]
    found = verdict_on(with_log(runs["pd"], q=q))
    assert (found.verdict, found.outcome, found.joint) == ("bounded", "fails", "joint_1")
    assert f"BEYOND its estimated bound of {bound[0]:.3g} rad" in found.sentence
    away = with_log(runs["computed_torque"], q=runs["computed_torque"].log.q + 1e-9)
    assert verdict_on(away).sentence.startswith("NOT exact, largest error 1e-9 rad")


def test_sentence_of_unjudged_error_states_the_reason(runs):
    run, no_bound = unknown_law(runs["pd"]), "no bound known "
    log = run.log
    elastic = with_log(run, q_motor=log.q, qd_motor=log.qd, robot=log.robot.with_drives("elastic"))
    for one, settings, why in (
        (run, {"controller": f"{__file__}:Law"}, "for this controller"),
        (run, {"noise": 1e-9}, "with sensors"),
        (elastic, {"drives": "elastic"}, "with elastic drives"),
        (run, {"law_settings": (("Kp", 9.0),)}, "for gains set by hand"),
        (run, {"model_payload": "0"}, "where the controller's model is not the plant"),
        (run, {"changes": (("mass", 1.1),)}, "where the controller's model is not the plant"),
        (with_log(runs["pd"], controller="adaptive"), {}, "for this controller in this scenario"),
    ):
        found = verdict_on(one, **settings)
        assert (found.verdict, found.outcome, found.limit) == ("not_judged", "not judged", None)
        assert found.reason == no_bound + why
    assert found.sentence == (
        f"tracking NOT JUDGED ({found.reason}), largest error {np.abs(joint_error(log)).max():.3g} rad, "
        f"{found.joint}; --limit joint_error=... judges it"
    )


def test_run_without_error_check_is_not_judged_and_run_without_loop_has_no_verdict(runs):
    found = tracking_verdict(Setup(), runs["pd"], ())
    assert (found.verdict, found.reason) == ("not_judged", "this scenario does not check it")
    assert tracking_verdict(Setup(), dataclasses.replace(runs["pd"], loop=None), ()) is None


def test_limit_applies_to_whole_span_of_rounding(runs):
    wide, words = (
        (0.006, 0.044),
        "UNDETERMINED by rounding from t = 0.25 s, largest error 0.006 to 0.044 rad, ",
    )
    for span, limit, verdict, outcome, told in (
        (None, 1.0, "limited", "passes", "within the limit of 1 rad"),
        (None, 1e-6, "limited", "fails", "BEYOND the limit of 1e-6 rad"),
        (wide, 0.05, "limited", "passes", "error 0.006 to 0.044 rad, within the limit of 0.05"),
        (wide, 0.02, "undetermined", "undetermined", words + "limit 0.02 rad"),
        (wide, 0.005, "limited", "fails", "BEYOND the limit of 0.005 rad"),
        (wide, None, "undetermined", "not judged", words + "joint_6; --limit"),
    ):
        run = unknown_law(runs["pd"], undetermined=span is not None)
        found = verdict_on(run, span, () if limit is None else (("joint_error", limit),))
        assert (found.verdict, found.outcome) == (verdict, outcome)
        assert told in found.sentence
        assert found.from_s == (0.25 if span else None)
        assert found.range == (span or (np.abs(joint_error(run.log)).max(),) * 2)


def test_limit_adds_checks_and_never_relaxes_one(runs):
    run = runs["computed_torque"]
    log = run.log
    others = ["rms_error", "rms_torque", "beyond_range", "speed_ratio", "saturated"]
    names = ["joint_error", "tool_error", *others]
    limits = tuple((name, 0.3) for name in names)
    found = {one.name: one for one in limited(error_metrics(run), log, limits, {})}
    assert found[ERROR].limit == 1e-10
    assert found["largest tool error"].limit == 0.3
    assert [one for one in found if one.startswith("--limit")] == [f"--limit {name}" for name in others]
    rms = np.sqrt(np.mean((log.tau / log.robot.drive_torque_max) ** 2))
    assert found["--limit rms_torque"].value == pytest.approx(rms)
    assert limited(error_metrics(run), log, (("joint_error", 1e-12),), {})[0].limit == 1e-12
    for given, of_scenario, why in ((1e-12, 1e-11, "the limit that --limit sets"),
                                    (1e-11, 1e-12, "limit of the scenario")):  # fmt: skip
        strict = limited(error_metrics(run), log, (("joint_error", given),), {"joint_error": of_scenario})[0]
        assert (strict.limit, strict.why) == (1e-12, why)


# The result, and what only formats it.


def run_with(runs, law="pd", metrics=(), undetermined=False):
    """Return a run with the given metrics only, of a controller that is not known, and its verdict."""
    one = unknown_law(runs[law], undetermined)
    error = Metric(ERROR, 0.1, "rad", None, "why", span=(0.05, 0.15) if undetermined else None)
    metrics = metrics or (error, Metric("the check", 1.0, "", 2.0, "why"))
    task = made_up_task(controller=law)
    return Run(task, one.log, metrics, 0.5, tracking=tracking_verdict(task.setup, one, metrics))


def test_every_report_lists_unjudged_and_undetermined_runs(runs, tmp_path):
    runs = [run_with(runs), run_with(runs, "cascade", undetermined=True)]
    assert [run.outcome for run in runs] == ["not judged", "undetermined"]
    assert all(run.passes for run in runs)  # no limit is broken
    lines = str(total(runs)).splitlines()
    assert [line.split(": ")[0] for line in lines[1:]] == ["1 checks pass; pd", "1 checks pass; cascade"]
    assert "NOT JUDGED" in lines[1]
    assert "UNDETERMINED" in lines[2]
    assert validation_total(Results(runs), 1.0, 1).endswith(
        ": all checks pass; tracking: 1 undetermined, 1 not judged "
        "(no bound known where the controller's model is not the plant)"
    )

    write_json(Results(runs), tmp_path / "a.json")
    first, second = json.loads((tmp_path / "a.json").read_text())["runs"]
    assert first["tracking"]["verdict"] == "not_judged"
    assert second["tracking"] == {
        "verdict": "undetermined", "outcome": "not judged", "range": [0.05, 0.15], "unit": "rad",
        "joint": second["tracking"]["joint"], "limit": None, "from_s": 0.25,
        "reason": "no bound known where the controller's model is not the plant", "feedback": "",
    }  # fmt: skip
    assert second["metrics"][0]["span"] == [0.05, 0.15]
    assert [metric["outcome"] for metric in second["metrics"]] == ["not judged", "passes"]

    write_junit(Results(runs), tmp_path / "a.xml")
    cases = [one for one in ET.parse(tmp_path / "a.xml").iter("testcase") if one.get("name") == "tracking"]
    assert [case.find("skipped").get("message") for case in cases] == [run.tracking.sentence for run in runs]

    write_markdown(Results(runs), tmp_path / "a.md")
    text = (tmp_path / "a.md").read_text()
    assert text.startswith("## irb-twin validate: every check passes, but not all tracking was judged\n")
    assert "| 1/1 | not judged |" in text
    assert "| 1/1 | UNDETERMINED |" in text

    for one in runs:
        shown = page.rendered(Results([one]), [], {}, "")
        assert "Everything passes" not in shown
        assert 'class="verdict open"' in shown
        assert one.tracking.reason in html.unescape(shown) or "UNDETERMINED" in shown


def test_judged_run_passes_in_every_report(tmp_path):
    settings = {"duration": 0.05, "controller": "pd", "drives": "rigid", "limits": (("joint_error", 1.0),)}
    run = run_one(tasks.task("joint_tracking", **settings))
    assert (run.outcome, run.tracking.verdict) == ("passes", "limited")
    write_junit(Results([run]), tmp_path / "a.xml")
    assert ET.parse(tmp_path / "a.xml").getroot().attrib["skipped"] == "0"
    shown = page.rendered(Results([run]), [], {}, "")
    assert "Everything passes" in shown
    assert 'class="verdict"' in shown
    sent = {name: value for name, value in vars(run.without_log()).items() if name != "task"}
    there = pickle.loads(pickle.dumps(sent))  # as a worker process sends it
    assert Run(run.task, **there).tracking == run.tracking
    assert "--limit joint_error=1.0" in repeat_command(run)


def test_undetermined_check_neither_passes_nor_fails(runs, tmp_path):
    check = Metric("the check", 0.5, "rad", 1.0, "why", span=(0.5, 1.5))
    run = run_with(runs, metrics=(check,))
    assert (run.outcome, run.passes) == ("undetermined", False)
    assert diagnose(run).startswith("rounding: runs that differ by rounding alone")
    text = rendered(scenario_report("A swing.", [run], 200))
    assert "the check is 0.5 to 1.5 rad due to rounding, expected at most 1" in text
    assert run_with(runs, metrics=(check, Metric("other", np.nan, "", None, ""))).outcome == "not computed"
    assert run_with(runs, metrics=(check, Metric("other", 3.0, "", 1.0, ""))).outcome == "fails"


def test_baseline_skips_undetermined_figures(tmp_path):
    def run(value, span=None):
        return Run(made_up_task(), None, (Metric("m", value, "rad", 1.0, "", span=span),), 0.1)

    for before, now in ((run(0.1), run(0.9, (0.1, 0.9))), (run(0.1, (0.1, 0.9)), run(0.9))):
        write_json(Results([before], {}), tmp_path / "a.json")
        found = compare([now], read_baseline(tmp_path / "a.json"), {})
        assert (found.worse, found.grown, found.missing) == ([], [], [])


def test_limit_option_sets_verdict_and_exit_status(capsys):
    words = [
        "joint_tracking",
        "--robot",
        "irb140",
        "--controller",
        "pd",
        "--duration",
        "0.05",
        "--delay",
        "1",
    ]
    assert main(["run", *words, "--limit", "joint_error=0.5"]) == 0
    assert "within the limit of 0.5 rad" in capsys.readouterr().out
    assert main(["validate", *words, "--jobs", "1", "--limit", "joint_error=1e-9"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "expected at most 1e-9: the limit that --limit sets" in out
    assert "tracking: 1 limited" in out
    assert main(["run", *words, "--limit", "joint_eror=1"]) == 2
    assert "unknown quantity 'joint_eror': known are joint_error," in capsys.readouterr().err
