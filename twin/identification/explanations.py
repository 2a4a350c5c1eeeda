"""Explanations of large residuals: other signs, units, orders, mountings and arms that leave small ones.

No fault is stated for one sign alone.  A wrong torque leaves large residuals, and an alternative must leave
small ones.  The friction of a joint takes power; where the sign of its torque is wrong, it seems to give power,
beyond its deviation.  Alternatives are compared by the sum over the joints of the logarithms of their residuals,
relative to the torques.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from twin.arrays import Floats
from twin.identification.alternatives import Alternatives, alternatives, percent_of, thinned
from twin.identification.least_squares import Fit, fitted, triangles
from twin.identification.measurements import Measurements, motion_at
from twin.identification.torque_model import TorqueModel, friction_of, identifiable, shaft_speeds
from twin.logs.recordings.finding import Finding, joint_names
from twin.robot.loading.loading import load, robot_names

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from twin.identification.result import Identification

LACKS = 2.0
"""Ratio of residuals to the noise of the torques above which a model lacks something."""

MUCH = 12.0
"""Residuals in percent of the torque from which other positions, mountings and arms are tried, too."""

BETTER = 0.7
"""Sum over the joints by which the logarithms of residuals must fall."""

HALF = 0.5
"""Ratio to which the largest residual of a joint must fall."""

AS_GOOD = 0.05
"""Increase of that sum that does not contradict an alternative."""

CERTAIN = 3.0
"""Deviations by which the power of friction must differ from 0."""

OTHER = 2.5
"""Smallest factor between units that the torques of other joints tell."""

FACTORS = np.geomspace(1.0 / 4096.0, 4096.0, 13)
"""Factors of a torque that are tried; at the ends a joint has no part in the fit."""

MOUNTINGS = {"floor": 0.0, "wall": -90.0, "inverted": 180.0, "90": 90.0}
"""Mountings that are tried, with the angles in degrees by which they turn the base."""

CUTS = tuple(np.arange(1, 6) / 6.0)
"""Shares of a recording after which a change is tried."""

STEP = 1e-4
"""Step of differences by positions, in [rad], and by the logarithm of time."""


class Change(NamedTuple):
    """An alternative to the recording.

    Attributes:
        name: name of the finding.
        joints: joints that are concerned, from 1.
        reason: what it means.
        percent: (n,) residuals of the torques, in percent.
        certain: whether friction alone shows it, with residuals that do not grow.
    """

    name: str
    joints: tuple[int, ...]
    reason: str
    percent: Floats
    certain: bool = False

    def gain(self, before: Floats) -> float:
        """Return the sum over the joints by which the logarithms of residuals (n,) fall."""
        return float(np.sum(np.log(np.maximum(before, 1e-9) / np.maximum(self.percent, 1e-9))))


def explanation(found: Identification) -> Finding | None:
    """Return a finding for the alternative to the recordings that explains the torques much better, if any."""
    model, measured = found.model, [thinned(one) for one in found.measured]
    power = in_deviations(friction_power(model, measured), found.beta, found.covariance)
    if not (np.any(power < -CERTAIN) or np.any(lacks(found))):
        return None
    other = alternatives(model, measured, lambda one, at, Y: _torques(one.tau[at]))
    before = percent_of(*other.fit(np.eye(len(power))))
    tried = [*_signs(other, found, measured, power), *_orders(other), *_units(other, found)]
    tried += _later(found, measured)
    if np.any(before > MUCH):
        tried += [*_moves(found, measured), *_robots(found, measured)]
    explains = [
        one for one in tried
        if one.certain or (one.gain(before) > BETTER and np.max(one.percent) < HALF * np.max(before))
    ]  # fmt: skip
    best = max(explains, key=lambda change: change.gain(before), default=None)
    if best is None:
        return None
    worst, after = np.max(before), np.max(best.percent)
    fall = f": residuals would fall from {worst:.3g} to {after:.3g} % of the torque" if after < worst else ""
    return Finding(best.name, best.joints, best.reason + fall)


def lacks(found: Identification) -> NDArray[np.bool_]:
    """Return the joints (n,) with residuals beyond the noise of their torques."""
    if found.unfiltered is None or found.noise is None:
        return np.zeros(found.model.robot.n, dtype=np.bool_)
    return found.unfiltered.rms > LACKS * found.noise


def _torques(tau: Floats) -> Floats:
    """Return the torques (M, n) of all joints as columns (M, n, n) of the equations of each."""
    return np.broadcast_to(tau[:, None, :], (len(tau), tau.shape[1], tau.shape[1]))


def friction_power(model: TorqueModel, measured: Sequence[Measurements]) -> Floats:
    """Return rows (n, r) that give the mean power of each shaft's friction, in [W], for base parameters."""
    drives = model.robot.active_drives
    symbols = {symbol: k for k, symbol in enumerate(model.base.symbols)}
    rows = np.zeros((model.robot.n, len(symbols)))
    if drives is None:
        return rows
    speeds = np.concatenate(
        [shaft_speeds(drives, one.qd_friction, one.qd_friction)[np.any(one.used, axis=1)] for one in measured]
    )
    for shaft in range(model.robot.n):
        w = np.abs(speeds[:, shaft])
        for symbol, mean in ((f"Fc{shaft + 1}", np.mean(w)), (f"Fv{shaft + 1}", np.mean(w * w))):
            if symbol in symbols:
                rows[shaft, symbols[symbol]] = mean
    return rows


