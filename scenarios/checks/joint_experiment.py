"""Plant, excitation, estimates and picture of the experiment of Norrlöf 1999 on axis 1 of the IRB 1400.

A run contains two experiments, each with an additional torque beside the controller's: around one point, and
during the motion from there to another point. The first yields the estimate, the second validates it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twin.dynamics.flexible_joint import FlexibleJoint
from twin.errors import RobotError
from twin.formatting import literal
from twin.robot.robot import Robot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from controllers import Controller
    from twin.logs.log import Log
    from twin.trajectories.joint_trajectories import Trajectory
    from twin.trajectories.sampling import Reference, State


ROBOT = "irb1400"
NAMES, UNITS = ("J_m", "J_a", "f_m", "k"), ("kg m^2", "kg m^2", "N m s/rad", "N m/rad")
PUBLISHED = np.array([5.9e-4, 5.2e-2, 1.3e-2, 677.2])
PUBLISHED_DEVIATIONS = np.array([2.2e-5, 1.8e-3, 3.2e-4, 29.0])
"""Norrlöf 1999, Table 3.1: values of the motor, and r times those of the arm (`FlexibleJoint.reported`)."""

POSE_DEG = (0.0, -30.0, 25.0, 0.0, 0.0, 0.0)
"""Pose of the arm, chosen here because Norrlöf 1999 does not state one.

