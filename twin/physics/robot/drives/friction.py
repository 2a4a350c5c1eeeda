"""Friction, solved together with a time step.

    F(v) = [Fc + (Fs - Fc) exp(-(v / vs)^2) + mu |T| + Fr sqrt|v|] sgn(v) + Fv v + Fd |v| + F0

with |F - F0| at most `Fs + mu |T|` at rest.  T is the torque that the drive transmits:
that on the arm, through the coupling for friction at the motor.  F0 and Fd are
differences between the directions: with friction Fc+ forward and Fc- backward, Fc is their mean and F0 half
their difference.

The level, in brackets, and Fd are evaluated at the speed before the step and the torque in the step before.
The sign, sticking, and the viscous part are evaluated at the speed after it.  A step is therefore the minimum
of a strictly convex function, and has one solution for any friction.  (With the level at the speed after the
step it would have several, because a wrist's inertia is below `dt (Fs - Fc) / vs`.)

Every shaft either sticks, or slides in one direction.  Block pivoting finds the consistent set: all
inconsistent shafts are changed at once, which takes one or two rounds (at most six in 20,000 random cases).
If this did not end, one shaft would be changed at a time, which always ends.

Sources: J. Judice, F. Pires, "A block principal pivoting algorithm for large-scale strictly monotone linear
complementarity problems", Computers and Operations Research 21 (1994); the law: P. Obal, P. Gierlak, Acta
Mechanica et Automatica 19 (2025), for the ABB IRB 2400.
"""

from functools import partial

import numpy as np

from twin.base.jit import NO_COUNTS, compiled
from twin.physics.robot.drives.drives import Drives

COULOMB, EXCESS, STRIBECK, VISCOUS, LOAD, ROOT, DIFFERENCE, OFFSET = range(8)
"""Rows of the friction of m shafts (8 + n, m): Fc, Fs - Fc, vs, Fv, mu, Fr, Fd and F0."""

TRANSMISSION = 8
"""First of n rows: torque of each shaft per torque of each of the n joints."""

AT_REST = 1e-12
"""Speed below which a shaft sticks, in [rad/s]; coupled motors that stick have such speeds by rounding."""

GONE = 40.0
"""Speed, in Stribeck speeds, above which there is only Coulomb friction: e^-1600 is 0."""

FITS = 1e-12
"""Tolerance of a holding torque above the level, relative to the summed torques: rounding."""

BLOCK_ROUNDS = 10
MOST_ROUNDS = 2000


def friction_rows(drives: Drives) -> np.ndarray:
    """Return the friction (8 + n, n) of n drives, see `COULOMB` and the others."""
    rows = np.empty((TRANSMISSION + drives.n, drives.n))
    rows[COULOMB], rows[EXCESS] = drives.coulomb, drives.static - drives.coulomb
    rows[STRIBECK], rows[VISCOUS] = drives.stribeck_speed, drives.viscous
    rows[LOAD], rows[ROOT] = drives.coulomb_per_load, drives.viscous_root
    rows[DIFFERENCE], rows[OFFSET] = drives.viscous_difference, drives.offset
    rows[TRANSMISSION:] = drives.transmission.T
    return rows


@partial(compiled, **NO_COUNTS)
def friction_level(friction, i, speed, tau):
    """Return the level of shaft i at a speed, in [rad/s], and torques of the joints (n,), in [N m]."""
    coulomb, excess, stribeck = friction[COULOMB, i], friction[EXCESS, i], friction[STRIBECK, i]
    coulomb += friction[ROOT, i] * np.sqrt(abs(speed))
    if friction[LOAD, i] != 0.0:
        transmitted = 0.0
        for j in range(len(tau)):
            transmitted += friction[TRANSMISSION + j, i] * tau[j]
        coulomb += friction[LOAD, i] * abs(transmitted)
    if excess == 0.0 or abs(speed) > max(GONE * stribeck, AT_REST):
        return coulomb
    if abs(speed) <= AT_REST:
        return coulomb + excess
    return coulomb + excess * np.exp(-((speed / stribeck) ** 2))


@partial(compiled, **NO_COUNTS)
def smooth_friction(friction, i, speed, before):
    """Return the friction of shaft i that has no sign, at a speed and, for the difference, one before."""
    return friction[VISCOUS, i] * speed + friction[DIFFERENCE, i] * abs(before) + friction[OFFSET, i]


