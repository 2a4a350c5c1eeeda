"""Arms with each part of an arm alone, and with all at once, for tests of functions that take a robot."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

import twin
from twin.physics.multibody.axis_torques import Cylinder, Spring, UserColumn
from twin.physics.multibody.tree import frozen, inertial_parameters
from twin.physics.robot.drives.drives import Drives
from twin.physics.robot.evaluation import uncompiled

ROTORS = [2e-4, 7e-4, 3e-4, 2e-5, 3e-5, 4e-5]
COUPLING = np.eye(6)
COUPLING[4, 3], COUPLING[5, 3], COUPLING[5, 4] = 0.3, -0.2, 0.5
LEVELS = np.array([14.0, 34, 15, 4, 5, 4])
DRIVES = {
    "rotors": {"rotor_inertia": ROTORS},
    "coulomb": {"coulomb": LEVELS},
    "static": {"coulomb": LEVELS, "static": 1.5 * LEVELS, "stribeck_speed": 0.02},
    "viscous": {"viscous": LEVELS / 2},
    "load": {"coulomb_per_load": [0.05, 0.3, 0.1, 0.04, 0.01, 0.06]},
    "root": {"viscous_root": LEVELS / 5},
    "difference": {"viscous": LEVELS / 2, "viscous_difference": LEVELS / 3 * [1, -1, 1, -1, 1, 1]},
    "offset": {"offset": LEVELS / 4 * [1, -1, 1, 1, -1, 1]},
    "coupled motors": {"rotor_inertia": ROTORS, "coupling": COUPLING, "coulomb": LEVELS},
    "friction at joints": {"coupling": COUPLING, "coulomb": LEVELS, "friction_at": ("joint",) * 6},
    "motor limits": {"motor_torque_max": [15.0, 25, 15, 2, 2, 2], "motor_speed_max": 400.0},
}
COLUMN = "def cable(q, qd, qdd):\n    return [0.0, 0.0, q[2] * q[3], 0.5 * qd[3] + q[0], 0.0, 0.0]\n"


def torques(folder):
    """Return a spring, a cylinder whose ends are offset along the axis, and a column that brakes."""
    (folder / "cable.py").write_text(COLUMN, encoding="utf-8")
    axis, a, b = np.array([0.0, 1.0, 0.0]), np.array([-0.32, 0.1, -0.05]), np.array([-0.02, -0.06, 0.27])
    return {
        "spring": Spring(4, 3.0, 1.5),
        "cylinder": Cylinder.between(1, axis, a, b, np.eye(3), 0.45, 900.0, 2000.0),
        "column": UserColumn.of_file("cable", folder / "cable.py", "cable", 4.0),
    }


NAMES = (*DRIVES, "spring", "cylinder", "column", "payload", "mounting", "loop", "effort", "follower", "all")
"""Parts of an arm with rigid drives; elastic gears are a mode of all drives."""


def with_followers(robot):
    """Return the robot with a balancer that follows joint 2, and a slide on link 4 that follows joint 5."""
    tree, links = robot.tree, robot.driven
    bodies = [inertial_parameters(m, np.array(c), np.diag([0.2, 0.3, 0.25])) for m, c in FOLLOWERS.values()]
    tree = replace(
        tree,
        names=(*tree.names, *FOLLOWERS),
        links=(*tree.links, *FOLLOWERS),
        kinds=(*tree.kinds, "revolute", "prismatic"),
        parents=(*tree.parents, links[0], links[3]),
        T_parent_joint=frozen([*tree.T_parent_joint, *np.stack([np.eye(4)] * 2)]),
        axes=frozen([*tree.axes, [0, 0.6, 0.8], [1, 0, 0]]),
        inertias=frozen([*tree.inertias, *bodies]),
    )
    rows = np.zeros((2, 6))
    rows[0, 1], rows[1, 4] = -0.8, 0.05
    return replace(
        robot,
        tree=tree,
        embedding=frozen(np.vstack([robot.embedding, rows])),
        embedding_offset=frozen([*robot.embedding_offset, 0.3, -0.1]),
        passive_min=frozen([*robot.passive_min, -np.inf, -np.inf]),
        passive_max=frozen([*robot.passive_max, np.inf, np.inf]),
    )


FOLLOWERS = {"balancer": (6.0, [0.1, -0.05, 0.2]), "slide": (1.5, [0.05, 0.02, -0.03])}
"""Masses, in [kg], and centres of mass (3,), in [m], of links that follow a joint."""


@lru_cache
def arm_with(part, folder):
    """Return an arm with rigid drives that has one part, or `"all"`; `folder` is for the file of a column."""
    robot, beside = twin.load("irb1400" if part in ("loop", "all") else "irb140"), torques(folder)
    every = {"ratio": [100.0] * 6, "rotor_inertia": 0.0}
    for one in DRIVES.values() if part == "all" else [DRIVES.get(part, {})]:
        every |= one
    if part == "all":
        every["friction_at"] = ("motor", "joint", "motor", "motor", "motor", "joint")
    robot = replace(robot, drives=Drives(**every))
    chosen = [one for name, one in beside.items() if part in (name, "all")]
    robot = replace(robot, tree=replace(robot.tree, torques=tuple(chosen)))
    if part in ("follower", "all"):
        robot = with_followers(robot)
    if part in ("payload", "all"):
        robot = robot.with_payload(twin.Payload(4.0, (0.02, -0.03, 0.1), 0.02 * np.eye(3)))
    if part in ("mounting", "all"):
        robot = robot.mounted(30.0)
    robot = robot.with_drives("rigid")
    return uncompiled(robot) if chosen else robot
