"""Parts of a log between changes of the arm's payload.

A log has one robot.  If the payload changes during a run, two arrays of the log state it: `loads` (L, 10),
one row per payload, and `load` (N,), the row that acts in the step after each sample.  A row contains mass,
centre of mass, and Ixx, Iyy, Izz, Ixy, Ixz, Iyz about it, in [kg, m, kg m^2], flange frame; the mass of no
payload is 0.  Equations of motion apply to the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from twin.arrays import Floats
from twin.errors import TwinError
from twin.robot.robot import Payload

if TYPE_CHECKING:
    from twin.logs.log import Log

LOAD, LOADS = "load", "loads"
"""Names of the two arrays."""


class LoadChange(NamedTuple):
    """Change of the payload during a run.

    Attributes:
        sample: first sample with this payload.
        payload: payload of the plant; `None` for none.
        model_payload: payload in the controller's model.
    """

    sample: int
    payload: Payload | None
    model_payload: Payload | None


def load_arrays(changes: Sequence[LoadChange], samples: int) -> dict[str, np.ndarray]:
    """Return the arrays `load` and `loads` of a log of N samples; the first change is at sample 0."""
    starts = [change.sample for change in changes]
    index = np.searchsorted(starts, np.arange(samples), side="right") - 1
    return {LOAD: index, LOADS: np.array([_row(change.payload) for change in changes])}


def _row(payload: Payload | None) -> list[float]:
    if payload is None:
        return [0.0] * 10
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = np.asarray(payload.inertia).tolist()
    return [payload.mass, *np.asarray(payload.com).tolist(), xx, yy, zz, xy, xz, yz]


def payload_of_row(row: Floats) -> Payload | None:
    """Return the payload of a row of `loads`, `None` for the mass 0."""
    mass, *com = row[:4].tolist()
    xx, yy, zz, xy, xz, yz = row[4:].tolist()
    return Payload(mass, com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) if mass else None


def require_valid_loads(log: Log) -> None:
    """Raise `TwinError` if the arrays of the payloads do not fit the log."""
    if LOAD not in log.arrays:
        return
    index, rows = log.arrays[LOAD], log.arrays.get(LOADS, np.zeros(0))
    if index.dtype.kind != "i" or index.shape != log.t.shape or rows.ndim != 2 or rows.shape[1] != 10:
        raise TwinError(f"expected {LOAD} (N,) of whole numbers and {LOADS} (L, 10), got {rows.shape}")
    if not (np.all(index >= 0) and np.all(index < len(rows))):
        raise TwinError(f"expected {LOAD} to be from 0 to {len(rows) - 1}")


def parts(log: Log) -> tuple[Log, ...]:
    """Return the parts of a log with a constant payload, in order; the log itself without changes.

    Each part ends with the first sample of the next one, which is the state after its last step.

    Example:
        >>> import twin
        >>> from scenarios import gravity_hold
        >>> log = gravity_hold.run(gravity_hold.Config(duration=0.1))
        >>> twin.logs.parts(log)[0] is log
        True
    """
    from twin.logs.columns import samples_of

    if LOAD not in log.arrays:
        return (log,)
    index = log.arrays[LOAD]
    starts = [0, *(np.flatnonzero(np.diff(index)) + 1), len(index)]
    found = []
    for first, last in pairwise(starts):
        piece = samples_of(log, np.arange(first, min(last + 1, len(index))))
        arrays = {name: array for name, array in piece.arrays.items() if name not in (LOAD, LOADS)}
        payload = payload_of_row(log.arrays[LOADS][index[first]])
        found.append(replace(piece, robot=log.robot.with_payload(payload), arrays=arrays))
    return tuple(found)
