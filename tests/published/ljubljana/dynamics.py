"""Ljubljana lab manual, chapter 6: printed results of torque, inertia3 and tau3_q_dq, and exercises.

The numbers are not those of a youBot; the mechanism of `urdf/youbot3` gives them.  Each variant differs from
the manual in one respect, which is the input of the item about it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tests.published.items import Finding, Item, against_printed, computes, items, largest, rng
from tests.published.ljubljana.arms import Floats, arm, configurations, table
from tests.published.ljubljana.newton_euler import LabArm, lab_torques, robot_of
from tests.published.norrlof.jacobians import times
from twin.dynamics.equation_of_motion import (
    forward_dynamics,
    friction_torque,
    inverse_dynamics,
    mass_matrix,
)
from twin.robot.drives.drives import Drives
from twin.robot.evaluation import uncompiled
from twin.robot.robot import DH, Robot, dh_transforms

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
    """Compute the result of a test with the library, for a robot with the manual's viscous friction."""
    q = np.array(test.inputs["q"], dtype=float)
    if test.id == "B-inertia3":
        return mass_matrix(robot, q)
    qd, qdd = (np.array(test.inputs.get(key, REST), dtype=float) for key in ("qd", "qdd"))
    return inverse_dynamics(with_friction(robot, printed_arm().fv), q, qd, qdd)


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
        by_sum @ sums - by_moment,
        empty + by_sum @ fit - printed,
        fit - sums @ np.ravel(item.inputs["I"]),
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
