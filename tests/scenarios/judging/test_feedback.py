"""The feedback of exact runs: from an initial error, by its recursion, and in the verdict."""

import numpy as np
import pytest

from scenarios.judging.following import DECAY, RADIUS, feedback_metrics, recursion
from scenarios.judging.tracking import tracking_verdict
from scenarios.running.runs import Run, diagnose
from tests.support import tasks


def judged(**settings):
    """Return the metrics of the feedback by name, the verdict, and the run."""
    task = tasks.task("joint_tracking", duration=0.3, **settings)
    run = task.scenario.run(task.setup)
    found = task.scenario.metrics(run)
    verdict = tracking_verdict(task.setup, run, found)
    return (
        {one.name: one for one in feedback_metrics(run)},
        verdict.sentence,
        Run(task, run.log, found, 0.1),
    )


def test_recursion_is_the_error_of_a_double_pole():
    A = recursion(np.array([400.0, 100.0]), np.array([40.0, 20.0]), 1e-3)
    for matrix, omega in zip(A, (20.0, 10.0), strict=True):
        e, ed = 1.0, 0.0
        for _ in range(3):
            ed += -1e-3 * (2 * omega * ed + omega**2 * e)
            e += 1e-3 * ed
        np.testing.assert_allclose(np.linalg.matrix_power(matrix, 3)[:, 0], [e, ed], rtol=1e-13)
        assert np.max(np.abs(np.linalg.eigvals(matrix))) < 1.0


@pytest.mark.parametrize("law", ["computed_torque", "dob"])
def test_exact_laws_with_friction_obey_the_recursion_also_at_reversals(law):
    found, sentence, run = judged(controller=law, drives="rigid")
    assert run.passes
    assert found["1 mrad, model - its recursion"].value < 1e-12
    assert found[DECAY].value == pytest.approx(0.195, abs=0.01)
    assert sentence.endswith("; 1 mrad decays to a tenth in 0.20 s")


@pytest.mark.parametrize(
    "settings",
    [{"bandwidth": 900.0}, {"law_settings": (("Kp", (400.0, 400.0, 400.0, -400.0, 400.0, 400.0)),)}],
)
def test_unstable_feedback_fails_although_the_error_is_rounding(settings):
    found, sentence, run = judged(**settings)
    assert found[RADIUS].outcome == "fails"
    assert not run.passes
    assert sentence.endswith("UNSTABLE: an error of 1 mrad does not decay")
    assert diagnose(run).startswith("the gains of computed_torque")


def test_cascade_must_decay_and_a_short_run_is_not_judged():
    short, sentence, run = judged(controller="cascade")
    assert run.passes
    assert short[DECAY].outcome == "not judged"
    assert sentence.endswith("; feedback not judged")
    (decay,) = feedback_metrics(tasks.run("joint_tracking", controller="cascade", duration=1.2))
    assert decay.outcome == "passes"
    assert 0.3 < decay.value < 1.1
    assert judged(controller="pd")[0] == {}  # its error has a bound
