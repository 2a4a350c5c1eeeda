"""Diagnosis of a failed check: model, controller or settings."""

import dataclasses

import pytest

from scenarios.base import Config, Metric
from scenarios.running.diagnosis import diagnose
from scenarios.running.runs import Run
from tests.support.example_runs import made_up_run


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
