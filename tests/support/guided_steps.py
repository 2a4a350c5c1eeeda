"""Guidance in the steps of a control loop, and its control law solved in closed form."""

import numpy as np

PERIOD = 1e-3


def driven(guidance, q, periods, left=None):
    """Compute joint angles (periods + 1, n) from q on.

    `left(speed)` is the share of the guidance's speed, in excess of the program's, that the joints carry out.
    """
    angles = [q]
    for _ in range(periods):
        speed, program = guidance.speed(angles[-1]), guidance.programmed()
        if left is not None:
            speed = program + left(speed - program) * (speed - program)
        guidance.follow(speed)
        angles.append(angles[-1] + PERIOD * speed)
    return np.array(angles)


def decay(gain, bandwidth, periods):
    """Return the remaining distances (periods + 1,) from a distance of 1 at rest, in closed form.

    The step of (distance e, speed v) is `v+ = v + s (k e - v)`, `e+ = e - dt v+`, with the filter's share s.
    Its powers follow from the eigenvalues of one matrix.
    """
    share = 1.0 if bandwidth is None else 1.0 - np.exp(-2.0 * np.pi * bandwidth * PERIOD)
    step = np.array([[1.0 - PERIOD * share * gain, -PERIOD * (1.0 - share)], [share * gain, 1.0 - share]])
    values, vectors = np.linalg.eig(step)
    start = np.linalg.solve(vectors, np.array([1.0, 0.0]))
    powers = values[None, :] ** np.arange(periods + 1)[:, None]
    return np.real(powers @ (vectors[0] * start))
