"""Damage that recordings have: what people's tables suffer, done to simulated torques of an IRB 140."""

import numpy as np

from tests.support.identified_arms import excited


def noisy(robot, noise=0.01, seed=0, step=0.004, periods=1):
    """Return times, positions, torques with white noise of that share, and torques without noise."""
    t, q, tau = excited(robot, periods, step)
    size = noise * np.sqrt(np.mean(tau**2, axis=0))
    return t, q, tau + size * np.random.default_rng(seed).normal(size=tau.shape), tau


def scaled(joint, factor):
    """Return the damage of one joint's torque by a factor."""
    return lambda t, q, tau, rng: (t, q, tau * np.where(np.arange(tau.shape[1]) == joint - 1, factor, 1.0))


def _swapped(which, a, b):
    def damage(t, q, tau, rng):
        order = np.arange(q.shape[1])
        order[[a - 1, b - 1]] = b - 1, a - 1
        return (t, q[:, order], tau) if which == "q" else (t, q, tau[:, order])

    return damage


def wraps(joint, period=2 * np.pi):
    """Return the damage of an encoder that wraps in the middle of the joint's motion."""

    def damage(t, q, tau, rng):
        q, middle = q.copy(), np.median(q[:, joint - 1])
        q[:, joint - 1] = (q[:, joint - 1] - middle) % period + middle
        return t, q, tau

    return damage


def spikes(which, joint, share=0.01, size=3.0):
    """Return the damage of single samples of one column, by some of its deviations of either sign."""

    def damage(t, q, tau, rng):
        arrays = {"q": q.copy(), "tau": tau.copy()}
        column = arrays[which][:, joint - 1]
        hit = rng.choice(len(t), int(share * len(t)), replace=False)
        column[hit] += size * np.std(column) * rng.choice([-1.0, 1.0], len(hit))
        return t, arrays["q"], arrays["tau"]

    return damage


def clipped(joint, share=0.5):
    """Return the damage of a torque that saturates at a share of its largest value."""

    def damage(t, q, tau, rng):
        tau = tau.copy()
        most = share * np.max(np.abs(tau[:, joint - 1]))
        tau[:, joint - 1] = np.clip(tau[:, joint - 1], -most, most)
        return t, q, tau

    return damage


def frozen(joints, which="q", length=0.1, count=6):
    """Return the damage of columns that stand for some times, in [s]; `joints` None for all."""

    def damage(t, q, tau, rng):
        q, tau = q.copy(), tau.copy()
        columns = slice(None) if joints is None else [j - 1 for j in joints]
        size = round(length / (t[1] - t[0]))
        for start in (
            rng.choice((len(t) - 2 * size) // (2 * size), count, replace=False) * 2 * size + size // 2
        ):
            part = slice(start, start + size)
            if "q" in which:
                q[part, columns] = q[start, columns]
            if "tau" in which:
                tau[part, columns] = tau[start, columns]
        return t, q, tau

    return damage


def repeated(every=2):
    """Return the damage of positions that are new in every second row only."""
    return lambda t, q, tau, rng: (t, q[np.arange(len(t)) // every * every], tau)


def late(delay):
    """Return the damage of torques that are recorded late, in [s]."""

    def damage(t, q, tau, rng):
        columns = [np.interp(t - delay, t, column) for column in tau.T]
        return t, q, np.stack(columns, axis=1)

    return damage


def lost(share=0.01):
    """Return the damage of lost rows, after which the rows are numbered again."""

    def damage(t, q, tau, rng):
        keep = rng.random(len(t)) >= share
        return t[: keep.sum()], q[keep], tau[keep]

    return damage


def uneven(size=0.5):
    """Return the damage of rows recorded at uneven times, by a share of the period, which `t` states."""

    def damage(t, q, tau, rng):
        period = t[1] - t[0]
        at = t + size * period * rng.uniform(-0.5, 0.5, len(t))
        at = np.clip(at, t[0], t[-1]) + 1e-9 * np.arange(len(t))
        arrays = [np.stack([np.interp(at, t, c) for c in a.T], axis=1) for a in (q, tau)]
        if True:  # positions by a cubic, whose accelerations are right
            from scipy.interpolate import CubicSpline

            arrays[0] = CubicSpline(t, q)(at)
        return at, *arrays

    return damage


def stretched(factor=1.4):
    """Return the damage of a logger whose period grows by a factor in the second half, as `t` states."""

    def damage(t, q, tau, rng):
        from scipy.interpolate import CubicSpline

        period, half = t[1] - t[0], len(t) // 2
        late_part = np.arange(t[half] + factor * period, t[-1], factor * period)
        at = np.concatenate([t[: half + 1], late_part])
        return at, CubicSpline(t, q)(at), CubicSpline(t, tau)(at)

    return damage


def little(joint, share=0.01):
    """Return the motion with that share of one joint's travel; torques must be computed again."""
    scale = lambda q: (
        q.mean(axis=0)
        + (q - q.mean(axis=0))
        * np.where(  # noqa: E731
            np.arange(q.shape[1]) == joint - 1, share, 1.0
        )
    )
    return scale
