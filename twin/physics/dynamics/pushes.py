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
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from twin.base.arrays import Floats, real_array

if TYPE_CHECKING:
    from twin.physics.robot.robot import Robot

COMPONENTS = {"fx": "N", "fy": "N", "fz": "N", "mx": "N m", "my": "N m", "mz": "N m"}
"""Components of a wrench with their units."""
EDGE = 1e-9
"""[s]: a push begins and ends this much earlier, because the times of samples are rounded."""


@dataclass(frozen=True, eq=False)
class Pushes:
    """Pushes on the tool, linear between the rows of each, and zero before its first and from its last row.

    Attributes:
        rows: (R, 9) number of the push, 1 for the axes of the tool or 0 for those of the base, time in [s],
            and wrench `[f; mu]` on the robot at the tool's origin, in [N, N m].  The times of a push rise.
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
        rows = real_array(self.rows, "rows of pushes")
        if rows.ndim != 2 or rows.shape[1] != 9:
            raise ValueError(f"expected rows (R, 9) of pushes, got shape {rows.shape}")
        for number in dict.fromkeys(rows[:, 0].tolist()):
            one = rows[rows[:, 0] == number]
            times = one[:, 2]
            if not np.all(np.isfinite(one)):
                raise ValueError(f"push {number + 1:g}: expected finite numbers")
            if len(one) < 2 or not np.all(np.diff(times) > 0):
                got = ", ".join(f"{t:g}" for t in times[:8])
                raise ValueError(f"push {number + 1:g}: expected two or more rising times in s, got {got}")

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
                from twin.physics.kinematics.forward import forward_kinematics  # imported here: loads scipy

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

    Example:
        >>> import twin
        >>> twin.dynamics.pushes_of("1.0:2.0 20,10,-30").rows.tolist()
        [[0.0, 0.0, 1.0, 20.0, 10.0, -30.0, 0.0, 0.0, 0.0], [0.0, 0.0, 2.0, 20.0, 10.0, -30.0, 0.0, 0.0, 0.0]]
    """
    rows = []
    for number, part in enumerate(text.split(";")):
        one = part.strip().removesuffix(" tool").strip()
        table = _file(one) if one.lower().endswith(".csv") else _constant(one)
        if not table:
            raise ValueError(f"{one}: expected two or more rows of a push")
        rows += [[float(number), float(part.strip().endswith(" tool")), *row] for row in table]
    return Pushes(np.array(rows), np.eye(4) if T_flange_tool is None else real_array(T_flange_tool, "tool"))


def _constant(text: str) -> list[list[float]]:
    """Return the first and the last row of `start:end Fx,Fy,Fz[,Mx,My,Mz]`: time and wrench."""
    span, _, wrench = text.partition(" ")
    try:
        start, end = map(float, span.split(":"))
        return [_row([t, *wrench.split(",")], (4, 7)) for t in (start, end)]
    except ValueError:
        raise ValueError(
            "expected a push as start:end Fx,Fy,Fz or start:end Fx,Fy,Fz,Mx,My,Mz in s, N and N m, with "
            f"'tool' after it for tool axes, or as a file .csv, got {text!r}"
        ) from None


def _file(path: str) -> list[list[float]]:
    """Return the rows of a CSV file: time and wrench."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            head, *lines = [row for row in csv.reader(file) if row] or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"cannot read the push {path}: {reason}") from None
    names, known = [name.strip().lower() for name in head], ("t", *COMPONENTS)
    if tuple(names) not in (known[:4], known):
        raise ValueError(f"{path}: expected columns t,fx,fy,fz[,mx,my,mz] of a push, got {','.join(head)!r}")
    rows = []
    for number, cells in enumerate(lines, 1):
        try:
            rows.append(_row(cells, (len(names),)))
        except ValueError:
            raise ValueError(f"{path}: expected {len(names)} numbers in row {number}, got {cells}") from None
    return rows


def _row(cells: Sequence[str | float], counts: tuple[int, ...]) -> list[float]:
    """Return time and wrench, with a moment of 0 if there is none; raise `ValueError` for another count."""
    values = [float(cell) for cell in cells]
    if len(values) not in counts:
        raise ValueError
    return [*values, 0.0, 0.0, 0.0][:7]
