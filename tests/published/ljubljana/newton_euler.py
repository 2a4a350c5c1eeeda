"""Ljubljana lab manual, chapter 6: its Newton-Euler recursion, right and as printed.

The reference is the library's recursion, which uses other frames.  The recursion handles N configurations at
once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tests.published.aliaga.newton_euler import random_arm
from tests.published.items import Finding, Item, against_printed, computes, rng
from tests.published.ljubljana.arms import Floats, configurations
from tests.published.norrlof.newton_euler import back
from tests.published.norrlof.trees import Array, relative, turned
from twin.dynamics.equation_of_motion import inverse_dynamics, mass_matrix
from twin.robot.evaluation import uncompiled
from twin.robot.loading.dh_tables import LinkBody, dh_robot
from twin.robot.robot import DH, GRAVITY, Robot, dh_transforms

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