In this pose the inertia about axis 1 is within 0.2 % of the published 6.16 kg m^2.
"""

TRAVEL = 1.0  # rad: travel of axis 1 in the second experiment
REST, CUT = 0.5, 0.25  # s: rest between the experiments; part removed at both ends of an experiment
BRAKE = 1e5  # N m: friction that holds the braked joints


class Estimates(NamedTuple):
    """Estimates in the log of a run of N samples; M samples in each experiment; parameters as published.

    Attributes:
        linear: whether the joint is linear.
        noise: standard deviation of the noise on the measured speed, in [rad/s].
        first: (2,) indices of the first samples of estimation and validation data.
        speed: (N,) measured speed of the motor, at the motor, in [rad/s].
        model_speed: (2, M) speeds of the estimated model, for estimation and validation data, in [rad/s].
        truth: (4,) the plant's J_m, J_a, f_m and k.
        values: (4,) estimates.
        deviations: (4,) standard deviations of the estimates.
        clean: (4,) estimates without noise.
        continuous: (4,) estimates without noise by the continuous model, without the engine's steps.
    """

    linear: NDArray
    noise: NDArray
    first: NDArray
    speed: NDArray
    model_speed: NDArray
    truth: NDArray
    values: NDArray
    deviations: NDArray
    clean: NDArray
    continuous: NDArray


def plant(robot: Robot, linear: bool) -> Robot:
    """Return the arm with an elastic axis 1 and the other joints braked.

    Args:
        robot: the IRB 1400.
        linear: whether axis 1 has the friction, the spring and the rotor of Table 3.1; else it has those of
            the robot's file, with Coulomb friction and a damped spring.

    Raises:
        RobotError: the robot is another one.
    """
    drives = robot.drives
    if robot.name != ROBOT or drives is None:
        raise RobotError(f"the experiment is published for robot {ROBOT!r} only, got {robot.name!r}")
    alone = np.arange(robot.n) == 0
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
    from twin.dynamics.equation_of_motion import mass_matrix

    drives = robot.drives
    assert drives is not None  # plant() raises RobotError for a robot without drives
    N = float(drives.ratio[0])
    return FlexibleJoint(
        Jm=float(drives.rotor_inertia[0]),
        Ja=float(mass_matrix(robot, np.deg2rad(POSE_DEG))[0, 0]),
        k=float(drives.stiffness[0]),
        r=1 / N,
        fm=float(drives.viscous[0]) / N**2,
        d=float(drives.damping[0]),
    )


def motion(duration: float) -> Trajectory:
    """Return the motion of both experiments: rest at one point, then move to another.

    Args:
        duration: length of the data of each experiment, in [s]; `CUT` is added at both ends.
    """
    from twin.trajectories.joint_trajectories import hold, quintic, sequence

    here = np.deg2rad(POSE_DEG)
    there = here + TRAVEL * np.eye(len(here))[0]
    length = duration + 2 * CUT
    return sequence(hold(here, REST + length + REST), quintic(here, there, length), hold(there, REST))


def starts(duration: float, period: float) -> NDArray:
    """Return the indices (2,) of the first samples of the data of both experiments."""
    return np.rint((np.array([REST, 2 * REST + duration + 2 * CUT]) + CUT) / period).astype(int)


def multisine(frequencies: NDArray, rms: float, t: NDArray, rng: np.random.Generator) -> NDArray:
    """Return a sum of sines (N,) with equal amplitudes and random phases at times t (N,)."""
    phases = rng.uniform(0, 2 * np.pi, len(frequencies))
    amplitude = rms * np.sqrt(2 / len(frequencies))
    return amplitude * np.sin(2 * np.pi * np.outer(t, frequencies) + phases).sum(axis=1)


class Excited:
    """Controller with an additional torque at the motor of axis 1.

    Args:
        law: the controller.
        torque: (N,) additional torque of the motor at each sample, in [N m].
        period: control period, in [s].
        ratio: gear ratio of axis 1.
    """

    def __init__(self, law: Controller, torque: NDArray, period: float, ratio: float) -> None:
        self.law, self.name = law, law.name
        self.torque, self.period = torque * ratio, period

    def __call__(self, state: State, reference: Reference) -> NDArray:
        """Return torques (n,) at the joints, in [N m]."""
        tau = np.array(self.law(state, reference))
        tau[0] += self.torque[round(state.t / self.period)]
        return tau

    def reset(self) -> None:
        """Reset the memory of the controller."""
        self.law.reset()


def estimates(log: Log, linear: bool, duration: float, noise: float, rng: np.random.Generator) -> Estimates:
    """Estimate axis 1 from the first experiment of a run, and simulate both."""
    from twin.identification.drives.elastic_joint import identify_elastic_joint, simulated_speed

    joint, period, steps = two_masses(log.robot), log.time_step * log.steps_per_period, log.steps_per_period
    first, count = starts(duration, period), round(duration / period)
    tau, true_speed = log.tau_motor[:, 0], log.qd_motor[:, 0] / joint.r
    speed = true_speed + noise * rng.standard_normal(len(true_speed))
    one, two = (slice(start, start + count) for start in first)
    found = identify_elastic_joint(tau[one], speed[one], period, joint.r, steps=steps)
    clean, continuous = (
        identify_elastic_joint(tau[one], true_speed[one], period, joint.r, steps=taken).reported()[0]
        for taken in (steps, None)
    )
    values, deviations = found.reported()
    predicted = simulated_speed(found.joint, tau[two], speed[two], period, steps=steps)
    return Estimates(
        linear=np.array(linear),
        noise=np.array(noise),
        first=first,
        speed=speed,
        model_speed=np.array([found.speed, predicted]),
        truth=np.array([joint.Jm, joint.Ja * joint.r, joint.fm, joint.k * joint.r]),
        values=values,
        deviations=deviations,
        clean=clean,
        continuous=continuous,
    )


HIGH_PASS = 0.01
"""Cut-off of the high-pass filter of figure 3.6 over the Nyquist frequency: 2.5 Hz at 500 Hz."""
SHOWN = 2.0  # s: length of the data in figures 3.5 and 3.6
PLAIN: dict[str, Any] = {"lw": 0.9}
DOTTED: dict[str, Any] = {"lw": 1.0, "ls": ":"}


def picture(logs: Sequence[Log], path: Path) -> None:
    """Draw raw and processed data, the frequency response, and the model beside both experiments.

    Args:
        logs: runs of the experiment; the first is drawn.
        path: path of the PNG to write.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    log = logs[0]
    found = Estimates(*(log.arrays[name] for name in Estimates._fields))
    joint, count = two_masses(log.robot), found.model_speed.shape[1]
    torque, angle = log.tau_motor[:, 0], log.q_motor[:, 0] / joint.r
    windows = [slice(start, start + count) for start in found.first.tolist()]
    figure = Figure(figsize=(12.0, 12.0), layout="constrained")
    FigureCanvasAgg(figure)
    title = f"axis 1 of {log.robot.name}: torque and motion of its motor"
    figure.suptitle(literal(title), fontweight="bold")
    panels = figure.subplots(5, 2)
    for column, (window, what) in enumerate(zip(windows, ("estimation", "validation"), strict=True)):
        wider = slice(window.start - margin(log), window.stop + margin(log))
        raw, processed = panels[:2, column]
        two_curves(raw, log.t[wider], torque[wider], angle[wider], "angle [rad]")
        raw.set_title(f"3.3: raw data, {('around one point', 'to another point')[column]}")
        t, u, y = log.t[window], torque[window], found.speed[window]
        two_curves(processed, t, u - np.mean(u), y - np.mean(y), "speed [rad/s]")
        processed.set_title(f"3.4: {what} data, without ends and mean")
    frequency_panels(panels[2], log, windows[0], found)
    for axes, window, model in zip(panels[3], windows, found.model_speed, strict=True):
        t = log.t[window]
        beside(axes, t, model, found.speed[window], "speed [rad/s]")
    panels[3, 0].set_title("model beside the estimation data")
    panels[3, 1].set_title("3.5: model beside the validation data")
    angle_panel(panels[4, 0], log, windows[1], found)
    left = found.speed[windows[1]] - found.model_speed[1]
    panels[4, 1].plot(log.t[windows[1]], left, lw=0.6)
    panels[4, 1].set(title="error of the model in 3.5", xlabel="t [s]", ylabel="speed [rad/s]")
    figure.savefig(path, dpi=110, format="png")


