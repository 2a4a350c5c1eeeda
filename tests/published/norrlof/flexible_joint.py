"""The flexible joint of Norrlöf's report, section 3.3, and of his lecture."""

from functools import lru_cache

import numpy as np

from tests.published.items import SAMPLES, Finding, Item, against_printed, computes, items, rng
from tests.published.norrlof.trees import Array, relative, worst
from twin.physics.dynamics import flexible_joint
from twin.physics.dynamics.flexible_joint import (
    FlexibleJoint,
    angle_model,
    energy_matrix,
    poles,
    velocity_model,
)

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
