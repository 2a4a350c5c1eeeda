"""Rollouts with drives and sensors: to the bit what the closed loop does around the analytic plant."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import controllers
import twin
from tests.support.sample_drives import SENSORS, SLOWLY, coupled, uncoupled
from tests.support.short_runs import PERIOD, nothing, path, same
from twin.base.errors import DriveWarning
from twin.data.logs.closed_loop import run_closed_loop
from twin.physics.control.control_law import ControlLaw
from twin.physics.control.plant import AnalyticPlant
from twin.physics.control.rollout import run_rollouts
from twin.physics.control.signals import RunningSensors
from twin.physics.engine.simulation import Simulation
from twin.physics.robot.drives.motors import Sensors
from twin.physics.robot.robot import Payload
from twin.physics.trajectories.sampling import sample

# Whether a light wrist vibrates as fast as it should is not what is looked at here.

OTHERS = ("tau_joint", "q_motor", "qd_motor", "q_seen", "qd_seen")


def same_with_drives(rolled, log, index=()):
    return same(rolled, log, index) and all(
        np.array_equal(getattr(rolled, name)[index], getattr(log, name)) for name in OTHERS
    )


@pytest.mark.parametrize(
    ("mode", "wrist", "sensors"),
    [
        ("ideal", "alone", SENSORS),
        ("rigid", "alone", None),
        ("rigid", "coupled", SENSORS),
        ("elastic", "coupled", None),
        ("elastic", "alone", SENSORS),
    ],
)
def test_a_rollout_is_the_closed_loop_around_the_model_to_the_bit(robot, mode, wrist, sensors):
    """With a load, a start off the reference, motors at their limits, and torques held for several steps."""
    drives = robot.drives if wrist == "alone" else coupled(robot)
    weak = replace(  # the torque left depends on the motors' speeds
        drives,
        motor_torque_max=0.3 * drives.motor_torque_max,
        motor_speed_rated=0.01 * drives.motor_speed_rated,
    )
    plant = robot.with_drives(mode, weak).with_payload(Payload(2.0, [0.02, 0.01, 0.08]))
    controller = controllers.make("computed_torque", robot, bandwidth=25.0)
    reference, start = sample(path(robot), PERIOD), (robot.poses["zero"] + 0.02, np.full(6, -0.05))
    settings = {"start": start, "sensors": sensors, "steps_per_period": 4}
    rollout = run_rollouts(plant, controller, reference, time_step=PERIOD / 4, **settings)
    log = run_closed_loop(AnalyticPlant(plant, PERIOD / 4), controller, reference, **settings)
    assert same_with_drives(rollout, log)
    assert np.ptp(rollout.q, axis=0).max() > 0.02
    if mode != "ideal":
        assert rollout.saturated.any()
        assert not np.array_equal(rollout.tau_joint, rollout.tau)
    assert np.array_equal(rollout.q_motor, rollout.q) == (mode != "elastic")
    assert np.array_equal(rollout.q_seen, rollout.q_motor) == (sensors is None)
    assert log.model_residual() <= 1e-11


class KickedPlant(AnalyticPlant):
    """A plant whose state is changed by `kicks` (N, 4, n) at every sample, before it is read."""

    def __init__(self, robot, kicks):
        super().__init__(robot, PERIOD)
        self.kicks = kicks

    def reset(self, q, qd=None):
        super().reset(q, qd)
        self.waiting = iter(self.kicks)
        self.due = True

    def state(self, out=None):
        if self.due:
            kick = next(self.waiting)
            self._state += kick[:2]
            if self._drives is not None:
                self._drives._motors += kick[2:]
        self.due = False
        return super().state(out)

    def step(self, *arguments):
        super().step(*arguments)
        self.due = True


@pytest.mark.parametrize(("mode", "sensors"), [("ideal", None), ("rigid", SENSORS), ("elastic", SENSORS)])
def test_a_kicked_rollout_is_the_closed_loop_around_a_plant_whose_state_is_changed(robot, mode, sensors):
    plant, reference = robot.with_drives(mode), sample(path(robot), PERIOD)
    controller = controllers.make("pid", robot)
    kicks = 1e-4 * np.random.default_rng(0).standard_normal((2, len(reference.t), 4, 6))
    if mode != "elastic":  # the motors are where the joints are
        kicks[:, :, 2:] = kicks[:, :, :2]
    seeds = None if sensors is None else [sensors.seed] * 2
    rollouts = run_rollouts(
        [plant] * 2, controller, reference, sensors=sensors, kicks=kicks, noise_seeds=seeds
    )
    for run in range(2):
        log = run_closed_loop(KickedPlant(plant, kicks[run]), controller, reference, sensors=sensors)
        assert same_with_drives(rollouts, log, run)
    assert np.max(np.abs(rollouts.q[0] - rollouts.q[1])) > 1e-4
    with pytest.raises(ValueError, match=r"expected kicks of shape \(2, \d+, 4, 6\), got \(1, "):
        run_rollouts([plant] * 2, controller, reference, kicks=kicks[:1])


@SLOWLY
@pytest.mark.parametrize(("name", "mode"), [("irb140", "rigid"), ("irb1400", "elastic")])
def test_a_rollout_is_the_closed_loop_around_the_engine_to_round_off(name, mode):
    """Without an encoder, which makes a whole count of a difference in the last bit."""
    arm = twin.load(name)
    plant = arm.with_drives(mode).with_payload(Payload(2.0, [0.02, 0.01, 0.08], np.diag([0.02, 0.02, 0.01])))
    law = controllers.make("computed_torque", plant, bandwidth=15.0)
    reference = sample(path(arm, 0.4), PERIOD)
    late = Sensors(noise=1e-6, speed_cutoff=100.0, delay=1, seed=2)
    for sensors, near in ((None, 1e-13), (late, 1e-9)):
        rollout = run_rollouts(plant, law, reference, sensors=sensors)
        with Simulation(plant) as simulation:
            log = run_closed_loop(simulation, law, reference, sensors=sensors)
        for row, limit in (("q", near), ("q_motor", near), ("tau_joint", 1e5 * near)):
            assert np.max(np.abs(getattr(rollout, row) - getattr(log, row))) <= limit
        assert log.model_residual() <= 1e-11
        assert np.ptp(rollout.q, axis=0).min() > 0.02, "every joint moved"


@SLOWLY
def test_a_batch_is_its_rollouts_one_by_one(irb140, monkeypatch):
    """Drives that differ in their numbers, each with noise of its own; for any number of threads."""
    monkeypatch.setattr("twin.physics.control.rollout.STEPS_AT_ONCE", 250)
    drives = irb140.drives
    plants = [
        irb140.with_drives("elastic", replace(drives, **changes))
        for changes in (
            {},
            {"stiffness": 0.5 * drives.stiffness, "coulomb": 0.5 * drives.coulomb},
            {"rotor_inertia": 2 * drives.rotor_inertia, "ratio": -drives.ratio, "encoder_counts": 64.0},
            {"motor_torque_max": 0.3, "motor_speed_rated": 100.0, "damping": 0.0},
        )
    ]
    laws = [controllers.make("pid", irb140, bandwidth=omega) for omega in (5.0, 10.0)]
    reference, results = sample(path(irb140, 0.1), PERIOD), []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("IRB_TWIN_THREADS", threads)
        results.append(run_rollouts(np.array(plants)[:, None], laws, reference, sensors=SENSORS))
    for name in ("q", "qd", "tau", "tau_demand", "saturated", *OTHERS):
        first, *others = (getattr(result, name).tobytes() for result in results)
        assert others == [first, first]
    for number, index in enumerate(np.ndindex(4, 2)):
        plant, law = plants[index[0]], laws[index[1]]
        alone = run_closed_loop(AnalyticPlant(plant), law, reference, sensors=replace(SENSORS, noise=0.0))
        assert not same(results[0], alone, index)
        sensors = RunningSensors(SENSORS, 6, run=number)
        log = run_closed_loop(AnalyticPlant(plant), law, reference, sensors=sensors)
        assert same_with_drives(results[0], log, index)


@SLOWLY
def test_without_drives_and_sensors_a_record_has_no_more_rows(irb140):
    law, reference = controllers.make("pd_gravity", irb140), sample(path(irb140), PERIOD)
    for drives, sensors, rows in (
        ("ideal", None, 4), ("ideal", Sensors(), 9), ("rigid", None, 9), ("elastic", None, 9),
    ):  # fmt: skip
        rollout = run_rollouts(irb140.with_drives(drives), law, reference, sensors=sensors)
        assert rollout.q.base.size == rows * rollout.q.size
        assert np.shares_memory(rollout.tau_joint, rollout.tau) == (drives == "ideal")
        assert np.shares_memory(rollout.q_motor, rollout.q) == (drives != "elastic")
        assert np.shares_memory(rollout.q_seen, rollout.q_motor) == (sensors is None)


@SLOWLY
def test_thinned_samples_have_the_torque_of_their_step(irb140):
    plant, law = irb140.with_drives("elastic"), controllers.make("computed_torque", irb140)
    reference = sample(path(irb140), PERIOD)
    whole, few = (run_rollouts(plant, law, reference, sensors=SENSORS, every=every) for every in (1, 7))
    for name in ("q", "qd", "tau", "tau_demand", *OTHERS):
        np.testing.assert_array_equal(getattr(few, name), getattr(whole, name)[::7])
    np.testing.assert_array_equal(few.t, whole.t[::7])
    np.testing.assert_array_equal(few.saturated, whole.saturated)
    np.testing.assert_array_equal(whole.tau_joint[-1], whole.tau_joint[-2])
    assert not np.array_equal(whole.tau_joint[-2], whole.tau_joint[-3])


def test_what_cannot_run_together_is_refused(irb140):
    law, reference = ControlLaw(irb140, nothing), sample(path(irb140, 0.01), PERIOD)
    rigid, elastic = uncoupled(irb140).with_drives("rigid"), irb140.with_drives("elastic")
    for others in (irb140, elastic, irb140.with_drives("rigid", coupled(irb140))):
        with pytest.raises(
            ValueError, match=r"plants with the same drive mode, .* got <Robot irb140.*, rigid drives> "
        ):
            run_rollouts([rigid, others], law, reference)
    half = irb140.with_drives("elastic", replace(irb140.drives, stiffness=[np.inf, *[1e4] * 5]))
    with pytest.raises(ValueError, match="the same drive mode, elastic joints"):
        run_rollouts([elastic, half], law, reference)
    arms = (rigid, irb140.with_drives("rigid", coupled(irb140)))
    models = [controllers.make("computed_torque", arm) for arm in arms]
    with pytest.raises(ValueError, match="coupled motors in all models of the controllers or in none"):
        run_rollouts(rigid, models, reference)
    with pytest.raises(ValueError, match="the integrator 'rk4' supports only ideal drives, got rigid ones"):
        run_rollouts(rigid, law, reference, integrator="rk4")


def test_too_long_steps_for_a_spring_warn(irb140):
    law, reference = controllers.make("pd", irb140), sample(path(irb140, 0.01), PERIOD)
    with pytest.warns(DriveWarning, match="steps of 0.001 s are too long for the springs of joint_5") as told:
        run_rollouts([irb140.with_drives("elastic")], law, reference)
    assert told[0].filename == __file__


CODE = """
import sys
import numpy as np
import controllers, twin
from tests.support.short_runs import path
from tests.support.sample_drives import SENSORS, coupled
from twin.physics.control.rollout import run_rollouts
from twin.physics.trajectories.sampling import sample
robot = twin.load("irb140")
laws = [controllers.make(name, robot) for name in ("computed_torque", "dob")]
reference = sample(path(robot, 0.02), 1e-3)
plants = [robot.with_drives("rigid"), robot.with_drives("elastic", coupled(robot))]
runs = [run_rollouts(plant, law, reference, sensors=SENSORS) for plant in plants for law in laws]
np.save(sys.argv[1], [[run.q, run.q_seen, run.q_motor] for run in runs])
"""


@SLOWLY
def test_all_of_it_runs_as_plain_python(robot, tmp_path):
    plain = tmp_path / "plain.npy"
    command = [sys.executable, "-W", "error", "-W", "ignore::UserWarning", "-c", CODE, str(plain)]
    subprocess.run(command, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, check=True)
    laws = [controllers.make(name, robot) for name in ("computed_torque", "dob")]
    reference = sample(path(robot, 0.02), PERIOD)
    plants = [robot.with_drives("rigid"), robot.with_drives("elastic", coupled(robot))]
    runs = [run_rollouts(plant, law, reference, sensors=SENSORS) for plant in plants for law in laws]
    compiled = [[run.q, run.q_seen, run.q_motor] for run in runs]
    np.testing.assert_allclose(np.load(plain), compiled, rtol=0, atol=1e-12)
