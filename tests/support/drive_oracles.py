"""One step of an arm with its drives, by trying every combination of sticking and sliding shafts.

The step is written from the equations, in the speeds of all joints and all motors:

    M (qd+ - qd) / dt = T - h - (friction at joints)
    A (thetad+ - thetad) / dt = tau - T - R^T (friction at motors)
    T = K (e + dt (ed+ - ed) / 4) + D (ed + ed+) / 2,    e = theta - q

If a drive is rigid, T is the constraint torque of thetad = qd.  The module shares no code with
`twin/physics/robot/drives/`.
"""

from collections import namedtuple
from itertools import product

import numpy as np

from twin.physics.robot.drives.drives import Drives

AT_REST = 1e-12
"""Speed in [rad/s] up to which a shaft is at rest."""


Case = namedtuple("Case", "drives mode dt M h tau q qd q_motor qd_motor tau_before")
"""Drives, their mode, and the state of an arm before a step."""

Step = namedtuple("Step", "qd qd_motor tau_joint sticks misfit")
"""State after a step, torques of the joints, sticking shafts, and violation of the law of friction."""

Equations = namedtuple("Equations", "H b S Z level")
"""Equations `H z = b - dt S^T f` of the speeds z after a step; S z are the speeds of the shafts."""


def levels(drives, w, load):
    """Return the magnitudes (n,) of friction without viscous friction, at speeds w and torques load (n,)."""
    level = np.array(drives.coulomb) + drives.coulomb_per_load * np.abs(load)
    level += drives.viscous_root * np.sqrt(np.abs(w))
    for i in range(drives.n):
        more = drives.static[i] - drives.coulomb[i]
        if abs(w[i]) <= AT_REST:
            level[i] += more
        elif drives.stribeck_speed[i] > 0:
            level[i] += more * np.exp(-((w[i] / drives.stribeck_speed[i]) ** 2))
    return level


def equations(case):
    """Set up the equations of the step in x = (qd, thetad), reduced to the free speeds z: x = Z z."""
    drives, dt, n = case.drives, case.dt, case.drives.n
    sprung = np.isfinite(drives.stiffness) & (case.mode == "elastic")
    k, d = np.where(sprung, drives.stiffness, 0.0), np.where(sprung, drives.damping, 0.0)
    thetad = np.where(sprung, case.qd_motor, case.qd)
    e, ed = np.where(sprung, case.q_motor - case.q, 0.0), thetad - case.qd
    one, none = np.eye(n), np.zeros((n, n))
    N = np.diag(drives.ratio) @ drives.coupling
    A = sum(drives.rotor_inertia[i] * np.outer(N[i], N[i]) for i in range(n))
    stretch = np.hstack([-one, one])
    known = k * (e - dt * ed / 4) + d * ed / 2  # T = known + (k dt / 4 + d / 2) ed+
    inertia = np.block([[case.M, none], [none, A]])
    H = inertia + dt * stretch.T @ np.diag(k * dt / 4 + d / 2) @ stretch
    pushed = np.concatenate([-case.h, case.tau]) - stretch.T @ known
    b = inertia @ np.concatenate([case.qd, thetad]) + dt * pushed
    Z = np.vstack([np.hstack([one, none[:, sprung]]), np.hstack([np.diag(1.0 - sprung), one[:, sprung]])])
    at_joint = np.array(drives.friction_at)[:, None] == "joint"
    S = np.hstack([one * at_joint, drives.coupling * ~at_joint])
    w = S @ np.concatenate([case.qd, thetad])
    level = levels(drives, w, loads(case))
    b -= dt * S.T @ (drives.offset + drives.viscous_difference * np.abs(w))
    return Equations(Z.T @ H @ Z, Z.T @ b, S @ Z, Z, level)


def loads(case):
    """Return the torques (n,) that the shafts with friction transmitted in the step before."""
    of_motors = np.linalg.solve(case.drives.coupling.T, case.tau_before)
    return np.where(np.array(case.drives.friction_at) == "motor", of_motors, case.tau_before)


