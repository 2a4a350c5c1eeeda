"""Random robots as URDF text: random axes, origins, rotated inertias, branches, prismatic joints."""

import re
from types import SimpleNamespace

import numpy as np

from twin.physics.multibody import kernels


def text(numbers) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def placed(rng: np.random.Generator, spread: float) -> str:
    return f'<origin xyz="{text(rng.normal(size=3) * spread)}" rpy="{text(rng.uniform(-3, 3, 3))}"/>'


def random_inertial(rng: np.random.Generator) -> str:
    mass = rng.uniform(0.2, 20.0)
    points = rng.normal(size=(8, 3)) * rng.uniform(0.02, 0.2)
    moments = np.linalg.eigvalsh(np.trace(points.T @ points) * np.eye(3) - points.T @ points) * mass / 8
    ixx, iyy, izz = (repr(float(m)) for m in moments)
    return (
        f'<inertial>{placed(rng, 0.1)}<mass value="{mass!r}"/>'
        f'<inertia ixx="{ixx}" iyy="{iyy}" izz="{izz}" ixy="0" ixz="0" iyz="0"/></inertial>'
    )


def random_urdf(rng: np.random.Generator, joints: int, kinds=("revolute", "revolute", "prismatic")) -> str:
    """Draw the URDF of a tree of `joints` moving joints.

    Some links have another link on a fixed joint; `tool0` is fixed to the last link.
    """
    parts = [f'<link name="base">{random_inertial(rng)}</link>']
    for i in range(joints):
        parent = "base" if i == 0 else f"link{rng.integers(max(0, i - 2), i)}"
        axis = rng.normal(size=3)
        parts += [
            f'<link name="link{i}">{random_inertial(rng)}</link>',
            f'<joint name="joint{i}" type="{rng.choice(kinds)}">',
            f'<parent link="{parent}"/><child link="link{i}"/>{placed(rng, 0.3)}',
            f'<axis xyz="{text(axis / np.linalg.norm(axis))}"/>',
            '<limit lower="-3" upper="3" velocity="5" effort="100"/></joint>',
        ]
        if rng.random() < 0.4:
            parts += [
                f'<link name="extra{i}">{random_inertial(rng)}</link>',
                f'<joint name="fixed{i}" type="fixed"><parent link="link{i}"/>',
                f'<child link="extra{i}"/>{placed(rng, 0.2)}</joint>',
            ]
    parts += [
        '<link name="tool0"><inertial><mass value="0"/>',
        '<inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>',
        f'<joint name="to_tool" type="fixed"><parent link="link{joints - 1}"/><child link="tool0"/>',
        f"{placed(rng, 0.2)}</joint>",
    ]
    return "\n".join(['<robot name="random">', *parts, "</robot>"])


def interpreted(robot):
    """Make a robot run its generated kernels as plain Python, without compilation, and return it."""
    module = SimpleNamespace()
    text = kernels.source(robot.tree, robot.embedding, robot.embedding_offset, robot.loops)
    exec(re.sub(r"@(cached_njit|njit)\(.*\)\n", "", text), module.__dict__)
    robot.__dict__["kernels"] = module
    return robot
