"""Pushes: wrenches over time at the tool, as a person or a process exerts them.

A push is a force element: a wrench as a function of the time and of the joint positions.  The engine and the
analytic plant get it as the argument `wrench` of `step`, evaluated at the state before the step by the same
code, so that both remain equal to rounding.  The contact solver of the engine takes no part.

    1.0:2.0 20,10,-30            force in [N] from 1 s to 2 s, base axes
    1.0:2.0 0,0,-30,0,0,2 tool   force, and moment in [N m], in the axes of the tool
    push.csv tool                columns t,fx,fy,fz or t,fx,fy,fz,mx,my,mz, linear between the rows

Several pushes are separated by `;` and add up.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, real_array
from twin.physics.kinematics.forward import forward_kinematics
from twin.physics.robot.robot import Robot

COMPONENTS = ("fx", "fy", "fz", "mx", "my", "mz")
"""Names of the components of a wrench."""
EDGE = 1e-9
"""[s]: a push begins and ends this much earlier, because the times of samples are rounded."""


@dataclass(frozen=True, eq=False)
class Pushes:
    """Pushes on the tool, linear between the rows of each, and zero before its first and from its last row.

    Attributes:
        rows: (R, 9) number of the push, 1 for the axes of the tool or 0 for those of the base, time in [s],
            and wrench `[f; mu]` on the robot at the tool's origin, in [N, N m].  The numbers do not decrease,
            and the times of a push increase.
        T_flange_tool: (4, 4) pose of the tool on the flange; by default the flange itself.

    Raises:
        ValueError: the rows have another form.

    Example:
        >>> import twin
        >>> push = twin.dynamics.pushes_of("1:2 20,10,-30; 1.5:3 0,0,5")
        >>> push.wrench(twin.load("irb140"), [0.9, 1.6, 2.5], [[0.0] * 6] * 3)[:, :3].tolist()
        [[0.0, 0.0, 0.0], [20.0, 10.0, -25.0], [0.0, 0.0, 5.0]]
    """

    rows: Floats
    T_flange_tool: Floats = field(default_factory=lambda: np.eye(4))

    def __post_init__(self) -> None:
        rows = real_array(self.rows, "rows of a push")
        if rows.ndim != 2 or rows.shape[1] != 9 or not np.all(np.isfinite(rows)):
            raise ValueError(f"expected finite rows (R, 9) of pushes, got shape {rows.shape}")
        number, axes, t = rows[:, :3].T
        same = np.diff(number) == 0
        rises = np.all(np.diff(t)[same] > 0)
        if not (rises and np.all(np.diff(number) >= 0) and np.all(np.isin(axes, (0, 1)))):
            raise ValueError("expected pushes in order, with times that increase, in axes 0 or 1")

    def wrench(self, robot: Robot, t: ArrayLike, q: ArrayLike) -> Floats:
        """Return the wrenches (..., 6) at times t (...,) and positions q (..., n), base axes, in [N, N m]."""
        t = np.asarray(t, dtype=np.float64)
        found = np.zeros((*t.shape, 6))
        for number in np.unique(self.rows[:, 0]):
            _, axes, times, *columns = self.rows[self.rows[:, 0] == number].T
            acts = (t >= times[0] - EDGE) & (t < times[-1] - EDGE)
            if not np.any(acts):
                continue
            F = np.stack([np.interp(t, times, column) for column in columns], axis=-1)
            if axes[0]:
                R = forward_kinematics(robot, q, self.T_flange_tool)[..., :3, :3]
                parts = F.reshape(*t.shape, 2, 3)
                F = np.einsum("...ij,...kj->...ki", R, parts).reshape(F.shape)
            found += np.where(acts[..., None], F, 0.0)
        return found


def pushes_of(text: str, T_flange_tool: ArrayLike | None = None) -> Pushes:
    """Return the pushes that a text describes, see the module.

    Args:
        text: pushes, separated by `;`.
        T_flange_tool: (4, 4) pose of the tool on the flange; by default the flange itself.

    Raises:
        ValueError: the text is invalid, or a file cannot be read or is invalid.
    """
    rows = []
    for number, part in enumerate(text.split(";")):
        one = part.strip()
        in_tool = one.endswith(" tool")
        one = one.removesuffix(" tool").strip()
        table = _file(one) if one.lower().endswith(".csv") else _constant(one)
        rows += [[float(number), float(in_tool), *row] for row in table]
    return Pushes(np.array(rows), np.eye(4) if T_flange_tool is None else real_array(T_flange_tool, "tool"))


def _constant(text: str) -> list[list[float]]:
    """Return the first and the last row of `start:end Fx,Fy,Fz[,Mx,My,Mz]`: time and wrench."""
    span, _, numbers = text.partition(" ")
    try:
        start, end = map(float, span.split(":"))
        wrench = [float(word) for word in numbers.split(",")]
    except ValueError:
        start, end, wrench = 0.0, 0.0, []
    if len(wrench) not in (3, 6):
        raise ValueError(
            "expected a push as start:end Fx,Fy,Fz or start:end Fx,Fy,Fz,Mx,My,Mz in s, N and N m, with "
            f"'tool' after it for tool axes, or as a file .csv, got {text!r}"
        )
    if not np.all(np.isfinite([start, end, *wrench])):
        raise ValueError(f"expected finite numbers of a push, got {text!r}")
    if not 0 <= start < end:
        raise ValueError(
            f"expected a push that starts at 0 s or later and ends after its start, got {text!r}"
        )
    padded = [*wrench, 0.0, 0.0, 0.0][:6]
    return [[start, *padded], [end, *padded]]


def _file(path: str) -> list[list[float]]:
    """Return the rows of a CSV file: time and wrench."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            head, *lines = [row for row in csv.reader(file) if row] or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"cannot read the push {path}: {getattr(error, 'strerror', None) or error}"
        ) from None
    names = [name.strip().lower() for name in head]
    if names not in (["t", *COMPONENTS[:3]], ["t", *COMPONENTS]):
        expected = "the columns t,fx,fy,fz or t,fx,fy,fz,mx,my,mz"
        raise ValueError(f"{path}: expected {expected} of a push, got {','.join(head)!r}")
    rows: list[list[float]] = []
    for line, cells in enumerate(lines, 2):
        try:
            row = [float(cell) for cell in cells]
        except ValueError:
            row = []
        if len(row) != len(names) or not np.all(np.isfinite(row)):
            raise ValueError(f"{path}: expected {len(names)} finite numbers in row {line}, got {cells}")
        if rows and not row[0] > rows[-1][0]:
            raise ValueError(f"{path}: expected times that increase, got {row[0]:g} s in row {line}")
        rows.append([*row, 0.0, 0.0, 0.0][:7])
    if len(rows) < 2:
        raise ValueError(f"{path}: expected at least two rows of a push, got {len(rows)}")
    return rows
