"""References, control laws and comparisons for runs of some hundred samples."""

import numpy as np

from twin import hold, sample, sines

PERIOD = 1e-3
SOFT = (np.array([100.0, 100.0, 50.0, 0.1, 0.1, 0.01]), 0.1)
FREQUENCIES = np.array([0.31, 0.43, 0.57, 0.61, 0.73, 0.89])


def nothing(state, reference, parameters, memory, model):
    return np.zeros(len(state.q))


def filtered(state, reference, parameters, memory, model):
    """Add terms of a filtered error and of time to the inverse dynamics torque, as a user's law might."""
    tau = np.empty(len(state.q))
    model.arm_torque(reference.q, reference.qd, reference.qdd, model.inertias, model.gravity, tau)
    memory[0] += parameters[1] * (reference.q - state.q - memory[0])
    memory[1, 0] = state.t
    return tau + parameters[0] * memory[0] + 1e-4 * np.sin(9.0 * memory[1, 0])


def path(robot, duration=0.3, amplitude=0.3):
    return sines(robot.poses["zero"] + 0.1, np.full(6, amplitude), 0.5 * FREQUENCIES, duration)


def same(rolled, log, index=()):
    """Return whether a rollout equals a run of `run_closed_loop` bit by bit."""
    pairs = [(getattr(rolled, name)[index], getattr(log, name)) for name in ("q", "qd", "tau", "tau_demand")]
    pairs += [(rolled.t, log.t), (rolled.saturated[index], log.saturated.sum(axis=0))]
    return all(np.array_equal(a, b) for a, b in pairs)


def still(robot, samples=20, q=None):
    return sample(hold(np.zeros(robot.n) if q is None else q, (samples - 1) * PERIOD), PERIOD)
