"""Payloads of a run in which they change.

A log has one robot.  If the payload changes during a run, `Log.payloads` states it.  Equations of motion
apply to the parts of the log, see `twin.logs.parts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import TwinError
from twin.physics.robot.robot import Payload


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


@dataclass(frozen=True, eq=False)
class Payloads:
    """Payloads of a run in which they change.

    Attributes:
        load: (N,) row of `loads` that acts in the step after each sample.
        loads: (L, 10) payloads, one row each: mass, centre of mass, and Ixx, Iyy, Izz, Ixy, Ixz, Iyz about
            it, in [kg, m, kg m^2], flange frame.  The mass of no payload is 0.
    """

    load: np.ndarray
    loads: np.ndarray

    @staticmethod
    def of(changes: Sequence[LoadChange], samples: int) -> Payloads:
        """Return the payloads of N samples; the first change is at sample 0."""
        starts = [change.sample for change in changes]
        load = np.searchsorted(starts, np.arange(samples), side="right") - 1
        return Payloads(load, np.array([_row(change.payload) for change in changes]))

    def require_valid(self, samples: int) -> None:
        """Raise `TwinError` unless the arrays are those of N samples."""
        load, loads = self.load, self.loads
        if load.dtype.kind != "i" or load.shape != (samples,) or loads.ndim != 2 or loads.shape[1] != 10:
            raise TwinError(f"expected load (N,) of whole numbers and loads (L, 10), got {loads.shape}")
        if not (np.all(load >= 0) and np.all(load < len(loads))):
            raise TwinError(f"expected load to be from 0 to {len(loads) - 1}")


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
