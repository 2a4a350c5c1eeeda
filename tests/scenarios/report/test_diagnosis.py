"""Diagnosis of a failed check: model, controller or settings."""

import dataclasses

import pytest

from scenarios.base import Config, Metric
from scenarios.running import registry
from scenarios.running.diagnosis import diagnose
from scenarios.running.runs import Run, run_one
from tests.support.example_logs import made_up_run


def failing(name, law="pd", **settings):
    run = made_up_run(law, Metric(name, 2.0, "", 1.0, "why"))
    return dataclasses.replace(run, config=Config(controller=law, **settings))


def undetermined(name):
    run = failing(name)
    return dataclasses.replace(run, metrics=(dataclasses.replace(run.metrics[0], span=(0.5, 2.0)),))


def agreeing(name, law):
    run, agreement = failing(name, law), Metric("engine - model, one step", 0.5, "", 1.0, "why")
    return dataclasses.replace(run, metrics=(*run.metrics, agreement))


def test_passing_run_has_no_diagnosis():
    assert diagnose(made_up_run()) == ""


@pytest.mark.parametrize(
    ("run", "whose"),
    [
        (failing("engine - model, one step"), "the twin or the robot's file"),
        (failing("largest gap of a closed loop"), "the twin or the robot's file"),
        (failing("reference speed / its limit"), "the scenario's settings or the robot's limits"),
        (failing("my check", "computed_torque"), "not determined: no check compares PyBullet with the model"),
        (
            agreeing("largest joint error", "computed_torque"),
            "the law of computed_torque, the scenario or its",
        ),
        (
            failing("samples at the torque limit", "computed_torque"),
            "the torque limits in the robot's file (jo",
        ),
        (failing("my check", noise=1e-4), "not determined: the model of pd differs from the plant, or pd me"),
        (failing("my check", changes=(("mass", 1.1),)), "not determined: the model of pd differs"),
        (
            failing("my check", drives="rigid", model_drives="ideal"),
            "not determined: the model of pd differs",
        ),
        (failing("friction - its law"), "the twin: in the engine's steps the drives"),
        (failing("samples not replayed"), "the controller: pd gives other torques"),
        (undetermined("largest joint error"), "rounding: runs that differ by rounding"),
        (Run("swing", Config(), None, (), 0.1, "no", refused=True), "a setting or the robot"),
        (
            Run("swing", Config(), None, (), 0.1, "mine.py, line 3: no", raised="the code of mine"),
            "the code o",
        ),
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
    assert "not determined: computed_torque fails in the same motion, too" in diagnose(run, [run, bad])
    other = dataclasses.replace(good, config=Config(controller="computed_torque", bandwidth=30.0))
    assert diagnose(run, [run, other]) == diagnose(run, [run])


FAULTS = {
    "law": ("def law(state, ref):\n    return {}['torque']\n", "law.py, line 2, in law, raised the error"),
    "metrics": ("    return log.arrays['tables']\n", "own.py, line 5, in metrics, raised the error"),
    "name": ("def law(state, ref):\n    return 0 * ref.q\n", "the file or the name that the error states"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_error_is_blamed_on_the_code_that_raised_it(tmp_path, fault):
    """By its traceback: neither the robot's file nor the motion is blamed."""
    text, blamed = FAULTS[fault]
    head = '"""Own scenario."""\nfrom scenarios.joint_tracking import Config, reference, run\n\n'
    own, law = tmp_path / "own.py", tmp_path / "law.py"
    own.write_text(head + "def metrics(log):\n" + (text if fault == "metrics" else "    return ()\n"))
    law.write_text(text if fault != "metrics" else "")
    names = {"law": f"{law}:law", "metrics": "computed_torque", "name": f"{law}:Misspelt"}
    scenario = registry.find(str(own))
    run = run_one(scenario, scenario.Config(controller=names[fault], duration=0.02))
    assert not run.passes
    assert diagnose(run, [run]).endswith(blamed)


def test_error_of_the_twin_is_not_blamed_on_the_user(monkeypatch):
    monkeypatch.setattr("scenarios.judging.tracking.found_payload", lambda log: log.arrays["tables"])
    scenario = registry.find("joint_tracking")
    run = run_one(scenario, scenario.Config(duration=0.02))
    assert diagnose(run, [run]).startswith("the twin: the code of ")


def test_run_whose_process_ended_has_no_known_cause():
    run = Run("swing", Config(), None, (), 0.0, "its process ended")
    assert diagnose(run, [run]) == "not determined: the run ended before anything was recorded"


def test_commands_of_a_diagnosis_are_valid():
    """Settings of another controller are left out, and changes that the scenario cannot have."""
    config = registry.find("joint_tracking").Config(controller="pid", law_settings=(("Ki", 2.0),))
    run = dataclasses.replace(failing("my check"), scenario="joint_tracking", config=config)
    _, _, command = diagnose(run, [run]).partition(": irb-twin ")
    assert command == "run joint_tracking --controller computed_torque"
    advice = "--with model.drives.coulomb"
    sticks = undetermined("largest joint error")
    rigid = registry.find("joint_tracking").Config(controller="pd", drives="rigid")
    assert advice in diagnose(dataclasses.replace(sticks, scenario="joint_tracking", config=rigid))
    assert advice not in diagnose(dataclasses.replace(sticks, scenario="model_agreement", config=rigid))
    assert advice not in diagnose(sticks)


def test_a_file_can_be_looked_over_and_a_robot_of_ours_has_none():
    command = "irb-twin check-model 'my arm.urdf'"
    assert command in diagnose(failing("engine - model, one step", robot="my arm.urdf"))
    assert "check-model" not in diagnose(failing("engine - model, one step"))
