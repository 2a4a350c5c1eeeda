"""Learned input of one motion of one robot, its file, and the controller that applies it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from twin.base.arrays import Floats
from twin.base.atomic_file import atomic_write
from twin.base.errors import RobotError, TwinError
from twin.data.logs.archive import read_arrays
from twin.physics.control.closed_loop import prepared_table
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
