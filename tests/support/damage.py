"""Damage that recordings have, done to simulated torques: functions of `t, q, tau` and a random generator."""

import numpy as np


def scaled(joint, factor):
    """Return the damage of one joint's torque by a factor; of all torques if the joint is None."""

    def damage(t, q, tau, rng):
        hit = np.ones(6, dtype=bool) if joint is None else np.arange(6) == joint - 1
        return t, q, np.where(hit, factor * tau, tau)

    return damage


def swapped(quantity, a, b):
    """Return the damage of two columns of `q` or `tau` that are swapped."""

    def damage(t, q, tau, rng):
        order = np.arange(6)
        order[[a - 1, b - 1]] = b - 1, a - 1
        return (t, q[:, order], tau) if quantity == "q" else (t, q, tau[:, order])

    return damage


def wraps(joint):
    """Return the damage of an encoder that wraps in the middle of the joint's motion."""

    def damage(t, q, tau, rng):
        q, middle = q.copy(), np.median(q[:, joint - 1])
        q[:, joint - 1] = (q[:, joint - 1] - middle) % (2 * np.pi) + middle
        return t, q, tau

    return damage


def spikes(quantity, joint, share, size):
    """Return the damage of single samples of `q` or `tau`, by some of the column's deviations."""

    def damage(t, q, tau, rng):
        arrays = {"q": q.copy(), "tau": tau.copy()}
        column = arrays[quantity][:, joint - 1]
        hit = rng.choice(len(t), int(share * len(t)), replace=False)
        column[hit] += size * np.std(column) * rng.choice([-1.0, 1.0], len(hit))
        return t, arrays["q"], arrays["tau"]

    return damage


def clipped(joint, share):
    """Return the damage of a torque that saturates at a share of its largest value."""

    def damage(t, q, tau, rng):
        tau = tau.copy()
        most = share * np.max(np.abs(tau[:, joint - 1]))
        tau[:, joint - 1] = np.clip(tau[:, joint - 1], -most, most)
        return t, q, tau

    return damage


def frozen(quantities, joints, samples=25, count=6):
    """Return the damage of columns that stand still for some samples, several times."""

    def damage(t, q, tau, rng):
        arrays = {"q": q.copy(), "tau": tau.copy()}
        columns = np.array(joints) - 1
        for start in rng.choice(len(t) // (2 * samples) - 1, count, replace=False) * 2 * samples + 10:
            for quantity in quantities:
                arrays[quantity][start : start + samples, columns] = arrays[quantity][start, columns]
        return t, arrays["q"], arrays["tau"]

    return damage


def repeated(t, q, tau, rng):
    """Damage: positions are new in every second row only."""
    return t, q[np.arange(len(t)) // 2 * 2], tau


def late(delay):
    """Return the damage of torques that are recorded late, in [s]."""
    return lambda t, q, tau, rng: (t, q, interpolated(t, tau, t - delay))


def lost(t, q, tau, rng):
    """Damage: one in a hundred rows is lost, and the rows are numbered again."""
    keep = rng.random(len(t)) >= 0.01
    return t[: keep.sum()], q[keep], tau[keep]


def uneven(t, q, tau, rng):
    """Damage: rows are recorded up to half a period early or late, at the times of the table."""
    at = np.clip(t + 0.5 * (t[1] - t[0]) * rng.uniform(-1.0, 1.0, len(t)), 0.0, t[-1])
    at = np.sort(at) + 1e-9 * np.arange(len(t))
    return at, interpolated(t, q, at), interpolated(t, tau, at)


def wrongly_stamped(t, q, tau, rng):
    """Damage: rows are recorded evenly, but at other times by the table."""
    return uneven(t, q, tau, rng)[0], q, tau


def stretched(t, q, tau, rng):
    """Damage: the period is 1.4 times as long in the second half, by the times of the table."""
    half, period = t[len(t) // 2], t[1] - t[0]
    at = np.concatenate([t[t < half], np.arange(half, t[-1], 1.4 * period)])
    return at, interpolated(t, q, at), interpolated(t, tau, at)


def gap(t, q, tau, rng):
    """Damage: a quarter of a second is not in the table."""
    keep = (t < 2.0) | (t > 2.25)
    return t[keep], q[keep], tau[keep]


def interpolated(t, values, at):
    """Return values (N, n) at other times by a cubic spline."""
    from scipy.interpolate import CubicSpline

    return CubicSpline(t, values)(np.clip(at, t[0], t[-1]))
