"""The engine's recursion, semi-implicit Euler, solved for the accelerations that reach given positions."""

from __future__ import annotations

from twin.jit import compiled


@compiled
def follow_positions(target, first, last, dt, position, speed, acceleration):
    """Fill the motion that reaches each target from the state that rounding left, in the engine's order.

    Args:
        target: (N, n) positions.
        first: (n,) position one step before them.
        last: (n,) position one step after them.
        dt: of a step.
        position: (N, n) filled, as are the next two.
        speed: at the positions.
        acceleration: from each position to the next.
    """
    N, n = target.shape
    for i in range(n):
        q = target[0, i]
        qd = (q - first[i]) / dt
        for k in range(N):
            ahead = target[k + 1, i] if k + 1 < N else last[i]
            qdd = ((ahead - q) / dt - qd) / dt
            position[k, i], speed[k, i], acceleration[k, i] = q, qd, qdd
            qd = qd + dt * qdd
            q = q + dt * qd
