"""Time of all inverse kinematics solutions of one pose and of many, against py-opw-kinematics and ik-geo.

All libraries get the same arm.  Joint limits are not checked, since the fastest calls of the others cannot
check them.  All existing solutions are compared.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import twin
from tests.bench.timing import Meter, NotComparableError, Row, peer
from twin.base.threads import VARIABLE
from twin.physics.robot.robot import Robot

LOOPED = 2000
TURN = 2 * np.pi
ONE = "inverse kinematics, all solutions, one call"
MANY = "inverse kinematics, batch of {}, a pose"


def rows(robot: Robot, meter: Meter) -> Iterator[Row]:
    """Compare one pose and a batch on one core, and a batch on all cores if the library has threads."""
    rng = np.random.default_rng(0)
    T = twin.forward_kinematics(robot, rng.uniform(robot.q_min, robot.q_max, (meter.batch, robot.n)))
    opw, geo = peer("py_opw_kinematics"), peer("ik_geo")
    if opw is not None:
        yield from _against_opw(opw, robot, T, meter)
    if geo is not None:
        yield from _against_geo(geo, robot, T, meter)


def _ours(robot: Robot, T: np.ndarray) -> Callable[[], np.ndarray]:
    return lambda: twin.inverse_kinematics(robot, T, limits=False)


def _against_opw(opw, robot: Robot, T: np.ndarray, meter: Meter) -> Iterator[Row]:
    d, a = robot.dh.d, robot.dh.a
    offsets = (0.0, 0.0, -np.pi / 2, 0.0, 0.0, 0.0)  # at zero its forearm points up, that of the twin forward
    model = opw.KinematicModel(a1=a[0], c1=d[0], c2=-a[1], c3=d[3], c4=d[5], offsets=offsets)
    arm = opw.Robot(model, degrees=False)
    one, one_pose, poses = (
        T[0].copy(),
        opw.RigidTransform.from_matrix(T[0]),
        opw.RigidTransform.from_matrix(T),
    )
    # With limits that no solution meets, it skips the conditioning of each solution, most of its time.
    unreachable = np.tile([10.0, 11.0], (6, 1))
    ours, batch = _ours(robot, one), _ours(robot, T)
    yield meter.compare(
        ONE, "py-opw-kinematics inverse", ours, lambda: arm.inverse(one_pose), calls=5000,
        agree=lambda ours, theirs: _same_solutions(ours[None], np.array(theirs)[None]),
    )  # fmt: skip
    many: dict[str, Any] = {
        "ours_per_call": meter.batch, "theirs_per_call": meter.batch,
        "agree": lambda ours, theirs: _same_solutions(ours, theirs.joints),
    }  # fmt: skip
    what = MANY.format(meter.batch)
    yield meter.compare(
        what, "py-opw-kinematics reach", batch, lambda: arm.reach(poses, unreachable), **many, goal=0.3
    )
    with _all_cores():
        yield meter.compare(
            what, "the same, both on all cores",
            batch, lambda: arm.reach(poses, unreachable, threads=0), **many, goal=None,
        )  # fmt: skip


def _against_geo(geo, robot: Robot, T: np.ndarray, meter: Meter) -> Iterator[Row]:
    """Describe the arm to ik-geo by its axes at the zero pose and the displacements between them."""
    tree = robot.tree
    steps = np.array([*tree.T_parent_joint[:, :3, 3], tree.T_joint_flange[:3, 3]])
    steps[3] += steps[4]  # the point on axis 4 may be the wrist centre, as for axes 5 and 6
    steps[4] = 0.0
    arm = geo.Robot.spherical_two_parallel(tree.axes.tolist(), steps.tolist())
    R_zero = twin.forward_kinematics(robot, np.zeros(robot.n))[:3, :3]
    # ik-geo is faster with lists than with arrays, takes matrices by columns, and has no rotation at zero.
    lists = [((R_zero @ pose[:3, :3].T).tolist(), pose[:3, 3].tolist()) for pose in T[:LOOPED]]
    ours, batch = _ours(robot, T[0].copy()), _ours(robot, T)

    def loop():
        for pose in lists:
            arm.get_ik(*pose)

    def agree(ours, _):
        _same_solutions(ours[:LOOPED], [_exact(arm.get_ik(*pose)) for pose in lists])

    yield meter.compare(
        ONE, "ik-geo get_ik", ours, lambda: arm.get_ik(*lists[0]), calls=5000,
        agree=lambda ours, theirs: _same_solutions(ours[None], _exact(theirs)[None]),
    )  # fmt: skip
    yield meter.compare(
        MANY.format(meter.batch), "ik-geo get_ik in a Python loop", batch, loop,
        ours_per_call=meter.batch, theirs_per_call=len(lists), goal=0.3, agree=agree,
    )  # fmt: skip


def _exact(solutions) -> np.ndarray:
    """Return the exact solutions, padded with NaN to eight rows, without least-squares approximations."""
    exact = [q for q, is_least_squares in solutions if not is_least_squares]
    return np.array(exact + [[np.nan] * 6] * (8 - len(exact)))


def _same_solutions(ours, theirs) -> None:
    """Compare two arrays of solutions (N, 8, 6), whose order and full turns do not count."""
    theirs = np.asarray(theirs)
    for a, b in ((ours, theirs), (theirs, ours)):
        difference = a[:, :, None] - b[:, None]
        difference = np.max(np.abs(difference - TURN * np.round(difference / TURN)), axis=-1)
        nearest = np.min(np.where(np.isnan(difference), np.inf, difference), axis=-1)
        if not np.all((nearest <= 1e-9) | np.isnan(a[..., 0])):
            most = np.max(nearest[~np.isnan(a[..., 0])])
            raise NotComparableError(f"not comparable: a solution differs by {most:.2g} rad, limit 1e-9")


@contextmanager
def _all_cores():
    """Use as many threads as cores, instead of one."""
    before = os.environ.pop(VARIABLE, None)
    try:
        yield
    finally:
        if before is not None:
            os.environ[VARIABLE] = before
