"""The published move of the Manutec r3 in the engine: how near to the reference run, in what proportion."""

import dataclasses

import numpy as np
import pytest

import controllers
import twin
from scenarios import manutec_move
from scenarios.checks.manutec_r3 import ANGLES, INSTANTS, LOAD, published_law, published_move
from scenarios.manutec_move import Config
from tests.support.processor_times import shared
from twin.control.closed_loop import run_closed_loop
from twin.control.plant import AnalyticPlant
from twin.errors import RecordingError, RobotError
from twin.trajectories.joint_trajectories import hold, sequence
from twin.trajectories.sampling import sample, sample_semi_implicit


@shared
def engine_run(**settings):
    return manutec_move.run(Config(**settings))


def distance(robot, take, step):
    """From the stated angles of an arm that is the model alone, at most, in [rad]."""
    samples = take(sequence(published_move(robot), hold(robot.poses["end"], 0.5)), step)
    log = run_closed_loop(AnalyticPlant(robot, step), published_law(robot, step), samples)
    return np.max(np.abs(manutec_move.deviation(log, INSTANTS, ANGLES)))


@pytest.fixture(scope="module")
def arm():
    return twin.load("manutec_r3").with_payload(LOAD).with_drives("elastic")


@pytest.mark.parametrize(
    "config", [Config(), *manutec_move.VARIANTS], ids=["consistent", "fine", "continuous"]
)
def test_engine_agrees_with_reference_run(config):
    log = manutec_move.run(config)
    metrics = manutec_move.metrics(log)
    assert not [metric for metric in metrics if not metric.passes]
    assert metrics[0].limit is not None
    assert metrics[0].value > 0.15 * metrics[0].limit  # the limit is of what is seen
    assert np.max(np.abs(log.q - log.arrays["q_model"])) < 1e-14


def test_error_is_proportional_to_step(arm):
    """Beside the current loop's 5e-5 rad at these instants, which steps have no part in."""
    coarse, middle, fine = (distance(arm, sample, step) for step in (1e-3, 5e-4, 1e-4))
    assert (coarse - middle) / (middle - fine) == pytest.approx(5 / 4, rel=0.02)
    assert coarse < 1.2e-3
    assert fine < 1.25e-4
    assert distance(arm, sample_semi_implicit, 1e-4) < 5e-5


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
    step = 1e-3
    law = published_law(arm, step)
    samples = sample_semi_implicit(sequence(published_move(arm), hold(arm.poses["end"], 0.5)), step)
    log = run_closed_loop(AnalyticPlant(arm.with_drives("rigid"), step), law, samples)
    assert np.max(np.abs(manutec_move.deviation(log, INSTANTS, ANGLES))) > 1e-3


@pytest.mark.parametrize("controller", [name for name in controllers.NAMES if name != "cascade"])
def test_other_controllers_have_no_limit(controller):
    metrics = manutec_move.metrics(engine_run(controller=controller))
    assert all(metric.passes and metric.limit is None for metric in metrics)
    assert metrics[0].value > 1e-3


def test_compare_option_uses_every_row(tmp_path):
    path = tmp_path / "run.csv"
    rows = [",".join(map(repr, [5.0, float(t), *q.tolist()])) for t, q in zip(INSTANTS, ANGLES, strict=True)]
    path.write_text("\n".join(["other,t,q1,q2,q3,q4,q5,q6", *rows]), encoding="utf-8")
    first, second, *_ = manutec_move.metrics(engine_run(compare=str(path)))
    assert (second.name, second.value, second.limit) == (
        "from the reference run, whole file", first.value, first.limit,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("t,q1,q2\n0,0,0", "no column 'q3', 'q4', 'q5', 'q6'; expected"),
        ("t,q1,q2,q3,q4,q5,q6", "expected rows of numbers below the header, got none"),
        ("t,q1,q2,q3,q4,q5,q6\n0,0,0,0,0,0,x", "line 2, column 'q6': expected a number, got 'x'"),
        ("t,q1,q2,q3,q4,q5,q6\n0,0,0,0,0,0,nan", "line 2: expected finite numbers, got"),
        ("t,q1,q2,q3,q4,q5,q6\n0,0,0,0,0,0,0\n1000,0,0,0,0,0,0", "line 3: expected times from 0 to 1.8561 s"),
        (
            "t,q1,q2,q3,q4,q5,q6\n0,-60,20,90,0,-110,0",
            "line 2: expected radians, at most 4.0: are these degrees",
        ),
    ],
)
def test_invalid_reference_run_raises(tmp_path, text, told):
    path = tmp_path / "run.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecordingError) as error:
        manutec_move.run(Config(compare=str(path)))
    assert told in str(error.value)
    assert str(path) in str(error.value)


def test_missing_file_and_other_robot_raise():
    with pytest.raises(RecordingError, match=r"there is no reference run 'nowhere\.csv'"):
        Config(compare="nowhere.csv")
    with pytest.raises(RobotError, match="the move is published for robot 'manutec_r3' only, got 'irb140'"):
        manutec_move.run(Config(robot="irb140"))
    assert not manutec_move.suits(twin.load("irb140"))
    with pytest.raises(RobotError, match="the published controllers need rigid or elastic drives"):
        published_law(twin.load("manutec_r3"), 1e-3)
