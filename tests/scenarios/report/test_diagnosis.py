"""Diagnosis of a failed check: model, controller or settings."""

import dataclasses

import pytest

from scenarios.metric import Metric
from scenarios.running import registry
from scenarios.running.runs import Run, diagnose, run_one
from tests.support import tasks, user_scenarios
from tests.support.example_logs import made_up_run, made_up_task


def failing(name, law="pd", **settings):
    run = made_up_run(law, Metric(name, 2.0, "", 1.0, "why"))
    return dataclasses.replace(run, task=made_up_task(controller=law, **settings))


def undetermined(name):
    run = failing(name)
    return dataclasses.replace(run, metrics=(dataclasses.replace(run.metrics[0], span=(0.5, 2.0)),))


def agreeing(name, law):
    run, agreement = failing(name, law), Metric("engine - model, one step", 0.5, "", 1.0, "why")
    return dataclasses.replace(run, metrics=(*run.metrics, agreement))


def test_failed_check_determines_the_diagnosis():
    assert diagnose(made_up_run()) == ""
    known, unclear = "computed_torque", "not determined: "
    for run, told in (
        (failing("engine - model, one step"), "the twin or the robot's file"),
        (failing("largest gap of a closed loop"), "the twin or the robot's file"),
        (failing("reference speed / its limit"), "the scenario's settings or the robot's limits"),
        (failing("my check", known), unclear + "no check compares PyBullet with the model"),
        (agreeing("largest joint error", known), "the law of computed_torque, the scenario or its"),
        (failing("samples at the torque limit", known), "the torque limits in the robot's file (jo"),
        (failing("my check", noise=1e-4), unclear + "the model of pd differs from the plant, or pd me"),
        (failing("my check", changes=(("mass", 1.1),)), unclear + "the model of pd differs"),
        (failing("my check", drives="rigid", model_drives="ideal"), unclear + "the model of pd differs"),
        (failing("friction - its law"), "the twin: in the engine's steps the drives"),
        (failing("samples not replayed"), "the controller: pd gives other torques"),
        (undetermined("largest joint error"), "rounding: runs that differ by rounding"),
        (Run(made_up_task(), error="no", refused=True), "a setting or the robot"),
        (Run(made_up_task(), error="mine.py, line 3: no", raised="the code of mine"), "the code o"),
        (Run(made_up_task(), error="it ended"), unclear + "the run ended before anything was recorded"),
    ):
        assert diagnose(run, [run]).startswith(told)


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
    assert "not determined: computed_torque fails in the same motion, too" in diagnose(run, [run, bad])
    other = dataclasses.replace(good, task=good.task.with_setup(bandwidth=30.0))
    assert diagnose(run, [run, other]) == diagnose(run, [run])


FAULTS = {
    "law": ("def law(state, ref):\n    return {}['torque']\n", "law.py, line 2, in law, raised the error"),
    "metrics": ("return run.log.arrays['tables']", "own.py, line 14, in metrics, raised the error"),
    "name": ("def law(state, ref):\n    return 0 * ref.q\n", "the file or the name that the error states"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_error_is_blamed_on_the_code_that_raised_it(tmp_path, fault):
    """By its traceback: neither the robot's file nor the motion is blamed."""
    text, blamed = FAULTS[fault]
    body, law = text if fault == "metrics" else "return ()", tmp_path / "law.py"
    own = user_scenarios.write(tmp_path / "own.py", metrics=f"def metrics(self, run):\n    {body}\n")
    law.write_text(text if fault != "metrics" else "")
    names = {"law": f"{law}:law", "metrics": "computed_torque", "name": f"{law}:Misspelt"}
    run = run_one(registry.find(own).task({"controller": names[fault]}))
    assert not run.passes
    assert diagnose(run, [run]).endswith(blamed)


def test_error_of_the_twin_is_not_blamed_on_the_user(monkeypatch):
    monkeypatch.setattr("scenarios.judging.tracking.found_payload", lambda log: log.arrays["tables"])
    run = tasks.executed("joint_tracking", duration=0.02)
    assert diagnose(run, [run]).startswith("the twin: the code of ")


def test_commands_of_a_diagnosis_are_valid():
    """Settings of another controller are left out, and changes that the scenario cannot have."""
    task = tasks.task("joint_tracking", controller="pid", law_settings=(("Ki", 2.0),))
    run = dataclasses.replace(failing("my check"), task=task)
    _, _, command = diagnose(run, [run]).partition(": irb-twin ")
    assert command == "run joint_tracking --controller computed_torque"
    advice = "--with model.drives.coulomb"
    sticks = undetermined("largest joint error")
    rigid = {"controller": "pd", "drives": "rigid"}
    for name, advised in (("joint_tracking", True), ("model_agreement", False)):
        run = dataclasses.replace(sticks, task=tasks.task(name, **rigid))
        assert (advice in diagnose(run)) is advised
    assert advice not in diagnose(sticks)


def test_a_file_can_be_looked_over_and_a_robot_of_ours_has_none():
    command = "irb-twin check-model 'my arm.urdf'"
    assert command in diagnose(failing("engine - model, one step", robot="my arm.urdf"))
    assert "check-model" not in diagnose(failing("engine - model, one step"))
