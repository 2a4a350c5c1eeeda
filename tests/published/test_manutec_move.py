"""The published move of the Manutec r3 in the engine: how near to the reference run, in what proportion."""

import dataclasses

import numpy as np
import pytest

import twin
from tests.published import manutec_move
from tests.published.manutec_r3 import ANGLES, INSTANTS, LOAD, published_law, published_move
from twin.physics.control.rollout import run_rollouts
from twin.physics.trajectories.joint_trajectories import hold, sequence
from twin.physics.trajectories.sampling import sample, sample_semi_implicit

pytestmark = pytest.mark.slow("computes what is published")


def distance(robot, take, step, law=None):
    """From the stated angles of an arm that is the model alone, at most, in [rad]."""
    samples = take(sequence(published_move(robot), hold(robot.poses["end"], 0.5)), step)
    run = run_rollouts(robot, law or published_law(robot, step), samples, time_step=step)
    return np.max(np.abs(manutec_move.deviation(run, INSTANTS, ANGLES)))


@pytest.fixture(scope="module")
def arm():
    return twin.load("manutec_r3").with_payload(LOAD).with_drives("elastic")


@pytest.mark.parametrize(
    ("reference", "step"),
    [("consistent", 1e-3), ("continuous", 1e-3), ("consistent", 1e-4)],
)
def test_engine_agrees_with_reference_run_and_with_the_model(reference, step):
    """In 0.1 ms, 23,000 steps: at 1 ms their error hides where the motors start under their load."""
    log, model, metrics = manutec_move.run(reference=reference, time_step=step)
    assert not [metric for metric in metrics if not metric.passes]
    first, *_ = metrics
    assert first.limit == manutec_move.PER_STEP[reference] * step + 1e-4
    assert first.value > 0.15 * first.limit  # the limit is of what is seen
    assert np.max(np.abs(log.q - model.q)) < 1e-14


def test_error_is_proportional_to_step(arm):
    """Beside the current loop's 5e-5 rad at these instants, which steps have no part in."""
    coarse, middle, fine = (distance(arm, sample, step) for step in (1e-3, 5e-4, 1e-4))
    assert (coarse - middle) / (middle - fine) == pytest.approx(5 / 4, rel=0.02)
    assert coarse < 1.2e-3
    assert fine < 1.25e-4
    assert distance(arm, sample_semi_implicit, 1e-4) < 5e-5
    limits = [manutec_move.PER_STEP["continuous"] * step + manutec_move.CURRENT_LOOP for step in (1e-3, 1e-4)]
    assert 0.15 < coarse / limits[0] < 1
    assert 0.15 < fine / limits[1] < 1


@pytest.mark.parametrize(
    ("change", "least"),
    [
        ({"coulomb": 1.1, "static": 1.1}, 1.5e-4),
        ({"static": 1.0001, "viscous": 0.0}, 1.5e-4),
        ({"stiffness": 1.1}, 5e-4),
        ({"damping": 0.0}, 1.2e-4),
        ({"rotor_inertia": 1.1}, 1e-4),
    ],
)
def test_changed_drive_parameter_increases_error(arm, change, least):
    """Than 5e-5 rad: what each number of the drives has to do with the move."""
    columns = {name: getattr(arm.drives, name) * factor for name, factor in change.items()}
    other = arm.with_drives("elastic", dataclasses.replace(arm.drives, **columns))
    assert distance(other, sample_semi_implicit, 1e-4) > least


def test_rigid_gears_increase_error(arm):
    """With rigid gears the same controllers make another move."""
    law = published_law(arm, 1e-3)
    assert distance(arm.with_drives("rigid"), sample_semi_implicit, 1e-3, law) > 1e-3


@pytest.mark.parametrize("controller", ["pd", "computed_torque"])
def test_other_controllers_have_no_limit(controller):
    _, _, metrics = manutec_move.run(controller)
    assert all(metric.passes and metric.limit is None for metric in metrics)
    assert metrics[0].value > 1e-3
