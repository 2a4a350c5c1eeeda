"""Scenario `press`: what the laws press with, what is judged of it, and its sweeps."""

import dataclasses

import numpy as np
import pytest
from twin.dynamics import check_contact

import twin
from scenarios import Setup
from scenarios.judging.bounds import other_roundings
from scenarios.press import LIMITS, Press
from scenarios.running.registry import find
from scenarios.running.runs import run_one
from scenarios.shell.command_line import main
from scenarios.studies.sweeps.scenario_experiment import ScenarioExperiment
from tests.support.processor_times import shared
from twin.data.logs.closed_loop import run_closed_loop
from twin.physics.control.plant import AnalyticPlant
from twin.studies.sweeps import evaluation
from twin.studies.sweeps.trial import Judgement, dependencies

MEAN, LARGEST = "contact force - desired, mean", "contact force - desired, largest"
SPRING, DEPTH = "deflection - missing force / K", "depth in the surface, largest"
NOISY = {"force_sensor": "noise=1", "seed": 4}
PUSH = "0.05:0.15 20,10,-30; 0.1:0.2 0,5,5,0.1,0,0.2 tool"


@shared
def pressed(controller, drives="ideal", **settings):
    run = run_one(find("press").task({"controller": controller, "drives": drives, **settings}))
    assert run.error is None
    return run, {metric.name: metric for metric in run.metrics}


@pytest.mark.parametrize("controller", ["hybrid", "admittance", "impedance"])
def test_laws_press_with_the_force_on_ideal_drives(controller):
    run, found = pressed(controller)
    assert [metric.name for metric in run.metrics if metric.limit is not None and not metric.passes] == []
    by_force = [1e-3, 2e-3] if controller != "impedance" else [None, None]
    assert [found[MEAN].limit, found[LARGEST].limit] == by_force
    assert (SPRING in found) == (controller == "impedance")
    assert found[LARGEST].value < 1e-5
    assert found["engine - model, one step"].outcome == "passes"
    log = run.log
    assert log.wrench[-1, 2] == pytest.approx(30.0, abs=1e-4)
    assert not log.wrench[0].any()
    assert log.pose[-1, 1] - log.pose[0, 1] == pytest.approx(0.1, abs=1e-3)  # to the left
    assert found[DEPTH].value == pytest.approx(30.0 / 2e4, rel=0.5)


def test_deflection_without_feed_forward_is_the_whole_force_over_the_stiffness():
    """The reference is F / k = 1.5 mm deep, and springs of 2 and 20 kN/m share that."""
    run, found = pressed("impedance", law_settings=(("force", 0.0),))
    log, k = run.log, 2e4
    stiffness = run.run.loop.gains["stiffness"][2]
    force = log.wrench[-1, 2]
    assert force == pytest.approx(1.5e-3 * stiffness * k / (stiffness + k), rel=1e-5)
    assert log.pose[-1, 2] - log.pose_ref[-1, 2] == pytest.approx(force / stiffness, rel=1e-5)
    assert found[SPRING].outcome == "passes"
    assert run.outcome == "not judged"
    assert found[MEAN].why == "in the last second; 0 N are desired"
    assert found[MEAN].outcome == "not judged"


def test_figures_that_theory_does_not_limit_are_not_judged():
    reasons = {
        "a joint that sticks holds any torque up to its static friction": pressed("hybrid", "rigid"),
        "this controller controls no force": pressed("computed_torque", "rigid"),
        "no limit is known for such a model, gains, sensors or contact": pressed("hybrid", friction=0.2),
    }
    for reason, (run, found) in reasons.items():
        assert found[MEAN].outcome == found[LARGEST].outcome == "not judged"
        assert found[MEAN].why == f"not judged: {reason}"
        assert run.outcome == "not judged"
    assert pressed("computed_torque", "rigid")[1][MEAN].value > 10.0
    assert pressed("hybrid", "rigid")[1][LARGEST].value < 1e-6


def test_runs_with_other_rounding_have_the_forces_of_their_motion():
    """Under a cascade, joints stick and slip by their last digits, and so do the forces."""
    run, found = pressed("cascade", "rigid")
    assert run.run.prediction.rounding.undetermined_from is not None
    others = list(other_roundings(run.run))
    assert len(others) == 8
    for other in others:
        states = other.log.t, other.log.q, other.log.qd
        np.testing.assert_allclose(
            other.log.wrench, other.log.environment.wrench(other.log.robot, *states), atol=1e-9
        )
    assert found["friction - its law"].outcome == "passes"
    low, high = found[LARGEST].span
    assert low < high


def test_wrong_models_and_gains_by_hand_are_not_judged():
    _, unknown = pressed("hybrid", payload="0.1", model_payload="0", law_settings=(("integral", 0.0),))
    assert unknown[MEAN].limit is None
    assert unknown[MEAN].value > 0.01
    _, by_hand = pressed("hybrid", law_settings=(("force_bandwidth", 30.0),))
    assert by_hand[MEAN].limit is None
    slow = pressed("hybrid", bandwidth=2.0)[1]
    assert slow[MEAN].why == "not judged: the force is not constant yet"


