"""Pushes on a moving arm: what the supervision finds, what it must not report, and wrong tool data."""

import numpy as np
import pytest

from scenarios.collision import Collision
from scenarios.running.runs import run_one
from tests.support import tasks
from twin.physics.control import supervision


@pytest.fixture(scope="module")
def rough():
    """Return the run of a controller whose friction is 20 % too large."""
    return tasks.run("collision", changes=(("model.drives.coulomb", 1.2), ("model.drives.viscous", 1.2)))


def figures(run, **options):
    return {metric.name: metric for metric in Collision(**options).metrics(run)}


def test_each_push_is_found_although_friction_is_wrong(rough):
    found = figures(rough)
    assert found["pushes found"].value == 7.0
    assert found["longest delay of a found push"].value <= 0.010
    assert found["pushes missed"].outcome == found["samples with a false alarm"].outcome == "passes"
    assert found["pushes missed"].why == "of 7 to be found"
    assert "tool data: more than the model" not in found
    assert 100.0 < found["force that sticking joints hide"].value < 300.0
    against = np.einsum(
        "pi,pi->p",
        rough.pushed.wrench[rough.starts, :3],
        np.diff(rough.log.pose[:, :3], axis=0)[rough.starts],
    )
    assert np.all(against < 0.0)
    np.testing.assert_allclose(np.linalg.norm(rough.pushed.wrench[rough.starts], axis=1), 50.0)


def test_a_higher_level_finds_later_or_less_and_a_lower_one_alarms_without_a_push(rough):
    high = figures(rough, supervision=300.0)
    assert high["longest delay of a found push"].value > 0.020
    deaf = figures(rough, supervision=1000.0)
    assert deaf["pushes found"].value < 7.0
    assert deaf["pushes missed"].outcome == "not judged"
    assert high["pushes missed"].outcome == "passes"
    low = figures(rough, supervision=50.0)
    assert low["samples with a false alarm"].outcome == "fails"


def test_a_blind_supervision_fails(rough, monkeypatch):
    seen = supervision.residuals
    blind = lambda log, *more: seen(log, *more) * (log.surroundings is None)  # noqa: E731
    monkeypatch.setattr(supervision, "residuals", blind)
    missed = figures(rough)["pushes missed"]
    assert (missed.value, missed.outcome) == (7.0, "fails")


def test_wrong_tool_data_is_reported_as_a_mass():
    run = run_one(tasks.task("collision", payload="3", model_payload="0"))
    assert run.error is None
    found = {metric.name: metric for metric in run.metrics}
    mass = found["tool data: more than the model"]
    assert (round(mass.value, 1), mass.unit, mass.why) == (3.0, "kg", "explains 100% of the residual")
    assert found["samples with a false alarm"].outcome == found["pushes missed"].outcome == "passes"
    free = np.abs(supervision.residuals(run.run.log, run.run.model)).max(axis=0)
    assert free[1] > 25.0  # a collision would be suspected


def test_a_push_or_a_surface_of_a_user_is_refused():
    for settings in ({"push": "0:1 1,0,0"}, {"surface": "plane=0,0,1 stiffness=1e4"}):
        with pytest.raises(ValueError, match="no --push and no --surface: collision makes its own pushes"):
            tasks.task("collision", **settings)
    for name in ("force", "supervision"):
        with pytest.raises(ValueError, match="expected a positive, finite"):
            Collision(**{name: 0.0})
