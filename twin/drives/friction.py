"""Friction solved together with a time step.

    F(v) = [Fc + (Fs - Fc) exp(-(v / vs)^2)] sgn(v) + Fv v,    |F(0)| at most Fs

The level, what is in brackets, is taken at the speed before the step; the sign, sticking, and the viscous
part at the speed after it.  So a step is the minimum of a strictly convex function, and has one solution,
whatever the friction.  (With the level at the speed after the step it would have several: a wrist's inertia
is below `dt (Fs - Fc) / vs`.)

Every shaft either sticks, or slides one way.  The set of these that fits is found by block pivoting: all that
do not fit are changed at once, which takes a round or two, at most four have been seen; should it ever not
end, one is changed at a time, which does end.

Sources: J. Judice, F. Pires, "A block principal pivoting algorithm for large-scale strictly monotone linear
complementarity problems", Computers and Operations Research 21 (1994); the law: P. Obal, P. Gierlak, Acta
Mechanica et Automatica 19 (2025), of the ABB IRB 2400.
"""

from __future__ import annotations

import numpy as np

from twin.jit import compiled

COULOMB, EXCESS, STRIBECK, VISCOUS = 0, 1, 2, 3
"""The rows of the friction of m shafts (4, m): Fc, Fs - Fc, vs and Fv."""

AT_REST = 1e-12
"""A shaft that is slower than this, in [rad/s], sticks: motors that turn together are held at such speeds."""

FITS = 1e-12
"""How far above the level a torque that holds may be, over the torques that it is the sum of: rounding."""

BLOCK_ROUNDS = 10
MOST_ROUNDS = 2000


@compiled
def friction_level(friction, i, speed):
    """The level of shaft i at a speed, in [N m]."""
    excess, stribeck = friction[EXCESS, i], friction[STRIBECK, i]
    if excess == 0.0:
        return friction[COULOMB, i]
    if abs(speed) <= AT_REST:
        return friction[COULOMB, i] + excess
    if stribeck == 0.0:
        return friction[COULOMB, i]
    return friction[COULOMB, i] + excess * np.exp(-((speed / stribeck) ** 2))


@compiled
def solve(H, f, held, a, work):
    """Solve `H a = f` where a[i] is given wherever held[i]; H is symmetric and positive definite.

    Args:
        H: (m, m); its lower half is read.
        f: (m,).
        held: (m,) of integers, not 0 where a is given.
        a: (m,), completed.
        work: (m, m), overwritten by a Cholesky factor.
    """
    m = len(f)
    for j in range(m):
        if held[j] != 0:
            continue
        # Column j of the factor, of the rows and columns that are not held.
        pivot = H[j, j]
        for k in range(j):
            if held[k] == 0:
                pivot -= work[j, k] * work[j, k]
        pivot = np.sqrt(pivot)
        work[j, j] = pivot
        right = f[j]
        for k in range(m):
            if held[k] != 0:
                right -= (H[j, k] if k < j else H[k, j]) * a[k]
            elif k < j:
                right -= work[j, k] * a[k]
        a[j] = right / pivot
        for i in range(j + 1, m):
            if held[i] == 0:
                entry = H[i, j]
                for k in range(j):
                    if held[k] == 0:
                        entry -= work[i, k] * work[j, k]
                work[i, j] = entry / pivot
    for j in range(m - 1, -1, -1):
        if held[j] != 0:
            continue
        value = a[j]
        for i in range(j + 1, m):
            if held[i] == 0:
                value -= work[i, j] * a[i]
        a[j] = value / work[j, j]


@compiled
def accelerations_with_friction(H, f, friction, w, dt, a):
    """Solve `H a = f - level s` with the sign s of every shaft's speed `w + dt a` after the step.

    Args:
        H: (m, m) inertia, `dt` times viscous friction on its diagonal included, in [kg m^2].
        f: (m,) torque on each shaft, viscous friction at `w` taken off, in [N m].
        friction: (4, m), see `COULOMB` and the others.
        w: (m,) speeds before the step, in [rad/s].
        dt: the step, in [s].
        a: (m,) filled with the accelerations, in [rad/s^2].

    Returns:
        held (m,), not 0 where a shaft sticks: there `a = -w / dt`.
    """
    m = len(f)
    level, load, work = np.empty(m), np.empty(m), np.empty((m, m))
    sign, held = np.zeros(m), np.zeros(m, dtype=np.int64)
    rubs = False
    for i in range(m):
        level[i] = friction_level(friction, i, w[i])
        if level[i] > 0.0:
            rubs = True
            if w[i] > AT_REST:
                sign[i] = 1.0
            elif w[i] < -AT_REST:
                sign[i] = -1.0
            else:
                held[i] = 1
    for rounds in range(MOST_ROUNDS):
        for i in range(m):
            load[i] = f[i] - level[i] * sign[i]
            if held[i] != 0:
                a[i] = -w[i] / dt
        solve(H, load, held, a, work)
        if not rubs:
            break
        one_at_a_time, changed = rounds >= BLOCK_ROUNDS, False
        for i in range(m):
            if level[i] == 0.0 or (one_at_a_time and changed):
                continue
            if held[i] == 0:
                if (w[i] + dt * a[i]) * sign[i] < 0.0:
                    held[i], sign[i], changed = 1, 0.0, True
            else:
                needed, size = f[i], abs(f[i])
                for k in range(m):
                    part = (H[i, k] if k < i else H[k, i]) * a[k]
                    needed -= part
                    size += abs(part)
                if abs(needed) > level[i] + FITS * size:
                    held[i], changed = 0, True
                    sign[i] = 1.0 if needed > 0.0 else -1.0
        if not changed:
            break
    return held
