"""Find the largest joint error of a run: the joint, the moment, the logged signals, and likely causes.

A log contains no causes: each sentence states a fact that often causes a large error, and that a reader can
act on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from twin.base.formatting import figure
from twin.data.logs.figures import joint_error, motor_load, speed_load
from twin.physics.robot.units import joint_unit

if TYPE_CHECKING:
    from twin.data.logs.log import Log

WINDOW = 0.2  # s before the worst moment, in which causes are looked for
LARGE = 0.3  # smallest share of the error that is worth a sentence
CLEAR = 0.8  # smallest magnitude of a correlation that is reported
SWINGS = 6  # smallest number of sign changes within two windows of an oscillation
FEWEST, MANY = 50, 20_000  # smallest and largest number of samples for a correlation
ROUNDING = 1e-9
"""Largest rounding error, in [rad]: it has no cause in the arm."""


@dataclass(frozen=True, eq=False)
class WorstMoment:
    """Moment of the largest joint error of a log: its sample and its joint."""

    log: Log
    sample: int
    joint: int

    @property
    def t(self) -> float:
        """Time of the moment, in [s]."""
        return float(self.log.t[self.sample])

    @property
    def name(self) -> str:
        """Name of the joint."""
        return self.log.robot.joint_names[self.joint]

    @property
    def kind(self) -> str:
        """Kind of the joint, `"revolute"` or `"prismatic"`."""
        return self.log.robot.joint_kinds[self.joint]

    @property
    def unit(self) -> str:
        """Unit of the joint's position."""
        return joint_unit(self.kind)

    @property
    def torque_unit(self) -> str:
        """Unit of the joint's torque or force."""
        return joint_unit(self.kind, "torque")

    @cached_property
    def error(self) -> NDArray:
        """Reference minus position of the joint, (N,)."""
        return joint_error(self.log)[:, self.joint]

    @property
    def size(self) -> float:
        """Magnitude of the joint's error, in `unit`."""
        return float(abs(self.error[self.sample]))

    def at(self, series: NDArray) -> float:
        """Return the value of a signal (N, n) for the joint at the moment."""
        return float(series[self.sample, self.joint])

    def around(self, before: float, after: float) -> slice:
        """Return the samples from `before` to `after` the moment, both in [s]."""
        t = self.log.t
        first, last = np.searchsorted(t, (self.t - before - 1e-9, self.t + after + 1e-9))
        return slice(int(first), int(last))

    def torque_parts(self) -> dict[str, float]:
        """Split the joint's torque by the equation of motion, in `torque_unit`; the parts add up to `tau`.

        Weight and velocity terms are those of the model in this state. The rest of the torque at the joint
        accelerates the arm. The difference between motor torque and joint torque remains in the drive.
        """
        from twin.physics.dynamics.equation_of_motion import gravity_torque, inverse_dynamics, mass_matrix

        log, k, i, arm = self.log, self.sample, self.joint, self.log.robot.arm
        q, qd, still = log.q[k], log.qd[k], np.zeros(arm.n)
        weight = gravity_torque(arm, q)
        moving = inverse_dynamics(arm, q, qd, still)
        M, driving = mass_matrix(arm, q), log.tau_joint[k] - moving
        joint_share = M[i, i] * np.linalg.solve(M, driving)[i]
        parts = {
            "the arm's weight": weight[i],
            "Coriolis and centrifugal torque": moving[i] - weight[i],
            "acceleration of the joint itself": joint_share,
            "acceleration of the other joints": driving[i] - joint_share,
        }
        if log.drives != "ideal":
            parts["torque that remains in the drive (rotor, friction, spring)"] = (
                log.tau[k, i] - log.tau_joint[k, i]
            )
        return {name: float(value) for name, value in parts.items()}

    def facts(self) -> Iterator[tuple[str, str]]:
        """Yield names and values of the logged signals at the moment."""
        log, robot, i, unit, torque = self.log, self.log.robot, self.joint, self.unit, self.torque_unit
        beside = [self.around(0.05, 0).start, min(self.around(0, 0.05).stop, len(log.t)) - 1]
        errors = (f"{figure(float(self.error[k]))} {unit} at {log.t[k]:.4g} s" for k in beside)
        yield "error", f"{figure(self.at(joint_error(log)))} {unit}"
        yield "error 0.05 s before, after", ", ".join(errors)
        position, low, high = (_angle(q, unit) for q in (self.at(log.q), robot.q_min[i], robot.q_max[i]))
        yield "position (range)", f"{position} ({low} to {high})"
        speeds = f"{figure(self.at(log.qd))}, {figure(self.at(log.qd_ref))} ({figure(robot.qd_max[i])})"
        share = percent(self.at(speed_load(log)))
        yield "speed, desired speed (limit)", f"{speeds} {unit}/s: {share} of the limit"
        peak = float(np.max(np.abs(log.qdd_ref[:, i])))
        share = f": {percent(self.at(log.qdd_ref) / peak)} of its maximum" if peak > 0 else ""
        yield "desired acceleration", f"{figure(self.at(log.qdd_ref))} {unit}/s²{share}"
        saturation = ", saturated" if self.at(log.saturated) else ""
        torques = f"{figure(self.at(log.tau_demand))}, {figure(self.at(log.tau))} {torque}"
        share = f"{percent(self.at(motor_load(log)))} of the motor's limit at this speed{saturation}"
        yield "torque demanded, applied", f"{torques}: {share}"
        for name, value in self.torque_parts().items() if self.is_finite() else ():
            yield f"part: {name}", f"{figure(value)} {torque}"
        if log.q_seen is not log.q_motor:
            yield "measured minus true position", f"{figure(self.at(log.q_seen - log.q_motor))} {unit}"
        if log.q_motor is not log.q:
            yield "spring: motor minus joint", f"{figure(self.at(log.q_motor - log.q))} {unit}"

    def is_finite(self) -> bool:
        """Return whether all signals that `torque_parts` needs are finite."""
        signals = (self.log.q, self.log.qd, self.log.tau, self.log.tau_joint)
        return all(np.all(np.isfinite(signal[self.sample])) for signal in signals)


