"""Kinematics of the Ljubljana laboratory's arms: their Denavit-Hartenberg tables as URDF text."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import twin
from tests.support.random_trees import interpreted

RIGHT = np.pi / 2
SOME_BODY = (
    '<inertial><origin xyz="0 0 0"/><mass value="1"/>'
    '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>'
)
NO_BODY = SOME_BODY.replace('"1"', '"0"').replace("0.1", "0")


def urdf_of(dh) -> str:
    """Return a DH table as URDF text.

    Each row `Rz(theta) Tz(d) Tx(a) Rx(alpha)` becomes a joint and a fixed frame; the last frame is `tool0`.
    """
    n = len(dh["d"])
    parts = ['<robot name="arm">', f'<link name="frame0">{SOME_BODY}</link>']
    for i in range(n):
        link, frame = f"link{i + 1}", "tool0" if i == n - 1 else f"frame{i + 1}"
        a, d, alpha = dh["a"][i], dh["d"][i], np.deg2rad(dh["alpha_deg"][i])
        parts += [
            f'<link name="{link}">{SOME_BODY}</link><link name="{frame}">{NO_BODY}</link>',
            f'<joint name="joint_{i + 1}" type="revolute"><parent link="frame{i}"/><child link="{link}"/>',
            f'<origin rpy="0 0 {dh["theta0"][i]!r}"/><axis xyz="0 0 1"/>',
            '<limit lower="-10" upper="10" velocity="5" effort="100"/></joint>',
            f'<joint name="row_{i + 1}" type="fixed"><parent link="{link}"/><child link="{frame}"/>',
            f'<origin xyz="{a!r} 0 {d!r}" rpy="{float(alpha)!r} 0 0"/></joint>',
        ]
    return "\n".join([*parts, "</robot>"])


COLUMNS = ("theta0", "d", "a", "alpha_deg")
ROWS = {
    "rx90": ([0] * 6, [0, 0, 0, 0.45, 0, 0.085], [0, 0.45, 0, 0, 0, 0], [-90, 0, 90, -90, 90, 0]),
    "youbot": ([0, -RIGHT, 0, RIGHT, 0], [0.147, 0, 0, 0, 0.117], [0.033, 0.155, 0.135, 0, 0],
               [-90, 0, 0, 90, 0]),
    "seven": ([0.0] * 7, [0.34, 0, 0.4, 0, 0.4, 0, 0.126], [0.0] * 7, [-90, 90, 90, -90, -90, 90, 0]),
}  # fmt: skip
TABLES = {name: dict(zip(COLUMNS, rows, strict=True)) for name, rows in ROWS.items()}
SEVEN = TABLES["seven"]


@cache
def laboratory_arm(name):
    """Return an arm of five, six or seven joints, not compiled; it is loaded once in a process."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.urdf"
        path.write_text(urdf_of(TABLES[name]))
        return interpreted(twin.load(path))
