"""Controller that learns from its runs, and the loop that repeats them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import DivergenceError
from twin.data.logs.log import Log
from twin.physics.trajectories.sampling import Samples
from twin.studies.learning.learned_input import CorrectedController, LearnedInput
from twin.studies.learning.updates import Update

SIGNALS = ("motor", "arm")
"""Sides of the springs whose error is learned from."""

MOST_RISES = 2
"""Number of consecutive rises of the error after which learning ends."""


class Iteration(NamedTuple):
    """Errors of one run.

    Attributes:
        motor: (n,) root mean squares of the motors' errors, in joint units, in [rad].
        arm: (n,) root mean squares of the joints' errors, in [rad].
        motor_max, arm_max: largest errors of all joints, in [rad].
        error: root mean square over all samples and joints of the signal that is learned from, in [rad].
    """

    motor: Floats
    arm: Floats
    motor_max: float
    arm_max: float
    error: float


class LearningController(CorrectedController):
    """Controller whose input improves after each run along one motion.

    `twin.run_closed_loop` calls `learn` after each run, so that repeating the run is enough.

    Attributes:
        iterations: errors of the runs so far.
        best: input of the run with the smallest error.

    Args:
        law: controller that follows the corrected reference.
        update: function from input and error (N, n) to the next input.
        reference: the motion.
        robot: name of the robot.
        signal: `"motor"` for the error at the motors, which a real arm measures, or `"arm"`.
        added_to: what the input is added to, see `LearnedInput`.

    Example:
        >>> robot = twin.load("two_link")
        >>> motion = twin.sample(twin.quintic([0, 0], [1, 1], duration=0.5), period=1e-3)
        >>> law, update = controllers.make("pd", robot), twin.learning.Lead(1e-3, lead=0.05)
        >>> learning = twin.learning.LearningController(law, update, motion, "two_link")
        >>> for _ in range(3):
        ...     log = twin.run_closed_loop(twin.AnalyticPlant(robot), learning, motion)
        >>> learning.iterations[2].error < 0.2 * learning.iterations[0].error
        True
    """

    def __init__(
        self, law: Any, update: Update, reference: Samples, robot: str, *, signal: str = "motor",
        added_to: str = "reference",
    ) -> None:  # fmt: skip
        super().__init__(law, LearnedInput.zero(robot, reference, added_to), robot)
        if signal not in SIGNALS:
            raise ValueError(f"expected signal to be one of {', '.join(SIGNALS)}, got {signal!r}")
        self.update, self.signal = update, signal
        self.iterations: list[Iteration] = []
        self.best = self.learned

    def learn(self, log: Log) -> None:
        """Record the errors of a run, and improve the input.

        Raises:
            DivergenceError: the update returned an input that is not finite.
        """
        sides = {"motor": log.q_ref - log.q_motor, "arm": log.q_ref - log.q}
        e = sides[self.signal]
        rms = [np.sqrt(np.mean(side**2, axis=0)) for side in sides.values()]
        largest = [float(np.max(np.abs(side))) for side in sides.values()]
        done = Iteration(*rms, *largest, error=float(np.sqrt(np.mean(e**2))))
        if all(done.error < before.error for before in self.iterations):
            self.best = self.learned
        self.iterations.append(done)
        u = np.asarray(self.update(self.learned.u, e))
        if not np.all(np.isfinite(u)):
            raise DivergenceError(f"the update of run {len(self.iterations)} is not finite")
        self.learned = LearnedInput(self.robot, self.learned.t, self.learned.q_ref, u, self.learned.added_to)

    @property
    def rises(self) -> int:
        """Number of consecutive rises of the error up to the last run."""
        errors = [done.error for done in self.iterations]
        count = 0
        while count + 1 < len(errors) and not errors[-1 - count] <= errors[-2 - count]:
            count += 1
        return count


def learn(run: Callable[[LearningController], Log], learning: LearningController, runs: int) -> Iterator[str]:
    """Repeat a run, and yield after each why learning must end: "" as long as it need not.

    It ends after the second consecutive rise of the error, or when a run diverges; `learning.best` holds the
    best input.

    Args:
        run: function that runs a closed loop with the controller, which learns from it.
        learning: the controller.
        runs: number of runs.

    Example:
        >>> robot, wrong = twin.load("two_link"), lambda u, e: u - 0.5 * e  # the wrong sign
        >>> motion = twin.sample(twin.quintic([0, 0], [1, 1], duration=0.5), period=1e-3)
        >>> learning = twin.learning.LearningController(controllers.make("pd", robot), wrong, motion, "arm")
        >>> run = lambda law: twin.run_closed_loop(twin.AnalyticPlant(robot), law, motion)
        >>> list(twin.learning.learn(run, learning, runs=8))[-1]
        'learning ended, because the error rose twice in a row'
    """
    for _ in range(runs):
        try:
            run(learning)
        except DivergenceError as error:
            yield f"run {len(learning.iterations) + 1} diverged: {error}"
            return
        diverges = learning.rises >= MOST_RISES
        yield "learning ended, because the error rose twice in a row" if diverges else ""
        if diverges:
            return
