"""Aliaga 2019: masses by volume, the equation of motion, and the computed torque controller."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

import twin
from controllers.computed_torque import ComputedTorque
from controllers.pid import PID
from scenarios.checks.motion_range import random_positions
from tests.published.aliaga.newton_euler import states
from tests.published.items import Finding, Item, against_printed, computes, largest, rng
from twin.dynamics.formula_code import operations
from twin.multibody.kernels import Symbols
from twin.trajectories.sampling import Reference, State


def facts() -> dict[str, Any]:
    """Read the facts of the IRB 140 with all printed digits."""
    from urdf.build import HERE
    from urdf.facts import read

    return read(HERE / "irb140" / "robot.toml", parse_float=Decimal)


@computes("T-vol")
def total_volume(item: Item) -> Finding:
    """Compute the sum of the links' volumes, in [mm^3]."""
    return against_printed(item, float(sum(link["volume_mm3"] for link in facts()["link"].values())))


@computes("T-mass")
def masses(item: Item) -> Finding:
    """Compute the masses by (3.5); residuals are in half units of the last printed digit of each mass."""
    from urdf.solids import bulk
    from urdf.solids import masses as masses_by_volume

    known = facts()
    by_link = masses_by_volume(known, {name: bulk(link) for name, link in known["link"].items()})
    found = against_printed(item, [float(mass) for mass in by_link.values()])
    half_units = 0.5 * 10.0 ** -np.array(item.inputs["decimals"])
    return Finding(found.computed, largest((found.computed - np.array(item.expected)) / half_units))


@computes("T-2.27")
def pid_law(item: Item) -> Finding:
    """Compare the torques of `pid` with the printed sum, for errors that are constant in each period."""
    robot, period, generator = twin.load("irb140"), 2e-3, rng()
    law = PID(robot, Kp=300.0, Ki=500.0, Kd=20.0, period=period)
    errors, rates = generator.normal(size=(2, 50, 6)) * 0.01
    zero, residual = np.zeros(6), []
    for k, (error, rate) in enumerate(zip(errors, rates, strict=True)):
        tau = law(State(k * period, zero, zero), Reference(error, rate, zero))
        printed = 300.0 * error + 500.0 * period * errors[: k + 1].sum(axis=0) + 20.0 * rate
        residual.append(tau - printed)
    return Finding("50 periods", largest(*residual))


@computes("T-On")
def operations_of_recursion(item: Item) -> Finding:
    """Count the operations of inverse dynamics for chains of like links, and compare the increments."""
    counts = []
    for n in range(3, 13):
        rows = [np.full(n, value) for value in (0.2, 0.1, 0.3, 0.7)]
        body = twin.robot.LinkBody(1.0, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.25]) + 0.01)
        chain = twin.dh_robot("chain", twin.robot.DH(*rows), bodies=[body] * n)
        on = Symbols(chain.tree, chain.embedding, chain.embedding_offset)
        values = [on.trace.scalar(value) for value in on.torque(on.qd, on.qdd, on.gravity)]
        found = operations(values)
        counts.append((found["*"], found["+"]))
    increments = np.diff(np.array(counts, dtype=float), axis=0)
    return Finding(increments[0], largest(np.diff(increments, axis=0)))


@computes("T-98")
def weight(item: Item) -> Finding:
    """Compute the force of the foundation on the arm at rest, without and with the rated payload."""
    robot, still = twin.load("irb140"), np.zeros((3, 6))
    arms = (robot, robot.with_payload(twin.Payload(item.inputs["payload"])))
    return against_printed(item, [twin.joint_wrenches(arm, *still).base[2] for arm in arms])


@computes("T-2.20")
def equation_of_motion(item: Item) -> Finding:
    """Compare the sum of inertia, Coriolis and gravity terms with inverse dynamics, for two robots."""
    robot, q, qd, qdd = states()
    errors, count = [_terms(robot, q, qd, qdd)], len(q)
    robot = twin.load("irb1400")
    q = random_positions(robot, rng(), count)
    errors.append(_terms(robot, q, qd, qdd))
    return Finding(f"{2 * count} states of two robots", max(errors))


def _terms(robot: twin.Robot, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> float:
    tau = twin.inverse_dynamics(robot, q, qd, qdd)
    terms = np.einsum("nij,nj->ni", twin.mass_matrix(robot, q), qdd)
    terms += np.einsum("nij,nj->ni", twin.coriolis_matrix(robot, q, qd), qd)
    terms += twin.gravity_torque(robot, q)
    return largest((terms - tau) / np.max(np.abs(tau), axis=-1, keepdims=True))


@computes("T-2.29")
def error_dynamics(item: Item) -> Finding:
    """Integrate the control law with the library's forward dynamics, and compare the decay of the errors.

    The arm moves along sines with an initial error `e0` in every joint.  The error must decay as
    `e0 (1 + omega t) exp(-omega t)`, the solution of a double pole at -omega that starts at rest.
    """
    from scipy.integrate import solve_ivp

    robot = twin.load("irb140")
    omega, e0, times = item.inputs["omega"], item.inputs["e0"], np.array(item.inputs["t"])
    law = ComputedTorque(robot, bandwidth=omega)
    size, rate = np.linspace(0.3, 0.8, 6), np.linspace(2.0, 1.0, 6)

    def reference(t: float) -> Reference:
        s, c = size * np.sin(rate * t), size * np.cos(rate * t)
        return Reference(s, rate * c, -(rate**2) * s)

    def motion(t: float, x: np.ndarray) -> np.ndarray:
        tau = law(State(t, x[:6].copy(), x[6:].copy()), reference(t))
        return np.concatenate([x[6:], twin.forward_dynamics(robot, x[:6], x[6:], tau)])

    start = np.concatenate([reference(0.0).q - e0, reference(0.0).qd])
    x = solve_ivp(motion, times[[0, -1]], start, method="DOP853", t_eval=times, rtol=1e-12, atol=1e-13).y.T
    errors = np.array([reference(t).q for t in times]) - x[:, :6]
    expected = e0 * (1 + omega * times) * np.exp(-omega * times)
    return Finding(np.mean(errors, axis=-1), largest(errors - expected[:, None]))
