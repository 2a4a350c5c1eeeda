"""A guidance in the steps of a control loop, and the law that it states, solved in closed form."""

import numpy as np

PERIOD = 1e-3


def driven(guidance, q, periods, left=None):
    """Joint angles (periods + 1, n) from q on; of each speed beyond the program's a share `left(speed)`."""
    angles = [q]
    for _ in range(periods):
        speed, program = guidance.speed(angles[-1]), guidance.programmed()
        if left is not None:
            speed = program + left(speed - program) * (speed - program)
        guidance.follow(speed)
        angles.append(angles[-1] + PERIOD * speed)
    return np.array(angles)


def decay(gain, bandwidth, periods):
    """What is left (periods + 1,) of a distance of 1, from rest: powers of the step of (distance, speed).

    `v+ = v + s (k e - v)` and `e+ = e - dt v+`, s the filter's share, as eigenvalues of one matrix.
    """
    share = 1.0 if bandwidth is None else 1.0 - np.exp(-2.0 * np.pi * bandwidth * PERIOD)
    step = np.array([[1.0 - PERIOD * share * gain, -PERIOD * (1.0 - share)], [share * gain, 1.0 - share]])
    values, vectors = np.linalg.eig(step)
    start = np.linalg.solve(vectors, np.array([1.0, 0.0]))
    powers = values[None, :] ** np.arange(periods + 1)[:, None]
    return np.real(powers @ (vectors[0] * start))
