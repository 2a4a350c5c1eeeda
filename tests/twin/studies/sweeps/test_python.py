"""`twin.sweep`: names change what they say and nothing else, and a row is the run that it tells of."""

import functools

import numpy as np
import pytest

import controllers
import twin
from twin.base.errors import UnknownNameError, VariationError
from twin.studies.sweeps import evaluation
from twin.studies.sweeps.sweep import RobotExperiment

PD = functools.partial(controllers.make, "pd_gravity")


@pytest.fixture(scope="module")
def robot():
    return twin.load("irb140").with_payload(twin.Payload(0.5, (0.0, 0.0, 0.1), np.eye(3) * 1e-3))


@pytest.fixture(scope="module")
def reference(robot):
    return twin.sample_semi_implicit(twin.quintic(np.zeros(robot.n), np.full(robot.n, 0.05), 0.2), 1e-3)


@pytest.fixture(scope="module")
def sweep(robot, reference):
    return twin.sweep(
        robot, PD, reference,
        {"payload": "0:2", "law.bandwidth": "10,30", "model.mass": "+-20%", "sensors.noise": "1e-5:1e-4:log"},
        samples=20, seed=3, limits={"joint_error": 0.05, "tool_error": 0.03},
        sensors=twin.Sensors(seed=7), T_flange_tool=np.eye(4),
    )  # fmt: skip


def same(a, b):
    """Whether two arms are the same to the bit."""
    return np.array_equal(a.inertias, b.inertias) and np.array_equal(a.tau_max, b.tau_max)


def test_a_row_is_the_run_of_its_inputs(sweep, robot, reference):
    assert len(sweep.table) == 40
    assert sweep.inputs == ("payload", "law.bandwidth", "model.mass", "sensors.noise", "sensors.seed")
    assert 0 < np.count_nonzero(sweep.passes) < 40
    for place in (0, 1, 39):
        row, trial = sweep.table[place], sweep.trial(place)
        assert evaluation.outcomes([trial])[0]["joint_error"] == row["joint_error"]
        done = twin.run_rollouts(
            robot.with_payload(twin.Payload(row["payload"], (0, 0, 0.1), np.eye(3) * 2e-3 * row["payload"])),
            PD(trial.controller.robot, bandwidth=row["law.bandwidth"]),
            reference,
            sensors=twin.Sensors(noise=row["sensors.noise"], seed=int(row["sensors.seed"])),
        )
        assert np.max(np.abs(done.q - reference.q)) == pytest.approx(row["joint_error"], rel=1e-12)
    holds = (sweep.table["joint_error"] <= 0.05) & (sweep.table["tool_error"] <= 0.03)
    holds &= (sweep.table["saturated"] == 0) & (sweep.table["speed_ratio"] <= 1)
    assert np.array_equal(sweep.passes, holds)


def test_a_sweep_tells_its_share_and_its_draws_have_the_same_noise_at_every_grid_point(sweep):
    share = sweep.share
    assert share.share == np.mean(sweep.passes)
    assert share.low < share.share < share.high
    assert repr(sweep).startswith("<Sweep of 40 runs over payload, law.bandwidth, model.mass, sensors.noise")
    assert not np.any(sweep.passes[sweep.worst(3)])
    assert sweep.importance()[0].name in ("payload", "law.bandwidth")
    exceeding = {name: np.count_nonzero(sweep.table[name] > limit) for name, limit in sweep.limits.items()}
    assert sweep.figure == sweep.sobol_indices().figure == max(exceeding, key=exceeding.get)
    assert np.array_equal(sweep.to_frame()["tool_error"], sweep.table["tool_error"])
    pairs = sweep.table.reshape(20, 2)
    assert np.array_equal(pairs["law.bandwidth"], np.tile([10.0, 30.0], (20, 1)))
    for name in ("draw", "payload", "model.mass", "sensors.noise", "sensors.seed"):
        assert np.array_equal(pairs[name][:, 0], pairs[name][:, 1])
    assert np.array_equal(pairs["sensors.seed"][:, 0], 7.0 + np.arange(20))


