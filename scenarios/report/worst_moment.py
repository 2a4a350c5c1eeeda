"""Where a run was worst: the joint, the moment, what the log has of it, and what may have caused it.

A log has no word about causes: each sentence is a fact that goes with a large error, and that a reader can
act on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from twin.formatting import figure
from twin.logs.figures import joint_error, motor_load, speed_load
from twin.robot.limits import joint_unit

if TYPE_CHECKING:
    from twin.logs.log import Log

WINDOW = 0.2  # s before the worst moment, in which what happened may have caused it
LARGE = 0.3  # of the error: as much as that of it is worth a sentence
CLEAR = 0.8  # of a correlation: two signals that go together
SWINGS = 6  # changes of sign within two windows, from which on an error swings
FEWEST, MANY = 50, 20_000  # samples, of which a correlation is taken
ROUNDING = 1e-9
"""[rad]: an error below it comes from the last digits of the numbers, and has no cause in the arm."""


@dataclass(frozen=True, eq=False)
class WorstMoment:
    """The moment of the largest joint error of a log: its sample and its joint."""

    log: Log
    sample: int
    joint: int

    @property
    def t(self) -> float:
        """When it was, in [s]."""
        return float(self.log.t[self.sample])

    @property
    def name(self) -> str:
        """The joint's."""
        return self.log.robot.joint_names[self.joint]

    @property
    def kind(self) -> str:
        """`"revolute"` or `"prismatic"`."""
        return self.log.robot.joint_kinds[self.joint]

    @property
    def unit(self) -> str:
        """Of the joint's position."""
        return joint_unit(self.kind)

    @property
    def torque_unit(self) -> str:
        """Of the joint's torque, or force."""
        return joint_unit(self.kind, "torque")

    @cached_property
    def error(self) -> NDArray:
        """Reference minus position of that joint, (N,)."""
        return joint_error(self.log)[:, self.joint]

    @property
    def size(self) -> float:
        """How far the joint was off, in [rad]."""
        return float(abs(self.error[self.sample]))

    def at(self, series: NDArray) -> float:
        """A signal (N, n) of that joint at that moment."""
        return float(series[self.sample, self.joint])

    def around(self, before: float, after: float) -> slice:
        """The samples from so long before to so long after, in [s]."""
        t = self.log.t
        first, last = np.searchsorted(t, (self.t - before - 1e-9, self.t + after + 1e-9))
        return slice(int(first), int(last))

    def torque_parts(self) -> dict[str, float]:
        """What the joint's torque was for, by the equation of motion, in [N m]; the parts add up to `tau`.

        Weight and the terms of speed are those of the model in the state of that moment; what is left of the
        torque that the arm got accelerates it; what the arm did not get stayed in the drive.
        """
        from twin.dynamics.equation_of_motion import gravity_torque, inverse_dynamics, mass_matrix

        log, k, i = self.log, self.sample, self.joint
        q, qd, still = log.q[k], log.qd[k], np.zeros(log.robot.n)
        weight = gravity_torque(log.robot, q)
        moving = inverse_dynamics(log.robot, q, qd, still)
        M, driving = mass_matrix(log.robot, q), log.tau_joint[k] - moving
        own = M[i, i] * np.linalg.solve(M, driving)[i]
        parts = {
            "the arm's weight": weight[i],
            "Coriolis and centrifugal torque": moving[i] - weight[i],
            "acceleration of the joint itself": own,
            "acceleration of the other joints": driving[i] - own,
        }
        if log.drives != "ideal":
            parts["what stays in the drive (rotor, friction, spring)"] = log.tau[k, i] - log.tau_joint[k, i]
        return {name: float(value) for name, value in parts.items()}

    def facts(self) -> Iterator[tuple[str, str]]:
        """What the log has of that moment: names and values."""
        log, robot, i, unit, torque = self.log, self.log.robot, self.joint, self.unit, self.torque_unit
        beside = [self.around(0.05, 0).start, min(self.around(0, 0.05).stop, len(log.t)) - 1]
        yield "error", f"{figure(self.at(joint_error(log)))} {unit}"
        yield (
            "error 0.05 s before, after",
            ", ".join(f"{figure(float(self.error[k]))} {unit} at {log.t[k]:.4g} s" for k in beside),
        )
        yield (
            "position (range)",
            (
                f"{_angle(self.at(log.q), unit)} "
                f"({_angle(robot.q_min[i], unit)} to {_angle(robot.q_max[i], unit)})"
            ),
        )
        yield (
            "speed, wanted speed (limit)",
            (
                f"{figure(self.at(log.qd))}, {figure(self.at(log.qd_ref))} "
                f"({figure(robot.qd_max[i])}) {unit}/s: "
                f"{percent(self.at(speed_load(log)))} of the limit"
            ),
        )
        peak = float(np.max(np.abs(log.qdd_ref[:, i])))
        share = f": {percent(self.at(log.qdd_ref) / peak)} of its largest" if peak > 0 else ""
        yield "wanted acceleration", f"{figure(self.at(log.qdd_ref))} {unit}/s²{share}"
        cut = ", cut" if self.at(log.saturated) else ""
        yield (
            "torque demanded, brought",
            (
                f"{figure(self.at(log.tau_demand))}, {figure(self.at(log.tau))} {torque}: "
                f"{percent(self.at(motor_load(log)))} of what the motor can give then{cut}"
            ),
        )
        for name, value in self.torque_parts().items() if self.is_finite() else ():
            yield f"of it {name}", f"{figure(value)} {torque}"
        if log.q_seen is not log.q_motor:
            yield "measured minus true position", f"{figure(self.at(log.q_seen - log.q_motor))} {unit}"
        if log.q_motor is not log.q:
            yield "spring: motor minus joint", f"{figure(self.at(log.q_motor - log.q))} {unit}"

    def is_finite(self) -> bool:
        """Whether all that `torque_parts` needs is finite."""
        signals = (self.log.q, self.log.qd, self.log.tau, self.log.tau_joint)
        return all(np.all(np.isfinite(signal[self.sample])) for signal in signals)


