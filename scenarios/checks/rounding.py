"""How far the engine's whole run may be from the model's, when each step differs by rounding.

A loop that is stable forgets a rounding after a while; a payload that swings freely adds all of them up, or
makes them grow.  So no number fits all runs, and the loop itself is asked: the analytic plant runs again
under the same controller, its velocities kicked at every sample by `SCALE` times what the engine's step was
off, and by as much of the rounding of our own run, with signs half constant and half drawn anew, so that
neither a bias nor a random walk is missed.  The loop is linear in kicks so small; a `SCALE`th of what they
make of the run is what rounding does.  Friction that falls with speed may make so much of them that another
friction is met: then no limit can be derived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from twin.drives.sensors import Sensors
    from twin.logs.log import Log
    from twin.robot.robot import Robot
    from twin.trajectories.sampling import Samples

SCALE = 1e6
"""Kicks of 1e-16 rad/s would drown in the rounding of the run that is kicked."""
MARGIN = 5.0
"""What rounds once more on the way has other signs than those that were drawn; seen: up to 2.1 of the 5."""
SAME_FRICTION = 0.1
"""Of the Stribeck speed: what a kicked run may be off in speed."""
DRAWS = 3
"""Where friction falls with speed: what becomes of a rounding is decided in a few instants then, by luck."""
ULPS = 8.0
"""So many units in the last place of the largest angle are the rounding of the positions themselves."""


def growth(
    log: Log,
    predicted: Log,
    law: Callable,
    reference: Samples,
    sensors: Sensors | None = None,
    seed: int = 0,
) -> NDArray:
    """What the loop makes of the engine's roundings: (n,) in [rad], the largest change of each joint.

    Args:
        log: the engine's run.
        predicted: the analytic plant's under the same controller.
        law: that controller.
        reference: what both followed.
        sensors: what it measured with.
        seed: of the signs.

    Returns:
        infinity where a kicked run runs away, or meets another friction.
    """
    from twin.control.analytic_plant import AnalyticPlant
    from twin.control.closed_loop import run_closed_loop
    from twin.errors import DivergenceError

    robot, rng = log.robot, np.random.default_rng(seed)
    falls, speed_change = friction_that_falls(robot)
    plant, largest = AnalyticPlant(robot, log.time_step), np.zeros(robot.n)
    for _ in range(DRAWS if falls else 1):
        kicks, moves = drawn(log, rng)
        try:
            kicked = run_closed_loop(
                plant,
                law,
                reference,
                steps_per_period=log.steps_per_period,
                sensors=sensors,
                at_sample=lambda k, kicks=kicks, moves=moves: plant.kick(kicks[k], moves[k]),
            )
        except DivergenceError:
            return unknown_growth(robot)
        if np.any(np.abs(kicked.qd_motor - predicted.qd_motor) > speed_change):
            return unknown_growth(robot)
        largest = np.maximum(largest, np.max(np.abs(kicked.q - predicted.q), axis=0) / SCALE)
    return largest


def unknown_growth(robot: Robot) -> NDArray:
    """The same where nothing is predicted: a law that jumps, as one in sliding mode, makes much of little."""
    return np.full(robot.n, np.inf)


def drawn(log: Log, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """Kicks of the velocities and of the positions (N, n) each, in [rad/s, rad]."""
    ulps = np.spacing(np.max(np.abs(log.qd), axis=0))
    signs = rng.choice([-1.0, 1.0], log.robot.n) + rng.choice([-1.0, 1.0], log.q.shape)
    kicks = 0.5 * signs * ulps
    kicks[1:] += log.model_residuals()
    # The rounding of positions is felt by springs, which make a torque of it.
    springs = np.spacing(np.max(np.abs(log.q), axis=0)) if log.drives == "elastic" else np.zeros(log.robot.n)
    return SCALE * kicks, SCALE * 0.5 * signs * springs


def friction_that_falls(robot: Robot) -> tuple[bool, NDArray]:
    """Whether friction falls with speed somewhere, and the changes of speed (n,) that make another of it."""
    drives = robot.active_drives
    if drives is None:
        return False, np.full(robot.n, np.inf)
    falls = drives.static > drives.coulomb
    return bool(falls.any()), np.where(falls, SAME_FRICTION * drives.stribeck_speed, np.inf)


def whole_run_limit(log: Log) -> float:
    """How far the engine's run may be from the model's, in [rad], from `growth` in the log's arrays."""
    rounding = ULPS * float(np.spacing(np.max(np.abs(log.q), initial=1.0)))
    return MARGIN * float(np.max(log.arrays["growth"])) + rounding
