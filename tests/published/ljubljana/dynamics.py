"""Ljubljana lab manual, chapter 6: recursion and dynamics."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tests.published.aliaga.newton_euler import random_arm
from tests.published.items import Finding, Item, against_printed, computes, items, largest, rng
from tests.published.ljubljana.kinematics import Floats, arm, configurations, table
from tests.published.norrlof.dynamics import back
from tests.published.norrlof.jacobians import times
from tests.published.norrlof.trees import Array, relative, turned
from twin.physics.dynamics.equation_of_motion import (
    forward_dynamics,
    friction_torque,
    inverse_dynamics,
    mass_matrix,
)
from twin.physics.robot.dh_tables import LinkBody, dh_robot
from twin.physics.robot.drives.drives import Drives
from twin.physics.robot.evaluation import uncompiled
from twin.physics.robot.robot import DH, GRAVITY, Robot, dh_transforms

ARMS = 8
Z0 = np.array([0.0, 0.0, 1.0])
KINDS = (("revolute",) * 6, ("revolute", "prismatic", "revolute", "revolute", "prismatic", "revolute"))


class LabArm(NamedTuple):
    """Parameters of an arm for the manual's function torque.

    Attributes:
        dh: DH table.
        kinds: kinds of the joints.
        m: masses (n,).
        rC: centres of mass (n, 3) of segment i from the origin of frame i, in frame i.
        I: tensors (n, 3, 3) about these centres, in frame i.
        fv: viscous friction (n,).
        r: origins (n, 3) of frame i from that of frame i - 1, in frame i; `None` for those of the table.
    """

    dh: DH
    kinds: tuple[str, ...]
    m: Floats
    rC: Floats
    I: Floats  # noqa: E741  (the manual's letter)
    fv: Floats | float = 0.0
    r: Floats | None = None


def lab_torques(
    arm: LabArm, q: Floats, qd: Floats, qdd: Floats, base_acceleration=GRAVITY * Z0, printed: str = ""
) -> Floats:
    """Compute the torques and forces (N, n) of the joints by (6.85)-(6.92).

    The equation named by `printed` is used as printed, without its transposes.
    """
    slides = np.array([kind == "prismatic" for kind in arm.kinds])
    dh = arm.dh._replace(d=arm.dh.d + slides * q)
    R = dh_transforms(dh, arm.dh.theta0 + ~slides * q)[..., :3, :3]  # R_i^{i-1}
    by_table = np.stack(np.broadcast_arrays(dh.a, dh.d * np.sin(dh.alpha), dh.d * np.cos(dh.alpha)), axis=-1)
    r = np.broadcast_to(by_table if arm.r is None else arm.r, (*q.shape, 3))
    w = wd = np.zeros((len(q), 3))
    a = w + base_acceleration
    moved = []
    for i in range(len(arm.m)):

        def down(v: Array, equation: str, i: int = i) -> Array:
            return (turned if equation == printed else back)(R[:, i], v)

        rate, rise = qd[:, i, None] * Z0, qdd[:, i, None] * Z0
        if slides[i]:
            w, wd = down(w, "(6.85)"), down(wd, "(6.86)")
            a = down(a + rise, "(6.88)") + 2 * np.cross(w, down(rate, "(6.88)"))
        else:
            w, wd = down(w + rate, "(6.85)"), down(wd + rise + np.cross(w, rate), "(6.86)")
            a = down(a, "(6.88)")
        a = a + np.cross(wd, r[:, i]) + np.cross(w, np.cross(w, r[:, i]))
        aC = a + np.cross(wd, arm.rC[i]) + np.cross(w, np.cross(w, arm.rC[i]))  # (6.89)
        moved.append((w, wd, aC))

    f_ahead = mu_ahead = np.zeros((len(q), 3))  # from segment i + 1, in frame i
    tau = np.empty(q.shape)
    for i in reversed(range(len(arm.m))):
        w, wd, aC = moved[i]
        f = f_ahead + arm.m[i] * aC  # (6.90)
        mu = -np.cross(f, r[:, i] + arm.rC[i]) + mu_ahead + np.cross(f_ahead, arm.rC[i])  # (6.91)
        mu = mu + wd @ arm.I[i] + np.cross(w, w @ arm.I[i])
        tau[:, i] = np.sum((f if slides[i] else mu) * R[:, i, 2], axis=-1)  # (6.92): R^T z0 is R's last row
        f_ahead, mu_ahead = turned(R[:, i], f), turned(R[:, i], mu)
    return tau + arm.fv * qd


def robot_of(arm: LabArm) -> Robot:
    """Return the library's robot of the same table and bodies, which may be physically impossible."""
    bodies = [LinkBody(*body) for body in zip(arm.m, arm.rC, arm.I, strict=True)]
    return uncompiled(dh_robot("lab", arm.dh, kinds=arm.kinds, bodies=bodies, unphysical=True))


