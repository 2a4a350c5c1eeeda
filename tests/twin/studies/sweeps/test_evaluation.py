"""Rows of figures against the logs that they stand for: rollouts' own, the closed loop's and the engine's."""

from dataclasses import replace

import numpy as np
import pytest

import controllers
from twin import Payload, Sensors, load, run_rollouts
from twin.physics.control.control_law import ControlLaw
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.trajectories.joint_trajectories import hold, sines
from twin.physics.trajectories.sampling import Samples, sample_semi_implicit
from twin.studies.sweeps.evaluation import engine_outcomes, outcomes, verdict
from twin.studies.sweeps.trial import OUTCOME, TROUBLES, Trial

PERIOD = 1e-3
TOOL = np.eye(4)
TOOL[:3, 3] = 0.02, 0.03, 0.2
SENSORS = Sensors(noise=1e-5, speed_cutoff=100.0, delay=1)


def nothing(state, reference, parameters, memory, model):
    return np.zeros(len(state.q))


def nothing_then_nan(state, reference, parameters, memory, model):
    """A law that fails in time, where the arm has moved."""
    tau = np.zeros(len(state.q))
    if state.t > 0.0205:
        tau[2] = np.nan
    return tau


@pytest.fixture(scope="module")
def arm():
    return load("irb140").with_drives("rigid")


@pytest.fixture(scope="module")
def reference(arm):
    amplitude = np.linspace(0.3, 0.1, arm.n)
    return sample_semi_implicit(sines(np.zeros(arm.n), amplitude, np.linspace(0.7, 2.0, arm.n), 0.3), PERIOD)


@pytest.fixture(scope="module")
def trials(arm, reference):
    """Three payloads and laws behind sensors, one of these without any, and one that fails."""
    made = []
    for seed, (mass, bandwidth) in enumerate(((0.0, 10.0), (2.0, 40.0), (5.0, 10.0))):
        plant = arm.with_payload(Payload(mass, [0.0, 0.0, 0.1]))
        law = controllers.make("pd", arm, bandwidth=bandwidth, period=PERIOD)
        made.append(Trial(plant, law, reference, replace(SENSORS, seed=seed), T_flange_tool=TOOL))
    made.append(made[0]._replace(sensors=None, T_flange_tool=None))
    made.append(made[1]._replace(sensors=None))
    shorter = Samples(*(part[:-20] for part in reference))
    made.append(made[3]._replace(reference=shorter))
    failing = ControlLaw(arm, nothing_then_nan, period=PERIOD, name="fails")
    return [*made, Trial(arm, failing, reference)]


@pytest.fixture(scope="module")
def table(trials):
    return outcomes(trials)


def test_figures_are_those_of_the_samples(trials, table):
    """Every figure again, from the samples of each rollout alone, as `run_closed_loop` has it to the bit."""
    for trial, row in zip(trials[:-1], table[:-1], strict=True):
        assert outcomes([trial], threads=1)[0].tobytes() == row.tobytes()
        reference = trial.reference
        run = run_rollouts(trial.plant, trial.controller, reference, sensors=trial.sensors)
        error = np.abs(reference.q - run.q)
        sample, joint = np.unravel_index(np.argmax(error), error.shape)
        assert row["joint_error"] == error[sample, joint]
        assert row["joint_error_joint"] == joint + 1
        assert row["joint_error_time"] == reference.t[sample]
        assert np.isclose(row["rms_error"], np.sqrt(np.mean(error**2)), rtol=1e-13, atol=0.0)
        share = run.tau / trial.plant.drive_torque_max
        assert np.isclose(row["rms_torque"], np.sqrt(np.mean(share**2)), rtol=1e-13, atol=0.0)
        assert row["speed_ratio"] == np.max(np.abs(run.qd) * (1.0 / trial.plant.qd_max))
        assert row["saturated"] == run.saturated.sum()
        assert row["duration"] == reference.t[-1]
        if trial.T_flange_tool is None:
            assert np.isnan(row["tool_error"])
            continue
        places = [forward_kinematics(trial.plant, q, TOOL)[:, :3, 3] for q in (run.q, reference.q)]
        distance = np.linalg.norm(places[0] - places[1], axis=1)
        assert np.isclose(row["tool_error"], distance.max(), rtol=1e-12, atol=0.0)
        assert row["tool_error_time"] == reference.t[np.argmax(distance)]


