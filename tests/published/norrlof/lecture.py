"""Norrlöf's lecture on dynamics: energy, inertia, the equation of motion and its properties, constraints."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np

import twin
from tests.published.items import SAMPLES, Finding, Item, against_printed, computes, largest, rng
from tests.published.norrlof import trees
from tests.published.norrlof.dynamics import arms, inertia_by_jacobians
from tests.published.norrlof.trees import Array, relative, tensor, worst
from twin.physics.multibody.tree import inertial_parameters, transformed_parameters

ROBOTS = ("irb140", "irb1400", "irb1600")


@computes("L-K")
def kinetic_energy_of_arm(item: Item) -> Finding:
    """Compare D by Jacobians with D by unit accelerations, and the library's rotated tensors with R I R^T."""
    errors = []
    for arm in arms(3):
        q, *_ = trees.states(3)
        bodies = trees.links(arm, q)
        errors.append(relative(inertia_by_jacobians(bodies), trees.inertia_matrix(arm, q)))
        for body in bodies:
            at_centre, T = inertial_parameters(body.mass, np.zeros(3), body.inertia), np.eye(4)
            T[:3, :3] = body.R[0]
            turned = body.R[0] @ body.inertia @ body.R[0].T
            errors.append(relative(turned, tensor(transformed_parameters(at_centre, T))))
    return Finding("3 random arms of 3 joints", worst(*errors))


@computes("L-Ham")
def stationary_action(item: Item) -> Finding:
    """Compare the change of the action with its two parts, for a disturbance of each joint of a free fall."""
    from scipy.integrate import solve_ivp

    robot = twin.load("irb140")
    start, n, duration = rng().uniform(-0.5, 0.5, 12), 6, 0.3

    def rates(_: float, x: Array) -> Array:
        return np.concatenate([x[n:], twin.forward_dynamics(robot, x[:n], x[n:], np.zeros(n))])

    nodes, weights = np.polynomial.legendre.leggauss(24)
    t, weights = duration / 2 * (nodes + 1), duration / 2 * weights
    motion = solve_ivp(rates, (0, duration), start, "DOP853", t, rtol=1e-12, atol=1e-12).y.T
    q, qd = motion[:, :n], motion[:, n:]
    disturbance = np.sin(np.pi * t / duration)
    rate = np.pi / duration * np.cos(np.pi * t / duration)

    def lagrangian(q: Array, qd: Array) -> Array:
        return twin.energy(robot, q, qd) - 2 * twin.energy(robot, q, np.zeros_like(q))

    parts, h = [], 1e-5
    for joint in np.eye(n):
        by_path, by_speed = (
            weights @ (lagrangian(q + h * a, qd + h * b) - lagrangian(q - h * a, qd - h * b)) / (2 * h)
            for a, b in ((np.outer(disturbance, joint), 0 * qd), (0 * q, np.outer(rate, joint)))
        )
        parts.append((by_path, by_speed))
    # Relative to all joints: no potential and no force acts on joint 1, so that both of its parts are 0.
    return Finding("6 disturbances of a free fall", largest(np.sum(parts, axis=1)) / largest(parts))


@computes("L-box")
def box(item: Item) -> Finding:
    """Compare the library's solid and hollow box, and the printed formula, with the volume integral.

    The hollow box is the difference of two boxes, by the lecture's rule for bodies in the same frame.
    """
    from urdf.solids import bulk

    sides, wall, rho = np.array(item.inputs["sides"]), item.inputs["wall"], item.inputs["rho"]
    full, void = box_integral(sides, rho), box_integral(sides - 2 * wall, rho)
    size, at = [str(side) for side in sides], ["0", "0", "0"]
    library, masses = [], []
    for solid in ({"box": size, "at": at}, {"hollow_box": size, "wall": str(wall), "at": at}):
        spread = bulk({"solid": solid})
        masses.append(rho * float(spread.volume))
        library.append(masses[-1] * np.array(spread.inertia, dtype=float))
    a, b, c = sides**2
    printed = rho * np.prod(sides) / 12 * np.diag([b + c, a + c, a + b])
    expected = rho * np.array([np.prod(sides), np.prod(sides) - np.prod(sides - 2 * wall)])
    found = relative(library[0], full), relative(library[1], full - void), relative(printed, full)
    return Finding(np.diagonal(library[0]), worst(*found, masses / expected - 1))


def box_integral(sides: Array, rho: float) -> Array:
    """Integrate the inertia (3, 3) of a box about its centre by Gauss's rule, exact for quadratic terms."""
    nodes, weights = np.polynomial.legendre.leggauss(3)
    r = np.array(list(product(*(nodes[:, None] * sides / 2).T)))
    dm = rho * np.prod(sides) * np.prod(list(product(*[weights / 2] * 3)), axis=1)
    return np.einsum("k,ki,ki->", dm, r, r) * np.eye(3) - np.einsum("k,ki,kj->ij", dm, r, r)


