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
from twin.formatting import figure as number
from twin.formatting import literal
from twin.views.curves import COLOURS
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
        Ja=float(mass_matrix(robot.arm, np.deg2rad(POSE_DEG))[0, 0]),
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
PLAIN: dict[str, Any] = {"lw": 1.0}
DOTTED: dict[str, Any] = {"lw": 1.8, "ls": ":"}
MEASURED, MODEL = "measured", "identified model"


def picture(logs: Sequence[Log], path: Path) -> None:
    """Draw the data, the frequency response, and the model beside the validation (report, 3.4 to 3.6).

    Args:
        logs: runs of the experiment; the first is drawn.
        path: path of the PNG to write.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    log = logs[0]
    found = Estimates(*(log.arrays[name] for name in Estimates._fields))
    count = found.model_speed.shape[1]
    torque = log.tau_motor[:, 0]
    windows = [slice(start, start + count) for start in found.first.tolist()]
    made = Figure(figsize=(12.0, 9.5), layout="constrained")
    FigureCanvasAgg(made)
    title = f"axis 1 of {log.robot.name}: torque and motion of its motor"
    made.suptitle(literal(title), fontweight="bold")
    panels = made.subplots(3, 2)
    experiments = ("estimation: noise around one point", "validation: noise on the move to another point")
    for axes, window, what in zip(panels[0], windows, experiments, strict=True):
        u, y = torque[window], found.speed[window]
        two_curves(axes, log.t[window], u - np.mean(u), y - np.mean(y))
        axes.set_title(f"{what}, means removed", fontsize=10)
    frequency_panels(panels[1], log, windows[0], found)
    beside(panels[2, 0], log.t[windows[1]], found.model_speed[1], found.speed[windows[1]], "speed [rad/s]")
    rms = np.sqrt(np.mean((found.speed[windows[1]] - found.model_speed[1]) ** 2))
    panels[2, 0].set_title(f"validation: the model's speed, RMS error {number(rms)} rad/s", fontsize=10)
    angle_panel(panels[2, 1], log, windows[1], found)
    entries = {}
    for axes in panels[1:].flat:
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    made.legend(entries.values(), entries, loc="outside lower center", ncols=len(entries), frameon=False)
    made.savefig(path, dpi=110, format="png")


def two_curves(axes: Axes, t: NDArray, torque: NDArray, speed: NDArray) -> None:
    """Plot the torque, and on a second axis the resulting speed."""
    other = axes.twinx()
    for place, values, label, colour in (
        (axes, torque, "torque [N m]", COLOURS[0]),
        (other, speed, "speed [rad/s]", COLOURS[1]),
    ):
        place.plot(t, values, color=colour, **PLAIN)
        place.set_ylabel(label, color=colour)
        half = 1.1 * float(np.max(np.abs(values)))
        place.set_ylim(-half, half)  # both axes are zero at the same height
    axes.set_xlabel("time [s]")


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
        axes.semilogx(omega / 2 / np.pi, of(response), ".", ms=4, color="0.5", label=MEASURED)
        for one, style in (
            (joint, {"label": "plant", "color": COLOURS[2], **PLAIN}),
            (model, {"label": MODEL, "color": COLOURS[1], **DOTTED}),
        ):
            axes.semilogx(dense / 2 / np.pi, of(frequency_response(velocity_model(one), dense)), **style)
        axes.set_xticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set(xlabel="frequency [Hz]", ylabel=label)
        axes.set_title("frequency response from torque to speed", fontsize=10)
        axes.grid(True, color="0.9")
    pair[0].set_yscale("log")


def beside(axes: Axes, t: NDArray, model: NDArray, measured: NDArray, label: str) -> None:
    """Plot the measurement, and the model over it, for the first `SHOWN` seconds."""
    drawn = t < t[0] + SHOWN
    axes.plot(t[drawn], measured[drawn], color="0.6", lw=2.2, label=MEASURED)
    axes.plot(t[drawn], model[drawn], color=COLOURS[1], label=MODEL, **PLAIN)
    axes.set(xlabel="time [s]", ylabel=label)
    axes.grid(True, color="0.9")


def angle_panel(axes: Axes, log: Log, window: slice, found: Estimates) -> None:
    """Plot the motor angle of the model beside the measured one, both high-pass filtered."""
    from scipy.signal import butter, sosfiltfilt

    period = log.time_step * log.steps_per_period
    joint = two_masses(log.robot)
    model = np.cumsum(found.model_speed[1]) * period
    high_pass = butter(2, HIGH_PASS, "highpass", output="sos")
    angle = log.q_motor[window, 0] / joint.r
    beside(axes, log.t[window], sosfiltfilt(high_pass, model), sosfiltfilt(high_pass, angle), "angle [rad]")
    axes.set_title("validation: the motor's angle above 2.5 Hz", fontsize=10)