def margin(log: Log) -> int:
    """Return the number of samples removed at each end of an experiment."""
    return round(CUT / (log.time_step * log.steps_per_period))


def two_curves(axes: Axes, t: NDArray, torque: NDArray, motion: NDArray, label: str) -> None:
    """Plot the torque, and on a second axis the resulting motion."""
    axes.plot(t, torque, color="C0", **PLAIN)
    axes.set_ylabel("torque [N m]", color="C0")
    other = axes.twinx()
    other.plot(t, motion, color="C1", **PLAIN)
    other.set_ylabel(label, color="C1")


def frequency_panels(pair: Sequence[Axes], log: Log, window: slice, found: Estimates) -> None:
    """Plot gain and phase from torque to speed: measured, of the estimated model, and of the plant."""
    from matplotlib.ticker import NullFormatter

    from twin.dynamics.flexible_joint import FlexibleJoint, frequency_response, velocity_model
    from twin.identification.drives.elastic_joint import measured_response

    period = log.time_step * log.steps_per_period
    omega, response, _ = measured_response(log.tau_motor[window, 0], found.speed[window], period)
    joint = two_masses(log.robot)
    Jm, Ja, fm, k = found.values.tolist()
    model = FlexibleJoint.reported(Jm, Ja, k, joint.r, fm)
    dense = np.geomspace(omega[0], omega[-1], 400)
    for axes, of, label in (
        (pair[0], np.abs, "gain [rad/s per N m]"),
        (pair[1], lambda G: np.rad2deg(np.angle(G)), "phase [deg]"),
    ):
        axes.semilogx(omega / 2 / np.pi, of(response), ".", ms=4, color="0.5", label="measured")
        axes.semilogx(
            dense / 2 / np.pi, of(frequency_response(velocity_model(joint), dense)), label="twin", **PLAIN
        )
        axes.semilogx(
            dense / 2 / np.pi, of(frequency_response(velocity_model(model), dense)), label="model", **DOTTED
        )
        axes.set_xticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set(title="frequency response", xlabel="frequency [Hz]", ylabel=label)
        axes.legend(frameon=False)
    pair[0].set_yscale("log")


def beside(axes: Axes, t: NDArray, model: NDArray, measured: NDArray, label: str) -> None:
    """Plot the model as solid and the measurement as dotted line, for the first `SHOWN` seconds."""
    drawn = t < t[0] + SHOWN
    axes.plot(t[drawn], measured[drawn], color="C1", label="measured", **DOTTED)
    axes.plot(t[drawn], model[drawn], color="C0", label="model", **PLAIN)
    axes.set(xlabel="t [s]", ylabel=label)
    axes.legend(frameon=False, ncols=2)


def angle_panel(axes: Axes, log: Log, window: slice, found: Estimates) -> None:
    """Plot figure 3.6: motor angle of the model beside the measured one, both high-pass filtered."""
    from scipy.signal import butter, sosfiltfilt

    period = log.time_step * log.steps_per_period
    joint = two_masses(log.robot)
    model = np.cumsum(found.model_speed[1]) * period
    high_pass = butter(2, HIGH_PASS, "highpass", output="sos")
    angle = log.q_motor[window, 0] / joint.r
    beside(axes, log.t[window], sosfiltfilt(high_pass, model), sosfiltfilt(high_pass, angle), "angle [rad]")
    axes.set_title("3.6: motor angle, above 2.5 Hz")
