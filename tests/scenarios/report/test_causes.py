"""Whose fault a failure is said to be."""

import dataclasses

import pytest

from scenarios.base import Config, Metric
from scenarios.running.diagnosis import cause
from scenarios.running.runs import Run
from tests.support.example_runs import made_up_run


def failing(name, law="pd", **settings):
    run = made_up_run(law, Metric(name, 2.0, "", 1.0, "why"))
    return dataclasses.replace(run, config=Config(controller=law, **settings))


def undetermined(name):
    run = failing(name)
    return dataclasses.replace(run, metrics=(dataclasses.replace(run.metrics[0], span=(0.5, 2.0)),))


def test_of_a_run_that_holds_there_is_nothing_to_say():
    assert cause(made_up_run()) == ""


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
        (
            failing("my check", noise=1e-4),
            "the settings: pd believes in another robot than there is, or meas",
        ),
        (failing("my check", changes=(("mass", 1.1),)), "the settings: pd believes in another"),
        (failing("my check", drives="rigid", model_drives="ideal"), "the settings: pd believes in another"),
        (failing("friction - its law"), "the twin: in its steps the drives"),
        (failing("samples not replayed"), "the control law: on the same states pd"),
        (undetermined("largest joint error"), "nobody's: runs that differ by rounding"),
        (Run("swing", Config(), None, (), 0.1, "no", refused=True), "the setting or the robot"),
        (Run("swing", Config(), None, (), 0.1, "mine.py, line 3: no"), "the code that is named there"),
    ],
)
def test_it_is_told_from_what_does_not_hold(run, whose):
    assert cause(run, [run]).startswith(whose)


def test_a_law_is_judged_beside_computed_torque():
    run = failing("my check")
    assert "whether the arm can do it at all is shown by irb-twin run swing --controller computed_torque" in (
        cause(run, [run])
    )
    good = made_up_run("computed_torque")
    assert cause(run, [run, good]).startswith(
        "the control law or its gains: computed_torque, which knows the"
    )
    bad = failing("my check", "computed_torque")
    assert "rather than the control law: computed_torque does not hold" in cause(run, [run, bad])
    other = dataclasses.replace(good, config=Config(controller="computed_torque", bandwidth=30.0))
    assert cause(run, [run, other]) == cause(run, [run])


def test_a_file_can_be_looked_over_and_a_robot_of_ours_has_none():
    command = "irb-twin check-model 'my arm.urdf'"
    assert command in cause(failing("engine - model, one step", robot="my arm.urdf"))
    assert "check-model" not in cause(failing("engine - model, one step"))