def worst_moment(log: Log) -> WorstMoment | None:
    """The moment of the largest joint error that is a number; `None` where there is no such number."""
    size = np.abs(joint_error(log))
    size = np.where(np.isfinite(size), size, -1.0)
    if size.size == 0 or not np.max(size) >= 0:
        return None
    sample, joint = np.unravel_index(int(np.argmax(size)), size.shape)
    return WorstMoment(log, int(sample), int(joint))


def percent(share: float) -> str:
    """A share without its sign, as `38 %`."""
    return f"{100 * abs(share):.0f} %" if np.isfinite(share) else "?"


def _angle(value: float, unit: str) -> str:
    return f"{np.rad2deg(value):.4g}°" if unit == "rad" else f"{value:.4g} m"


def reasons(moment: WorstMoment) -> Iterator[str]:
    """Sentences on why the error is as large as it is."""
    if moment.size < ROUNDING:
        yield "This is rounding, the last digits of the numbers: there is nothing to explain."
        return
    yield from _limits(moment)
    yield from _drive(moment)
    yield from _measured(moment)
    yield from _swinging(moment)
    yield from _together(moment)
    if not moment.is_finite():
        yield "The log ends there: the torque is not a number, or the state is beyond reason."


def _limits(moment: WorstMoment) -> Iterator[str]:
    """Motors at their limits, speeds beyond them."""
    log, window = moment.log, moment.around(WINDOW, 0)
    cut = log.saturated[window]
    count, samples = np.count_nonzero(cut, axis=0), len(cut)
    span = f"{log.t[moment.sample] - log.t[window.start]:.3g} s"
    if count[moment.joint]:
        yield (
            f"The motor of {moment.name} was at its limit in {count[moment.joint]} of the {samples} samples "
            f"of the {span} up to there, and could not bring what the law demanded: the joint gets less "
            "torque than it needs, and falls behind."
        )
    others = [log.robot.joint_names[j] for j in np.nonzero(count)[0] if j != moment.joint]
    if others:
        yield (
            f"In those {span} {_listed(others)} had a motor at its limit, which reaches {moment.name} "
            "through the arm's inertia."
        )
    fast = np.abs(speed_load(log)[window]).max(axis=0)
    beyond = [log.robot.joint_names[j] for j in np.nonzero(fast > 1.0)[0]]
    if beyond:
        yield f"{_listed(beyond)} moved faster than the speed limit then."