def in_deviations(rows: Floats, beta: Floats, covariance: Floats) -> Floats:
    """Return linear combinations (n, r) of parameters in their deviations; 0 for rows of zeros."""
    deviation = np.sqrt(np.einsum("ni,ij,nj->n", rows, covariance, rows))
    return np.divide(rows @ beta, deviation, out=np.zeros(len(rows)), where=deviation > 0)


def _signs(
    other: Alternatives, found: Identification, measured: Sequence[Measurements], power: Floats
) -> Iterator[Change]:
    """Yield signs of torques that lower the residuals, or with which friction brakes."""
    n, gives, rows = len(power), power < -CERTAIN, friction_power(found.model, measured)
    before = percent_of(*other.fit(np.eye(n)))
    tries = {(joint,) for joint in range(n)} | {tuple(np.flatnonzero(gives).tolist())} - {()}
    for joints in tries:
        signs = np.where(np.isin(np.arange(n), joints), -1.0, 1.0)
        fit, reduced = other.fit(np.diag(signs))
        after = in_deviations(rows, fit.beta, fit.covariance)
        if np.any(after < -CERTAIN):
            continue
        numbers = tuple(joint + 1 for joint in joints)
        every = np.all(gives | (np.abs(power) <= CERTAIN)) and len(joints) > 1
        one = Change(
            "sign", () if every else numbers,
            f"{'all torques seem' if every else f'the torque of {joint_names(numbers)} seems'} to have the "
            "other sign, with which friction brakes",
            percent_of(fit, reduced),
        )  # fmt: skip
        rights = np.all(gives[list(joints)]) and np.all(after[list(joints)] > CERTAIN)
        yield one._replace(certain=bool(rights and one.gain(before) > -AS_GOOD))


def _orders(other: Alternatives) -> Iterator[Change]:
    """Yield pairs of torques that were swapped."""
    for numbers, order in _pairs(len(other.R)):
        text = f"the torques of {joint_names(numbers)} seem to be swapped"
        yield Change("swapped", numbers, text, percent_of(*other.fit(np.eye(len(order))[order])))


def _pairs(n: int) -> Iterator[tuple[tuple[int, int], list[int]]]:
    """Yield all pairs of n joints, from 1, and the order of the joints with which they are exchanged."""
    for a, b in combinations(range(n), 2):
        order = list(range(n))
        order[a], order[b] = b, a
        yield (a + 1, b + 1), order


def _units(other: Alternatives, found: Identification) -> Iterator[Change]:
    """Yield units of the torque of one joint, and torques in percent of their largest."""
    n, robot = len(other.R), found.model.robot
    drives, limits = robot.active_drives, robot.tau_max
    if np.all(np.isfinite(limits)):
        text = "the torques seem to be in percent of those of the robot's limits"
        yield Change("unit", (), text, percent_of(*other.fit(np.diag(limits / np.mean(limits)))))
    assert drives is not None
    for joint in range(n):
        best, least = 1.0, None
        for factors in (FACTORS, (0.5, 2.0)):  # coarse factors, then those beside the best
            for factor in best * np.asarray(factors):
                scale = np.where(np.arange(n) == joint, factor, 1.0)
                percent = percent_of(*other.fit(np.diag(scale)))
                if least is None or np.sum(np.log(percent)) < np.sum(np.log(least)):
                    best, least = float(factor), percent
        if least is not None and FACTORS[0] < best < FACTORS[-1] and abs(np.log(best)) > np.log(OTHER):
            ratio = float(np.abs(np.diag(drives.motor_matrix))[joint])
            yield Change("unit", (joint + 1,), _unit(joint, best, ratio), least)


def _unit(joint: int, factor: float, ratio: float) -> str:
    """Name the likely reason of a torque that must be multiplied by a factor."""
    text = (
        f"the torque of joint {joint + 1} seems to be in another unit than others, by about {1 / factor:.2g}"
    )
    for value, cause in ((ratio, "is it that of the motor, before the gear"), (1e-3, "is it in mN m")):
        if 0.5 < factor / value < 2.0 and not 0.5 < value < 2.0:
            return f"{text}; {cause}?"
    return f"{text}; is it a current, or that of the motor?"


