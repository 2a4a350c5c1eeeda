"""The published move of the Manutec r3 in the engine: how near to the reference run, in what proportion."""

import dataclasses
import re

import numpy as np
import pytest

import twin
from tests.published import manutec_move
from tests.published.manutec_move import Config
from tests.published.manutec_r3 import ANGLES, INSTANTS, LOAD, published_law, published_move
from twin.control.rollout import run_rollouts
from twin.errors import RecordingError, RobotError
from twin.trajectories.joint_trajectories import hold, sequence
from twin.trajectories.sampling import sample, sample_semi_implicit


def distance(robot, take, step, law=None):
    """From the stated angles of an arm that is the model alone, at most, in [rad]."""
    samples = take(sequence(published_move(robot), hold(robot.poses["end"], 0.5)), step)
    run = run_rollouts(robot, law or published_law(robot, step), samples, time_step=step)
    return np.max(np.abs(manutec_move.deviation(run, INSTANTS, ANGLES)))


@pytest.fixture(scope="module")
def arm():
    return twin.load("manutec_r3").with_payload(LOAD).with_drives("elastic")


@pytest.mark.parametrize("reference", ["consistent", "continuous"])
def test_engine_agrees_with_reference_run_at_its_instants_and_in_a_file_of_it(reference, tmp_path):
    path = tmp_path / "run.csv"
    rows = [",".join(map(repr, [5.0, float(t), *q.tolist()])) for t, q in zip(INSTANTS, ANGLES, strict=True)]
    path.write_text("\n".join(["other,t,q1,q2,q3,q4,q5,q6", *rows]), encoding="utf-8")
    log = manutec_move.run(Config(reference=reference, compare=str(path)))
    metrics = manutec_move.metrics(log)
    assert not [metric for metric in metrics if not metric.passes]
    first, second, *_ = metrics
    assert first.limit is not None
    assert first.value > 0.15 * first.limit  # the limit is of what is seen
    assert second.name == "from the reference run, whole file"
    assert (second.value, second.limit) == (first.value, first.limit)
    assert np.max(np.abs(log.q - log.arrays["q_model"])) < 1e-14


def test_engine_agrees_with_reference_run_in_fine_steps():
    """Some seconds of 23,000 steps: at 1 ms their error hides where the motors start under their load."""
    (fine,) = (config for config in manutec_move.VARIANTS if config.reference == "consistent")
    log = manutec_move.run(fine)
    metrics = manutec_move.metrics(log)
    assert not [metric for metric in metrics if not metric.passes]
    assert metrics[0].value > 0.15 * metrics[0].limit
    assert np.max(np.abs(log.q - log.arrays["q_model"])) < 1e-14


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
    metrics = manutec_move.metrics(manutec_move.run(Config(controller=controller)))
    assert all(metric.passes and metric.limit is None for metric in metrics)
    assert metrics[0].value > 1e-3


def test_invalid_reference_run_raises(tmp_path):
    path, header = tmp_path / "run.csv", "t,q1,q2,q3,q4,q5,q6"
    for text, told in (
        ("t,q1,q2\n0,0,0", "no column 'q3', 'q4', 'q5', 'q6'; expected"),
        (header, "expected rows of numbers below the header, got none"),
        (f"{header}\n0,0,0,0,0,0,x", "line 2, column 'q6': expected a number, got 'x'"),
        (f"{header}\n0,0,0,0,0,0,nan", "line 2: expected finite numbers, got"),
        (f"{header}\n0,0,0,0,0,0,0\n1000,0,0,0,0,0,0", "line 3: expected times from 0 to 1.8561 s"),
        (f"{header}\n0,-60,20,90,0,-110,0", "line 2: expected radians, at most 4.0: are these degrees"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(RecordingError, match=re.escape(told)) as error:
            manutec_move.run(Config(compare=str(path)))
        assert str(path) in str(error.value)


def test_missing_file_and_other_robot_raise():
    with pytest.raises(RecordingError, match=r"there is no reference run 'nowhere\.csv'"):
        Config(compare="nowhere.csv")
    with pytest.raises(RobotError, match="the move is published for robot 'manutec_r3' only, got 'irb140'"):
        manutec_move.run(Config(robot="irb140"))
    assert not manutec_move.suits(twin.load("irb140"))
    with pytest.raises(RobotError, match="the published controllers need rigid or elastic drives"):
        published_law(twin.load("manutec_r3"), 1e-3)
