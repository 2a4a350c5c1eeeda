"""Norrlöf's experiment of 1999 (section 3.3.2) on axis 1 of the IRB 1400: its inertias, friction and spring.

Axis 1 of the twin has the rotor, the friction and the spring of Table 3.1. A controller holds axis 1, the
other axes are braked, and a multisine torque is added: around one point, then during a motion to another
point. The motor's torque and speed are recorded at 500 Hz; the noise on the speed is chosen so that the
deviations have the published size. J_m, J_a, f_m and k are estimated from the first experiment, without its
beginning, end and mean; the second experiment validates them. The plant runs in the engine, and the model is
discretised with the engine's steps.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import controllers
import twin
from scenarios.judging.tracking import torque_limit_metric
from scenarios.metric import Metric
from scenarios.setup import Sampling
from twin.data.identification.elastic_joint import identify_elastic_joint, simulated_speed
from twin.physics.dynamics.flexible_joint import FlexibleJoint

if TYPE_CHECKING:
    from controllers import Controller
    from twin.data.logs.log import Log
    from twin.physics.robot.robot import Robot
    from twin.physics.trajectories.joint_trajectories import Trajectory
    from twin.physics.trajectories.sampling import Reference, State

NAMES = ("J_m", "J_a", "f_m", "k")  # in [kg m^2], [kg m^2], [N m s/rad] and [N m/rad]
PUBLISHED = np.array([5.9e-4, 5.2e-2, 1.3e-2, 677.2])
PUBLISHED_DEVIATIONS = np.array([2.2e-5, 1.8e-3, 3.2e-4, 29.0])
"""Norrlöf 1999, Table 3.1: values of the motor, and r times those of the arm (`FlexibleJoint.reported`)."""

POSE_DEG = (0.0, -30.0, 25.0, 0.0, 0.0, 0.0)
"""Pose of the arm, chosen here because Norrlöf 1999 does not state one.

