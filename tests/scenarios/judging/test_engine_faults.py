"""Faults of 1e-9 in the engine alone fail the checks of engine against model.

A fault acts on PyBullet's world, on its drives or on the controller of its run, never on the model.
"""

import dataclasses
from contextlib import contextmanager

import numpy as np
import pytest

from scenarios.judging import following
from scenarios.judging.agreement import agreement_metrics
from scenarios.judging.bounds import kicked_runs, step_limits
from scenarios.judging.following import follow
from scenarios.setup import Setup
from tests.support.changed_runs import with_prediction
from tests.support.processor_times import shared
from twin import Simulation, hold, quintic
from twin.physics.dynamics.equation_of_motion import PlantState
from twin.physics.robot.drives.drive_step import Q_MOTOR
from twin.physics.robot.quantities import changed

pytestmark = pytest.mark.slow("runs scenarios in the engine")

OFF = 1.0 + 1e-9


class FaultySimulation(Simulation):
    """Engine with one fault, named by `fault`; its `robot` is the faultless one."""

    fault = ""

    def _build(self):
        nominal = self.robot
        if self.fault == "mass":
            self.robot = changed(nominal, (("mass", OFF),))
        elif self.fault == "gravity":
            self.robot = dataclasses.replace(nominal, gravity=OFF * nominal.gravity)
        elif self.fault == "friction":
            drives = nominal.drives
            more = dataclasses.replace(drives, coulomb=OFF * drives.coulomb, static=OFF * drives.static)
            self.robot = nominal.with_drives(nominal.drive_mode, more)
        super()._build()
        self.robot = nominal
        if self.fault == "damping":
            for joint in self._joints:
                self._client.changeDynamics(self._body, joint, jointDamping=1e-9)
        elif self.fault == "torque":
            apply = self._apply
            self._apply = lambda forces: apply(forces=[OFF * force for force in forces])

    def step(self, tau, wrench=None, T_flange_tool=None):
        super().step(tau, wrench, T_flange_tool)
        if self.fault == "position":
            q, qd = self.state().copy()
            self._put(q + 1e-9 * self.time_step * qd, qd)
        elif self.fault == "motor" and self._drives is not None:
            self._drives.train.signals[Q_MOTOR] *= OFF

    def _put(self, q, qd):
        """Set the joints, including passive ones, and the drives' copy of their state."""
        robot = self.robot
        positions, speeds = robot.tree_positions(q).tolist(), (robot.embedding @ qd).tolist()
        for state in zip(self._joints, positions, speeds, strict=True):
            self._client.resetJointState(self._body, *state)
        if self._drives is not None:
            self._drives._unpack(self._drives._read(), self._drives._tree)
            self._drives._look_up_state()


@contextmanager
def faulty_engine(fault):
    """Let `follow` run in an engine with this fault."""
    kind = type("Faulty", (FaultySimulation,), {"fault": fault})
    shown = following.shown

    def forgetful(simulation, setup, make, reference, at_sample=None):
        def made(chosen):
            law = make(chosen)
            called = type(law).__call__

            class Forgetful(type(law)):
                def __call__(self, state, reference):
                    self.memory *= OFF
                    return called(self, state, reference)

            law.__class__ = Forgetful
            return law

        return shown(simulation, setup, made if fault == "memory" else make, reference, at_sample)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("twin.physics.engine.simulation.Simulation", kind)
        patch.setattr(following, "shown", forgetful)
        yield


@shared
def broken_checks(fault, robot, drives, controller, moves=True, noise=0.0):
    """Return the checks of engine against model that a short run with this fault fails."""
    setup = Setup(robot=robot, drives=drives, controller=controller, noise=noise, delay=int(noise > 0))
    arm = setup.load_robot()
    zero = arm.poses["zero"]
    motion = quintic(zero, zero + 0.1, 0.15) if moves else hold(zero + 0.1, 0.1)
    with faulty_engine(fault):
        run = follow(setup, setup.sampling().sampled(motion), arm)
    return {metric.name for metric in agreement_metrics(run) if not metric.passes}


