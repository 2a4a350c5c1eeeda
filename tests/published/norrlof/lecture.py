"""Norrlöf's lecture on dynamics, and the flexible joint of his report."""

from dataclasses import replace
from functools import lru_cache
from itertools import combinations, product

import numpy as np

import twin
from tests.published.items import SAMPLES, Finding, Item, against_printed, computes, items, largest, rng
from tests.published.norrlof import trees
from tests.published.norrlof.dynamics import arms, inertia_by_jacobians
from tests.published.norrlof.trees import Array, relative, tensor, worst
from twin.dynamics import flexible_joint
from twin.dynamics.flexible_joint import FlexibleJoint, angle_model, energy_matrix, poles, velocity_model
from twin.multibody.tree import inertial_parameters, transformed_parameters

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


@computes("L-gamma")
def number_of_constraint_forces(item: Item) -> Finding:
    """Compare the rank of the gradients of fixed distances with the number l of constraints, and with k."""
    right, printed = [], []
    for k in item.inputs["particles"]:
        r = rng().normal(size=(k, 3))
        gradients = np.zeros((0, 3 * k))
        for i, j in combinations(range(k), 2):  # |r_i - r_j|^2 is constant
            row = np.zeros((k, 3))
            row[i], row[j] = 2 * (r[i] - r[j]), 2 * (r[j] - r[i])
            gradients = np.vstack([gradients, row.ravel()])
        rank = int(np.linalg.matrix_rank(gradients))
        right.append(rank - len(gradients))
        printed.append(rank - k)
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


SIZES = np.array([100.0, 100.0, 1.0, 1.0])
"""Magnitudes of the states of motor and arm, in [rad, rad/s]; the gear reduces those of the arm."""


@lru_cache(maxsize=1)
def table() -> dict[str, float]:
    """Return `Jm, Ja, fm, k, r` of Table 3.1, with the gear ratio of the text."""
    (inputs,) = (item.inputs for item in items() if item.id == "N-T3.1")
    return {name: inputs[name] for name in ("Jm", "Ja", "fm", "k")} | {"r": 1 / inputs["gear"]}


def samples() -> tuple[Array, Array]:
    """Draw states `[qm, qm', qa, qa']` (N, 4), some at rest or with a relaxed spring, and torques (N,)."""
    generator = rng()
    x, tau = generator.normal(size=(SAMPLES, 4)) * SIZES, generator.normal(size=SAMPLES)
    x[1::10, [1, 3]] = 0.0
    x[2::10, 2] = table()["r"] * x[2::10, 0]
    return x, tau


def printed_models(
    Jm: float, Ja: float, fm: float, k: float, r: float, fa: float = 0.0
) -> tuple[Array, Array]:
    """Return A of (3.73), and A of the model with three states, as printed."""
    motor, arm = [-k * r / Jm, -fm / Jm, k / Jm, 0], [k * r / Ja, 0, -k / Ja, -fa / Ja]
    four = [[0, 1, 0, 0], motor, [0, 0, 0, 1], arm]
    three = [[-fm / Jm, 0, -k / Jm], [0, 0, -k / Ja], [r, -1, 0]]
    return np.array(four), np.array(three)


def power_gap(joint: FlexibleJoint, x: Array, xd: Array, tau: Array) -> float:
    """Return the error of the power balance of a joint, relative to the power that flows.

    The rate of the energy must equal the motor's power minus the losses.
    """
    H = energy_matrix(joint)
    stretching = joint.r * x[:, 1] - x[:, 3]
    lost = joint.fm * x[:, 1] ** 2 + joint.fa * x[:, 3] ** 2 + joint.d * stretching**2
    gained = np.einsum("ni,ij,nj->n", x, H, xd)
    flowing = np.einsum("ni,ij,nj->n", np.abs(x), np.abs(H), np.abs(xd))
    return worst(gained - (tau * x[:, 1] - lost)) / worst(flowing)


@computes("N-3.73")
def state_space(item: Item) -> Finding:
    """Compare A, B, C with (3.73), and their motion with (3.71); the arm has friction too."""
    known, fa = table(), item.inputs["fa"]
    model = angle_model(FlexibleJoint.reported(**table(), fa=fa))
    x, tau = samples()
    _, motor, _, arm = (x @ model.A.T + tau[:, None] * model.B[:, 0]).T
    twist = known["k"] * (known["r"] * x[:, 0] - x[:, 2])
    left = known["Jm"] * motor + known["fm"] * x[:, 1] + twist, known["Ja"] * arm + fa * x[:, 3] - twist
    B, C = np.array([[0], [1 / known["Jm"]], [0], [0]]), np.array([[1, 0, 0, 0]])
    matrices = relative(model.A, printed_models(**table(), fa=fa)[0]), relative(model.B, B), model.C - C
    return Finding(model.A, worst(*matrices, worst(left[0] - tau, left[1]) / worst(twist)))


