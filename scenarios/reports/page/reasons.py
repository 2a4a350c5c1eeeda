"""Why the error of a run is as large as it is, as far as its log can say.

A log has no word about causes: each sentence is a fact that goes with a large error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from scenarios.reports.page.worst_moment import ROUNDING, WorstMoment, percent
from twin.logs.figures import speed_load
from twin.short_texts import figure

if TYPE_CHECKING:
    from numpy.typing import NDArray

WINDOW = 0.2  # s before the worst moment, in which what happened may have caused it
LARGE = 0.3  # of the error: as much as that of it is worth a sentence
CLEAR = 0.8  # of a correlation: two signals that go together
SWINGS = 6  # changes of sign within two windows, from which on an error swings
FEWEST, MANY = 50, 20_000  # samples, of which a correlation is taken


def reasons(moment: WorstMoment) -> Iterator[str]:
    """Sentences on why the error is as large as it is."""
    if moment.size < ROUNDING:
        yield "This is rounding, the last digits of the numbers: there is nothing to explain."
        return
    yield from _limits(moment)
    yield from _growing(moment)
    yield from _measured(moment)
    yield from _swinging(moment)
    yield from _together(moment)
    yield from _torque(moment)


def _limits(moment: WorstMoment) -> Iterator[str]:
    """Motors at their limits, speeds beyond them."""
    log, window = moment.log, moment.around(WINDOW, 0)
    cut = log.saturated[window]
    count, samples = np.count_nonzero(cut, axis=0), len(cut)
    span = f"{log.t[moment.sample] - log.t[window.start]:.3g} s"
    if count[moment.joint]:
        yield (
            f"The motor of {moment.name} was at its limit in {count[moment.joint]} of the {samples} samples "
            f"of the {span} up to there, and could not bring what the law demanded: the joint gets less "
            "torque than it needs, and falls behind."
        )
    others = [log.robot.joint_names[j] for j in np.nonzero(count)[0] if j != moment.joint]
    if others:
        yield (
            f"In those {span} {_listed(others)} had a motor at its limit, which reaches {moment.name} "
            "through the arm's inertia."
        )
    if not count.any():
        anywhere = np.count_nonzero(log.saturated[:, moment.joint])
        yield f"No motor was at its limit in the {span} up to there" + (
            f" (that of {moment.name} was at another time, in {anywhere} samples)." if anywhere else "."
        )
    fast = np.abs(speed_load(log)[window]).max(axis=0)
    beyond = [log.robot.joint_names[j] for j in np.nonzero(fast > 1.0)[0]]
    if beyond:
        yield f"{_listed(beyond)} moved faster than the speed limit then."


def _growing(moment: WorstMoment) -> Iterator[str]:
    """How the error came about since it was small."""
    log, i, k = moment.log, moment.joint, moment.sample
    small = np.nonzero(np.abs(moment.error[:k]) < LARGE * moment.size)[0]
    if len(small) == 0:
        return
    grown = slice(int(small[-1]), k + 1)
    wanted, gone = (float(series[k, i] - series[grown.start, i]) for series in (log.q_ref, log.q))
    yield (
        f"The error grew to this in {moment.t - log.t[grown.start]:.3g} s: {moment.name} was to go "
        f"{figure(wanted)} {moment.unit} and went {figure(gone)}."
    )
    lost = float(np.sum(np.abs(log.tau[grown, i] - log.tau_joint[grown, i])))
    brought = float(np.sum(np.abs(log.tau[grown, i])))
    if log.drives != "ideal" and np.isfinite(brought) and lost > brought / 2:
        yield (
            "In that time most of the torque that its motor brought stayed in the drive (friction, "
            f"rotor, spring), on average {figure(lost / (k + 1 - grown.start))} of "
            f"{figure(brought / (k + 1 - grown.start))} {moment.torque_unit}."
        )


def _measured(moment: WorstMoment) -> Iterator[str]:
    """What lay between the joint and what the law saw of it."""
    log, error = moment.log, moment.size
    if log.q_seen is not log.q_motor and (off := abs(moment.at(log.q_seen - log.q_motor))) > LARGE * error:
        yield (
            f"The law saw the joint {figure(off)} {moment.unit} away from where it was (delay, noise, "
            f"counts of the encoder): {percent(off / error)} of the error."
        )
    if log.q_motor is not log.q and (bent := abs(moment.at(log.q_motor - log.q))) > LARGE * error:
        yield (
            f"The joint's spring was bent by {figure(bent)} {moment.unit}, {percent(bent / error)} of the "
            "error: the law sees the motor, which was nearer to where it should be."
        )


def _swinging(moment: WorstMoment) -> Iterator[str]:
    """An error that changes its sign often."""
    window = moment.around(WINDOW, WINDOW)
    error = moment.error[window]
    if not np.all(np.isfinite(error)):
        return
    middle = error - error.mean()
    changes = np.count_nonzero(np.diff(np.signbit(middle)))
    span = float(moment.log.t[window][-1] - moment.log.t[window][0])
    demand = np.count_nonzero(np.diff(np.signbit(moment.log.tau_demand[window, moment.joint])))
    if demand >= SWINGS and moment.log.saturated[window, moment.joint].any():
        yield (
            f"What the law demanded changed its direction {demand} times in {span:.3g} s, up to the "
            "motor's limit: the loop answers to itself (gains too high for this period or delay, noise)."
        )
    if changes >= SWINGS and span > 0:
        half = len(middle) // 2
        first, second = (float(np.sqrt(np.mean(part**2))) for part in (middle[:half], middle[half:]))
        how = "grows" if second > 1.5 * first else "dies away" if first > 1.5 * second else "stays"
        yield (
            f"The error swings there, at about {changes / (2 * span):.3g} Hz, and the swing {how}: this "
            "is the loop itself (gains, delay, a spring), not what is asked of it."
        )


def _together(moment: WorstMoment) -> Iterator[str]:
    """The signal of the joint with which the error goes over the whole run."""
    log, i, every = moment.log, moment.joint, slice(None, None, 1 + len(moment.log.t) // MANY)
    signals = {
        "the torque that the arm needs": log.tau_joint[every, i],
        "the wanted acceleration": log.qdd_ref[every, i],
        "the wanted speed": log.qd_ref[every, i],
        "the direction of motion": np.sign(log.qd[every, i]),
    }
    if len(log.t) < FEWEST:
        return
    found = {name: _correlation(moment.error[every], signal) for name, signal in signals.items()}
    told = ", ".join(f"{name.removeprefix('the ')} {value:+.2f}" for name, value in found.items())
    best = max(found, key=lambda name: abs(found[name]))
    if abs(found[best]) >= CLEAR:
        yield (
            f"Over the run the error of {moment.name} goes with {best} (correlation with {told}). "
            f"{MEANS[best]}"
        )
    else:
        yield f"Over the run the error goes with no single signal of the joint (correlation with {told})."


def _torque(moment: WorstMoment) -> Iterator[str]:
    """What the torque was for."""
    if not moment.is_finite():
        yield "The log ends there: the torque is not a number, or the state is beyond reason."
        return
    parts = moment.torque_parts()
    most = max(parts, key=lambda name: abs(parts[name]))
    yield (
        f"Of the {figure(moment.at(moment.log.tau))} {moment.torque_unit} that the motor brought at that "
        f"moment the largest part, {figure(parts[most])}, was {most}."
    )


MEANS = {
    "the torque that the arm needs": "A law whose feedback has to bring that torque leaves such an "
    "error; more gain makes it smaller, the model's torque as feed-forward takes it away.",
    "the wanted acceleration": "Inertia that the law does not know, or knows as another one, leaves such "
    "an error.",
    "the wanted speed": "A delay, viscous friction, or a law that does not know the wanted speed leaves "
    "such an error.",
    "the direction of motion": "Dry friction that the law does not know leaves such an error.",
}
"""What each of these correlations usually stands for."""


def _correlation(a: NDArray, b: NDArray) -> float:
    """Pearson's, of what is finite of both; 0 where one of them does not change."""
    both = np.isfinite(a) & np.isfinite(b)
    a, b = a[both], b[both]
    if len(a) < 3 or not (np.ptp(a) > 0 and np.ptp(b) > 0):
        return 0.0
    a, b = (part / np.max(np.abs(part)) for part in (a - a.mean(), b - b.mean()))
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else 0.0


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