IDEAL = [("irb140", "ideal", "pd"), ("irb1400", "ideal", "computed_torque")]
RIGID = [("irb140", "rigid", "computed_torque"), ("irb1400", "rigid", "pid")]
ELASTIC = [("irb140", "elastic", "pd"), ("irb1400", "elastic", "cascade")]
RUNS = {
    "mass": IDEAL + RIGID,
    "gravity": IDEAL + RIGID,
    "friction": RIGID + ELASTIC,
    "damping": IDEAL + RIGID,
    "torque": IDEAL + RIGID,
    "position": IDEAL + RIGID,
    "motor": [*ELASTIC, ("irb140", "elastic", "computed_torque"), ("irb1400", "elastic", "pd_gravity")],
    "memory": [
        ("irb140", "ideal", "pid"),
        ("irb1400", "rigid", "pid"),
        *ELASTIC[1:],
        ("irb140", "elastic", "pid"),
    ],
}
"""Runs of each fault."""


@pytest.mark.parametrize("run", IDEAL + RIGID + ELASTIC, ids="-".join)
def test_faultless_engine_passes_every_check(run):
    assert broken_checks("", *run) == set()


def test_wrong_initial_state_of_the_engine_fails_a_check():
    setup = Setup(drives="elastic", controller="pd")
    arm = setup.load_robot()
    run = follow(setup, setup.sampling().sampled(hold(arm.poses["test_3"], 0.01)), arm)
    for row in range(4):
        start = run.prediction.start.copy()
        start[row, 2] += 1e-9
        moved = with_prediction(run, start=start)
        broken = [metric.name for metric in agreement_metrics(moved) if not metric.passes]
        assert broken == ["engine - model, every state / its limit"]


def test_limits_do_not_grow_with_the_fault():
    setup = Setup(drives="elastic", controller="pd")
    arm = setup.load_robot()
    zero = arm.poses["zero"]
    reference = setup.sampling().sampled(quintic(zero, zero + 0.1, 0.15))
    log = follow(setup, reference, arm).log
    struck = {}
    for name in PlantState._fields:
        struck[name] = getattr(log, name).copy()
        struck[name][70, 1] += 10.0
    broken = dataclasses.replace(log, **struck)
    limits = step_limits(log, log.model_residuals())
    after = step_limits(broken, broken.model_residuals())
    # The model starts its step from the disturbed state, so that only its spring torques change.
    assert all(late <= 50 * early for early, late in zip(limits, after, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scenarios.judging.bounds.step_limits", lambda *_: limits)
        kicked = kicked_runs(broken, setup.control_law(arm), reference, None)
    assert np.ptp(kicked["q"], axis=0).max() < 1e-9
    # Every other run has the residual, which is the limit here, with the other sign.
    jump = np.diff(kicked["qd"][:, 69:71, 1], axis=1)[:, 0]
    np.testing.assert_allclose(jump[::2] - jump[1::2], 2 * limits.qd, rtol=0.02)


def test_replay_includes_sensors():
    assert broken_checks("", "irb140", "elastic", "pid", noise=1e-4) == set()
    assert "samples not replayed" in broken_checks("memory", "irb140", "elastic", "pid", noise=1e-4)


@pytest.mark.parametrize("fault", RUNS)
def test_engine_fault_of_a_billionth_fails_a_check(fault):
    """The check of single steps fails; that of the memory is the replay."""
    check = "samples not replayed" if fault == "memory" else "engine - model, every state / its limit"
    assert [run for run in RUNS[fault] if check not in broken_checks(fault, *run)] == []


def test_torque_check_detects_wrong_mass_of_an_arm_at_rest():
    """Friction holds all joints, so that only the torque between arm and drives reveals the mass."""
    run = ("irb140", "rigid", "pd_gravity", False)
    assert broken_checks("", *run) == set()
    assert broken_checks("mass", *run) == {"engine - model, every state / its limit"}


def test_rounding_of_a_light_flange_under_a_point_load_passes():
    """The load is on the axis of the flange, which turns with the 2e-6 kg m^2 of its own; 1e-9 more fail."""
    setup = Setup(robot="irb1200", payload="5", time_step=0.002)
    arm = setup.load_robot()
    start = np.array([0.1, 0.2, 0.1, 0.3, 0.8, 0.2])
    run = follow(setup, setup.sampling().sampled(quintic(start, start + 0.5, 0.3)), arm)
    assert all(metric.passes for metric in agreement_metrics(run))
    limits = step_limits(run.log, run.log.model_residuals())
    assert 1e-13 < limits.qd < 1e-11
    qd = run.log.qd.copy()
    qd[70, 5] += 1e-9
    broken = dataclasses.replace(run.log, qd=qd)
    assert np.max(np.abs(broken.model_residuals().qd)) > limits.qd