def torque_error(printed: str = "") -> float:
    """Return the relative error of the manual's torques on arms with and without prismatic joints.

    The result is the largest error of all arms, but with a printed equation the smallest one.
    """
    generator, errors = rng(), []
    for kinds in KINDS:
        for _ in range(ARMS // len(KINDS)):
            _, chain = random_arm(generator)
            arm = LabArm(chain.dh, kinds, chain.m, chain.s, chain.I)
            q = configurations(6)[::17]
            qd, qdd = generator.uniform(-3, 3, (2, *q.shape))
            qd[-2:] = qdd[-3:-1] = 0.0
            right = inverse_dynamics(robot_of(arm), q, qd, qdd)
            errors.append(relative(lab_torques(arm, q, qd, qdd, printed=printed), right))
    return float(np.min(errors) if printed else np.max(errors))


@computes("B-6.91")
def recursion_row(item: Item) -> Finding:
    """Check the recursion with all transposes."""
    return Finding(f"{ARMS} random arms, half of them with slides", torque_error())


@computes("B-6.85")
def missing_transposes(item: Item) -> Finding:
    """Use one equation at a time without its transposes, and all others in the right form."""
    printed = min(torque_error(equation) for equation in item.inputs["equations"])
    return Finding(f"{ARMS} random arms, half of them with slides", torque_error(), printed)


@computes("B-home6")
def force_on_segment(item: Item) -> Finding:
    """Check (6.90) for the last segment by the forces of three orthogonal prismatic joints that move it."""
    quarter = np.pi / 2
    table = DH(np.array([quarter, quarter, 0.0]), np.zeros(3), np.zeros(3), np.array([quarter, quarter, 0.0]))
    bodies = [None, None, LinkBody(item.inputs["m3"])]
    slides = uncompiled(dh_robot("slides", table, kinds=("prismatic",) * 3, bodies=bodies))
    x, y, z = item.inputs["acceleration"]
    f_z, f_x, f_y = mass_matrix(slides, np.zeros(3)) @ [z, x, y]  # the slides go along z, x, y
    return against_printed(item, [f_x, f_y, f_z])


# Ljubljana lab manual, chapter 6: printed results of torque, inertia3 and tau3_q_dq, and exercises.
#
# The numbers are not those of a youBot; the mechanism of `urdf/youbot3` gives them.  Each variant differs
# from the manual in one respect, which is the input of the item about it.


REST = np.zeros(3)


@lru_cache(maxsize=1)
def manual() -> dict[str, Item]:
    """Return the items of the manual, by id."""
    return {item.id: item for item in items() if item.id.startswith("B-")}


@lru_cache(maxsize=1)
def printed_arm() -> LabArm:
    """Return the arm of the manual's function torque: the youBot's first three rows, tensors restored."""
    read = {name: manual()[name].inputs for name in ("B-m1", "B-rC", "B-I", "B-6.92", "B-NEconv")}
    return LabArm(
        dh=DH(*(column[:3] for column in table(arm("youbot")))),
        kinds=("revolute",) * 3,
        m=np.array(read["B-m1"]["m"]),
        rC=np.array(read["B-rC"]["rC"]),
        I=np.array([np.diag(diagonal) for diagonal in read["B-I"]["I"]]),
        fv=np.array(read["B-6.92"]["fv"]),
        r=np.array(read["B-NEconv"]["r"]),
    )


def by_library(robot: Robot, test: Item) -> Floats:
    """Compute the result of a test with the library; a robot without drives gets the manual's friction."""
    q = np.array(test.inputs["q"], dtype=float)
    if test.id == "B-inertia3":
        return mass_matrix(robot, q)
    qd, qdd = (np.array(test.inputs.get(key, REST), dtype=float) for key in ("qd", "qdd"))
    bare = robot.drives is None
    frictional = with_friction(robot, printed_arm().fv) if bare else uncompiled(robot.with_drives("rigid"))
    return inverse_dynamics(frictional, q, qd, qdd)


def by_manual(lab: LabArm, test: Item) -> Floats:
    """Compute the result of a test with the manual's recursion.

    Column i of B follows from a unit acceleration without gravity, (6.95).
    """
    q = np.array([test.inputs["q"]], dtype=float)
    if test.id == "B-inertia3":
        return lab_torques(lab, np.repeat(q, 3, axis=0), np.zeros((3, 3)), np.eye(3), REST).T
    qd, qdd = (np.array([test.inputs.get(key, REST)], dtype=float) for key in ("qd", "qdd"))
    return lab_torques(lab, q, qd, qdd)[0]


def tests() -> list[Item]:
    """Return the items of the three functions with printed results."""
    return [manual()[name] for name in ("B-inertia3", "B-torque", "B-tau3")]


def misses(results: list[Floats]) -> Floats:
    """Return the largest errors (3,) of the results of the three tests."""
    return np.array([largest(x - test.expected) for x, test in zip(results, tests(), strict=True)])


def variant(lab: LabArm) -> list[Floats]:
    """Compute the three tests with the library for r as printed, which belongs to d_1 = 0 and d_2 = 0.147.

    Frame 1 of that table lies 0.147 m before the manual's, so the centre of mass of link 1 shifts by as much.
    """
    dh = table(arm("youbot3"))
    rC = lab.rC + dh.d[1] * np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]])
    robot = robot_of(lab._replace(dh=dh, rC=rC))
    return [by_library(robot, test) for test in tests()]