def worst_moment(log: Log) -> WorstMoment | None:
    """Return the moment of the largest finite joint error; `None` if no error is finite."""
    size = np.abs(joint_error(log))
    size = np.where(np.isfinite(size), size, -1.0)
    if size.size == 0 or not np.max(size) >= 0:
        return None
    sample, joint = np.unravel_index(int(np.argmax(size)), size.shape)
    return WorstMoment(log, int(sample), int(joint))


def percent(share: float) -> str:
    """Format the magnitude of a share, as `38 %`."""
    return f"{100 * abs(share):.0f} %" if np.isfinite(share) else "?"


def _angle(value: float, unit: str) -> str:
    return f"{np.rad2deg(value):.4g}°" if unit == "rad" else f"{value:.4g} m"


def reasons(moment: WorstMoment) -> Iterator[str]:
    """Yield sentences on likely causes of the error."""
    if moment.size < ROUNDING:
        yield "This is a rounding error: there is nothing to explain."
        return
    yield from _limits(moment)
    yield from _drive(moment)
    yield from _measured(moment)
    yield from _swinging(moment)
    yield from _together(moment)
    if not moment.is_finite():
        yield "The log ends at this moment, because the torque or the state is not finite."


def _limits(moment: WorstMoment) -> Iterator[str]:
    """Yield sentences on saturated motors and exceeded speed limits."""
    log, window = moment.log, moment.around(WINDOW, 0)
    saturated = log.saturated[window]
    count, samples = np.count_nonzero(saturated, axis=0), len(saturated)
    span = f"{log.t[moment.sample] - log.t[window.start]:.3g} s"
    if count[moment.joint]:
        yield (
            f"The motor of {moment.name} was at its limit in {count[moment.joint]} of the {samples} samples "
            f"of the {span} before, and could not apply the torque that the controller demanded: the joint "
            "falls behind."
        )
    others = [log.robot.joint_names[j] for j in np.nonzero(count)[0] if j != moment.joint]
    if others:
        yield (
            f"In these {span} {_joined(others)} had a motor at its limit, which affects {moment.name} "
            "through the arm's inertia."
        )
    fast = np.abs(speed_load(log)[window]).max(axis=0)
    beyond = [log.robot.joint_names[j] for j in np.nonzero(fast > 1.0)[0]]
    if beyond:
        yield f"In these {span} {_joined(beyond)} exceeded the speed limit."


def _drive(moment: WorstMoment) -> Iterator[str]:
    """Yield a sentence if the drive took most of the torque while the error grew."""
    log, i, k = moment.log, moment.joint, moment.sample
    small = np.nonzero(np.abs(moment.error[:k]) < LARGE * moment.size)[0]
    if len(small) == 0:
        return
    growth = slice(int(small[-1]), k + 1)
    tau, tau_joint = log.tau[growth, i], log.tau_joint[growth, i]
    # Never more than all of it: an arm that drives the motor transmits the opposite torque, or more.
    lost = float(np.sum(np.clip((tau - tau_joint) * np.sign(tau), 0.0, np.abs(tau))))
    applied = float(np.sum(np.abs(tau)))
    if log.drives != "ideal" and np.isfinite(applied) and lost > applied / 2:
        yield (
            f"In the last {moment.t - log.t[growth.start]:.3g} s most of the torque that the motor applied "
            "remained in the drive (friction, rotor, spring), on average "
            f"{figure(lost / (k + 1 - growth.start))} of {figure(applied / (k + 1 - growth.start))} "
            f"{moment.torque_unit}."
        )


