"""Bodies of a cell that the tool touches: its objects with a stiffness."""

import numpy as np

from twin.base.arrays import Floats
from twin.base.errors import CellError
from twin.physics.dynamics.environment import surface
from twin.studies.cell.cell import Cell


def touched_surfaces(cell: Cell, tip: float = 0.0) -> list[Floats]:
    """Return the rows (21,) of a cell's objects with a stiffness, for `twin.dynamics.Environment`.

    Args:
        cell: the cell.
        tip: radius of the ball at the tool's origin that touches them, in [m].

    Raises:
        CellError: an object is a mesh, or a number is invalid; or no object has a stiffness.
    """
    rows, T_base_world = [], np.linalg.inv(cell.T_world_base)
    for one in cell.objects:
        for shape in one.shapes if one.contact else ():
            where = f"{cell.file}: objects.{one.name}"
            if "mesh" in shape:
                raise CellError(f"{where}: a mesh cannot be touched, expected a box, a sphere or a cylinder")
            try:
                given = {**shape, **one.contact, "tip": tip}
                rows.append(surface(given, T_base_world @ one.T_world_frame))
            except ValueError as error:
                raise CellError(f"{where}: {error}") from None
    if not rows:
        raise CellError(f"{cell.file}: expected an object with a stiffness, which the tool can touch")
    return rows