def oracle_step(case):
    """Compute the step with the one combination of sticking and sliding that obeys the law of friction."""
    dt, n = case.dt, case.drives.n
    H, b, S, Z, level = equations(case)
    free, yielding = np.linalg.solve(H, b), np.linalg.solve(H, dt * S.T)
    w0, G = S @ free, S @ yielding  # w = w0 - G f
    combinations = np.array(list(product((-1.0, 0.0, 1.0), repeat=n)))
    slides = combinations != 0
    viscous = np.diag(case.drives.viscous)
    left = np.where(slides[:, :, None], np.eye(n) + viscous @ G, G)
    right = np.where(slides, combinations * level + viscous @ w0, w0)
    f = np.linalg.solve(left, right[..., None])[..., 0]
    w = w0 - f @ G.T
    force, speed = np.max(np.abs(f), axis=-1) + np.max(level), np.max(np.abs(w0)) + np.max(np.abs(w), axis=-1)
    backwards = np.max(np.where(slides, -combinations * w, 0.0), axis=-1) / (speed + 1e-300)
    too_much = np.max(np.where(slides, 0.0, np.abs(f) - level), axis=-1) / (force + 1e-300)
    misfit = np.maximum(np.maximum(backwards, too_much), 0.0)
    best = int(np.argmin(misfit))
    x = Z @ (free - yielding @ f[best])
    x[np.abs(x) < 1e-300] = 0.0
    tau_joint = case.M @ (x[:n] - case.qd) / dt + case.h
    return Step(x[:n], x[n:], tau_joint, ~slides[best], float(misfit[best]))


def random_case(rng, n, mode, coupled=False, roughness=1.0):
    """Draw an arm of n axes at rest, in motion or about to break away; `roughness` scales its friction."""
    spread = 10.0 ** rng.uniform(-2, 0.5, n)
    L = np.tril(rng.normal(size=(n, n))) * 0.5 + np.eye(n)
    M = spread[:, None] * (L @ L.T) * spread
    coupling = np.eye(n)
    if coupled:
        coupling += np.tril(rng.uniform(-0.8, 0.8, (n, n)), -1)
    coulomb = roughness * 10.0 ** rng.uniform(-1, 1.5, n) * rng.choice([0.0, 1.0], n, p=[0.15, 0.85])
    stiffness = 10.0 ** rng.uniform(3, 7, n)
    stiffness[rng.random(n) < 0.25] = np.inf
    viscous = roughness * rng.choice([0.0, 1.0, 20.0], n)
    more = rng.random() < 0.5
    drives = Drives(
        ratio=rng.choice([-1, 1], n) * rng.uniform(30, 200, n),
        rotor_inertia=10.0 ** rng.uniform(-5, -3, n),
        coupling=coupling,
        coulomb=coulomb,
        static=coulomb * rng.uniform(1, 2.5, n),
        stribeck_speed=rng.choice([0.0, 0.01, 0.1], n),
        viscous=viscous,
        coulomb_per_load=more * rng.choice([0.0, 0.02, 0.2], n),
        viscous_root=more * roughness * rng.choice([0.0, 1.0], n),
        viscous_difference=more * rng.uniform(-1, 1, n) * viscous,
        offset=more * rng.normal(size=n) * rng.choice([0.0, 1.0, 10.0], n),
        stiffness=stiffness,
        damping=rng.choice([0.0, 1.0, 50.0], n),
        friction_at=[str(side) for side in rng.choice(["motor", "joint"], n)],
    )
    size = rng.choice([0.0, 1e-9, 1e-4, 1.0, 10.0], (2, n), p=[0.3, 0.1, 0.2, 0.3, 0.1])
    qd, qd_motor = rng.normal(size=(2, n)) * size
    q = rng.uniform(-3, 3, n)
    h, tau = rng.normal(size=(2, n)) * 10.0 ** rng.uniform(-1, 3, (2, 1))
    tau_before = rng.normal(size=n) * 10.0 ** rng.uniform(-1, 2)
    twist = rng.normal(size=n) * 10.0 ** rng.uniform(-6, -2)
    dt = float(rng.choice([1e-3, 2.5e-4]))
    case = Case(drives, mode, dt, M, h, tau, q, qd, q + twist, qd_motor, tau_before)
    return at_breakaway(case, rng) if rng.random() < 0.3 else case


def at_breakaway(case, rng):
    """Return the arm at rest, each shaft loaded with its static friction, less, or slightly more."""
    rest, share = np.zeros(case.drives.n), rng.choice([1.0, -1.0, 0.3, 1.0 + 1e-9], case.drives.n)
    still = case._replace(tau=case.h, qd=rest, qd_motor=rest, q_motor=case.q)
    sprung = np.isfinite(case.drives.stiffness) & (case.mode == "elastic")
    bent = np.where(sprung, case.h / np.where(sprung, case.drives.stiffness, 1.0), 0.0)
    at_motor = np.array(case.drives.friction_at)[:, None] == "motor"
    turns = np.where(at_motor, case.drives.coupling, np.eye(len(rest)))
    held = share * levels(case.drives, rest, loads(case)) + case.drives.offset
    return still._replace(q_motor=case.q + bent, tau=case.h + turns.T @ held)
