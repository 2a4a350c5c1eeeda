"""Arc tangents of many directions at once, compiled so that the processor takes several in one step."""

import math

import numpy as np

from twin.jit import compiled

STEEP = 0.66
"""Above this slope the angle is reckoned from the diagonal, half a right angle."""

# The rational function by which Cephes (S. L. Moshier, 1989, atan.c) continues atan(t) = t + t^3 ... for
# |t| <= 0.66: within two units of the last digit, tests/twin/kinematics/test_arc_tangents.py.
P = (-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
     -1.228866684490136173410e2, -6.485021904942025371773e1)  # fmt: skip
Q = (2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2,
     4.853903996359136964868e2, 1.945506571482613964425e2)  # fmt: skip


@compiled
def arc_tangents(y, x, angle):
    """Fill in the angles of directions: `atan2(y, x)` in [-pi, pi], and 0 where both are zero.

    Args:
        y: (N,) first components of the directions.
        x: (N,) second components of the directions.
        angle: (N,) the result, in [rad].
    """
    for i in range(len(angle)):
        angle[i] = _arc_tangent(y[i], x[i])


@compiled
def _arc_tangent(y, x):
    """Return the angle of one direction, each choice being a select, not a branch."""
    across, along = abs(y), abs(x)
    short, long = (along, across) if across > along else (across, along)
    steep = short > STEEP * long
    lengths = short + long if steep else long
    t = np.divide(short - long if steep else short, 1.0 if lengths == 0.0 else lengths)
    z = t * t
    p = ((((P[0] * z + P[1]) * z + P[2]) * z + P[3]) * z + P[4]) * z
    q = ((((z + Q[0]) * z + Q[1]) * z + Q[2]) * z + Q[3]) * z + Q[4]
    angle = t * np.divide(p, q) + t
    angle = angle + 0.25 * math.pi if steep else angle
    angle = 0.5 * math.pi - angle if across > along else angle
    angle = math.pi - angle if x < 0.0 else angle
    return math.copysign(angle, y)
