"""Figures 3.3 to 3.6 of Norrlöf 1999, from data of the twin."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scenarios.checks import joint_experiment as experiment
from twin.short_texts import literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from twin.logs.log import Log

HIGH_PASS = 0.01
"""Of the Nyquist frequency: the cut-off of figure 3.6, 2.5 Hz at 500 Hz."""
SHOWN = 2.0  # s of the data that are drawn of figures 3.5 and 3.6
PLAIN: dict[str, Any] = {"lw": 0.9}
DOTTED: dict[str, Any] = {"lw": 1.0, "ls": ":"}


def picture(logs: Sequence[Log], path: Path) -> None:
    """Draw raw and processed data, the frequency response, and the model beside the second experiment.

    Args:
        logs: runs of the experiment; the first is drawn.
        path: the PNG to write.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    log = logs[0]
    found = experiment.Estimates(*(log.arrays[name] for name in experiment.Estimates._fields))
    joint, count = experiment.two_masses(log.robot), found.model_speed.shape[1]
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
    panels[4, 1].set(title="what the model leaves of 3.5", xlabel="t [s]", ylabel="speed [rad/s]")
    figure.savefig(path, dpi=110, format="png")


def margin(log: Log) -> int:
    """Samples that were cut from each end of an experiment."""
    return round(experiment.CUT / (log.time_step * log.steps_per_period))


def two_curves(axes: Axes, t: NDArray, torque: NDArray, motion: NDArray, label: str) -> None:
    """Torque, and on an axis of its own what came of it."""
    axes.plot(t, torque, color="C0", **PLAIN)
    axes.set_ylabel("torque [N m]", color="C0")
    other = axes.twinx()
    other.plot(t, motion, color="C1", **PLAIN)
    other.set_ylabel(label, color="C1")


def frequency_panels(pair: Sequence[Axes], log: Log, window: slice, found: experiment.Estimates) -> None:
    """Gain and phase from torque to speed: measured, the model's, and the twin's."""
    from matplotlib.ticker import NullFormatter

    from twin.dynamics.flexible_joint import FlexibleJoint, frequency_response, velocity_model
    from twin.identification.drives.elastic_joint import measured_response

    period = log.time_step * log.steps_per_period
    omega, response, _ = measured_response(log.tau_motor[window, 0], found.speed[window], period)
    joint = experiment.two_masses(log.robot)
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
    """The model solid, the measurement dotted, for the first seconds."""
    drawn = t < t[0] + SHOWN
    axes.plot(t[drawn], measured[drawn], color="C1", label="measured", **DOTTED)
    axes.plot(t[drawn], model[drawn], color="C0", label="model", **PLAIN)
    axes.set(xlabel="t [s]", ylabel=label)
    axes.legend(frameon=False, ncols=2)


def angle_panel(axes: Axes, log: Log, window: slice, found: experiment.Estimates) -> None:
    """Figure 3.6: the model's motor angle beside the measured one, both through the high-pass filter."""
    from scipy.signal import butter, sosfiltfilt

    period = log.time_step * log.steps_per_period
    joint = experiment.two_masses(log.robot)
    model = np.cumsum(found.model_speed[1]) * period
    high_pass = butter(2, HIGH_PASS, "highpass", output="sos")
    angle = log.q_motor[window, 0] / joint.r
    beside(axes, log.t[window], sosfiltfilt(high_pass, model), sosfiltfilt(high_pass, angle), "angle [rad]")
    axes.set_title("3.6: motor angle, above 2.5 Hz")
