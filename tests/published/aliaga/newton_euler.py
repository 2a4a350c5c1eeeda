"""Aliaga 2019: the Newton-Euler method, masses, the equation of motion, and computed torque."""

import math
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

import twin
from controllers.computed_torque import ComputedTorque
from controllers.pid import PID
from scenarios.judging.motion_range import random_positions
from tests.published.aliaga.poses import configurations
from tests.published.items import SAMPLES, Finding, Item, against_printed, computes, largest, rng
from tests.published.norrlof.trees import about_centre, turned
from twin.physics.dynamics.formula_code import operations
from twin.physics.multibody import recursions
from twin.physics.multibody.kernels import Symbols
from twin.physics.multibody.tree import Tree, transformed_parameters
from twin.physics.robot.dh_tables import LinkBody, dh_robot
from twin.physics.robot.robot import DH, GRAVITY, Payload, dh_poses, dh_transforms
from twin.physics.trajectories.sampling import Reference, State

Z0 = np.array([0.0, 0.0, 1.0])
GRAVITY_VECTOR = -GRAVITY * Z0
ARMS = 20


class Chain(NamedTuple):
    """An arm as in N-E 1 and 2.

    Attributes:
        dh: DH table; theta (n,) is q + theta0.
        m: masses (n,).
        s: centres of mass (n, 3) of link i from the origin of {S_i}, in the axes of {S_i}.
        I: inertias (n, 3, 3) about these centres, in the same axes.
    """

    dh: DH
    m: np.ndarray
    s: np.ndarray
    I: np.ndarray  # noqa: E741  (the thesis' letter)


def chain_of(tree: Tree, dh: DH) -> Chain:
    """Express the bodies of an unbranched tree in its DH frames, which are known at the zero position."""
    links = recursions.world_frames(tree, recursions.placements(tree, [0.0] * tree.n, math))
    bodies = []
    for i, T_dh in enumerate(dh_poses(dh, dh.theta0)):
        T_link = np.eye(4)
        T_link[:3, :3], T_link[:3, 3] = links.R[i], links.o[i]
        bodies.append(about_centre(transformed_parameters(tree.inertias[i], np.linalg.inv(T_dh) @ T_link)))
    m, s, I = (np.array(values) for values in zip(*bodies, strict=True))  # noqa: E741
    return Chain(dh, m, s, I)


def newton_euler(
    chain: Chain, q, qd, qdd, base_acceleration=-GRAVITY_VECTOR, printed: str = ""
) -> np.ndarray:
    """Compute torques (N, n) by N-E 3 to N-E 10; `printed` names an equation to use in its printed form."""
    dh, m, s, I = chain  # noqa: E741
    n = len(m)
    R = np.moveaxis(dh_transforms(dh, q + dh.theta0)[..., :3, :3], 1, 0)
    p = np.stack([dh.a, dh.d * np.sin(dh.alpha), dh.d * np.cos(dh.alpha)], axis=-1)  # lost in N-E 2
    zero = np.zeros((len(q), 3))
    w, wd, vd = zero, zero, zero + base_acceleration
    moved = []
    for i in range(n):
        back = np.swapaxes(R[i], -1, -2)
        turn = np.cross(w, Z0 * qd[:, i, None])
        if printed == "(2.23)":
            wd = turned(back, wd + Z0 * qdd[:, i, None]) + turn
        else:
            wd = turned(back, wd + Z0 * qdd[:, i, None] + turn)
        w = turned(back, w + Z0 * qd[:, i, None])  # (2.22)
        vd = np.cross(wd, p[i]) + np.cross(w, np.cross(w, p[i])) + turned(back, vd)  # (2.24)
        a = np.cross(wd, s[i]) + np.cross(w, np.cross(w, s[i])) + vd  # N-E 7
        moved.append((back, w, wd, a))

    f, n_up, tau = zero, zero, np.zeros(q.shape)
    ahead = np.tile(np.eye(3), (len(q), 1, 1))  # R of the next link; the last link has none, and no force
    for i in reversed(range(n)):
        back, w, wd, a = moved[i]
        spin = w if printed == "(2.25)" else wd
        p_ahead = turned(np.swapaxes(ahead, -1, -2), zero + p[i])
        n_up = turned(ahead, n_up + np.cross(p_ahead, f)) + np.cross(p[i] + s[i], m[i] * a)
        n_up = n_up + spin @ I[i] + np.cross(w, w @ I[i])  # (2.25); I is symmetric
        f = turned(ahead, f) + m[i] * a  # N-E 8
        tau[:, i] = np.sum(n_up * turned(back, zero + Z0), axis=-1)  # (2.26)
        ahead = R[i]
    return tau


def states() -> tuple[twin.Robot, np.ndarray, np.ndarray, np.ndarray]:
    """Return the IRB 140 with joint angles, velocities and accelerations (N, 6), some of them zero."""
    robot = twin.load("irb140")
    q = configurations(robot)
    qd, qdd = rng().uniform(-1, 1, (2, *q.shape)) * np.array([[robot.qd_max], [np.full(6, 20.0)]])
    qd[-2:] = qdd[-3:-1] = 0.0
    return robot, q, qd, qdd