@computes("B-inertia3", "B-torque", "B-tau3")
def printed_test(item: Item) -> Finding:
    """Compare one of the three tests."""
    return against_printed(item, by_library(arm("youbot3"), item))


@computes("B-6.92")
def joint_force(item: Item) -> Finding:
    """Compute torque and tau3_q_dq by the manual's recursion, with r, rC and m as printed."""
    return against_printed(item, [by_manual(printed_arm(), test) for test in tests()[1:]])


@computes("B-m1")
def first_mass(item: Item) -> Finding:
    """Compare the three tests with m_1 = 0, and with the data sheet's mass, which changes the results."""
    lab = printed_arm()
    heavy = misses(variant(lab._replace(m=np.array([item.inputs["data_sheet_m1"], *lab.m[1:]]))))
    residual = largest(misses(variant(lab)), heavy - item.inputs["data_sheet_misses"])
    return Finding(f"otherwise {heavy[0]:.2g}, {heavy[1]:.2g}, {heavy[2]:.2g}", residual)


@computes("B-rC")
def origin_of_centres(item: Item) -> Finding:
    """Take rC from the far frame of a link; from the near frame, as on a real arm, all three tests fail."""
    lab = printed_arm()
    assert lab.r is not None
    physical = misses(variant(lab._replace(rC=lab.rC - lab.r)))
    residual = largest(misses(variant(lab)), physical - item.inputs["near_end_misses"])
    return Finding(physical, residual, float(np.min(physical)))


@computes("B-NEconv")
def first_offset(item: Item) -> Finding:
    """Compare the recursion with r_1 of the table, and with r_1 as printed, to the arm of the table.

    The results of the three tests for that arm, which the manual does not print, are checked too.
    """
    lab, r = printed_arm(), np.array(item.inputs["r_in_own_frame"])
    A = dh_transforms(lab.dh, configurations(3) + lab.dh.theta0)
    by_table = np.einsum("nkji,nkj->nki", A[..., :3, :3], A[..., :3, 3])
    my_robot = robot_of(lab)
    found = [by_library(my_robot, test) for test in tests()]
    right, printed = (
        [by_manual(arm_of_r, test) - x for test, x in zip(tests(), found, strict=True)]
        for arm_of_r in (lab._replace(r=r), lab)
    )
    ours = against_printed(item, np.vstack(found))
    return Finding(ours.computed, largest(ours.residual, r - by_table, *right), min(map(largest, printed)))


