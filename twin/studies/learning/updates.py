"""Updates of a learned input after a run: from the input u and the error e to the next input.

- `Lead`: `u+ = Q(u + gamma e(t + lead))`, with a low-pass filter Q that runs forwards and backwards, so that
  it does not delay.  No model is needed, but the lead, which is about the delay of the closed loop.
- `NormOptimal`: the input that minimises the error which a linear model predicts for the next run,

      |e+|^2 + lambda |u+ - u|^2 + rho |u+|^2,    e+ = e - T (u+ - u),

  hence `u+ = (T^T T + (lambda + rho) I)^-1 (lambda u + T^T (T u + e))`.  T is the lifted closed loop, the
  lower triangular matrix of each joint's response to an impulse of its input.  Its products are convolutions,
  and the equations are solved by conjugate gradients.

Sources: M. Norrlöf, "Iterative learning control: analysis, design, and experiments", Linköping 2000;
S. Gunnarsson, M. Norrlöf, "On the design of ILC algorithms using optimization", Automatica 37 (2001).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.signal import butter, fftconvolve, filtfilt
from scipy.sparse.linalg import LinearOperator, cg

from twin.base.arrays import Floats, real_array
from twin.base.errors import TwinError
from twin.data.logs.closed_loop import run_closed_loop
from twin.physics.control.plant import AnalyticPlant
from twin.physics.robot.robot import Robot
from twin.physics.trajectories.sampling import Samples
from twin.studies.learning.learning_controller import CorrectedController, LearnedInput

"""Function from the input u (N, n) and the error e (N, n) of a run to the next input (N, n)."""

IMPULSE = {"reference": 1e-8, "acceleration": 1e-2}
"""Sizes of the impulses of `input_responses`, in [rad] and [rad/s^2]."""

TOLERANCE, MOST_ROUNDS = 1e-14, 5000
"""Relative residual of the equations of `NormOptimal`, and the largest number of rounds to reach it."""


@dataclass(frozen=True)
class Lead:
    """Update by the error of some samples later, filtered without delay.

    Attributes:
        period: control period, in [s].
        gamma: share of the error that is added, above 0 and at most 1.
        lead: time by which the error is ahead of the input, in [s].
        cutoff: cut-off of the second-order Butterworth filter, in [Hz].

    Example:
        >>> update = twin.learning.Lead(period=0.01, gamma=0.5, lead=0.02, cutoff=np.inf)
        >>> update(np.zeros((4, 1)), np.array([[0.0], [2.0], [4.0], [6.0]])).ravel().tolist()
        [2.0, 3.0, 3.0, 3.0]
    """

    period: float
    gamma: float = 0.9
    lead: float = 0.016
    cutoff: float = 20.0

    def __post_init__(self) -> None:
        if not (0 < self.gamma <= 1 and 0 <= self.lead < np.inf and self.cutoff > 0 and self.period > 0):
            raise ValueError(
                "expected gamma above 0 and at most 1, lead of 0 or more in s, cutoff above 0 in Hz and a "
                f"positive period in s, got {self}"
            )

    def __call__(self, u: Floats, e: Floats) -> Floats:
        """Return the next input (N, n)."""
        ahead = min(round(self.lead / self.period), len(e) - 1)
        later = np.concatenate([e[ahead:], np.repeat(e[-1:], ahead, axis=0)])
        raw = u + self.gamma * later
        if not self.cutoff < 0.5 / self.period:
            return raw
        b, a = butter(2, self.cutoff, fs=1.0 / self.period)  # type: ignore[misc]
        return filtfilt(b, a, raw, axis=0, padlen=min(9, len(raw) - 1))


class NormOptimal:
    """Update that minimises the error which a linear model predicts.

    Attributes:
        responses: (n, N) response of each joint to an impulse of its input.
        change: lambda, weight of the change of the input.
        size: rho, weight of the input itself; above 0 it leaves an error.

    Example:
        >>> integrator = np.ones((1, 3))  # e+ = e - T (u+ - u), T sums the input
        >>> update = twin.learning.NormOptimal(integrator, change=1e-12)
        >>> update(np.zeros((3, 1)), np.array([[1.0], [3.0], [6.0]])).round(6).ravel().tolist()
        [1.0, 2.0, 3.0]
    """

    def __init__(self, responses: ArrayLike, change: float, size: float = 0.0) -> None:
        self.responses = real_array(responses, "responses")
        if self.responses.ndim != 2 or not np.all(np.isfinite(self.responses)):
            raise ValueError(f"expected finite responses (n, N), got {self.responses.shape}")
        if not (0 < change < np.inf and 0 <= size < np.inf):
            raise ValueError(f"expected change above 0 and size of 0 or more, got {change} and {size}")
        self.change, self.size = float(change), float(size)

    def __call__(self, u: Floats, e: Floats) -> Floats:
        """Return the next input (N, n).

        Raises:
            ValueError: the run has other joints or samples than the responses.
            TwinError: the equations do not converge, because the weights are too small for these responses.
        """
        if u.shape != e.shape or u.shape != self.responses.shape[::-1]:
            raise ValueError(
                f"expected u and e of shape {self.responses.shape[::-1]}, got {u.shape} and {e.shape}"
            )
        following = np.zeros_like(u)
        for i, response in enumerate(self.responses):
            N = len(response)

            def lifted(x: Floats, response: Floats = response, N: int = N) -> Any:
                return fftconvolve(response, x)[:N]

            def transposed(x: Floats, lifted: Any = lifted) -> Any:
                return lifted(x[::-1])[::-1]

            def normal(x: Floats, lifted: Any = lifted, transposed: Any = transposed) -> Any:
                return transposed(lifted(x)) + (self.change + self.size) * x

            right = self.change * u[:, i] + transposed(lifted(u[:, i]) + e[:, i])
            equations = LinearOperator((N, N), matvec=normal, dtype=np.float64)  # type: ignore[call-arg]
            following[:, i], rounds = cg(equations, right, x0=u[:, i], rtol=TOLERANCE, maxiter=MOST_ROUNDS)
            if rounds > 0:
                raise TwinError(
                    f"the input of joint {i + 1} did not converge in {MOST_ROUNDS} rounds with the weights "
                    f"change {self.change:.3g} and size {self.size:.3g}: larger weights converge"
                )
        return following


def input_responses(
    law: Any, robot: Robot, reference: Samples, *, added_to: str = "reference", steps_per_period: int = 1
) -> Floats:
    """Return the response (n, N) of each joint to an impulse of its learned input, by simulation.

    The impulse acts in the middle of the motion, where friction has its usual direction.  The response of the
    joint to it is the difference of two runs of a model; springs are rigid.

    Args:
        law: controller.
        robot: model of the robot, which replaces the plant.
        reference: the motion.
        added_to: what the input is added to, see `LearnedInput`.
        steps_per_period: number of plant steps in a control period.

    Example:
        >>> robot = twin.load("two_link")
        >>> motion = twin.sample_semi_implicit(twin.quintic([0, 0], [1, 1], 0.4), 1e-3)
        >>> law = controllers.make("computed_torque", robot)
        >>> h = twin.learning.input_responses(law, robot, motion, added_to="acceleration")
        >>> (h[:, :4] * 1e6).round(2).tolist()  # of qdd = u - 2 omega ed - omega^2 e
        [[0.0, 1.0, 1.96, 2.88], [0.0, 1.0, 1.96, 2.88]]
    """
    arm = robot.with_drives("rigid" if robot.active_drives is not None else "ideal")
    N, n = reference.q.shape
    dt = float(reference.t[1] - reference.t[0]) / steps_per_period
    middle, size = N // 2, IMPULSE[added_to]

    def run(joint: int | None) -> Floats:
        u = np.zeros((N, n))
        if joint is not None:
            u[middle, joint] = size
        learned = LearnedInput("", reference.t, reference.q, u, added_to)
        controller = CorrectedController(law, learned, "")
        plant = AnalyticPlant(arm, dt)
        return run_closed_loop(
            plant, controller, reference, steps_per_period=steps_per_period, learn=False
        ).q[middle:]

    plain, responses = run(None), np.zeros((n, N))
    for joint in range(n):
        responses[joint, : N - middle] = (run(joint) - plain)[:, joint] / size
    return responses