def _measured(moment: WorstMoment) -> Iterator[str]:
    """Yield sentences on the difference between the joint's position and the measured position."""
    log, error = moment.log, moment.size
    if log.q_seen is not log.q_motor and (off := abs(moment.at(log.q_seen - log.q_motor))) > LARGE * error:
        yield (
            f"The measured position of the joint differed by {figure(off)} {moment.unit} from the true one "
            f"(delay, noise, encoder resolution): {percent(off / error)} of the error."
        )
    if log.q_motor is not log.q and (bent := abs(moment.at(log.q_motor - log.q))) > LARGE * error:
        yield (
            f"The joint's spring was deflected by {figure(bent)} {moment.unit}, {percent(bent / error)} of "
            "the error: the controller measures the motor, which was nearer to the reference."
        )


def _swinging(moment: WorstMoment) -> Iterator[str]:
    """Yield sentences on an oscillating demand or error."""
    window = moment.around(WINDOW, WINDOW)
    error = moment.error[window]
    if not np.all(np.isfinite(error)):
        return
    middle = error - error.mean()
    changes = np.count_nonzero(np.diff(np.signbit(middle)))
    span = float(moment.log.t[window][-1] - moment.log.t[window][0])
    demand = np.count_nonzero(np.diff(np.signbit(moment.log.tau_demand[window, moment.joint])))
    if demand >= SWINGS and moment.log.saturated[window, moment.joint].any():
        yield (
            f"The demanded torque changed its sign {demand} times in {span:.3g} s, up to the motor's limit: "
            "the closed loop oscillates (gains too high for this period or delay, noise)."
        )
    if changes >= SWINGS and span > 0:
        half = len(middle) // 2
        first, second = (float(np.sqrt(np.mean(part**2))) for part in (middle[:half], middle[half:]))
        how = "grows" if second > 1.5 * first else "decays" if first > 1.5 * second else "persists"
        yield (
            f"The error oscillates at about {changes / (2 * span):.3g} Hz, and the oscillation {how}: it "
            "comes from the closed loop (gains, delay, a spring), not from the reference."
        )


def _together(moment: WorstMoment) -> Iterator[str]:
    """Yield a sentence on the signal that correlates most with the error over the whole run."""
    log, i, every = moment.log, moment.joint, slice(None, None, 1 + len(moment.log.t) // MANY)
    signals = {
        "the torque at the joint": log.tau_joint[every, i],
        "the desired acceleration": log.qdd_ref[every, i],
        "the desired speed": log.qd_ref[every, i],
        "the direction of motion": np.sign(log.qd[every, i]),
    }
    if len(log.t) < FEWEST:
        return
    found = {name: _correlation(moment.error[every], signal) for name, signal in signals.items()}
    best = max(found, key=lambda name: abs(found[name]))
    if abs(found[best]) >= CLEAR:
        yield (
            f"Over the run the error of {moment.name} correlates with {best} (coefficient "
            f"{found[best]:+.2f}). {MEANS[best]}"
        )


MEANS = {
    "the torque at the joint": "Feedback that must supply this torque leaves such an error; higher gains "
    "reduce it, a feedforward of the model's torque removes it.",
    "the desired acceleration": "An inertia that is missing or wrong in the controller's model leaves such "
    "an error.",
    "the desired speed": "A delay, viscous friction, or a controller without the desired speed leaves such "
    "an error.",
    "the direction of motion": "Coulomb friction that the controller does not compensate leaves such an "
    "error.",
}
"""Usual cause of each correlation."""


def _correlation(a: NDArray, b: NDArray) -> float:
    """Return Pearson's coefficient of the finite samples; 0 if one of the signals is constant."""
    both = np.isfinite(a) & np.isfinite(b)
    a, b = a[both], b[both]
    if len(a) < 3 or not (np.ptp(a) > 0 and np.ptp(b) > 0):
        return 0.0
    a, b = (part / np.max(np.abs(part)) for part in (a - a.mean(), b - b.mean()))
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else 0.0


def _joined(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