def _drive(moment: WorstMoment) -> Iterator[str]:
    """A drive that took most of the torque since the error was small."""
    log, i, k = moment.log, moment.joint, moment.sample
    small = np.nonzero(np.abs(moment.error[:k]) < LARGE * moment.size)[0]
    if len(small) == 0:
        return
    grown = slice(int(small[-1]), k + 1)
    lost = float(np.sum(np.abs(log.tau[grown, i] - log.tau_joint[grown, i])))
    brought = float(np.sum(np.abs(log.tau[grown, i])))
    if log.drives != "ideal" and np.isfinite(brought) and lost > brought / 2:
        yield (
            f"In the last {moment.t - log.t[grown.start]:.3g} s most of the torque that its motor brought "
            "stayed in the drive (friction, rotor, spring), on average "
            f"{figure(lost / (k + 1 - grown.start))} of {figure(brought / (k + 1 - grown.start))} "
            f"{moment.torque_unit}."
        )


def _measured(moment: WorstMoment) -> Iterator[str]:
    """What lay between the joint and what the law saw of it."""
    log, error = moment.log, moment.size
    if log.q_seen is not log.q_motor and (off := abs(moment.at(log.q_seen - log.q_motor))) > LARGE * error:
        yield (
            f"The law saw the joint {figure(off)} {moment.unit} away from where it was (delay, noise, "
            f"counts of the encoder): {percent(off / error)} of the error."
        )
    if log.q_motor is not log.q and (bent := abs(moment.at(log.q_motor - log.q))) > LARGE * error:
        yield (
            f"The joint's spring was bent by {figure(bent)} {moment.unit}, {percent(bent / error)} of the "
            "error: the law sees the motor, which was nearer to where it should be."
        )


def _swinging(moment: WorstMoment) -> Iterator[str]:
    """An error that changes its sign often."""
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
            f"What the law demanded changed its direction {demand} times in {span:.3g} s, up to the "
            "motor's limit: the loop answers to itself (gains too high for this period or delay, noise)."
        )
    if changes >= SWINGS and span > 0:
        half = len(middle) // 2
        first, second = (float(np.sqrt(np.mean(part**2))) for part in (middle[:half], middle[half:]))
        how = "grows" if second > 1.5 * first else "dies away" if first > 1.5 * second else "stays"
        yield (
            f"The error swings there, at about {changes / (2 * span):.3g} Hz, and the swing {how}: this "
            "is the loop itself (gains, delay, a spring), not what is asked of it."
        )


def _together(moment: WorstMoment) -> Iterator[str]:
    """The signal of the joint with which the error goes over the whole run."""
    log, i, every = moment.log, moment.joint, slice(None, None, 1 + len(moment.log.t) // MANY)
    signals = {
        "the torque that the arm needs": log.tau_joint[every, i],
        "the wanted acceleration": log.qdd_ref[every, i],
        "the wanted speed": log.qd_ref[every, i],
        "the direction of motion": np.sign(log.qd[every, i]),
    }
    if len(log.t) < FEWEST:
        return
    found = {name: _correlation(moment.error[every], signal) for name, signal in signals.items()}
    best = max(found, key=lambda name: abs(found[name]))
    if abs(found[best]) >= CLEAR:
        yield (
            f"Over the run the error of {moment.name} goes with {best} (correlation {found[best]:+.2f}). "
            f"{MEANS[best]}"
        )


MEANS = {
    "the torque that the arm needs": "A law whose feedback has to bring that torque leaves such an "
    "error; more gain makes it smaller, the model's torque as feed-forward takes it away.",
    "the wanted acceleration": "Inertia that the law does not know, or knows as another one, leaves such "
    "an error.",
    "the wanted speed": "A delay, viscous friction, or a law that does not know the wanted speed leaves "
    "such an error.",
    "the direction of motion": "Dry friction that the law does not know leaves such an error.",
}
"""What each of these correlations usually stands for."""


def _correlation(a: NDArray, b: NDArray) -> float:
    """Pearson's, of what is finite of both; 0 where one of them does not change."""
    both = np.isfinite(a) & np.isfinite(b)
    a, b = a[both], b[both]
    if len(a) < 3 or not (np.ptp(a) > 0 and np.ptp(b) > 0):
        return 0.0
    a, b = (part / np.max(np.abs(part)) for part in (a - a.mean(), b - b.mean()))
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else 0.0


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