@computes("L-tensor")
def inertia_tensor(item: Item) -> Finding:
    """Compare the tensor as defined, and with its last row as printed, for forty particles."""
    generator = rng()
    masses, r = generator.uniform(0.1, 2, 40), generator.normal(size=(40, 3))
    r[:, 1] += r[:, 2]  # so that Iyz is not small
    x, y, z = r.T
    xx, yy, zz = masses @ (y**2 + z**2), masses @ (x**2 + z**2), masses @ (x**2 + y**2)
    xy, xz, yz = -masses @ (x * y), -masses @ (x * z), -masses @ (y * z)
    particles = [inertial_parameters(m, at, np.zeros((3, 3))) for m, at in zip(masses, r, strict=True)]
    library = tensor(np.sum(particles, axis=0))
    defined, printed = ([[xx, xy, xz], [xy, yy, yz], [xz, last, zz]] for last in (yz, xz))
    w = generator.normal(size=(SAMPLES, 3))
    momentum = np.einsum("k,nki->ni", masses, np.cross(r, np.cross(w[:, None], r)))
    residual = worst(relative(np.array(defined), library), relative(w @ library, momentum))
    return Finding(library, residual, relative(w @ np.array(printed).T, momentum))


@computes("L-EL")
def equation_of_motion(item: Item) -> Finding:
    """Check, for all arms, C by Christoffel symbols, g from P, the torque, and the state-space form."""
    errors = []
    for name in ROBOTS:
        robot, (q, qd, qdd) = twin.load(name), trees.states(6)
        arm, tau = trees.arm_of(robot), twin.inverse_dynamics(robot, q, qd, qdd)
        g = twin.gravity_torque(robot, q)
        D, C = twin.mass_matrix(robot, q), twin.coriolis_matrix(robot, q, qd)
        h = np.einsum("nij,nj->ni", C, qd) + g
        x2_dot = np.linalg.solve(D, (tau - h)[..., None])
        D_by_q = trees.gradient(lambda x, arm=arm: trees.inertia_matrix(arm, x), q)
        errors += [
            relative(np.einsum("nijp,ni->npj", trees.christoffel_symbols(D_by_q), qd), C),
            relative(trees.gradient(lambda x, arm=arm: trees.potential_energy(arm, x), q), g),
            relative(np.einsum("nij,nj->ni", D, qdd) + h, tau),
            relative(twin.inverse_dynamics(robot, q, qd, x2_dot[..., 0]), tau),
            relative(twin.inverse_dynamics(robot, q, qd, twin.forward_dynamics(robot, q, qd, tau)), tau),
        ]
    return Finding(f"{len(trees.states(6)[0])} states of each robot", worst(*errors))


@computes("L-skew")
def properties(item: Item) -> Finding:
    """Check, for all arms, that `Ddot - 2 C` is skew-symmetric, the power balance, and the bounds of D."""
    errors, bounds = [], []
    for name in ROBOTS:
        robot, (q, qd, qdd) = twin.load(name), trees.states(6)
        arm = trees.arm_of(robot)

        def total(x: Array, xd: Array, arm=arm) -> Array:
            return trees.kinetic_energy(arm, x, xd) + trees.potential_energy(arm, x)

        C = twin.coriolis_matrix(robot, q, qd)
        N = trees.rate(lambda x, arm=arm: trees.inertia_matrix(arm, x), (q, qd)) - 2 * C
        power = np.sum(qd * twin.inverse_dynamics(robot, q, qd, qdd), axis=1)
        errors += [worst(N + np.swapaxes(N, 1, 2)) / worst(N)]
        errors += [relative(trees.rate(total, (q, qd), (qd, qdd)), power)]
        moments = np.linalg.eigvalsh(twin.mass_matrix(robot, q))
        bounds += [float(np.min(moments)), float(np.max(moments))]
        errors.append(0.0 if bounds[-2] > 0 else np.inf)
    return Finding(bounds, worst(*errors))


def free_and_constrained(k: int) -> tuple[int, int]:
    """Return the number of directions in which k particles at fixed distances move, and of constraints."""
    r = rng().normal(size=(k, 3))
    gradients = np.zeros((0, 3 * k))
    for i, j in combinations(range(k), 2):  # |r_i - r_j|^2 is constant
        row = np.zeros((k, 3))
        row[i], row[j] = 2 * (r[i] - r[j]), 2 * (r[j] - r[i])
        gradients = np.vstack([gradients, row.ravel()])
    return 3 * k - int(np.linalg.matrix_rank(gradients)), len(gradients)


@computes("L-gamma", "L-particles")
def counts_of_particles(item: Item) -> Finding:
    """Compare the counts of constraint forces and of coordinates with l and 3 k - l, and with k."""
    right, printed = [], []
    for k in item.inputs["particles"]:
        n, l = free_and_constrained(k)  # noqa: E741
        right.append(n - (3 * k - l))
        printed.append((3 * k - n if item.id == "L-gamma" else n) - k)
    return Finding(f"{item.inputs['particles']} particles", worst(right), worst(printed))


@computes("L-home")
def limits_behind_the_gears(item: Item) -> Finding:
    """Check that the drives of the IRB 1600 are those of the assignment, and give its torque limits."""
    robot = twin.load("irb1600")
    assert robot.drives is not None
    found = against_printed(item, robot.drives.torque_max)
    off = (
        robot.drives.ratio - item.inputs["gear"],
        robot.drives.motor_torque_max - item.inputs["tau_motor"],
        robot.tau_max - robot.drives.torque_max,
    )
    return replace(found, residual=worst(found.residual, *off))


# The flexible joint of Norrlöf's report, section 3.3, and of his lecture.