In this pose the inertia about axis 1 is within 0.2 % of the published 6.16 kg m^2.
"""

TIME_STEP, STEPS = 1e-3, 2
PERIOD = TIME_STEP * STEPS
LOWEST, HIGHEST = 0.5, 40.0  # Hz: frequencies of the excitation
BANDWIDTH = 4.0  # rad/s, of the controller; low, so as not to counteract the excitation
TRAVEL = 1.0  # rad: travel of axis 1 in the second experiment
REST, CUT = 0.5, 0.25  # s: rest between the experiments; part removed at both ends of an experiment
BRAKE = 1e5  # N m: friction that holds the braked joints
MOST = 4.0  # standard deviations; 1 of 16,000 estimates with normal errors is beyond
ROUND_OFF = 1e-8  # largest relative error of an estimate without noise; observed: 1e-12


class Experiment(NamedTuple):
    """A run of N samples and its estimates; M samples in each experiment; parameters (4,) as published.

    Attributes:
        log: log of the engine.
        linear: whether the joint is linear.
        noise: standard deviation of the noise on the measured speed, in [rad/s].
        speed: (2, M) measured speeds of the motor, for estimation and validation, at the motor, in [rad/s].
        model_speed: (2, M) speeds of the estimated model.
        truth: the plant's J_m, J_a, f_m and k.
        values, deviations: estimates, and their standard deviations.
        clean: estimates without noise.
        continuous: estimates without noise by the continuous model, without the engine's steps.
    """

    log: Log
    linear: bool
    noise: float
    speed: NDArray
    model_speed: NDArray
    truth: NDArray
    values: NDArray
    deviations: NDArray
    clean: NDArray
    continuous: NDArray


def run(
    *, linear: bool = True, duration: float = 2.0, torque: float = 0.5, speed_noise: float = 6.0
) -> Experiment:
    """Make both experiments in one run, and estimate the parameters.

    Args:
        linear: whether axis 1 has the friction, the spring and the rotor of Table 3.1; else it has those of
            the robot's file, with Coulomb friction and a damped spring, which no linear model describes.
        duration: length of the data of each experiment, in [s].
        torque: root mean square of the excitation torque, at the motor, in [N m].
        speed_noise: standard deviation of the noise on the motor's measured speed, in [rad/s].
    """
    robot, rng = plant(linear), np.random.default_rng(0)
    joint, samples = two_masses(robot), Sampling(TIME_STEP, STEPS).sampled(motion(duration))
    added = excitation(duration, torque, samples.t, rng)
    law = controllers.make("cascade", robot.with_drives("rigid"), bandwidth=BANDWIDTH, period=PERIOD)
    with twin.Simulation(robot, time_step=TIME_STEP) as simulation:
        excited = Excited(law, added * (1 / joint.r))
        log = twin.run_closed_loop(simulation, excited, samples, steps_per_period=STEPS, learn=False)
    tau, true_speed = log.tau_motor[:, 0], log.qd_motor[:, 0] / joint.r
    speed = true_speed + speed_noise * rng.standard_normal(len(true_speed))
    one, two = (slice(start, start + round(duration / PERIOD)) for start in starts(duration))
    estimated = partial(identify_elastic_joint, tau[one], period=PERIOD, r=joint.r)
    found = estimated(speed[one], steps=STEPS)
    values, deviations = found.reported()
    predicted = simulated_speed(found.joint, tau[two], speed[two], PERIOD, steps=STEPS)
    return Experiment(
        log, linear, speed_noise,
        speed=np.array([speed[one], speed[two]]),
        model_speed=np.array([found.speed, predicted]),
        truth=np.array([joint.Jm, joint.Ja * joint.r, joint.fm, joint.k * joint.r]),
        values=values,
        deviations=deviations,
        clean=estimated(true_speed[one], steps=STEPS).reported()[0],
        continuous=estimated(true_speed[one], steps=None).reported()[0],
    )  # fmt: skip


def plant(linear: bool) -> Robot:
    """Return the IRB 1400 with an elastic axis 1, see `run`, and the other joints braked."""
    robot = twin.load("irb1400")
    drives, alone = robot.drives, np.arange(robot.n) == 0
    assert drives is not None
    changes: dict[str, Any] = {
        "stiffness": np.where(alone, drives.stiffness, np.inf),
        "coulomb": np.where(alone, drives.coulomb, BRAKE),
        "static": np.where(alone, drives.static, BRAKE),
    }
    if linear:
        Jm, _, fm, k = PUBLISHED
        N = drives.ratio[0]
        for name, value in (
            ("rotor_inertia", Jm), ("viscous", fm * N**2), ("stiffness", k * N),
            ("coulomb", 0.0), ("static", 0.0), ("damping", 0.0),
        ):  # fmt: skip
            changes[name] = np.where(alone, value, changes.get(name, getattr(drives, name)))
    return robot.with_drives("elastic", replace(drives, **changes))


def two_masses(robot: Robot) -> FlexibleJoint:
    """Return axis 1 of `plant` as an elastic joint."""
    drives = robot.drives
    assert drives is not None
    N = float(drives.ratio[0])
    return FlexibleJoint(
        Jm=float(drives.rotor_inertia[0]),
        Ja=float(twin.mass_matrix(robot.arm, np.deg2rad(POSE_DEG))[0, 0]),
        k=float(drives.stiffness[0]),
        r=1 / N,
        fm=float(drives.viscous[0]) / N**2,
        d=float(drives.damping[0]),
    )


def motion(duration: float) -> Trajectory:
    """Return the motion of both experiments: rest at one point, then move to another."""
    here = np.deg2rad(POSE_DEG)
    there = here + TRAVEL * np.eye(len(here))[0]
    length = duration + 2 * CUT
    return twin.sequence(
        twin.hold(here, REST + length + REST), twin.quintic(here, there, length), twin.hold(there, REST)
    )


def starts(duration: float) -> NDArray:
    """Return the indices (2,) of the first samples of the data of both experiments."""
    return np.rint((np.array([REST, 2 * REST + duration + 2 * CUT]) + CUT) / PERIOD).astype(int)


def excitation(duration: float, rms: float, t: NDArray, rng: np.random.Generator) -> NDArray:
    """Return the excitation torque (N,) at the motor, in [N m], from `LOWEST` to `HIGHEST`.

    It differs between the two experiments and is 0 between them. Its frequencies are multiples of the
    inverse of the data's length.
    """
    low, high = (round(f * duration) for f in (LOWEST, HIGHEST))
    frequencies = np.arange(max(1, low), high + 1) / duration
    torque, cut = np.zeros(len(t)), round(CUT / PERIOD)
    count = round(duration / PERIOD) + 2 * cut
    for first in starts(duration) - cut:
        torque[first : first + count] = multisine(frequencies, rms, t[:count], rng)
    return torque


def multisine(frequencies: NDArray, rms: float, t: NDArray, rng: np.random.Generator) -> NDArray:
    """Return a sum of sines (N,) with equal amplitudes and random phases at times t (N,)."""
    phases = rng.uniform(0, 2 * np.pi, len(frequencies))
    amplitude = rms * np.sqrt(2 / len(frequencies))
    return amplitude * np.sin(2 * np.pi * np.outer(t, frequencies) + phases).sum(axis=1)


class Excited:
    """Controller `law` with an additional torque (N,) at axis 1, in [N m]."""

    def __init__(self, law: Controller, torque: NDArray) -> None:
        self.law, self.name, self.torque = law, law.name, torque

    def __call__(self, state: State, reference: Reference) -> NDArray:
        """Return torques (n,) at the joints, in [N m]."""
        tau = np.array(self.law(state, reference))
        tau[0] += self.torque[round(state.t / PERIOD)]
        return tau

    def reset(self) -> None:
        """Reset the memory of the controller."""
        self.law.reset()


def metrics(found: Experiment) -> tuple[Metric, ...]:
    """Return the errors of the estimates, and of the model's prediction of the second experiment.

    Without noise, or with nonlinear friction, the errors are not random and have no limit.
    """
    noise, linear, log = found.noise, found.linear, found.log
    judged = linear and noise > 0
    errors = np.abs(found.values - found.truth) / found.deviations
    shares = found.deviations / found.values
    measured = found.speed[1]
    left = measured - found.model_speed[1]
    size = np.exp(np.mean(np.log(shares / (PUBLISHED_DEVIATIONS / PUBLISHED))))
    displacement = np.abs(log.q[:, 1:] - log.q[0, 1:])
    return (
        *(
            Metric(f"{name}: error / its deviation", error, "", MOST if judged else None, "from the plant's")
            for name, error in zip(NAMES, errors, strict=True)
        ),
        Metric("largest deviation", 100 * np.max(shares), "%", None, "Norrlöf 1999, Table 3.1: 4.3 %"),
        Metric("deviations / those of Table 3.1", size, "", None, "the noise was chosen for about 1"),
        Metric("without noise: largest relative error", relative(found.clean, found.truth), "",
               ROUND_OFF if linear else None, "the model has the engine's steps: only rounding is left"),
        Metric("the same in continuous time", relative(found.continuous, found.truth), "", None,
               "effect of the engine's steps"),
        Metric("validation: error / noise", np.std(left) / (noise or 1.0), "" if noise else "rad/s",
               1 + 5 / np.sqrt(2 * len(left)) if judged else None,
               "1 + 5 / sqrt(2 M): the error is the noise, hardly the parameters"),
        Metric("validation: fit", 100 * (1 - np.std(left) / np.std(measured)), "%", None, "noise included"),
        Metric("largest motion of the braked joints", np.max(displacement), "rad", 0.0,
               "the static friction is larger than every torque on the braked joints"),
        torque_limit_metric(log, "controller and excitation together stay within the motor's torque"),
    )  # fmt: skip


def relative(values: NDArray, truth: NDArray) -> float:
    """Return the largest relative error of values."""
    return float(np.max(np.abs(values / truth - 1)))
