"""Ljubljana lab manual, chapter 5: trapezoidal speed profiles."""

import numpy as np
from scipy.optimize import root_scalar

from tests.published.items import SAMPLES, Finding, Item, against_printed, computes, largest, rng
from twin.base.errors import LimitError
from twin.physics.trajectories.joint_trajectories import (
    acceleration_time,
    cruising_trapezoid,
    timed_trapezoid,
)


def is_rejected(distance: float, duration: float, acceleration: float) -> bool:
    """Return whether the library rejects the acceleration as too low for the move."""
    try:
        timed_trapezoid([0.0], [distance], duration, acceleration)
    except LimitError:
        return True
    return False


@computes("B-5.78")
def trapezoid(item: Item) -> Finding:
    """Compare the printed formulas with the library's move; a_c is the least acceleration times a factor.

    For factor 1, a triangular profile, (5.78) takes the root of a rounding error.  The error of t_c is
    weighted by that root.
    """
    generator, errors = rng(), []
    for factor in (1.0, 1.0 + 1e-12, 1e6, *generator.uniform(1.01, 30, SAMPLES)):
        (p_i, p_f), t_f = np.sort(generator.uniform(-2, 2, 2)), generator.uniform(0.5, 10)
        a_c = factor * 4 * (p_f - p_i) / t_f**2
        root = np.sqrt(max((t_f**2 * a_c - 4 * (p_f - p_i)) / a_c, 0.0))
        t_c = acceleration_time(p_f - p_i, t_f, a_c)
        v_c, p_c, p_m, t_m = a_c * t_c, p_i + a_c * t_c**2 / 2, (p_f + p_i) / 2, t_f / 2  # (5.70)-(5.75)
        move = timed_trapezoid([p_i], [p_f], t_f, a_c)
        t = np.sort(np.append(generator.uniform(0, t_f, 20), [0.0, t_c, t_m, t_f - t_c, t_f]))
        phases = [p_i + a_c * t**2 / 2, p_i + v_c * (t - t_c / 2)]  # (5.79), (5.81)
        path = np.select([t <= t_c, t <= t_f - t_c], phases, p_f - a_c * (t - t_f) ** 2 / 2)  # (5.82)
        errors += [
            root * (t_f / 2 - root / 2 - t_c),  # (5.78)
            a_c * t_c**2 - a_c * t_f * t_c + p_f - p_i,  # (5.77)
            v_c * (t_m - t_c) - (p_m - p_c),  # (5.73), (5.76)
            move(t)[0][:, 0] - path,
            float(not is_rejected(p_f - p_i, t_f, a_c * (1 - 1e-6))) if factor == 1.0 else 0.0,
        ]
    return Finding(f"{SAMPLES + 3} moves", largest(*errors))


@computes("B-traj")
def platform(item: Item) -> Finding:
    """Compute what the template leaves to the student: t_c, p_c, d_l, t_l, t_f, and a_c of the other axis."""
    v_c, a_c, displacement = (item.inputs[key] for key in ("v_c", "a_c", "way"))
    move = cruising_trapezoid([0.0, 0.0], displacement, v_c, a_c, unit="m")
    t_c, t_f = move.acceleration_time, move.duration
    p, _, a = move([t_c, t_f - t_c, 0.0])
    return against_printed(item, [t_c, p[0, 0], p[1, 0] - p[0, 0], t_f - 2 * t_c, t_f, a[2, 1]])


@computes("B-home5")
def worm_drive(item: Item) -> Finding:
    """Compute times and positions at a third of the path, a third of phase 1, the end of phase 2, the stop.

    A trapezoid is symmetric, so half of the path at t_m means p = v (2 t_m - v / a).
    """
    v, a, t_m = (item.inputs[key] for key in ("v_c", "a_c", "t_m"))
    drive = cruising_trapezoid([0.0], [v * (2 * t_m - v / a)], v, a, unit="m")
    t_c, t_f = drive.acceleration_time, drive.duration

    def place(t: float) -> float:
        return drive(t)[0].item()

    def reached(p: float) -> float:
        return root_scalar(lambda t: place(t) - p, bracket=(0.0, t_f), xtol=1e-14).root

    thirds = reached(place(t_f) / 3), reached(place(t_c) / 3)
    found = against_printed(item, [*thirds, t_f - t_c, place(t_f - t_c), t_f, place(t_f)])
    return Finding(found.computed, largest(found.residual, place(t_m) - place(t_f) / 2))