def _moves(found: Identification, measured: Sequence[Measurements]) -> Iterator[Change]:
    """Yield positions that were swapped, without and with their torques, or have another sign."""
    n = found.model.robot.n
    for numbers, order in _pairs(n):
        for both in (False, True):
            text = f"the positions {'and the torques ' if both else ''}of {joint_names(numbers)} seem to be swapped"
            changed = [_moved(one, order, np.ones(n), both) for one in measured]
            yield Change("swapped", numbers, text, _percent(found.model, changed))
    for joint in range(n):
        signs = np.where(np.arange(n) == joint, -1.0, 1.0)
        text = f"the position of joint {joint + 1} seems to have the other sign"
        changed = [_moved(one, range(n), signs) for one in measured]
        yield Change("sign", (joint + 1,), text, _percent(found.model, changed))


def _moved(measured: Measurements, order: Sequence[int], signs: Floats, both: bool = False) -> Measurements:
    """Return measurements in which positions, or all, belong to other joints, or have another sign."""
    arrays = {name: getattr(measured, name)[:, order] * signs for name in ("q", "qd", "qdd", "qd_friction")}
    if both:
        arrays["tau"] = measured.tau[:, order]
    weights = None if measured.weights is None else measured.weights[:, order]
    return replace(measured, **arrays, weights=weights, motor=None, reference=None)


def _robots(found: Identification, measured: Sequence[Measurements]) -> Iterator[Change]:
    """Yield other mountings of the robot, and other built-in arms."""
    model, robot = found.model, found.model.robot
    for how, angle in MOUNTINGS.items():
        text = f"gravity acts as on an arm with another mounting (--mounting {how})"
        turned = robot.mounted(angle)
        if not np.allclose(turned.gravity, robot.gravity):
            yield Change("mounting", (), text, _percent(replace(model, robot=turned), measured))
    for name in robot_names():
        arm = identifiable(load(name))
        if arm.n == robot.n and arm.name != robot.name:
            text = f"the recording seems to be of another arm (--robot {name})"
            kinds = () if model.torque_sensors else friction_of(arm)
            its = TorqueModel(arm.with_gravity(robot.gravity), friction=kinds, torque_sensors=model.torque_sensors)
            yield Change("arm", (), text, _percent(its.without_load, measured))


def _percent(model: TorqueModel, measured: Sequence[Measurements]) -> Floats:
    """Return the residuals (n,) of a model that is fitted to measurements, in percent of the torques."""
    reduced = triangles(model, measured)
    return percent_of(fitted(reduced), reduced)


def _later(found: Identification, measured: Sequence[Measurements]) -> Iterator[Change]:
    """Yield gains, zeros, frictions and clocks that changed at some time, or ever since the start."""
    model, n = found.model, found.model.robot.n
    eye, drives = np.eye(n), model.robot.active_drives
    kinds = ("gain of the torque", "zero of the torque", "friction", "zero of the position")
    assert drives is not None

    def more(one: Measurements, at: NDArray[np.intp], Y: Floats) -> Floats:
        """Return columns by which torques change, at each time, and the torques."""
        q, qd, qdd, slides, load, motor = motion_at(one, at)
        moved = [model.regressor(q + STEP * e, qd, qdd, slides, load, motor) for e in eye]
        moved.append(model.regressor(q, (1 + STEP) * qd, (1 + 2 * STEP) * qdd, (1 + STEP) * slides, load, motor))
        slopes = [(Z[..., model.base.columns] - Y) @ found.beta / STEP for Z in moved]
        rubs = np.sign(shaft_speeds(drives, slides, slides))[:, None, :] * drives.friction_matrix.T
        tau = one.tau[at][..., None]
        parts = [tau * eye, np.broadcast_to(eye, rubs.shape), rubs, np.stack(slopes, axis=-1)]
        used = one.t[np.any(one.used, axis=1)][[0, -1]]
        share = ((one.t[at] - used[0]) / (used[1] - used[0]))[:, None, None]
        whole = np.concatenate(parts, axis=-1)
        return np.concatenate([*(whole * (share > cut) for cut in CUTS), whole * share, tau], axis=-1)

    other, K = alternatives(model, measured, more), len(kinds) * n + 1
    torque = np.append(np.zeros((len(CUTS) + 1) * K), 1.0)
    for column in range(len(torque) - 1):
        when, (kind, joint) = column // K, divmod(column % K, n)
        what = f"{kinds[kind]} of joint {joint + 1}" if kind < len(kinds) else "clock"
        how = f"after {100.0 * CUTS[when]:.0f} % of the recording" if when < len(CUTS) else "all the time"
        text = f"the {what} seems to change, {how}"
        numbers = (joint + 1,) if kind < len(kinds) else ()
        yield Change("changes", numbers, text, percent_of(*other.fit(torque, [column])))