def random_arm(generator: np.random.Generator) -> tuple[twin.Robot, Chain]:
    """Draw an arm of six revolute joints with arbitrary DH parameters and bodies; return it and its chain."""
    d, a, alpha = generator.normal(size=(3, 6)) * np.array([[0.3], [0.3], [2.0]])
    points = 0.1 * generator.normal(size=(6, 5, 3))  # points of unit mass, which define the tensors
    squares = np.einsum("bpi,bpj->bij", points, points)
    I = np.trace(squares, axis1=1, axis2=2)[:, None, None] * np.eye(3) - squares  # noqa: E741
    m, s = generator.uniform(1, 20, 6), 0.2 * generator.normal(size=(6, 3))
    chain = Chain(DH(np.zeros(6), d, a, alpha), m, s, I)
    bodies = [LinkBody(*body) for body in zip(m, s, I, strict=True)]
    return dh_robot("random", chain.dh, bodies=bodies), chain


def torque_error(base_acceleration=-GRAVITY_VECTOR, printed: str = "") -> float:
    """Return the largest relative error of the thesis' torques, for the IRB 140 and for random arms."""
    robot, q, qd, qdd = states()
    assert robot.dh is not None
    right = twin.inverse_dynamics(robot, q, qd, qdd)
    tau = newton_euler(chain_of(robot.tree, robot.dh), q, qd, qdd, base_acceleration, printed)
    errors = [_relative(tau, right)]
    generator = rng()
    for _ in range(ARMS):
        arm, chain = random_arm(generator)
        q, qd, qdd = generator.uniform(-3, 3, (3, 1, 6))
        at = recursions.placements(arm.tree, q[0].tolist(), math)  # not compiled, since each arm is used once
        moving = (qd[0].tolist(), qdd[0].tolist(), arm.tree.inertias.tolist())
        right = recursions.newton_euler(arm.tree, at, *moving, tuple(arm.gravity.tolist()))
        tau = newton_euler(chain, q, qd, qdd, base_acceleration, printed)
        errors.append(_relative(tau, np.array([right])))
    return max(errors)


def _relative(tau: np.ndarray, right: np.ndarray) -> float:
    return largest((tau - right) / np.max(np.abs(right), axis=-1, keepdims=True))


@computes("T-2.22")
def recursion_row(item: Item) -> Finding:
    """Check the recursion with (2.23), (2.25) and N-E 2 corrected."""
    return Finding(f"{SAMPLES} random states, {ARMS} random arms", torque_error())


@computes("T-2.23", "T-2.25")
def misprinted_step(item: Item) -> Finding:
    """Compare the torques with the right equation and with the printed one."""
    errors = torque_error(), torque_error(printed=item.where)
    return Finding(f"{SAMPLES} random states, {ARMS} random arms", *errors)


@computes("T-NE2g")
def gravity_sign(item: Item) -> Finding:
    """Compare a base that accelerates upwards with the literal reading, downwards for g = 9.81."""
    literal = np.array([0.0, 0.0, -item.inputs["g"]])
    return Finding(-literal, torque_error(-literal), torque_error(literal))


@computes("T-NE2d")
def base_acceleration(item: Item) -> Finding:
    """Compare a base that accelerates with one that moves steadily, whose acceleration is 0."""
    printed = np.array([0.0, 0.0, -item.inputs["g"]])
    return Finding(printed, torque_error(printed), torque_error(0 * printed))


@computes("T-NE2p")
def frame_origins(item: Item) -> Finding:
    """Check the origin of each frame, relative to the previous frame, in the axes of the frame itself.

    The check covers the IRB 140 and a table with arbitrary twists.
    """
    robot = twin.load("irb140")
    assert robot.dh is not None
    _, chain = random_arm(rng())
    differences = []
    for dh in (robot.dh, chain.dh):
        A = dh_transforms(dh, configurations(robot) + dh.theta0)
        found = np.einsum("nkji,nkj->nki", A[..., :3, :3], A[..., :3, 3])
        differences.append(
            found - np.stack([dh.a, dh.d * np.sin(dh.alpha), dh.d * np.cos(dh.alpha)], axis=-1)
        )
        if dh is robot.dh:
            differences.append(found - np.array(item.expected))
    return Finding(item.right, largest(*differences))


@computes("T-2.21")
def torque_balance(item: Item) -> Finding:
    """Compare the torque on a body fixed to the flange with what its inertia adds to the joint torques."""
    robot, q, qd, qdd = states()
    I = np.array(item.inputs["I"])  # noqa: E741
    with_body, with_point = (robot.with_payload(Payload(5.0, inertia=x)) for x in (I, 0 * I))
    added = twin.inverse_dynamics(with_body, q, qd, qdd) - twin.inverse_dynamics(with_point, q, qd, qdd)

    J, J_dot = twin.jacobian(robot, q)[:, 3:], twin.jacobian_dot(robot, q, qd)[:, 3:]
    R = twin.forward_kinematics(robot, q)[:, :3, :3]
    w = np.einsum("nji,njk,nk->ni", R, J, qd)  # in the axes of the flange
    wd = np.einsum("nji,nj->ni", R, np.einsum("nij,nj->ni", J, qdd) + np.einsum("nij,nj->ni", J_dot, qd))

    def at_joints(torque):
        return np.einsum("nij,nik,nk->nj", J, R, torque)

    gyroscopic = np.cross(w, w @ I)
    right, printed = (at_joints(x @ I + gyroscopic) - added for x in (wd, w))
    size = np.max(np.abs(added))
    return Finding(f"{len(q)} states", largest(right) / size, largest(printed) / size)


# Aliaga 2019: masses by volume, the equation of motion, and the computed torque controller.


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
