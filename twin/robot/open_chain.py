"""What is commonly taken for a robot with a closed loop: models that leave the loop out.

They are wrong, and here so that a controller can believe in them and its errors show by how much.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from twin.errors import RobotError
from twin.multibody.tree import Tree, frozen
from twin.robot.robot import Robot


def without_loop_links(robot: Robot) -> Robot:
    """The robot without the mass of the links that only close its loops; the coupling of its joints remains.

    Of the IRB 1400, that is the arm without lever and parallel rod, its third motor still on the column.
    """
    bare = None if robot.bare is None else _carriers_alone(robot.bare)
    return replace(robot, tree=_carriers_alone(robot.tree), bare=bare)


def _carriers_alone(tree: Tree) -> Tree:
    """The tree in which no link has a mass but those on the way to the flange."""
    carriers = tree.carriers(tree.flange_joint)
    inertias = tree.inertias.copy()
    inertias[[joint for joint in range(tree.n) if joint not in carriers]] = 0.0
    return replace(tree, inertias=frozen(inertias))


def open_chain(robot: Robot) -> Robot:
    """The robot as an open chain: no loop, and every joint angle taken from one link of the arm to the next.

    Of the IRB 1400, `q3` is then the angle between the arms, and its third motor sits in the elbow.  Ranges
    and named poses keep their numbers, and mean those angles; the drives, which turn others, are ideal.

    Raises:
        RobotError: the joints of the chain from the base to the flange are not as many as the pendant's, or
            not independent.
    """
    tree = robot.tree
    carriers = tree.carriers(tree.flange_joint)
    if len(carriers) != robot.n:
        raise RobotError(
            f"robot {robot.name!r} has {len(carriers)} joints on the way to its flange, not {robot.n}"
        )
    G = np.zeros_like(robot.embedding)
    G[list(carriers)] = np.eye(robot.n)
    # The DH angles are those of the same posture, whose q was `inv(carried) q_chain`.
    carried = robot.embedding[list(carriers)]
    if not np.linalg.matrix_rank(carried) == robot.n:
        raise RobotError(
            f"robot {robot.name!r} moves the joints on the way to its flange in fewer ways than it has motors"
        )
    endless = frozen(np.full(len(robot.passive), np.inf))
    return replace(
        without_loop_links(robot),
        dh_coupling=frozen(np.linalg.solve(carried.T, robot.dh_coupling.T).T),
        embedding=frozen(G),
        passive_min=frozen(-endless),
        passive_max=endless,
        loops=(),
        drives=None,
        drive_mode="ideal",
    )