@compiled
def sliding_friction(friction, w, tau, F):
    """Fill F (N, n), in [N m], with the friction of shafts; without its level at rest.

    w (N, n) are their speeds, in [rad/s], and tau (N, n) the torques on the joints, in [N m].
    """
    for k in range(w.shape[0]):
        for i in range(w.shape[1]):
            level = friction_level(friction, i, w[k, i], tau[k])
            F[k, i] = level * np.sign(w[k, i]) + smooth_friction(friction, i, w[k, i], w[k, i])


# Inlined, as its callers are: calls that pass so many arrays take a fifth of the time of a step.
@partial(compiled, inline="always")
def solve(H, f, held, a, work):
    """Solve `H a = f` for the elements of a that are not held; H is symmetric and positive definite.

    Elimination goes from the last unknown to the first and skips zeros: motors of elastic joints come last,
    and each is coupled only to its joint.

    Args:
        H: (m, m) matrix; its lower half is read.
        f: (m,) right-hand side.
        held: (m,) integers, nonzero where a is given.
        a: (m,) unknowns; the elements that are not given are computed.
        work: work array of at least m rows; (m, m) of it are overwritten.
    """
    m = len(f)
    for i in range(m):
        for k in range(i + 1):
            work[i, k] = H[i, k]
        if held[i] == 0:
            a[i] = f[i]
    for j in range(m):
        if held[j] != 0:  # move given values to the right, and leave the equation a[j] = a[j]
            for i in range(m):
                if held[i] == 0:
                    a[i] -= (H[j, i] if i < j else H[i, j]) * a[j]
            for k in range(j):
                work[j, k] = 0.0
            for i in range(j + 1, m):
                work[i, j] = 0.0
            work[j, j] = 1.0
    for j in range(m - 1, 0, -1):
        inverse = 1.0 / work[j, j]
        for i in range(j):
            factor = work[j, i] * inverse
            if factor != 0.0:
                a[i] -= factor * a[j]
                for k in range(i + 1):
                    work[i, k] -= factor * work[j, k]
    for i in range(m):
        value = a[i]
        for k in range(i):
            value -= work[i, k] * a[k]
        a[i] = value / work[i, i]


@partial(compiled, inline="always")
def accelerations_with_friction(H, f, friction, w, tau, dt, a):
    """Solve `H a = f - level s` with the sign s of every shaft's speed `w + dt a` after the step.

    With `dt = 0` it is the sign at the instant: that of the speed, or of the acceleration of a resting shaft.

    Args:
        H: (m, m) inertia, including `dt` times viscous friction on its diagonal, in [kg m^2].
        f: (m,) torque on each shaft, less viscous friction and the differences between directions at `w`, in
            [N m].
        friction: (8 + n, m), see `COULOMB` and the others.
        w: (m,) speeds before the step, in [rad/s].
        tau: (n,) torques on the joints in the step before, in [N m].
        dt: time step, in [s]; 0 for the instant.
        a: (m,) output: accelerations, in [rad/s^2]; NaN if some torque is not finite.

    Returns:
        held (m,), nonzero where a shaft sticks, so that `a = -w / dt`.
    """
    m = len(f)
    # One array instead of four, because their allocation would take as long as solving.
    work, held = np.zeros((m + 3, m)), np.zeros(m, dtype=np.int64)
    level, load, sign = work[m], work[m + 1], work[m + 2]
    rubs = False
    for i in range(m):
        if not abs(f[i]) < np.inf:  # otherwise a sticking joint would hide it
            a[:] = np.nan
            return held
        level[i] = friction_level(friction, i, w[i], tau)
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
                a[i] = -w[i] / dt if dt > 0.0 else 0.0
        solve(H, load, held, a, work)
        if not rubs:
            break
        one_at_a_time, changed = rounds >= BLOCK_ROUNDS, False
        for i in range(m):
            if level[i] == 0.0 or (one_at_a_time and changed):
                continue
            if held[i] == 0:
                after = a[i] if dt == 0.0 and abs(w[i]) <= AT_REST else w[i] + dt * a[i]
                if after * sign[i] < 0.0:
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