def test_a_surface_of_the_user_replaces_the_plane():
    height = twin.load("irb140").rating.reach * 25 / 81
    sphere = f"sphere=0.2 at=0.45,-0.05,{height - 0.2} stiffness=2e4 damping=100"
    run, found = pressed("admittance", "rigid", surface=sphere)
    assert run.log.environment.surfaces[0, 0] == 1.0
    assert 0.0 < found[DEPTH].value < 0.01
    far = find("press").task({"surface": "plane=0,0,1 at=0,0,0 stiffness=1e4"})
    assert "is out of reach: the motion comes no nearer than" in run_one(far).error
    inside = find("press").task({"surface": "plane=0,0,1 at=0,0,1 stiffness=1e4"})
    assert "the tool starts" in run_one(inside).error


def test_options_that_cannot_be_are_refused():
    stiff = run_one(find("press").task({"drives": "ideal", "stiffness": 1e8}))
    assert stiff.refused
    assert "is too stiff for steps of 1 ms" in stiff.error
    for options in ({"force": 0.0}, {"stiffness": -1.0}):
        with pytest.raises(ValueError, match="expected a positive"):
            Press(**options)
    assert not Press().suits(twin.load("two_link"))


def test_force_of_the_user_is_not_replaced():
    setup = Press(force=20.0).adapted(Press.setup(law_settings=(("force", 5.0),)), twin.load("irb140"))
    assert dict(setup.law_settings) == {"force": 5.0}
    assert dict(Press(force=20.0).adapted(Setup(controller="pid"), twin.load("irb140")).law_settings) == {}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("joint_tracking", {"push": PUSH, "duration": 0.3, "tool": "0.1"}),
        ("joint_tracking", {"push": PUSH, "duration": 0.3, "controller": "hybrid", **NOISY}),
        ("press", {"controller": "hybrid", "friction": 0.3}),
    ],
    ids=["push", "force sensor", "press"],
)  # fmt: skip
def test_sweep_equals_single_runs_to_the_bit(name, settings):
    experiment = ScenarioExperiment(find(name).task({"drives": "rigid", **settings}), loads=True)
    trials = [experiment.trial({"payload": mass}) for mass in (0.0, 1.0, 2.0)]
    logs = []
    judged = [trial._replace(judge=lambda log: logs.append(log) or Judgement("")) for trial in trials]
    rows = evaluation.outcomes([trial._replace(metrics=()) for trial in judged], threads=1)
    for trial, row, seen in zip(trials, rows, logs, strict=True):
        log = run_closed_loop(
            AnalyticPlant(trial.plant, trial.time_step), trial.controller, trial.reference,
            sensors=trial.sensors, environment=trial.environment,
        )  # fmt: skip
        for signal in ("q", "qd", "tau", "wrench", "T_flange_tool"):
            np.testing.assert_array_equal(getattr(seen, signal), getattr(log, signal))
        assert row["joint_error"] == np.abs(log.q_ref - log.q).max()
        assert row["base_force_xy"] == evaluation.figures_of_log(log)["base_force_xy"]
        free = run_closed_loop(AnalyticPlant(trial.plant), trial.controller, trial.reference)
        assert np.abs(free.q - log.q).max() > 1e-6
    engine = evaluation.engine_outcomes([trials[0]._replace(judge=None, metrics=())])[0]
    assert engine["joint_error"] == pytest.approx(rows[0]["joint_error"], rel=1e-9)
    before, after = (dependencies(trial) for trial in (trials[0], trials[0]._replace(environment=None)))
    assert {part for part in before if before[part] != after[part]} == {"environment"}


def test_trials_with_different_surfaces_are_not_those_of_one_call():
    experiment = ScenarioExperiment(find("press").task({"controller": "hybrid", "drives": "rigid"}))
    trials = [experiment.trial({"friction": friction}) for friction in (0.0, 0.5)]
    assert trials[0].reference is trials[1].reference
    together, alone = evaluation.outcomes(trials), [evaluation.outcomes([trial])[0] for trial in trials]
    assert together.tobytes() == np.array(alone).tobytes()
    assert together["rms_torque"][0] != together["rms_torque"][1]
    deeper = evaluation.outcomes([experiment.trial({"force": 20.0})])
    assert deeper["contact force"] == pytest.approx(20.0, abs=1e-3)
    with pytest.raises(ValueError, match="too stiff for steps"):
        experiment.trial({"stiffness": 1e8})


def test_tune_finds_gains_of_a_force_law(capsys):
    words = "tune hybrid press --gains force_bandwidth=2:30 --evaluations 6 --samples 1 --fresh 1 --worst 0"
    assert main([*words.split(), "--minimise", LARGEST, "--force", "10"]) == 0
    assert "force_bandwidth" in capsys.readouterr().out


def test_limits_are_those_of_the_docstring():
    assert LIMITS == (1e-3, 2e-3, 1e-7)
    task = find("press").task({"drives": "ideal"})
    run = pressed("hybrid")[0]
    off = dataclasses.replace(run.log, q=run.log.q + np.eye(6)[1] * 1e-6)
    broken = {metric.name: metric for metric in task.scenario.metrics(dataclasses.replace(run.run, log=off))}
    assert broken[MEAN].outcome == broken[LARGEST].outcome == "fails"
    world = run.log.environment
    check_contact(run.log.robot, world, run.log.q_ref, 1e-3)