@computes("N-A3")
def three_states(item: Item) -> Finding:
    """Compare the model with the transformed states of (3.72), and its poles with the oscillating ones."""
    joint = FlexibleJoint.reported(**table())
    known = table()
    four, A = printed_models(**known)
    transform = np.array([[0, 1, 0, 0], [0, 0, 0, 1], [known["r"], 0, -1, 0]])
    right = velocity_model(joint)
    swinging = np.array(sorted(poles(angle_model(joint)), key=abs)[1:])

    def error(A: Array) -> float:
        found = np.linalg.eigvals(A)
        missed = [np.min(np.abs(found - pole)) for pole in swinging]
        return worst(relative(A @ transform, transform @ four), np.array(missed) / worst(swinging))

    return Finding(np.column_stack([np.real(poles(right)), np.imag(poles(right))]), error(right.A), error(A))


@computes("N-3.69")
def spring_power(item: Item) -> Finding:
    """Check the power of (3.73), with k and Ja read as r times those of the arm, and literally."""
    x, tau = samples()
    known = table()
    A, _ = printed_models(**known)
    xd = x @ A.T
    xd[:, 1] += tau / known["Jm"]
    meant, literal = FlexibleJoint.reported(**table()), FlexibleJoint(**table())
    return Finding([meant.k, meant.Ja], power_gap(meant, x, xd, tau), power_gap(literal, x, xd, tau))


@computes("N-3.69t")
def torque_of_spring(item: Item) -> Finding:
    """Compare the torque on the arm by (3.71) with the spring torque and with the line below (3.69)."""
    x, tau = samples()
    joint = FlexibleJoint.reported(**table())
    model = angle_model(joint)
    felt = joint.Ja * (x @ model.A.T + tau[:, None] * model.B[:, 0])[:, 3]
    torques = flexible_joint.spring_torque(joint, x), joint.k * (x[:, 0] - x[:, 2])
    return Finding(f"{SAMPLES} states", *(relative(torque, felt) for torque in torques))


def slow_and_swinging(model: flexible_joint.StateSpace) -> list[complex]:
    """Return the real pole and, of the swinging ones, that with the positive imaginary part."""
    return sorted(poles(model), key=lambda pole: (abs(pole.imag) > 1e-9, pole.imag))[::2]


@computes("N-T3.1")
def identified_joint(item: Item) -> Finding:
    """Compute the poles, the zeros and the low-frequency gain of the identified model."""
    joint = FlexibleJoint.reported(**table())
    model = velocity_model(joint)
    slow, swinging = slow_and_swinging(model)
    hertz = [float(root.imag) / (2 * np.pi) for root in (swinging, flexible_joint.zeros(joint)[1])]
    gain = float(np.real(flexible_joint.frequency_response(model, 0.0)))
    pole = slow.real, swinging.real, swinging.imag
    return against_printed(item, [*pole, *hertz, gain, joint.k / 1000, joint.Ja])


@computes("N-T3.1s")
def deviations_of_poles(item: Item) -> Finding:
    """Compute the standard deviations of the poles from those of the parameters, by central differences."""

    def parts(values: dict[str, float]) -> Array:
        slow, swinging = slow_and_swinging(velocity_model(FlexibleJoint.reported(**values)))
        return np.array([slow.real, swinging.real, swinging.imag])

    values, variances = table(), np.zeros(3)
    for name, deviation in item.inputs.items():
        step = 1e-5 * values[name]
        ahead, behind = (parts(values | {name: values[name] + side * step}) for side in (1, -1))
        variances += ((ahead - behind) / (2 * step) * deviation) ** 2
    return against_printed(item, np.sqrt(variances))


@computes("N-2.5Hz")
def sampling_rate(item: Item) -> Finding:
    """Compute the Nyquist frequency and the sampling rate from the cut-off and its share of the former."""
    nyquist = item.inputs["cut_off"] / item.inputs["share"]
    return against_printed(item, [nyquist, 2 * nyquist])


@computes("L-flex")
def flexible_joint_of_lecture(item: Item) -> Finding:
    """Check the power balance of both forms; in the printed form the masses repel each other."""
    joint = FlexibleJoint(**item.inputs)
    D, M, k, d, f, fm = joint.Ja, joint.Jm, joint.k, joint.d, joint.fa, joint.fm
    motor, arm = [(k + d) / M, -fm / M, -(k + d) / M, 0], [-(k + d) / D, 0, (k + d) / D, -f / D]
    printed = np.array([[0, 1, 0, 0], motor, [0, 0, 0, 1], arm])
    x, tau = rng().normal(size=(SAMPLES, 4)), rng().normal(size=SAMPLES)
    model = angle_model(joint)
    pushed = tau[:, None] * model.B[:, 0]
    growth = [float(np.max(np.linalg.eigvals(A).real)) for A in (model.A, printed)]
    return Finding(growth, *(power_gap(joint, x, x @ A.T + pushed, tau) for A in (model.A, printed)))
