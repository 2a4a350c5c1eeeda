"""Where a run was worst: the joint, the moment, and what the log has of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from twin.logs.figures import joint_error, motor_load, speed_load
from twin.robot.limits import joint_unit
from twin.short_texts import figure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from twin.logs.log import Log

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