def test_quantity_changes_only_its_side(robot, reference):
    experiment = RobotExperiment(robot, PD, reference)
    nominal = experiment.trial({})
    assert same(nominal.plant, robot)
    assert same(nominal.controller.robot, robot)
    assert nominal.reference is reference
    for name, value in (("payload", 2.0), ("payload.z", 0.2), ("mass", 1.1), ("torque_limit", 0.9)):
        trial = experiment.trial({name: value})
        assert not same(trial.plant, robot)
        assert trial.controller is nominal.controller
        trial = experiment.trial({f"model.{name}": value})
        assert same(trial.plant, robot)
        assert not same(trial.controller.robot, robot)
        other = RobotExperiment(robot, PD, reference, model=robot.with_payload(None))
        assert same(other.trial({name: value}).controller.robot, robot.with_payload(None))
    trial = experiment.trial({"payload.z": 0.2, "payload": 1.0})
    assert (trial.plant.payload.mass, *trial.plant.payload.com) == (1.0, 0.0, 0.0, 0.2)
    assert np.array_equal(trial.plant.payload.inertia, np.eye(3) * 2e-3)
    trial = experiment.trial({"law.Kp": 0.5, "sensors.delay": 3.0})
    gains = nominal.controller.gains
    assert np.array_equal(trial.controller.gains.Kp, 0.5 * gains.Kp)
    assert np.array_equal(trial.controller.gains.Kd, gains.Kd)
    assert trial.sensors == twin.Sensors(delay=3)
    assert same(trial.plant, robot)


def test_nominal_values(robot, reference):
    bare = robot.with_payload(None)
    law = functools.partial(controllers.make, "pd", bandwidth=12.0)
    experiment = RobotExperiment(robot, law, reference, model=bare, sensors=twin.Sensors(noise=1e-4))
    expected = {
        "payload": 0.5, "payload.z": 0.1, "model.payload": 0.0, "mass": 1.0, "model.mass": 1.0,
        "law.bandwidth": 12.0, "law.Kp": 1.0, "sensors.noise": 1e-4, "sensors.delay": 0.0,
        "torque_limit.2": robot.drive_torque_max[1],
    }  # fmt: skip
    assert {name: experiment.nominal(name) for name in expected} == expected
    for name, message in {
        "model.mas": r"no quantity 'model.mas': the nearest are model.mass",
        "law.Ki": r"no numeric setting 'Ki': known are .*law.bandwidth",
        "sensors.encoder": r"no number 'encoder': known are sensors.noise",
    }.items():
        with pytest.raises(UnknownNameError, match=message):
            experiment.nominal(name)


def test_wrong_use(robot, reference):
    for vary, limits, told in (
        ({"sensors.delay": "0.5:0.9"}, {}, r"expected sensors.delay to be whole, got "),
        ({"payload": "0:1:each"}, {}, r"payload by '0:1:each': it has no axes or links; mass, torque_l"),
        ({"mas": "0:1:each"}, {}, "no quantity 'mas'"),
    ):
        with pytest.raises((VariationError, UnknownNameError), match=told):
            twin.sweep(robot, PD, reference, vary, samples=20, limits=limits)


def test_each_axis_varies_by_itself(robot, reference):
    vary = {"torque_limit": "+-10%:each", "model.mass": "~5%:each", "payload": "0:1"}
    sweep = twin.sweep(robot, PD, reference, vary, samples=20, limits={"rms_torque": 0.1})
    assert sweep.figure == sweep.sobol_indices().figure == "rms_torque"
    assert sweep.importance() == sweep.importance("rms_torque") != sweep.importance("joint_error")
    links = [f"model.mass.link_{k}" for k in range(1, 7)]
    assert sweep.inputs == (*(f"torque_limit.{k}" for k in range(1, 7)), *links, "payload")
    relative = np.stack([sweep.table[f"torque_limit.{k}"] for k in range(1, 7)]) / robot.tau_max[:, None]
    assert np.all(np.abs(relative - 1.0) <= 0.1)
    assert np.linalg.matrix_rank(relative - relative.mean(axis=1, keepdims=True)) == 6  # no two alike
    written = twin.sweep(robot, PD, reference, {"mass.link_2": "14:16"}, samples=8).table["mass.link_2"]
    assert np.ptp(written) > 0


def test_python_function_runs_as_in_the_engine(robot, reference):
    """Each run has a new controller, and its rows are those of the compiled law that computes the same."""

    def make(model):
        law = PD(model)
        return lambda state, wanted: law(state, wanted)

    of_function = twin.sweep(robot, make, reference, {"payload": "0,1"}, workers=1)
    of_law = twin.sweep(robot, PD, reference, {"payload": "0,1"})
    assert of_function.passes.tolist() == of_law.passes.tolist()
    assert of_function.table["joint_error"] == pytest.approx(of_law.table["joint_error"], abs=1e-12)