@computes("B-I")
def tensors(item: Item) -> Finding:
    """Fit the five sums of moments that affect the printed numbers, by least squares.

    The nine moments must affect the numbers only through these sums, the fit must reproduce the printed
    numbers, and the sums must equal those of the data sheet.  As printed, all moments are 0.
    """
    lab, sums = printed_arm(), np.array(item.inputs["sums"], dtype=float)

    def numbers(results: list[Floats]) -> Floats:
        return np.concatenate([results[0][np.triu_indices(3)], *results[1:]])

    def of(moments: Floats) -> Floats:
        return numbers(variant(lab._replace(I=np.array([np.diag(row) for row in moments.reshape(3, 3)]))))

    empty, printed = of(np.zeros(9)), numbers([np.array(test.expected) for test in tests()])
    by_moment = np.column_stack([of(unit) - empty for unit in np.eye(9)])
    by_sum = by_moment @ np.linalg.pinv(sums)
    fit = np.linalg.lstsq(by_sum, printed - empty, rcond=None)[0]
    residual = largest(
        by_sum @ sums - by_moment, empty + by_sum @ fit - printed, fit - sums @ np.ravel(item.inputs["I"])
    )
    return Finding(fit, residual, largest(empty - printed))


def random_states(robot: Robot) -> tuple[Floats, Floats, Floats]:
    """Draw angles, velocities and accelerations (N, n), some of them zero."""
    q = configurations(robot.n)[::4]
    qd, qdd = rng().uniform(-2, 2, (2, *q.shape))
    qd[-2:] = qdd[-3:-1] = 0.0
    return q, qd, qdd


def with_friction(robot: Robot, viscous: Floats | float, coulomb: Floats | float = 0.0) -> Robot:
    """Return the robot with joint friction as the only effect of drives."""
    drives = Drives(ratio=np.ones(robot.n), rotor_inertia=0.0, viscous=viscous, coulomb=coulomb)
    return uncompiled(robot.with_drives("rigid", drives))


@computes("B-6.94")
def direct_dynamics(item: Item) -> Finding:
    """Check B by (6.95) and the solution of (6.93) for accelerations, relative to the largest torque."""
    fv = printed_arm().fv
    errors = []
    for robot in (arm("youbot3"), arm("irb140")):
        q, qd, qdd = random_states(robot)
        viscous, Fs = np.resize(fv, robot.n), np.full(robot.n, item.inputs["Fs"])
        frictional = with_friction(robot, viscous, Fs)
        floating = uncompiled(robot.with_gravity(REST))
        columns = [inverse_dynamics(floating, q, 0 * qd, 0 * qd + unit) for unit in np.eye(robot.n)]
        B, rest = np.stack(columns, axis=-1), inverse_dynamics(robot, q, qd, 0 * qd)
        friction = viscous * qd + Fs * np.sign(np.where(qd == 0.0, qdd, qd))  # a joint at rest begins to move
        tau = times(B, qdd) + rest + friction
        solved = np.linalg.solve(B, (tau - rest - friction)[..., None])
        found = forward_dynamics(frictional, q, qd, tau)[..., None]
        errors += [
            B - mass_matrix(robot, q),
            (inverse_dynamics(frictional, q, qd, qdd) - tau) / largest(tau),
            B @ (found - solved) / largest(tau),
        ]
    return Finding(f"{len(q)} states of two arms", largest(*errors))


@computes("B-6.96")
def friction_at_constant_speed(item: Item) -> Finding:
    """Check at constant speed that Coulomb friction dissipates F_s |qd|, and that (6.94) gives qdd = 0."""
    robot, fv, Fs = arm("youbot3"), printed_arm().fv, np.array(item.inputs["Fs"])
    frictional = with_friction(robot, fv, Fs)
    q, qd, _ = random_states(robot)
    smooth = inverse_dynamics(robot, q, qd, 0 * qd) + fv * qd
    errors = []
    for coulomb in (Fs * np.sign(qd), Fs + 0 * qd):
        qdd = forward_dynamics(robot, q, qd, smooth + coulomb - friction_torque(frictional, qd))
        errors.append(largest(coulomb * qd - Fs * np.abs(qd), qdd))
    return Finding(f"{len(q)} states", *errors)


# Ljubljana lab manual, chapter 5: trapezoidal speed profiles.