def test_engine_agrees(trials, table):
    engine = engine_outcomes(trials)
    assert np.array_equal(engine["passes"], table["passes"])
    assert np.array_equal(engine["trouble"], table["trouble"])
    for name in set(OUTCOME.names) - {"check"}:
        assert np.allclose(engine[name], table[name], rtol=1e-9, atol=1e-12, equal_nan=True), name


def test_what_ended_early_has_errors_without_end_and_what_is_not_compiled_needs_the_engine(trials, table):
    last = table[-1]
    assert TROUBLES[last["trouble"]] == "torque not finite"
    assert not last["passes"]
    assert np.isinf(last["joint_error"])
    assert np.isnan(last["tool_error"])  # nobody asked
    assert last["duration"] == trials[-1].reference.t[21]
    with pytest.raises(ValueError, match="can be compiled"):
        outcomes([trials[0]._replace(controller=lambda state, wanted: np.zeros(6))])


def test_verdicts(arm, reference):
    """Range, speed, torque and error: each alone makes a trial fail, and the arm that may leave them not."""
    law = controllers.make("computed_torque", arm, bandwidth=20.0, period=PERIOD)
    soft = controllers.make("pd", arm, bandwidth=20.0, period=PERIOD)
    fine = Trial(arm, law, reference)
    peak, fastest = reference.q[:, 0].max(), np.abs(reference.qd[:, 1]).max()
    narrow = replace(arm, q_max=np.where(np.arange(arm.n) == 0, peak - 1e-3, arm.q_max))
    slow = replace(arm, qd_max=np.where(np.arange(arm.n) == 1, fastest * 0.99, arm.qd_max))
    motors = arm.drives.motor_torque_max * [1, 0.05, 1, 1, 1, 1]
    weak = replace(arm, drives=replace(arm.drives, motor_torque_max=motors))
    changes = (
        {}, {"plant": narrow}, {"plant": narrow, "leaves_limits": True}, {"plant": slow}, {"plant": weak},
        {"error_limit": 1e-10}, {"controller": soft, "error_limit": 1e-6},
    )  # fmt: skip
    rows = outcomes([fine._replace(**change) for change in changes])
    assert rows["passes"].tolist() == [True, False, True, False, False, True, False]
    assert np.isclose(rows["beyond_range"][1], 1e-3, atol=1e-10)
    assert np.isclose(rows["speed_ratio"][3], 1 / 0.99, rtol=1e-9)
    (beyond,) = run_rollouts(slow, law, reference).violations  # of the other limits none
    assert (beyond.quantity, beyond.joint) == ("speed", "joint_2")
    assert rows["saturated"][4] > 0
    assert verdict(rows, {"speed_ratio": rows["speed_ratio"][0] - 1e-6})["passes"].tolist() == [False] * 7
    assert verdict(rows, {"joint_error": 1e-6})["passes"][0]
    assert not verdict(rows, {"tool_error": 1.0})["passes"].any()  # which nobody asked for


def test_a_loop_that_folds_ends_the_trial(irb1400):
    """An arm that is let go of; the engine notices in the same step."""
    falls = ControlLaw(irb1400, nothing, period=PERIOD, name="nothing")
    reference = sample_semi_implicit(hold(irb1400.poses["zero"], 2.0), PERIOD)
    (row,), (engine,) = (run([Trial(irb1400, falls, reference)]) for run in (outcomes, engine_outcomes))
    assert TROUBLES[row["trouble"]] == TROUBLES[engine["trouble"]] == "loop folded"
    assert 0.1 < row["duration"] == engine["duration"]
