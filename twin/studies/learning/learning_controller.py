"""Learned input of one motion of one robot, its file, and the controllers that apply and improve it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from twin.base.arrays import Floats
from twin.base.atomic_file import atomic_write
from twin.base.errors import DivergenceError, RobotError, TwinError
from twin.data.logs.archive import read_arrays
from twin.data.logs.log import Log
from twin.physics.control.signals import prepared_table
from twin.physics.trajectories.sampling import Reference, Samples, State

INPUTS = ("reference", "acceleration")
"""What a learned input is added to: the reference with its derivatives, or its acceleration alone."""

SAME_MOTION = 1e-9
"""Largest difference of two motions that count as the same, in [rad] or [m]."""

ROWS = 3
"""Rows that a learned input adds to the table of a controller: those of position, speed, acceleration."""


@dataclass(frozen=True, eq=False)
class LearnedInput:
    """Input that was learned for a motion.

    Attributes:
        robot: name of the robot.
        t: (N,) times of the motion, in [s].
        q_ref: (N, n) positions of the motion, in [rad].
        u: (N, n) input, in [rad], or in [rad/s^2] for the acceleration.
        added_to: one of `INPUTS`.
    """

    robot: str
    t: Floats
    q_ref: Floats
    u: Floats
    added_to: str = "reference"

    def __post_init__(self) -> None:
        if self.added_to not in INPUTS:
            raise ValueError(f"expected added_to to be one of {', '.join(INPUTS)}, got {self.added_to!r}")
        if self.u.shape != self.q_ref.shape or self.t.shape != self.u.shape[:1]:
            raise ValueError(
                f"expected t (N,), q_ref (N, n) and u (N, n), got {self.t.shape}, {self.q_ref.shape} and "
                f"{self.u.shape}"
            )
        if not all(np.all(np.isfinite(array)) for array in (self.t, self.q_ref, self.u)):
            raise ValueError("expected a finite motion and a finite input")

    @classmethod
    def zero(cls, robot: str, reference: Samples, added_to: str = "reference") -> LearnedInput:
        """Return the input before the first run: zeros.

        Example:
            >>> motion = twin.sample(twin.quintic([0.0], [1.0], duration=1.0), period=0.25)
            >>> twin.learning.LearnedInput.zero("pendulum", motion).u.ravel().tolist()
            [0.0, 0.0, 0.0, 0.0, 0.0]
        """
        return cls(robot, reference.t.copy(), reference.q.copy(), np.zeros_like(reference.q), added_to)

    def save(self, path: str | Path) -> None:
        """Write the input to a file, .npz, completely or not at all."""
        with atomic_write(path) as draft, draft.open("wb") as file:
            np.savez(
                file, learned_for=self.robot, added_to=self.added_to, t=self.t, q_ref=self.q_ref, u=self.u
            )

    @classmethod
    def load(cls, path: str | Path) -> LearnedInput:
        """Read the input from a file.

        Raises:
            TwinError: the file cannot be read, or contains something else.
        """
        try:
            arrays = read_arrays(path)
        except OSError as error:
            raise TwinError(f"cannot read {path}: {error.strerror}") from error
        except (ValueError, BadZipFile) as error:
            raise TwinError(f"{path}: {error}, expected a file that irb-twin learn --out wrote") from error
        try:
            robot, added_to = (str(arrays[name].item()) for name in ("learned_for", "added_to"))
            t, q_ref, u = (np.asarray(arrays[name], dtype=np.float64) for name in ("t", "q_ref", "u"))
            return cls(robot, t, q_ref, u, added_to)
        except KeyError as error:
            raise TwinError(
                f"{path}: no {error} in it, expected a file that irb-twin learn --out wrote"
            ) from None
        except ValueError as error:
            raise TwinError(f"{path}: {error}") from None

    def require_motion(self, robot: str, reference: Samples) -> None:
        """Check that the input was learned for this robot and motion.

        Raises:
            RobotError: it was learned for another robot.
            ValueError: it was learned for another motion.
        """
        if robot != self.robot:
            raise RobotError(f"the input was learned for robot {self.robot!r}, not for {robot!r}")
        if reference.q.shape != self.q_ref.shape:
            raise ValueError(
                f"the input was learned for a motion of (samples, joints) {self.q_ref.shape}, got one of "
                f"{reference.q.shape}"
            )
        apart = np.max(np.abs(reference.q - self.q_ref), axis=1)
        if not np.max(apart) <= SAME_MOTION or not np.allclose(reference.t, self.t, rtol=0.0, atol=1e-9):
            k = int(np.argmax(apart > SAME_MOTION))
            raise ValueError(
                f"the input was learned for another motion: at t = {reference.t[k]:.6g} s (sample {k}) they "
                f"differ by {apart[k]:.3g} rad"
            )

    def rows(self, period: float) -> Floats:
        """Return what is added to positions, speeds and accelerations (N, 3, n) of the reference.

        The derivatives obey the engine's recursion, as those of `twin.sample_semi_implicit`.
        """
        rows = np.zeros((len(self.u), ROWS, self.u.shape[1]))
        if self.added_to == "acceleration":
            rows[:, 2] = self.u
            return rows
        rows[:, 0] = self.u
        rows[1:, 1] = np.diff(self.u, axis=0) / period
        rows[:-1, 2] = np.diff(rows[:, 1], axis=0) / period
        return rows


class CorrectedController:
    """Controller whose reference a learned input corrects.

    Attributes:
        name: name of the controller.
        laws: the controller, in a tuple.
        learned: the input.

    Args:
        law: controller that follows the corrected reference.
        learned: the input; it holds for one robot and one motion.
        robot: name of the robot that is controlled.
    """

    def __init__(self, law: Callable[[State, Reference], NDArray], learned: LearnedInput, robot: str) -> None:
        self.laws, self.learned, self.robot = (law,), learned, robot
        self.name = str(getattr(law, "name", getattr(law, "__name__", type(law).__name__)))
        self._input = np.zeros(learned.u.shape[1])

    def reset(self) -> None:
        """Reset the controller; the learned input remains."""
        self._input = np.zeros_like(self._input)
        if callable(reset := getattr(self.laws[0], "reset", None)):
            reset()

    def prepare(self, reference: Samples) -> NDArray:
        """Return the table of the controller for the corrected reference, and the corrections.

        Raises:
            RobotError, ValueError: the input was learned for another robot or motion.
        """
        self.learned.require_motion(self.robot, reference)
        period = float(reference.t[1] - reference.t[0]) if len(reference.t) > 1 else 1.0
        rows = self.learned.rows(period)
        corrected = (array + rows[:, k] for k, array in enumerate(reference[1:]))
        table = prepared_table(self.laws[0], Samples(reference.t, *corrected))
        return np.concatenate([table, rows], axis=1)

    def __call__(self, state: State, reference: Reference) -> NDArray:
        """Return the torques (n,) of the controller for the corrected reference, in [N m]."""
        added = state.table[-ROWS:]
        self._input = added[2] if self.learned.added_to == "acceleration" else added[0]
        corrected = Reference(*(row + more for row, more in zip(reference, added, strict=True)))
        return self.laws[0](state._replace(table=state.table[:-ROWS]), corrected)

    @property
    def signals(self) -> dict[str, NDArray]:
        """Learned input at this sample, and the signals of the controller."""
        signals: Any = getattr(self.laws[0], "signals", None)
        return {"learned": self._input, **(signals if isinstance(signals, Mapping) else {})}


Update = Callable[[Floats, Floats], Floats]

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
